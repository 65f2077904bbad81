"""HMC for a tempered point: leapfrog steps that carry log γ0 and Δ apart, with their gradients.

A kernel that knows one density returns log γ_β and not its two parts, so a tempering method would have to evaluate the
target once more after every step. Here each leapfrog step evaluates both parts at once, and nothing else is needed.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from pseudo_extended.kernels.abstract import KernelInfo, Trajectory
from pseudo_extended.kernels.metric import Metric
from pseudo_extended.kernels.tempered import TemperedPoint, select, tempered_point
from pseudo_extended.randomness import normals_and_uniforms
from pseudo_extended.target import Target

MAX_ENERGY_ERROR = 1000.0
"""Beyond it a trajectory counts as divergent, as in BlackJAX and Stan."""


def jittered(
    step_size: Float[Array, "*step_size"], jitter: float, uniform: Float[Array, ""]
) -> Float[Array, "*step_size"]:
    """The step size of one trajectory, uniform between 1 - jitter and 1 + jitter times the given one."""
    return step_size * ((1 - jitter) + 2 * jitter * uniform) if jitter else step_size


def leapfrog(
    target: Target,
    beta: Float[Array, ""],
    start: TemperedPoint,
    momentum: Float[Array, " d"],
    step_size: Float[Array, ""],
    metric: Metric,
    num_steps: int | Int[Array, ""],
) -> tuple[TemperedPoint, Float[Array, " d"]]:
    """Follow Hamilton's equations on γ_β; momenta are standard normal, and the metric stretches the velocities."""

    def force(point: TemperedPoint) -> Float[Array, " d"]:
        gradient = point.gradient(beta)
        assert gradient is not None  # points of Hamiltonian kernels carry gradients
        return 0.5 * step_size * metric.force(gradient)

    def once(_: Any, carry: tuple[TemperedPoint, Array]) -> tuple[TemperedPoint, Array]:
        point, momentum = carry
        momentum = momentum + force(point)
        point = tempered_point(target, point.position + step_size * metric.velocity(momentum), gradient=True)
        return point, momentum + force(point)

    return jax.lax.fori_loop(0, num_steps, once, (start, momentum))


def move_by_leapfrog(
    key: Key[Array, ""],
    target: Target,
    beta: Float[Array, ""],
    point: TemperedPoint,
    step_size: Float[Array, ""],
    metric: Metric,
    trajectory: Trajectory,
) -> tuple[TemperedPoint, KernelInfo]:
    """Draw a momentum and the length of a trajectory, follow it, and accept its end or stay."""
    momentum, uniform = normals_and_uniforms(key, point.position.shape[-1], 2)
    size = jittered(step_size, trajectory.jitter, uniform[0])
    end, last = leapfrog(target, beta, point, momentum, size, metric, trajectory.num_steps)
    log_density, gradient = end.log_density(beta), end.gradient(beta)
    assert gradient is not None
    finite = jnp.isfinite(log_density) & jnp.all(jnp.isfinite(gradient))
    gained = log_density - point.log_density(beta) + 0.5 * (jnp.sum(momentum**2) - jnp.sum(last**2))
    gained = jnp.where(finite & ~jnp.isnan(gained), gained, -jnp.inf)
    rate = jnp.exp(jnp.minimum(gained, 0.0))
    info = KernelInfo(rate[None], -gained > MAX_ENERGY_ERROR, ~finite, jnp.asarray(trajectory.num_steps))
    return select(uniform[1] < rate, end, point), info
