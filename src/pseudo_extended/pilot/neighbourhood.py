"""Whether the end of an ascent is a mode, and what it looks like: from the density and its gradient nearby.

Differences of gradients over a small part of the width give the curvature, and cost no program of their own. Their
values tell whether the place is one: rubbish that a density returns far out, such as +1e32 where a matrix has lost its
positive definiteness, does not agree with its own gradient, is higher a step away, or is flat to infinity.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

FARTHEST = 4.0
"""Standard deviations in one direction that are as far as one in all; up to 16 dimensions the mean is larger anyway."""
Look = Callable[[Float[np.ndarray, "point d"]], tuple[Float[np.ndarray, " point"], Float[np.ndarray, "point d"]]]
"""The log density and its gradient at points; -inf outside the support."""

DROP = 2e-3
"""How far the log density should fall over a step of a difference: that of a normal does over 0.06 of its width."""
LEAST_DROP, MOST_DROP = 1e-5, 0.3
"""With a fall between these, the step will do: it is more than the rounding, and little enough for a parabola."""
MAX_TRIES = 12
ROUNDING = 1e-9
"""The part of the log density that is usually lost to rounding."""
NOISE = 1e-6
"""The part that may be, in a density computed in single precision."""
AMISS = 0.2
"""A rise towards a neighbour, or a difference from what the gradients say, that no mode has."""
MAX_AMISS = 1 / 3
"""The part of the neighbours that may be amiss: a density may be discontinuous in one parameter."""
TRUSTED = 1e-5
"""The least eigenvalue, with ones on the diagonal, that is not taken for rounding."""
LEAST_RATIO = 1e-13
"""The least eigenvalue of a correlation matrix that has not been lost to rounding."""
DOUBLINGS = np.arange(-6, 40)
"""Lengths at which a flat direction is looked at, as powers of two of its scale."""
MAX_FLAT = 12
"""Flat directions that are looked at; the others are as wide as these, in the geometric mean."""


class Neighbourhood(NamedTuple):
    """What is near a mode."""

    covariance: Float[np.ndarray, "d d"] | Float[np.ndarray, " d"]
    """Of Laplace's approximation, or its diagonal."""
    whitener: Float[np.ndarray, "d d"] | Float[np.ndarray, " d"]
    """Makes it the identity."""
    log_volume: float
    """The log of the mass of a normal of height one."""

    @classmethod
    def of(cls, covariance: np.ndarray, whitener: np.ndarray) -> "Neighbourhood":
        """Make a neighbourhood from a covariance, with its volume."""
        dense = covariance.ndim == 2
        log_determinant = np.linalg.slogdet(covariance)[1] if dense else np.sum(np.log(covariance))
        return cls(covariance, whitener, float(0.5 * (log_determinant + len(covariance) * np.log(2 * np.pi))))

    def image(self, order: Int[np.ndarray, " d"], sign: Float[np.ndarray, " d"]) -> "Neighbourhood":
        """Map the neighbourhood to that of the image y = sign · x[order] of the mode."""
        if self.covariance.ndim == 1:
            return self._replace(covariance=self.covariance[order], whitener=self.whitener[order])
        covariance = sign[:, None] * sign * self.covariance[np.ix_(order, order)]
        return self._replace(covariance=covariance, whitener=sign[:, None] * self.whitener[order])

    def distance(self, away: Float[np.ndarray, "point d"]) -> Float[np.ndarray, " point"]:
        """How far points that lie `away` from the mode are: in standard deviations, the mean over directions.

        Or in one direction, in units of `FARTHEST`: of hundreds of parameters, a single one may have two modes.
        """
        white = away @ self.whitener if self.whitener.ndim == 2 else away * self.whitener
        return np.fmax(np.sqrt(np.mean(white**2, axis=1)), np.max(np.abs(white), axis=1, initial=0.0) / FARTHEST)


class _Sides(NamedTuple):
    """Values and gradients a step ahead and a step behind along each coordinate."""

    step: Float[np.ndarray, " d"]
    values: Float[np.ndarray, "2 d"]
    gradients: Float[np.ndarray, "2 d d"]


def survey(
    look: Look,
    x: Float[np.ndarray, " d"],
    value: float,
    gradient: Float[np.ndarray, " d"],
    curvature: Float[np.ndarray, " d"],
    *,
    dense: bool,
) -> Neighbourhood | None:
    """The neighbourhood of a mode, or None if the place is not one.

    `curvature` is a guess along each coordinate, zero where there is none; with `dense`, the covariance is a matrix.
    """
    if abs(value) * np.finfo(float).eps > NOISE:  # a step's gain would be lost in the rounding
        return None
    with np.errstate(all="ignore"):
        sides = _both_sides(look, x, value, gradient, curvature)
        if not _agrees(sides, value, gradient):
            return None
        return _dense(look, x, value, gradient, sides) if dense else _diagonal(look, x, value, gradient, sides)


def outline(look: Look, x: Float[np.ndarray, " d"], value: float, *, dense: bool) -> Neighbourhood | None:
    """How far the log density stays up along each coordinate, at a place that may have no curvature to speak of.

    As at a wall, where an ascent cannot converge. None if the density rises from there, or never falls.
    """
    unit = np.eye(len(x))
    width = np.array([_profile(look, x, value, 1e-3 * (1 + abs(x[i])) * unit[i]) for i in range(len(x))])
    width *= 1e-3 * (1 + np.abs(x))
    if not np.all(np.isfinite(width)):
        return None
    return Neighbourhood.of(np.diag(width**2), np.diag(1 / width)) if dense else Neighbourhood.of(width**2, 1 / width)


def _both_sides(
    look: Look,
    x: Float[np.ndarray, " d"],
    value: float,
    gradient: Float[np.ndarray, " d"],
    curvature: Float[np.ndarray, " d"],
) -> _Sides:
    """Difference both sides, with steps over which the density falls by a given small amount."""
    dim = len(x)
    size = 1 + np.abs(x)
    step = np.where(curvature > 0, np.sqrt(2 * DROP / np.where(curvature > 0, curvature, 1.0)), 1e-2 * size)
    step = np.clip(step, 1e-10 * size, 1e6 * size)
    low, high = np.zeros(dim), np.full(dim, np.inf)
    values, gradients = np.full((2, dim), -np.inf), np.zeros((2, dim, dim))
    open_ones = np.arange(dim)
    for _ in range(MAX_TRIES):
        moves = step[open_ones, None] * np.eye(dim)[open_ones]
        found, slopes = look(np.concatenate([x + moves, x - moves]))
        values[:, open_ones] = found.reshape(2, -1)
        gradients[:, open_ones] = slopes.reshape(2, -1, dim)
        fall = _fall(value, values, gradient, step)
        near, far = fall < LEAST_DROP + ROUNDING * abs(value), ~(fall <= MOST_DROP)
        near &= ~(fall < -MOST_DROP)  # a rise is no reason to go further
        low[near], high[far] = np.fmax(low, step)[near], np.fmin(high, step)[far]
        open_ones = open_ones[(near | far)[open_ones]]
        open_ones = open_ones[(high / low)[open_ones] > 1.5]
        if not len(open_ones):
            break
        guess = step * np.sqrt(DROP / np.clip(np.where(np.isfinite(fall), fall, np.inf), 1e-9, 1e3))
        between = (guess > 1.1 * low) & (guess < high / 1.1)
        both = np.sqrt(low * np.where(np.isfinite(high), high, 1.0))
        outward = np.where(np.isfinite(high), np.where(low > 0, both, 1e-2 * step), 100 * step)
        step[open_ones] = np.where(between, guess, outward)[open_ones]
        open_ones = open_ones[(step > 1e-13 * size)[open_ones] & (step < 1e12 * size)[open_ones]]
        if not len(open_ones):
            break
    return _Sides(step, values, gradients)


def _fall(value: float, values: np.ndarray, gradient: np.ndarray, step: np.ndarray) -> np.ndarray:
    """How far the log density falls a step away, without its slope; at the edge of the support, on one side."""
    beyond = value + np.array([[1.0], [-1.0]]) * gradient * step - values
    known = np.isfinite(beyond)
    total = np.sum(np.where(known, beyond, 0.0), axis=0)
    return np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), np.inf)


def _agrees(sides: _Sides, value: float, gradient: Float[np.ndarray, " d"]) -> bool:
    """Whether values and gradients belong together, and nothing around is much higher."""
    dim = len(gradient)
    noise = AMISS + NOISE * abs(value)
    slopes = np.diagonal(sides.gradients, axis1=1, axis2=2)
    expected = np.array([[0.5], [-0.5]]) * sides.step * (gradient + slopes)
    rise = sides.values - value
    known = np.isfinite(sides.values)
    if np.any(known & (rise > noise)) or np.any(~known.any(axis=0)):
        return False
    amiss = known & ~(np.abs(rise - expected) <= noise)
    return bool(np.sum(amiss) <= MAX_AMISS * 2 * dim)


def _columns(sides: _Sides, gradient: Float[np.ndarray, " d"]) -> Float[np.ndarray, "d d"]:
    """Minus the Hessian, a row for each coordinate that was moved; at the edge of the support, from one side."""
    known = np.isfinite(sides.values)[:, :, None]
    ahead, behind = np.where(known, sides.gradients, gradient)
    width = sides.step * np.maximum(np.sum(np.isfinite(sides.values), axis=0), 1)
    return (behind - ahead) / width[:, None]


def _not_parabolas(value: float, gradient: np.ndarray, sides: _Sides, diagonal: np.ndarray) -> np.ndarray:
    """Coordinates along which values and gradients say different curvatures, as at a kink or on a plateau."""
    by_values = 2 * _fall(value, sides.values, gradient, sides.step) / sides.step**2
    noise = 2 * ROUNDING * abs(value) / sides.step**2
    peaked = (diagonal * sides.step**2 > LEAST_DROP) & np.all(np.isfinite(sides.values), axis=0)
    return np.flatnonzero(peaked & (np.abs(by_values - diagonal) > 0.3 * diagonal + noise))


def _dense(look: Look, x: np.ndarray, value: float, gradient: np.ndarray, sides: _Sides) -> Neighbourhood | None:
    hessian = _columns(sides, gradient)
    hessian = 0.5 * (hessian + hessian.T)
    diagonal = np.diagonal(hessian).copy()
    scale = np.where(diagonal > 0, np.sqrt(1 / np.where(diagonal > 0, diagonal, 1.0)), sides.step)
    scale = np.fmin(scale, np.fmax(1e3 * sides.step, 1e-300))
    if not np.all(np.isfinite(hessian)):
        return None
    for i in _not_parabolas(value, gradient, sides, diagonal)[:MAX_FLAT]:  # as wide as they are, not as at the tip
        width = sides.step[i] * _profile(look, x, value, sides.step[i] * np.eye(len(x))[i])
        if not np.isfinite(width):
            return None
        ratio = scale[i] / width
        hessian[i] *= ratio
        hessian[:, i] *= ratio
        scale[i] = width
    curvatures, vectors = np.linalg.eigh(hessian * np.outer(scale, scale))
    width = np.where(curvatures > TRUSTED, curvatures, np.nan) ** -0.5
    flat = np.flatnonzero(np.isnan(width))
    chosen = flat[:MAX_FLAT]
    for i in chosen:
        width[i] = _profile(look, x, value, scale * vectors[:, i])
        if not np.isfinite(width[i]):
            return None
    if len(flat) > len(chosen):
        width[flat[MAX_FLAT:]] = np.exp(np.mean(np.log(width[chosen])))
    directions = scale[:, None] * vectors
    covariance = (directions * width**2) @ directions.T
    unit = np.sqrt(np.diagonal(covariance))
    if not np.linalg.eigvalsh(covariance / np.outer(unit, unit))[0] > LEAST_RATIO:
        return None
    return Neighbourhood.of(covariance, (vectors / scale[:, None]) / width)


def _diagonal(look: Look, x: np.ndarray, value: float, gradient: np.ndarray, sides: _Sides) -> Neighbourhood | None:
    diagonal = np.diagonal(_columns(sides, gradient))
    trusted = np.isfinite(diagonal) & (diagonal * sides.step**2 > LEAST_DROP)
    trusted[_not_parabolas(value, gradient, sides, diagonal)] = False
    width = np.where(trusted, diagonal, np.nan) ** -0.5
    flat = np.flatnonzero(~trusted)
    for i in flat[:MAX_FLAT]:
        width[i] = sides.step[i] * _profile(look, x, value, sides.step[i] * np.eye(len(x))[i])
        if not np.isfinite(width[i]):
            return None
    if len(flat) > MAX_FLAT:
        width[flat[MAX_FLAT:]] = np.exp(np.mean(np.log(width[flat[:MAX_FLAT]])))
    return Neighbourhood.of(width**2, 1 / width)


def _profile(look: Look, x: np.ndarray, value: float, direction: np.ndarray) -> float:
    """How far along a flat direction the log density falls by a half, as over one standard deviation of a normal.

    In units of the direction. Infinite if it never does, and nan if it rises before: then the place is not a mode.
    """
    lengths = 2.0**DOUBLINGS
    values, _ = look(np.concatenate([x + lengths[:, None] * direction, x - lengths[:, None] * direction]))
    total = 0.0
    for side in values.reshape(2, -1):
        low = np.flatnonzero(~(side > value - 0.5))
        high = np.flatnonzero(side > value + AMISS + NOISE * abs(value))
        if not len(low) or side[-1] > value - 0.5:
            return np.inf
        first = low[0]
        if len(high) and high[0] < first:
            return np.nan
        total += float(lengths[first] if first == 0 else np.sqrt(lengths[first] * lengths[first - 1]))
    return total / 2
