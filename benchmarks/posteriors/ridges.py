"""Curved and funnel-shaped densities, with moments by quadrature."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from posteriors.posterior import Moments, Posterior


def rosenbrock(dim: int = 6) -> Posterior:
    """Rosenbrock's chain, exp{-Σ [100 (x_{i+1} - x_i²)² + (1 - x_i)²]/20}; moments by transfer along a grid."""

    def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
        return -jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2) / 20

    # All but the last have a factor (1 - x)², which the square of x⁴ in the last moment must not outgrow at the ends.
    grid = np.linspace(-7.0, 25.0, 4001)
    own = np.exp(-((1 - grid) ** 2) / 20)
    transfer = own[:, None] * np.exp(-5 * (grid - grid[:, None] ** 2) ** 2)
    forward, backward = [np.ones_like(grid)], [own]
    for _ in range(dim - 2):
        forward.append(forward[-1] @ transfer)
        forward[-1] /= forward[-1].max()
        backward.append(transfer @ backward[-1])
        backward[-1] /= backward[-1].max()
    marginals = np.array([f * b for f, b in zip(forward, reversed(backward), strict=True)])
    marginals /= marginals.sum(axis=1, keepdims=True)
    mean, square = marginals @ grid, marginals @ grid**2
    fourth = marginals[-1] @ grid**4
    moments = Moments.exact(np.append(mean, square[-1]), np.append(square, fourth + 0.1))
    return Posterior(log_density, np.zeros(dim), moments=moments)


def funnel(dim: int = 10) -> Posterior:
    """Neal's funnel: v ~ N(0, 3²), the others N(0, e^v); x has huge moments, so x/(1 + |x|) is estimated."""

    def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
        v, rest = x[0], x[1:]
        return -0.5 * (v / 3) ** 2 - 0.5 * jnp.sum(rest**2) * jnp.exp(-v) - 0.5 * (dim - 1) * v

    def quantities(x: Float[Array, " d"]) -> Float[Array, " d"]:
        return jnp.concatenate([x[:1], x[1:] / (1 + jnp.abs(x[1:]))])

    node = np.linspace(-9.0, 9.0, 2001)
    weight = np.exp(-0.5 * node**2)
    weight /= weight.sum()
    v = np.linspace(-27.0, 27.0, 2001)
    size = np.abs(np.exp(0.5 * v)[:, None] * node)
    given_v = (size / (1 + size)) ** 2 @ weight
    of_v = np.exp(-0.5 * (v / 3) ** 2)
    square = float(given_v @ of_v / of_v.sum())
    moments = Moments.exact(np.zeros(dim), np.append(9.0, np.full(dim - 1, square)))
    return Posterior(log_density, np.zeros(dim), quantities, moments)


FACTORIES: dict[str, Callable[[], Posterior]] = {"rosenbrock-6": rosenbrock, "funnel-10": funnel}
