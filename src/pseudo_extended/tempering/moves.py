"""Moves of many tempered points at once, each at a β of its own; they leave γ_β of each point invariant."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pseudo_extended.kernels import AbstractKernel, KernelInfo, Metric, TemperedPoint
from pseudo_extended.kernels.metric import Factor, SharedFactor
from pseudo_extended.kernels.tempered import select
from pseudo_extended.target import Target


def move_points(
    key: Key[Array, ""],
    kernel: AbstractKernel,
    target: Target,
    points: TemperedPoint,
    beta: Float[Array, " point"],
    step_size: Float[Array, " point"],
    factor: Factor,
    shared: SharedFactor | None = None,
) -> tuple[TemperedPoint, KernelInfo]:
    """Move every point once by a kernel, at its own β and with its own step size and metric.

    The path ends at the target, so points stay where the target is positive: a move to any other place is refused, also
    at β = 0. The account has one entry for each point.
    """
    keys = jax.random.split(key, beta.shape[0])

    def one(key: Any, point: Any, beta: Any, step_size: Any, factor: Any) -> tuple[TemperedPoint, KernelInfo]:
        return move_point(key, kernel, target, point, beta, step_size, factor, shared)

    return jax.vmap(one)(keys, points, beta, step_size, factor)


def move_point(
    key: Key[Array, ""],
    kernel: AbstractKernel,
    target: Target,
    point: TemperedPoint,
    beta: Float[Array, ""],
    step_size: Float[Array, ""],
    factor: Factor,
    shared: SharedFactor | None = None,
) -> tuple[TemperedPoint, KernelInfo]:
    """Move one point once, as `move_points` does."""
    steps = jnp.broadcast_to(step_size, kernel.target_acceptance.shape)
    moved, info = kernel.move_tempered(key, target, beta, point, steps, Metric.from_factor(factor, shared))
    finite = moved.is_finite()
    info = info._replace(acceptance_rate=jnp.nanmean(info.acceptance_rate), non_finite=info.non_finite | ~finite)
    return select(finite, moved, point), info


def draw_fresh(
    key: Key[Array, ""], draw_base: Callable[[Key[Array, ""]], Float[Array, " d"]], number: int
) -> Float[Array, "point d"]:
    """Draw as many places from the base."""
    return jax.vmap(draw_base)(jax.random.split(key, number))


def refresh(
    key: Key[Array, ""], fresh: TemperedPoint, points: TemperedPoint, beta: Float[Array, " point"]
) -> tuple[TemperedPoint, Float[Array, " point"], Float[Array, " point"]]:
    """Offer every point a draw from the base, and accept it with probability min(1, exp{β (Δ' - Δ)}).

    Returns the points, the acceptance rates, and Δ at what was offered, -inf where the target vanishes.
    """
    finite = fresh.is_finite()
    rate = jnp.where(finite, jnp.exp(jnp.minimum(beta * (fresh.delta - points.delta), 0.0)), 0.0)
    accepted = jax.random.uniform(key, beta.shape, dtype=float) < rate
    return select(accepted, fresh, points), rate, jnp.where(finite, fresh.delta, -jnp.inf)
