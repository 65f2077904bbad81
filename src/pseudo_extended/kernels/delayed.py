"""HMC that tries again with smaller steps where a trajectory has failed (Modi, Barnett, Carpenter 2023).

In the neck of a funnel and on a thin ridge a trajectory of the usual step is refused whatever the momentum. So a second
one of the same length, in many small steps, follows, and is accepted with the probability that makes up for the delay
(Tierney and Mira 1999): at its end the usual step must have failed as well, which a third trajectory shows.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from pseudo_extended.kernels.abstract import KernelInfo
from pseudo_extended.kernels.leapfrog import MAX_ENERGY_ERROR, jittered, leapfrog
from pseudo_extended.kernels.metric import Metric
from pseudo_extended.kernels.tempered import TemperedPoint, select
from pseudo_extended.randomness import normals_and_uniforms
from pseudo_extended.target import Target

SMALLER = 8
"""How much smaller the steps of the second trajectory are, and how many more."""
FAILED = 0.2
"""An acceptance rate below which a trajectory has failed: for the usual step in a normal it is next to never."""
JITTER = 0.4


class _Place(NamedTuple):
    point: TemperedPoint
    momentum: Float[Array, " d"]
    energy: Float[Array, ""]


class _Tried(NamedTuple):
    """The ends of the usual trajectory and of the second one, with momenta reversed; the third one's energy."""

    number: Int[Array, ""]
    first: _Place
    second: _Place
    last_energy: Float[Array, ""]


def move_with_delay(
    key: Key[Array, ""],
    target: Target,
    beta: Float[Array, ""],
    point: TemperedPoint,
    step_size: Float[Array, ""],
    metric: Metric,
    num_steps: Int[Array, ""],
) -> tuple[TemperedPoint, KernelInfo]:
    """Move a tempered point by a trajectory of the usual steps or, where that fails, by one of small steps.

    The acceptance rate in the account is that of the usual trajectory; what diverges is the second one.
    """
    momentum, uniform = normals_and_uniforms(key, point.position.shape[-1], 3)
    size = jittered(step_size, JITTER, uniform[0])
    start = _place(point, momentum, beta)

    def rate_of_first(tried: _Tried) -> Float[Array, ""]:
        return _rate(start.energy - tried.first.energy)

    def goes_on(tried: _Tried) -> Bool[Array, ""]:
        rate = rate_of_first(tried)
        delayed = (rate < FAILED) & (uniform[1] >= rate) & (tried.number < 3)
        hopeless = (tried.number == 2) & ~jnp.isfinite(tried.second.energy)
        return (tried.number == 0) | (delayed & ~hopeless)

    def once_more(tried: _Tried) -> _Tried:
        """One loop for all three, so that the program has the density once."""
        small, number = tried.number == 1, tried.number
        begin = select(number == 2, tried.second, start)
        step, steps = jnp.where(small, size / SMALLER, size), jnp.where(small, SMALLER * num_steps, num_steps)
        end, last = leapfrog(target, beta, begin.point, begin.momentum, step, metric, steps)
        place = _place(end, -last, beta)
        return _Tried(
            number + 1,
            select(number == 0, place, tried.first),
            select(small, place, tried.second),
            jnp.where(number == 2, place.energy, tried.last_energy),
        )

    nothing = _Tried(jnp.asarray(0), start, start, jnp.full_like(start.energy, jnp.inf))
    tried = jax.lax.while_loop(goes_on, once_more, nothing)
    first, back = rate_of_first(tried), _rate(tried.second.energy - tried.last_energy)
    second = jnp.where(tried.number == 3, _delayed_rate(start.energy - tried.second.energy, first, back), 0.0)
    moved = select(uniform[1] < first, tried.first.point, select(uniform[2] < second, tried.second.point, point))
    was_delayed = tried.number > 1
    num_evaluations = num_steps * jnp.where(was_delayed, tried.number - 1 + SMALLER, 1)
    diverging = was_delayed & ~(tried.second.energy - start.energy <= MAX_ENERGY_ERROR)
    return moved, KernelInfo(first[None], diverging, was_delayed & ~jnp.isfinite(tried.second.energy), num_evaluations)


def _delayed_rate(gained: Float[Array, ""], first: Float[Array, ""], back: Float[Array, ""]) -> Float[Array, ""]:
    """The acceptance rate of the second end, whence the usual steps would be accepted at the rate `back`."""
    delays = jnp.log1p(-jnp.minimum(back, FAILED)) - jnp.log1p(-jnp.minimum(first, FAILED))
    return jnp.where(back < FAILED, _rate(gained + delays), 0.0)


def _place(point: TemperedPoint, momentum: Float[Array, " d"], beta: Float[Array, ""]) -> _Place:
    """A place with its energy, infinite where the density or its gradient is not finite."""
    log_density, gradient = point.log_density(beta), point.gradient(beta)
    assert gradient is not None  # points of Hamiltonian kernels carry gradients
    energy = 0.5 * jnp.sum(momentum**2) - log_density
    finite = jnp.isfinite(energy) & jnp.all(jnp.isfinite(gradient))
    return _Place(point, momentum, jnp.where(finite, energy, jnp.inf))


def _rate(gained: Float[Array, ""]) -> Float[Array, ""]:
    """min(1, e^gained), and nothing where that is not a number."""
    return jnp.where(jnp.isnan(gained), 0.0, jnp.exp(jnp.minimum(gained, 0.0)))
