"""Step sizes: a first guess, and Nesterov's dual averaging towards an acceptance rate (Hoffman and Gelman 2014)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pseudo_extended.kernels import (
    MALA,
    AbstractKernel,
    KernelParameters,
    KernelState,
    LogDensity,
    RandomWalk,
)

# BlackJAX has both pieces below, for one step size and for one kernel of its own; a cycle or mixture of kernels has
# one for each part, of which some may not have run, so dual averaging is written here for a vector of them.


class DualAveraging(NamedTuple):
    """Running state, one entry for each step size."""

    log_step: Float[Array, " step_size"]
    log_step_average: Float[Array, " step_size"]
    error: Float[Array, " step_size"]
    num_updates: Float[Array, " step_size"]
    centre: Float[Array, " step_size"]


def start_averaging(step_size: Float[Array, " step_size"]) -> DualAveraging:
    """Begin around ten times `step_size`, as in Stan: too large is found out faster than too small."""
    zero = jnp.zeros_like(step_size)
    return DualAveraging(jnp.log(step_size), zero, zero, zero, jnp.log(10 * step_size))


def average_step(
    state: DualAveraging, acceptance_rate: Float[Array, " step_size"], target: Float[Array, " step_size"]
) -> DualAveraging:
    """One update by the acceptance rates just seen; entries with a nan did not run and stay."""
    stabilise, shrink, forget = 10.0, 0.05, 0.75
    num_updates = state.num_updates + 1
    error = state.error + (target - acceptance_rate - state.error) / (num_updates + stabilise)
    log_step = state.centre - jnp.sqrt(num_updates) / shrink * error
    share = num_updates**-forget
    average = share * log_step + (1 - share) * state.log_step_average
    new = DualAveraging(log_step, average, error, num_updates, state.centre)
    ran = ~jnp.isnan(acceptance_rate)
    return jax.tree.map(lambda after, before: jnp.where(ran, after, before), new, state)


def averaged_step(state: DualAveraging) -> Float[Array, " step_size"]:
    """The step size to keep; where nothing has run yet, the first one."""
    return jnp.exp(jnp.where(state.num_updates > 0, state.log_step_average, state.log_step))


def first_step_size(
    key: Key[Array, ""],
    kernel: AbstractKernel,
    log_density: LogDensity,
    state: KernelState,
    parameters: KernelParameters,
) -> Float[Array, " step_size"]:
    """Double or halve the step until the acceptance of one short move crosses 0.8 (a random walk: its own target)."""
    probe = MALA(target_acceptance=0.8) if kernel.uses_gradient else RandomWalk()
    threshold = float(probe.target_acceptance[0])

    def accepts(log_step: Float[Array, ""]) -> Array:
        tried = KernelParameters(jnp.exp(log_step)[None], parameters.inverse_mass)
        return probe.step(key, log_density, state, tried)[1].acceptance_rate[0] > threshold

    log_start = jnp.log(parameters.step_size[0])
    grows = accepts(log_start)
    direction = jnp.where(grows, 1.0, -1.0) * jnp.log(2.0)

    def crosses_next(carry: tuple[Array, Array]) -> Array:
        log_step, count = carry
        return (count < 50) & (accepts(log_step) == grows)

    log_step, _ = jax.lax.while_loop(
        crosses_next, lambda carry: (carry[0] + direction, carry[1] + 1), (log_start, jnp.asarray(0))
    )
    return jnp.full(kernel.target_acceptance.shape, jnp.exp(log_step))
