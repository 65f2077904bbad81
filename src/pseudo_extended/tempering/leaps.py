"""Leaps: from a place in one mode of a mixture base to the same place in another.

    x' = m_i + L_i L_j⁻¹ (x - m_j),        j = a(x), i ≠ j drawn with fixed probabilities

m and L L^T are the means and covariances of the components. The leap is taken only if a(x') = i, and then the leap back
from x' is the same map inverted; so with the Jacobian |L_i|/|L_j| and the probabilities of being offered both ways,

    min(1, γ_β(x') g(t, i) |L_i| q(j | i) / (γ_β(x) g(t, j) |L_j| q(i | j)))

leaves γ_β(x) g(t, a(x)) invariant. Where modes have the shapes of their components it is accepted at every temperature,
also for the pseudo-sample that carries the target, at the price of one evaluation of the density.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from pseudo_extended.target.bases import NormalMixture
from pseudo_extended.tempering.labelled import Labelled, Rows, packed, unpacked


class Leaps(NamedTuple):
    """Leaps that are offered: to whom, from which mode to which, and where they end."""

    which: Int[Array, " leap"]
    start: Int[Array, " leap"]
    end: Int[Array, " leap"]
    position: Float[Array, "leap d"]
    uniform: Float[Array, " leap"]
    """To be accepted by."""


def leapers(key: Key[Array, ""], carrier: Int[Array, ""], num_particles: int) -> Int[Array, " 2"]:
    """Who is offered a leap: the pseudo-sample that carries the target, and any other one."""
    uniform = jax.random.uniform(key, dtype=float)
    other = carrier + 1 + jnp.floor(uniform * (num_particles - 1)).astype(carrier.dtype)
    return jnp.stack([carrier, other % num_particles])


def offer_leaps(
    key: Key[Array, ""], base: NormalMixture, num_modes: int, now: Labelled, which: Int[Array, " leap"]
) -> Leaps:
    """Return the places to which some of the points may leap, no two of them the same."""
    uniform = jax.random.uniform(key, (2, which.shape[0]), dtype=float)
    weight, component = mode_weights(base, num_modes)
    start = jnp.maximum(now.label[which], 0)
    end = jax.vmap(lambda uniform, start: _another(uniform, weight, start))(uniform[0], start)
    position = jax.vmap(base.leap)(now.points.position[which], component[start], component[end])
    return Leaps(which, start, end, position, uniform[1])


def take_leaps(
    base: NormalMixture, rows: Rows, now: Labelled, beta: Float[Array, " particle"], leaps: Leaps, there: Labelled
) -> tuple[Labelled, Float[Array, " leap"]]:
    """The points after those leaps that are accepted, `there` being the points where they end; the acceptance rates."""
    which, start, end = leaps.which, leaps.start, leaps.end
    rows, matrix = rows.some(which), packed(now)
    here = unpacked(matrix[which], there)
    weight, component = mode_weights(base, rows.path.log_g.shape[1] - 1)
    gained = there.points.log_density(beta[which]) - here.points.log_density(beta[which])
    gained = gained + rows.log_ratio(end, start) + base.log_volume[component[end]] - base.log_volume[component[start]]
    gained = gained + log_offer(weight, end, start) - log_offer(weight, start, end)
    possible = has_way_back(here.label, there.label, end) & there.points.is_finite() & ~jnp.isnan(gained)
    rate = jnp.where(possible, jnp.exp(jnp.minimum(gained, 0.0)), 0.0)
    leapt = (jnp.arange(matrix.shape[0])[:, None] == which) & (leaps.uniform < rate)
    for i, new in enumerate(packed(there)):  # not a scatter, which is a kernel of its own
        matrix = jnp.where(leapt[:, i, None], new, matrix)
    return unpacked(matrix, now), rate


def has_way_back(
    start: Int[Array, " leap"], arrived: Int[Array, " leap"], end: Int[Array, " leap"]
) -> Bool[Array, " leap"]:
    """Whether a leap begins in a mode, and ends in the mode that it was meant for."""
    return (start >= 0) & (arrived == end)


def mode_weights(base: NormalMixture, num_modes: int) -> tuple[Float[Array, " mode"], Int[Array, " mode"]]:
    """The weight of each mode of a mixture among all modes, and the first of its components."""
    belongs = jnp.asarray(base.labels) == jnp.arange(num_modes)[:, None]
    weight = jnp.sum(jnp.where(belongs, jnp.exp(jnp.asarray(base.log_weights)), 0.0), axis=1)
    return weight / jnp.sum(weight), jnp.argmax(belongs, axis=1)


def log_offer(weight: Float[Array, " mode"], start: Int[Array, " leap"], end: Int[Array, " leap"]) -> Array:
    """The log probability that a leap from `start` is offered to `end`: its weight among all modes but `start`."""
    return jnp.log(weight[end]) - jnp.log(jnp.sum(weight) - weight[start])


def _another(uniform: Float[Array, ""], weight: Float[Array, " mode"], start: Int[Array, ""]) -> Int[Array, ""]:
    """A mode other than `start`, drawn by weight."""
    others = jnp.where(jnp.arange(weight.shape[0]) == start, 0.0, weight)
    cumulative = jnp.cumsum(others)
    drawn = jnp.sum(cumulative <= uniform * cumulative[-1])
    last = weight.shape[0] - 1 - (start == weight.shape[0] - 1)  # rounding must not point beyond it
    return jnp.minimum(drawn, last)
