"""More images than a list of modes can hold: pseudo-samples are offered images of themselves."""

import jax.numpy as jnp
import numpy as np

import pseudo_extended as pe


def test_signs_of_eight_products():
    """x y is known, up to noise, for eight pairs: 256 patterns of signs, far apart."""
    centres = jnp.linspace(2.0, 4.0, 8)

    def log_density(x):
        pairs = x.reshape(8, 2)
        return -0.5 * jnp.sum(((pairs[:, 0] * pairs[:, 1] - centres) / 0.3) ** 2) - 0.25 * jnp.sum(x**2)

    result = pe.sample(log_density, jnp.full(16, 0.1), draws=1000, seed=1, progress=False)
    assert any("images of themselves" in note for note in result.notes)
    positive = result.expect(lambda x: (x[::2] > 0).astype(float))
    assert np.all(np.asarray(positive.standard_error) < 0.03)
    assert np.all(np.abs(positive.value - 0.5) < 4 * positive.standard_error)
