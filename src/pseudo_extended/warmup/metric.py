"""The metric: a running covariance (Welford), shrunk as in Stan."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

InverseMass = Float[Array, " dim"] | Float[Array, "dim dim"]


class RunningCovariance(NamedTuple):
    """Number of points, mean, and squared deviations: a vector for a diagonal metric, a matrix for a dense one."""

    num_points: Float[Array, ""]
    mean: Float[Array, " dim"]
    squares: InverseMass


def no_covariance(dim: int, *, dense: bool) -> RunningCovariance:
    """Before anything was seen."""
    return RunningCovariance(jnp.zeros(()), jnp.zeros(dim), jnp.zeros((dim, dim) if dense else dim))


def add_point(running: RunningCovariance, position: Float[Array, " dim"]) -> RunningCovariance:
    """Add a point to the running covariance."""
    num_points = running.num_points + 1
    before = position - running.mean
    mean = running.mean + before / num_points
    after = position - mean
    product = jnp.outer(before, after) if running.squares.ndim == 2 else before * after
    return RunningCovariance(num_points, mean, running.squares + product)


def inverse_mass(running: RunningCovariance, previous: InverseMass) -> InverseMass:
    """The covariance, shrunk towards a thousandth of the previous diagonal with the weight of five points.

    Stan shrinks towards 0.001 itself, which is far too much for a parameter on the scale of 1e-6; this starts there,
    from a unit metric, and follows the scale from window to window.
    """
    covariance = running.squares / jnp.maximum(running.num_points - 1, 1)
    floor = 1e-3 * (jnp.diag(jnp.diagonal(previous)) if previous.ndim == 2 else previous)
    return (running.num_points * covariance + 5 * floor) / (running.num_points + 5)


def step_ratio(old: InverseMass, new: InverseMass) -> Float[Array, ""]:
    """How much longer steps may be in the `new` metric, if it is the covariance, than in the `old` one.

    A leapfrog step is limited by the narrowest direction, in units of the metric: by 1/λ with λ² the largest
    eigenvalue of old × covariance⁻¹, and by 1 when the metric is the covariance. Stan searches for a step afresh, at
    the price of tracing the density once more; this is in closed form.
    """
    if new.ndim == 1:
        return jnp.sqrt(jnp.max(old / new))
    factor = jnp.linalg.cholesky(new)
    half = jax.scipy.linalg.solve_triangular(factor, old, lower=True)
    return jnp.sqrt(jnp.linalg.eigvalsh(jax.scipy.linalg.solve_triangular(factor, half.T, lower=True))[-1])
