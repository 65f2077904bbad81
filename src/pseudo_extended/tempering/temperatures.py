"""Adaptation along the path while the chains warm up: log g towards even visits, step sizes towards an acceptance rate.

Both are stochastic approximation (Robbins and Monro 1951), with gains that fall like 1/n for g, and like 1/√n with the
visits of a knot for step sizes. The pilot has placed the nodes and knows log Z to a fraction of a nat; what is left is
to settle.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from pseudo_extended.tempering.path import Path


class RowVisits(NamedTuple):
    """What the pseudo-samples have seen of each label, where g depends on it."""

    number: Float[Array, " label"]
    """Visits by pseudo-samples that do not carry the target, as shares of a step."""
    mass: Float[Array, " label"]
    """The part of the target in it."""


class TemperatureAdaptation(NamedTuple):
    """The state of adaptation; averages are over the second half of what was seen."""

    num_updates: Float[Array, ""]
    visits: Float[Array, " knot"]
    """How many moves counted towards each step size."""
    average_log_g: Float[Array, "node ..."]
    average_log_step: Float[Array, " knot"]
    rows: RowVisits | None = None


def start_adaptation(path: Path, log_step: Float[Array, " knot"]) -> TemperatureAdaptation:
    """Start the adaptation, before anything was seen."""
    zero = jnp.zeros(path.log_g.shape[1:])
    rows = RowVisits(zero, zero) if path.has_rows else None
    return TemperatureAdaptation(jnp.zeros(()), jnp.zeros_like(log_step), path.log_g, log_step, rows)


def adapt_g(path: Path, share: Float[Array, " cell"], num_updates: Float[Array, ""]) -> Path:
    """Lower g where the pseudo-samples were, raise it where they were not; zero at the target by convention.

    `share` is the probability of each cell given the points, averaged over the pseudo-samples that do not carry the
    target: the whole conditional of t and not only the value drawn. The first updates are large, so that an error in
    log Z of any size is made up for, and none is larger than one nat.
    """
    excess = share * path.num_cells - 1
    change = -jnp.clip(excess / (num_updates + 20), -1.0, 1.0)
    ends = jnp.concatenate([change[:1], change, change[-1:]])
    log_g = path.log_g + 0.5 * (ends[1:] + ends[:-1])
    return path._replace(log_g=log_g - log_g[-1])


def adapt_steps(
    log_step: Float[Array, " knot"],
    visits: Float[Array, " knot"],
    knot: Int[Array, " particle"],
    acceptance_rate: Float[Array, " particle"],
    counts: Bool[Array, " particle"],
    target: Float[Array, " particle"],
) -> tuple[Float[Array, " knot"], Float[Array, " knot"]]:
    """Move the step size of each knot by the acceptance rates of the moves nearest to it."""
    here = (knot[:, None] == jnp.arange(log_step.shape[0])) & counts[:, None]
    seen = jnp.sum(here, axis=0)
    error = jnp.sum(jnp.where(here, (acceptance_rate - target)[:, None], 0.0), axis=0)
    visits = visits + seen
    return log_step + error / jnp.sqrt(visits + 10.0), visits


def running_average(average: Array, value: Array, num_updates: Float[Array, ""]) -> Array:
    """An average that forgets: the last half of the updates carries three quarters of the weight."""
    return average + (value - average) * jnp.minimum(2 / (num_updates + 1), 1.0)
