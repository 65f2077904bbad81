"""The metric: a running covariance (Welford), shrunk as in Stan."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float


class RunningCovariance(NamedTuple):
    """Number of points, mean, and squared deviations: a vector for a diagonal metric, a matrix for a dense one."""

    num_points: Float[Array, ""]
    mean: Float[Array, " dim"]
    squares: Float[Array, " dim"] | Float[Array, "dim dim"]


def no_covariance(dim: int, *, dense: bool) -> RunningCovariance:
    """Before anything was seen."""
    return RunningCovariance(jnp.zeros(()), jnp.zeros(dim), jnp.zeros((dim, dim) if dense else dim))


def add_point(running: RunningCovariance, position: Float[Array, " dim"]) -> RunningCovariance:
    """One more point."""
    num_points = running.num_points + 1
    before = position - running.mean
    mean = running.mean + before / num_points
    after = position - mean
    product = jnp.outer(before, after) if running.squares.ndim == 2 else before * after
    return RunningCovariance(num_points, mean, running.squares + product)


def inverse_mass(running: RunningCovariance) -> Float[Array, " dim"] | Float[Array, "dim dim"]:
    """The covariance, shrunk towards 0.001 with the weight of five points."""
    covariance = running.squares / jnp.maximum(running.num_points - 1, 1)
    floor = 1e-3 * (jnp.eye(running.mean.size) if running.squares.ndim == 2 else jnp.ones(running.mean.size))
    return (running.num_points * covariance + 5 * floor) / (running.num_points + 5)
