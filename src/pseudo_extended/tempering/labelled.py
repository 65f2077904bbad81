"""Moves of points whose g depends on their label: what they gain is the factor g(t, a')/g(t, a) in the acceptance.

At fixed t the target of a move is γ_β(x) g(t, a(x)), and γ(x) alone for the pseudo-sample that carries the target.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from pseudo_extended.kernels import TemperedPoint
from pseudo_extended.tempering.mode_rows import log_g_at
from pseudo_extended.tempering.path import Path

LabelOf = Callable[[Float[Array, " d"]], Int[Array, ""]]


class Labelled(NamedTuple):
    """Points on the path and their labels."""

    points: TemperedPoint
    label: Int[Array, " particle"]


def labelled(label_of: LabelOf, points: TemperedPoint) -> Labelled:
    """Points with their labels."""
    return Labelled(points, jax.vmap(label_of)(points.position))


class Rows(NamedTuple):
    """The places of the points on the path, and which of them carries the target."""

    path: Path
    t: Float[Array, " particle"]
    carrier: Bool[Array, " particle"]

    def log_ratio(self, new: Int[Array, " particle"], old: Int[Array, " particle"]) -> Float[Array, " particle"]:
        """log g(t, new) - log g(t, old); the target does not depend on g."""
        ratio = log_g_at(self.path, new, self.t) - log_g_at(self.path, old, self.t)
        return jnp.where(self.carrier, 0.0, ratio)

    def some(self, which: Int[Array, " chosen"]) -> "Rows":
        """The same for some of the points."""
        return Rows(self.path, self.t[which], self.carrier[which])


def select(accepted: Bool[Array, " particle"], yes: Labelled, no: Labelled) -> Labelled:
    """Take each point from `yes` where it was accepted, and from `no` elsewhere."""
    accepted = jax.lax.optimization_barrier(accepted)  # or XLA works it out again for every array

    def choose(a: Array, b: Array) -> Array:
        return jnp.where(accepted.reshape(-1, *(1,) * (a.ndim - 1)), a, b)

    return jax.tree.map(choose, yes, no)


def packed(now: Labelled) -> Float[Array, "particle column"]:
    """All that is known of each point in one row: picked and replaced in one operation."""
    return jnp.concatenate([leaf.reshape(leaf.shape[0], -1).astype(float) for leaf in jax.tree.leaves(now)], axis=1)


def unpacked(matrix: Float[Array, "particle column"], like: Labelled) -> Labelled:
    """Return the points in their own form again."""
    leaves, structure = jax.tree.flatten(like)
    parts = jax.lax.split(matrix, [leaf.size // leaf.shape[0] for leaf in leaves], axis=1)
    shaped = [
        part.reshape(part.shape[0], *leaf.shape[1:]).astype(leaf.dtype)
        for part, leaf in zip(parts, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, shaped)


def settle(key: Key[Array, ""], rows: Rows, before: Labelled, after: Labelled) -> Labelled:
    """What local moves that know nothing of labels have done, accepted with probability min(1, g(t, a')/g(t, a)).

    A kernel that is reversible with respect to γ_β is a proposal whose ratio is the ratio of γ_β, so what is left of
    the acceptance ratio is that of g. Most moves stay within a mode, where it is one.
    """
    log_ratio = rows.log_ratio(after.label, before.label)
    uniform = jax.random.uniform(key, log_ratio.shape, dtype=float)
    return select(jnp.log(uniform) < log_ratio, after, before)


def refresh_labelled(
    key: Key[Array, ""],
    fresh: Labelled,
    rows: Rows,
    now: Labelled,
    beta: Float[Array, " particle"],
) -> tuple[Labelled, Float[Array, " particle"], Labelled]:
    """Offer every point a draw from the base: accepted with min(1, exp{β (Δ' - Δ)} g(t, a')/g(t, a)).

    Returns the points, the acceptance rates, and what was offered, with Δ = -inf where the target vanishes.
    """
    points = fresh.points
    valid = points.is_finite()
    gained = beta * (points.delta - now.points.delta) + rows.log_ratio(fresh.label, now.label)
    rate = jnp.where(valid, jnp.exp(jnp.minimum(gained, 0.0)), 0.0)
    accepted = jax.random.uniform(key, beta.shape, dtype=float) < rate
    offered = fresh._replace(points=points._replace(delta=jnp.where(valid, points.delta, -jnp.inf)))
    return select(accepted, fresh, now), rate, offered
