"""Modes out of the ends of ascents: told apart, merged, with the curvature at each."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.spatial import KDTree

from pseudo_extended.pilot.ascents import LogDensity

CLOSE = 1e-2
"""How near two ends of one place are, as a part of the spread."""


class Modes(NamedTuple):
    """Distinct modes, the highest first."""

    x: Float[np.ndarray, "mode d"]
    log_density: Float[np.ndarray, " mode"]
    covariance: Float[np.ndarray, "mode d d"] | Float[np.ndarray, "mode d"]
    """Of Laplace's approximation; its diagonal in many dimensions."""
    num_hits: Int[np.ndarray, " mode"]
    """How many ascents ended there."""

    @property
    def log_mass(self) -> Float[np.ndarray, " mode"]:
        """Laplace's approximation to the mass of each mode."""
        dim = self.x.shape[1]
        if self.covariance.ndim == 3:
            log_volume = 0.5 * np.linalg.slogdet(self.covariance)[1]
        else:
            log_volume = 0.5 * np.sum(np.log(self.covariance), axis=1)
        return self.log_density + log_volume + 0.5 * dim * np.log(2 * np.pi)

    @property
    def unseen(self) -> float:
        """The share of ascents that would end in a mode not seen yet: Good and Turing's estimate."""
        return float(np.sum(self.num_hits == 1) / max(np.sum(self.num_hits), 1))


def curvature(log_density: LogDensity, x: Float[Array, " d"], *, dense: bool) -> Array:
    """Minus the Hessian, or its diagonal."""
    if dense:
        return -jax.hessian(log_density)(x)
    gradient = jax.grad(log_density)
    # One direction at a time: the whole matrix may not fit.
    units = jnp.eye(x.shape[0])
    return -jax.lax.map(lambda unit: jnp.vdot(unit, jax.jvp(gradient, (x,), (unit,))[1]), units, batch_size=32)


def distinct(
    x: Float[np.ndarray, "end d"], log_density: Float[np.ndarray, " end"], wanted: int
) -> tuple[Int[np.ndarray, " kept"], Int[np.ndarray, " kept"]]:
    """Which ends of ascents near the top are places of their own, the highest first, and how many ended at each.

    Two ends are one place when they are closer than a hundredth of the spread: ascents end where the next step gains
    nothing, not at the last digit. If that makes more places than `wanted`, three hundredths; but not more, because a
    plateau has any number of places, and circles that hold it in a few would hold modes beside it too.
    """
    good = np.isfinite(log_density) & np.all(np.isfinite(x), axis=1)
    order = np.argsort(-np.where(good, log_density, -np.inf))[: good.sum()]
    order = order[log_density[order] > log_density[order[:1]] - near_top(x.shape[1])]
    if not order.size:  # none is finite, or all are so high that nothing is below the highest: there is no mode
        return np.zeros(0, int), np.zeros(0, int)
    unit = np.std(x[order], axis=0) + 1e-12
    kept, hits = _places(x, order, unit)
    return (kept, hits) if len(kept) <= wanted else _places(x, order, 3 * unit)


def near_top(dim: int) -> float:
    """How far below the highest mode the log density of one may be that is worth looking at."""
    return 50.0 + 5.0 * dim


def _places(x: np.ndarray, order: np.ndarray, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """In that order; an end is of the first place that it is close to."""
    scaled = x[order] / unit
    tree = KDTree(scaled)
    left = np.ones(len(order), bool)
    kept: list[int] = []
    hits: list[int] = []
    for i, point in enumerate(scaled):
        if left[i]:
            near = np.array(tree.query_ball_point(point, CLOSE, p=np.inf), int)
            kept.append(int(order[i]))
            hits.append(int(np.sum(left[near])))
            left[near] = False
    return np.array(kept, int), np.array(hits, int)


def merge(
    x: Float[np.ndarray, "end d"],
    log_density: Float[np.ndarray, " end"],
    num_hits: Int[np.ndarray, " end"],
    widest: Float[np.ndarray, " d"],
    curvatures: Callable[[Float[np.ndarray, "some d"]], np.ndarray],
    at_once: int,
) -> Modes:
    """Modes out of places, the highest first: those within one standard deviation of a higher one belong to it.

    `widest` bounds the standard deviations, where the curvature is flat or points upwards. Curvatures are asked for
    `at_once` places; what belongs to modes found so far needs none, so many places in one mode do not hide the others.
    """
    kept: list[int] = []
    covariances: list[np.ndarray] = []
    hits: list[int] = []
    left = np.ones(len(x), bool)
    while left.any() and len(kept) < at_once:
        some = np.flatnonzero(left)[:at_once]
        for i, found in zip(some, curvatures(x[some]), strict=True):
            if not left[i]:
                continue
            left[i] = False
            if not np.all(np.isfinite(found)):
                continue
            covariance, whitener = _bounded_inverse(found, widest)
            away = x - x[i]
            white = away @ whitener if whitener.ndim == 2 else away * whitener
            here = left & (np.mean(white**2, axis=1) < 1)
            left[here] = False
            kept.append(int(i))
            covariances.append(covariance)
            hits.append(int(num_hits[i] + np.sum(num_hits[here])))
    dim = x.shape[1]
    shape = (len(kept), *(covariances[0].shape if covariances else (dim,)))
    return Modes(x[kept], log_density[kept], np.reshape(covariances, shape), np.array(hits, int))


def _bounded_inverse(curvature: np.ndarray, widest: Float[np.ndarray, " d"]) -> tuple[np.ndarray, np.ndarray]:
    """The covariance that belongs to a curvature, no wider than `widest`, and the matrix that whitens it."""
    if curvature.ndim == 1:
        variance = 1 / np.clip(curvature, widest**-2, 1e16 * widest**-2)
        return variance, variance**-0.5
    # In units of `widest`, where no eigenvalue may be below one.
    scaled = curvature * np.outer(widest, widest)
    values, vectors = np.linalg.eigh(0.5 * (scaled + scaled.T))
    values = np.clip(values, 1.0, 1e16)
    directions = widest[:, None] * vectors
    return (directions / values) @ directions.T, (vectors / widest[:, None]) * np.sqrt(values)
