"""Normals: correlated, badly scaled, rotated, and plain; all moments are exact."""

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from posteriors.posterior import Moments, Posterior


def autoregressive(dim: int, rho: float = 0.95) -> Posterior:
    """A stationary AR(1) series with unit variances; the condition number grows to ((1 + ρ)/(1 - ρ))²."""

    def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
        innovation = (x[1:] - rho * x[:-1]) / np.sqrt(1 - rho**2)
        return -0.5 * (x[0] ** 2 + jnp.sum(innovation**2))

    return Posterior(log_density, np.zeros(dim), moments=Moments.exact(np.zeros(dim), np.ones(dim)))


def scaled(dim: int) -> Posterior:
    """Independent normals whose standard deviations go from 0.01 to 1."""
    sd = np.geomspace(0.01, 1.0, dim)

    def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
        return -0.5 * jnp.sum((x / sd) ** 2)

    return Posterior(log_density, np.zeros(dim), moments=Moments.exact(np.zeros(dim), sd**2))


def rotated(dim: int = 100) -> Posterior:
    """A random rotation of independent normals with standard deviations from 0.03 to 3: no diagonal metric helps."""
    sd = np.geomspace(0.03, 3.0, dim)
    rotation, _ = np.linalg.qr(np.random.default_rng(20).normal(size=(dim, dim)))
    whiten = (rotation / sd).T

    def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
        return -0.5 * jnp.sum((jnp.asarray(whiten) @ x) ** 2)

    return Posterior(log_density, np.zeros(dim), moments=Moments.exact(np.zeros(dim), (rotation**2) @ sd**2))


def unit(dim: int) -> Posterior:
    """Independent unit normals around 3, so that the start is not the answer."""

    def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
        return -0.5 * jnp.sum((x - 3.0) ** 2)

    return Posterior(log_density, np.zeros(dim), moments=Moments.exact(np.full(dim, 3.0), np.full(dim, 10.0)))


FACTORIES: dict[str, Callable[[], Posterior]] = {
    **{f"ar1-{dim}": partial(autoregressive, dim) for dim in (20, 50, 200)},
    **{f"scaled-{dim}": partial(scaled, dim) for dim in (10, 50)},
    "rotated-100": rotated,
    **{f"unit-{dim}": partial(unit, dim) for dim in (200, 1000)},
}
