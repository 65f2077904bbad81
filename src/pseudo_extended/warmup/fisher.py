"""A metric from draws and their scores: the one with the smallest Fisher divergence to a unit normal.

It is the geometric mean of the covariance of the draws and the inverse of that of their scores (Seyboldt, Carlson and
Carpenter 2025), and for a normal density a few draws more than dimensions give it exactly. What is learned is a
*factor* A with x = A z, z about round. It is learned in the coordinates of the factor before, towards which it is
shrunk, so that each window of warm-up goes on where the last one ended.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from pseudo_extended.kernels.metric import LowRank, SharedFactor

RANK = 32
"""Directions of their own beyond the dimensions in which the factor is a matrix."""
CUTOFF = 2.0
"""Only directions whose variance is that much larger or smaller than the scales say have a place of their own."""
MAX_KEPT = 128
"""Draws of a window that count: the last."""


def low_rank(scale: Float[Array, " d"]) -> LowRank:
    """Scales alone, with room for directions."""
    rank = min(RANK, scale.shape[0])
    return LowRank(scale, jnp.zeros((scale.shape[0], rank)), jnp.ones(rank))


class Window(NamedTuple):
    """The last draws of a window of warm-up, with their scores."""

    draws: Float[Array, "kept d"]
    scores: Float[Array, "kept d"]
    number: Int[Array, ""]
    """How many there have been; of more than there is room for, the first are gone."""


def empty_window(dim: int) -> Window:
    """The window before the first point."""
    return Window(jnp.zeros((MAX_KEPT, dim)), jnp.zeros((MAX_KEPT, dim)), jnp.asarray(0))


def add_draw(window: Window, draw: Float[Array, " d"], score: Float[Array, " d"], counts: Bool[Array, ""]) -> Window:
    """One more, if it counts."""
    place = window.number % MAX_KEPT

    def put(rows: Array, row: Array) -> Array:
        return rows.at[place].set(jnp.where(counts, row, rows[place]))

    return Window(put(window.draws, draw), put(window.scores, score), window.number + counts)


def learned(window: Window, factor: SharedFactor) -> SharedFactor:
    """The factor that suits the draws of a window, which must have at least two."""
    here = (jnp.arange(MAX_KEPT) < window.number)[:, None]
    number = jnp.minimum(window.number, MAX_KEPT)

    def centred(rows: Array) -> Array:
        return jnp.where(here, rows - jnp.sum(jnp.where(here, rows, 0.0), axis=0) / number, 0.0)

    # The mean of the scores is zero, but for a normal the error of their mean is that of the draws' mean.
    draws, scores = centred(window.draws), centred(window.scores)
    if isinstance(factor, LowRank):
        return _low_rank(draws, scores, number)
    if factor.ndim == 1:
        return factor * _units(draws / factor, scores * factor)
    inner = _inner(jnp.linalg.solve(factor, draws.T).T, scores @ factor, number)
    return factor @ inner


def _units(draws: Array, scores: Array) -> Float[Array, " d"]:
    """A scale for each coordinate, shrunk towards one with the weight of five draws."""
    spread, slope = jnp.sum(draws**2, axis=0), jnp.sum(scores**2, axis=0)
    return ((spread + 5.0) / (slope + 5.0)) ** 0.25


def _inner(draws: Array, scores: Array, number: Array) -> Float[Array, "d d"]:
    """A factor in coordinates that are about round already."""
    dim = draws.shape[1]
    unit = _units(draws, scores)
    share = dim / (dim + number)
    middle, _ = _roots(_mean_of(_shrunk(draws / unit, number, share), _shrunk(scores * unit, number, share)))
    return unit[:, None] * middle


def _shrunk(rows: Array, number: Array, share: Array) -> Array:
    second = rows.T @ rows / number
    return (1 - share) * second + share * jnp.diag(jnp.diagonal(second) + 1e-10)


def _mean_of(covariance: Array, information: Array) -> Array:
    """The geometric mean of a covariance and the inverse of another."""
    root, back = _roots(information)
    middle, _ = _roots(root @ covariance @ root)
    return back @ middle @ back


def _roots(matrix: Array) -> tuple[Array, Array]:
    """The square root of a positive definite matrix, and its inverse."""
    values, vectors = jnp.linalg.eigh(0.5 * (matrix + matrix.T))
    root = jnp.sqrt(jnp.maximum(values, 1e-12 * values[-1]))
    return (vectors * root) @ vectors.T, (vectors / root) @ vectors.T


def _low_rank(draws: Array, scores: Array, number: Array) -> LowRank:
    """Scales first; then, among the directions that draws and scores span, those that scales alone serve badly."""
    spread, slope = jnp.sqrt(jnp.sum(draws**2, axis=0)) + 1e-150, jnp.sqrt(jnp.sum(scores**2, axis=0)) + 1e-150
    scale = jnp.sqrt(spread / slope)
    draws, scores = draws / scale, scores * scale
    span, _ = jnp.linalg.qr(jnp.concatenate([draws, scores]).T)
    size = span.shape[1]

    # Towards the scales: what the span holds of a round density is one in every direction, and not size / number.
    def shrunk(rows: Array) -> Array:
        return (rows.T @ rows + 5.0 * jnp.eye(size)) / (number + 5.0)

    values, vectors = jnp.linalg.eigh(_mean_of(shrunk(draws @ span), shrunk(scores @ span)))
    rank = min(RANK, size)
    chosen = jnp.argsort(-jnp.abs(jnp.log(values)))[:rank]
    value = values[chosen]
    stretch = jnp.where(jnp.abs(jnp.log(value)) > jnp.log(CUTOFF), jnp.sqrt(value), 1.0)
    return LowRank(scale, span @ vectors[:, chosen], stretch)
