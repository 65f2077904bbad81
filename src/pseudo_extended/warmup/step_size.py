"""Step sizes: a first guess, and Nesterov's dual averaging towards an acceptance rate (Hoffman and Gelman 2014)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

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
    """Double or halve the step until the acceptance of short moves crosses 0.8 (a random walk: its own target)."""
    probe = MALA(target_acceptance=0.8) if kernel.uses_gradient else RandomWalk()
    threshold = float(probe.target_acceptance[0])
    keys = jax.random.split(key, 8)  # one move alone may be lucky

    def acceptance_rate(log_step: Float[Array, ""]) -> Float[Array, ""]:
        tried = KernelParameters(jnp.exp(log_step)[None], parameters.inverse_mass)
        return jnp.mean(jax.lax.map(lambda key: probe.step(key, log_density, state, tried)[1].acceptance_rate[0], keys))

    def search(carry: _Search) -> _Search:
        accepts = acceptance_rate(carry.log_step) > threshold
        grows = jnp.where(carry.num_tries == 0, accepts, carry.grows)
        log_step = carry.log_step + jnp.where(grows, 1.0, -1.0) * jnp.log(2.0)
        found = accepts != grows
        return _Search(jnp.where(found, carry.log_step, log_step), grows, found, carry.num_tries + 1)

    start = _Search(jnp.log(parameters.step_size[0]), jnp.asarray(True), jnp.asarray(False), jnp.asarray(0))
    # The density is traced once, in the body: a second copy in the condition would double the time to compile.
    end = jax.lax.while_loop(lambda carry: ~carry.found & (carry.num_tries < 100), search, start)
    return jnp.full(kernel.target_acceptance.shape, jnp.exp(end.log_step))


class _Search(NamedTuple):
    log_step: Float[Array, ""]
    grows: Bool[Array, ""]
    found: Bool[Array, ""]
    num_tries: Int[Array, ""]
