"""Step sizes and metrics for several temperatures, tuned side by side; each rung has its own of both."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from pseudo_extended import checks
from pseudo_extended.kernels import (
    AbstractKernel,
    KernelInfo,
    KernelParameters,
    KernelState,
    initial_state,
    log_density_at,
    unit_parameters,
)
from pseudo_extended.target import Target
from pseudo_extended.warmup import Adaptation, Stage, WindowedWarmup, first_step_size

LEAST_POINTS = 10
"""A metric from fewer points than this is worse than the last one."""


def start_rungs(
    key: Key[Array, ""],
    kernel: AbstractKernel,
    warmup: WindowedWarmup,
    target: Target,
    betas: Float[Array, " rung"],
    position: Float[Array, " d"],
) -> KernelParameters:
    """A unit metric and a first guess at the step sizes of each rung; every leaf has a leading axis of rungs."""
    unit = unit_parameters(kernel, position.size, dense=warmup.dense)

    def first(key: Key[Array, ""], beta: Float[Array, ""]) -> KernelParameters:
        log_density = log_density_at(target, beta)
        state = initial_state(log_density, position, gradient=kernel.uses_gradient)
        return unit._replace(step_size=first_step_size(key, kernel, log_density, state, unit))

    return jax.vmap(first)(jax.random.split(key, betas.size), betas)


def fixed_rungs(
    kernel: AbstractKernel, warmup: WindowedWarmup, step_size: Float[Array, " rung"], dim: int
) -> KernelParameters:
    """The user's own step sizes, one a rung, in a unit metric."""
    unit = unit_parameters(kernel, dim, dense=warmup.dense)
    return jax.vmap(lambda size: unit._replace(step_size=jnp.full_like(unit.step_size, size)))(step_size)


def adapt_rungs(
    kernel: AbstractKernel,
    warmup: WindowedWarmup,
    adaptation: Adaptation,
    parameters: KernelParameters,
    stage: Stage,
    position: Float[Array, "rung d"],
    acceptance_rate: Float[Array, "rung step_size"],
    visited: Bool[Array, " rung"],
) -> tuple[Adaptation, KernelParameters]:
    """One update of every rung that was visited; the others wait."""

    def one(
        adaptation: Adaptation, parameters: KernelParameters, position: Any, rate: Any, visited: Any
    ) -> tuple[Adaptation, KernelParameters]:
        learns_metric = jnp.asarray(stage.learns_metric) & visited
        enough = adaptation.covariance.num_points + learns_metric >= LEAST_POINTS
        mine = stage._replace(learns_metric=learns_metric, ends_window=jnp.asarray(stage.ends_window) & enough)
        false = jnp.asarray(False)
        info = KernelInfo(jnp.where(visited, rate, jnp.nan), false, false, jnp.asarray(0))
        state = KernelState(position, jnp.zeros(()), None)
        return warmup.update(kernel, adaptation, parameters, mine, state, info)

    return jax.vmap(one)(adaptation, parameters, position, acceptance_rate, visited)


def checked_step_sizes(owner: str, step_size: Any, num_rungs: int) -> Float[np.ndarray, " rung"]:
    """One positive step size for each rung; one number serves all."""
    sizes = checks.float_array(f"step_size of {owner}", step_size)
    if sizes.shape not in ((), (num_rungs,)) or not np.all(sizes > 0):
        raise ValueError(
            f"step_size of {owner} must be a positive number, or one for each of {num_rungs} betas; "
            f"got {checks.describe(step_size)}."
        )
    return np.broadcast_to(sizes, (num_rungs,)).copy()
