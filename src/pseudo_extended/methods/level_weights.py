"""Weights of the levels of simulated tempering: estimates of -log Z(β_k), learned while the chain runs.

Neighbouring levels are bridged half-way, Z_{k+1}/Z_k = E_k[exp(δΔ/2)] / E_{k+1}[exp(-δΔ/2)] with δ = β_{k+1} - β_k, and
every point counts for every level k as much as it belongs to it, P(k | x), as in Carlson et al. (2016). On a fine
ladder that is thermodynamic integration, so the chain need not visit all levels one by one; on a coarse one it has no
error of discretisation. The weights only steer the chain: frozen at any value, they leave the estimates right.

At first nothing is known, and P(k | x) with wrong weights would send the chain to one end and leave it there. So early
warm-up leads it up and down the ladder instead, and a point counts for the level that it has just moved at.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from pseudo_extended.warmup import Stage

SWEEP = 24
"""Iterations from one end of the ladder to the other, as long as the chain is led."""
RECENT = 6
"""Iteration t counts t⁶ times: the last seventh of the time counts as much as all before."""


class LevelSums(NamedTuple):
    """Logs of sums over the points so far."""

    log_count: Float[Array, " level"]
    """Of P(k | x)."""
    log_up: Float[Array, " pair"]
    """Of P(k | x) exp(δΔ/2)."""
    log_down: Float[Array, " pair"]
    """Of P(k+1 | x) exp(-δΔ/2)."""
    num_points: Int[Array, ""]
    free: Bool[Array, ""]
    """Whether the chain chooses its level by itself: after the first window."""


def first_sums(betas: Float[Array, " level"], delta: Float[Array, ""]) -> LevelSums:
    """The first point, for all levels alike: they are then equally likely at it. It hardly counts beside any other."""
    return LevelSums(*_terms(betas, delta, jnp.full(betas.size, -30.0)), jnp.asarray(0), jnp.asarray(False))


def update_sums(
    sums: LevelSums,
    betas: Float[Array, " level"],
    delta: Float[Array, ""],
    moved_at: Int[Array, ""],
    log_level: Float[Array, " level"],
    stage: Stage,
) -> LevelSums:
    """One more point, which moved at the level `moved_at` and belongs to all by exp(`log_level`).

    A chain that is led stands for all levels around a stop of its sweep, and for no others: exp(δΔ/2) of a point that
    belongs elsewhere could outweigh anything. It lags behind, too, the more the less it is tuned; so the last visit to
    a level replaces those before.
    """
    stops = jnp.round(ladder_places(betas) * SWEEP)
    here = (stops == stops[moved_at]) | (jnp.arange(betas.size) == moved_at)
    log_share = jnp.where(sums.free, log_level, jnp.where(here, 0.0, -jnp.inf))
    log_keep = jnp.where(~sums.free & here, -jnp.inf, 0.0)
    count, up, down = _terms(betas, delta, log_share + RECENT * jnp.log(sums.num_points + 1.0))
    return LevelSums(
        jnp.logaddexp(sums.log_count + log_keep, count),
        jnp.logaddexp(sums.log_up + log_keep[:-1], up),
        jnp.logaddexp(sums.log_down + log_keep[1:], down),
        sums.num_points + 1,
        sums.free | jnp.asarray(stage.ends_window),
    )


def level_log_weight(sums: LevelSums) -> Float[Array, " level"]:
    """w_k = -log Z(β_k), up to a constant, as it looks now."""
    log_ratio = (sums.log_up - sums.log_count[:-1]) - (sums.log_down - sums.log_count[1:])
    return -jnp.concatenate([jnp.zeros(1), jnp.cumsum(log_ratio)])


def leading_log_weight(sums: LevelSums, betas: Float[Array, " level"]) -> Float[Array, " level"]:
    """Weights that leave no choice but the next level of a sweep up and down the ladder."""
    stop = sums.num_points % (2 * SWEEP)
    height = jnp.minimum(stop, 2 * SWEEP - stop) / SWEEP
    nearest = jnp.argmin(jnp.abs(ladder_places(betas) - height))
    return jnp.where(jnp.arange(betas.size) == nearest, 0.0, -1e30)


def ladder_places(betas: Float[Array, " level"]) -> Float[Array, " level"]:
    """Place each level between 0 and 1: half by its number, half by log β; the first has a stop to itself.

    Equal steps in β are far apart near 0, where Δ changes most; by number alone a sweep would pass over them.

    >>> [f"{place:.2f}" for place in ladder_places(jnp.array([0.0, 0.01, 0.1, 1.0]))]
    ['0.00', '0.04', '0.52', '1.00']
    """
    number = jnp.linspace(0.0, 1.0, betas.size - 1)
    log_beta = jnp.log(betas[1:])
    by_beta = jnp.where(log_beta[0] < 0, 1 - log_beta / jnp.where(log_beta[0] < 0, log_beta[0], 1.0), number)
    return jnp.concatenate([jnp.zeros(1), (1 + (SWEEP - 1) * 0.5 * (number + by_beta)) / SWEEP])


def _terms(
    betas: Float[Array, " level"], delta: Float[Array, ""], log_share: Float[Array, " level"]
) -> tuple[Float[Array, " level"], Float[Array, " pair"], Float[Array, " pair"]]:
    # Where the target vanishes, at β = 0 alone, Δ = -inf; such a point says nothing about levels above.
    half = 0.5 * jnp.diff(betas) * jnp.maximum(delta, -1e300)
    return log_share, log_share[:-1] + half, log_share[1:] - half
