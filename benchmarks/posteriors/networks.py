"""A small Bayesian neural network, whose weights are not identified and whose predictions are."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from posteriors.posterior import Posterior


def network(num_rows: int = 80, width: int = 16) -> Posterior:
    """Regression by a network of two inputs, sixteen hidden units and one output; d = 65, predictions at 16 places."""
    rng = np.random.default_rng(28)
    inputs = rng.uniform(-2, 2, size=(num_rows, 2))
    outcome = np.sin(2 * inputs[:, 0]) * np.cos(inputs[:, 1]) + 0.2 * rng.normal(size=num_rows)
    places = np.linspace(-1.8, 1.8, 4)
    grid = np.stack(np.meshgrid(places, places), axis=-1).reshape(-1, 2)

    def predict(x: Float[Array, " d"], inputs: Float[np.ndarray, "row 2"]) -> Float[Array, " row"]:
        first, shift = x[: 2 * width].reshape(2, width), x[2 * width : 3 * width]
        second, offset = x[3 * width : 4 * width], x[4 * width]
        return jnp.tanh(inputs @ first + shift) @ second + offset

    def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
        residual = (outcome - predict(x, inputs)) / 0.2
        return -0.5 * jnp.sum(residual**2) - 0.5 * jnp.sum(x**2)

    return Posterior(log_density, np.zeros(4 * width + 1), lambda x: predict(x, grid))


FACTORIES: dict[str, Callable[[], Posterior]] = {"network-65": network}
