"""In more than 200 dimensions the pilot keeps matrices for modes that are about normal, and only for those."""

import jax.numpy as jnp
import numpy as np

import pseudo_extended as pe
from pseudo_extended.pilot.modes import Modes

DIM = 208


def correlated(x):
    """Two correlated normals far apart, a chain with a correlation of 0.9 between neighbours."""

    def chain(x):
        return -0.5 * (x[0] ** 2 + jnp.sum((x[1:] - 0.9 * x[:-1]) ** 2) / 0.19)

    return jnp.logaddexp(chain(x - 5), chain(x + 5))


def quartic(x):
    return -jnp.sum(x**4) * 50


def pilot_of(log_density):
    result = pe.sample(log_density, jnp.zeros(DIM), chains=2, draws=4, warmup=4, seed=1, progress=False)
    return result.pilot


def test_normal_modes_have_a_short_path():
    pilot = pilot_of(correlated)
    assert pilot.modes.covariance.shape == (2, DIM, DIM)
    assert pilot.candidates[-1].length < 2  # 22 with diagonal covariances


def test_a_mode_that_is_not_normal_has_a_diagonal():
    assert pilot_of(quartic).modes.covariance.shape[1:] == (DIM,)


def test_the_diagonal_is_that_of_the_precision():
    precision = np.array([[2.0, 1.0], [1.0, 4.0]])
    modes = Modes(np.zeros((1, 2)), np.zeros(1), np.linalg.inv(precision)[None], np.ones(1, int))
    np.testing.assert_allclose(modes.diagonal().covariance, [[1 / 2, 1 / 4]])
