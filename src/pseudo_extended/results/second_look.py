"""A second look for modes after a run: ascents from its hot pseudo-samples, and the places that the pilot knew.

Hot pseudo-samples lie where no draw of the target need be, so their ascents are starts that the run has paid for. What
they show is of two kinds: modes that the draws have missed, and how many basins such starts have not shown at all.

A run without temperatures has no such points, and may be stuck in one mode with a perfect R-hat. Its ascents start at
draws from the prior, if there is one, and around the draws on all scales from twice to fifty times their own.
"""

from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from pseudo_extended.pilot.distinct import distinct
from pseudo_extended.results.landscape import Landscape

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

NUM_ASCENTS = 256
NUM_DEAR = 32
"""Ascents for functions that are called in Python, and in more than `LOW_DIMENSION` dimensions."""
LOW_DIMENSION = 50
HOT = 0.5
"""The hotter half of the temperatures that were visited gives the starts."""
MAX_PLACES = 100
NEAR, FAR = 2.0, 50.0
"""Standard deviations of the draws: how far away ascents start where there are no hot pseudo-samples."""

Points = Float[np.ndarray, "place d"]


class GoodTuring(NamedTuple):
    """What ascents from random starts say about the basins that none of them has seen (Good 1953).

    It speaks of basins, by their share of the starts, and not of modes by their mass: a heavy mode in a tiny basin may
    be missed however small `unseen` is.

    >>> GoodTuring.of(np.array([60, 30, 9, 1]))
    GoodTuring(num_ascents=100, num_once=1, unseen=0.01, bound=0.0398...)
    """

    num_ascents: int
    num_once: int
    """How many basins exactly one ascent ended in."""
    unseen: float
    """The share of such starts whose basin no ascent has seen: an estimate."""
    bound: float
    """That share and three standard errors (Esty 1983), and at least 3/n: one basin with more was seen with 95 %."""

    @classmethod
    def of(cls, hits: Int[np.ndarray, " mode"]) -> "GoodTuring":
        """Estimate from the number of ascents that ended in each mode."""
        number, once, twice = int(np.sum(hits)), int(np.sum(hits == 1)), int(np.sum(hits == 2))
        if number == 0:
            return cls(0, 0, 1.0, 1.0)
        error = np.sqrt(max(once * (1 - once / number) + 2 * twice, 0.0)) / number
        unseen = once / number
        return cls(number, once, unseen, float(min(max(unseen + 3 * error, 3 / number), 1.0)))


class Places(NamedTuple):
    """The places where ascents have ended, each once."""

    x: Points
    hits: Int[np.ndarray, " place"]
    starts: str = "pilot"
    """From where: of the "pilot", "hot" pseudo-samples, or "wide" around the draws."""


def hot_starts(result: "Result", number: int) -> Points:
    """Points of the hotter half of the temperatures, evenly from all chains and draws; none if there are none."""
    beta = result.statistics.get("beta")
    nothing = np.zeros((0, result.target.dim))
    if beta is None or beta.shape != result.log_weights.shape:
        return nothing
    hot = np.flatnonzero((beta < 0.99) & (beta <= np.nanquantile(beta, HOT)))
    chosen = hot[np.unique(np.linspace(0, len(hot) - 1, number).astype(int))] if len(hot) else hot
    points = result.unconstrained.reshape(-1, result.target.dim)[chosen]
    return points[np.all(np.isfinite(points), axis=1)]


def wide_starts(result: "Result", landscape: Landscape, number: int) -> Points:
    """Draws from the prior, and points around the draws on all scales; half of each if the prior can be drawn from."""
    target, rng = result.target, np.random.default_rng([result.seed, number])
    centre, scale = landscape.sample.mean(axis=0), landscape.scale
    spread = np.exp(rng.uniform(np.log(NEAR), np.log(FAR), size=(number, 1)))
    around = centre + spread * scale * rng.normal(size=(number, target.dim))
    if target.base is None or not target.base.can_sample:
        return around
    keys = jax.random.split(jax.random.key(result.seed % 2**32, impl="threefry2x32"), number // 2)
    drawn = np.asarray(jax.jit(jax.vmap(target.draw_base))(keys), float)
    return np.concatenate([drawn[np.all(np.isfinite(drawn), axis=1)], around[: number - number // 2]])


def look_again(result: "Result", landscape: Landscape) -> Places:
    """Find where ascents from hot pseudo-samples, or from wide around the draws, end; nowhere without a gradient."""
    target = result.target
    nothing = Places(np.zeros((0, target.dim)), np.zeros(0, int))
    if not target.is_differentiable or result.is_part:
        return nothing
    is_dear = bool(target.host_functions) or target.dim > LOW_DIMENSION
    number = NUM_DEAR if is_dear else NUM_ASCENTS
    starts, of = hot_starts(result, number), "hot"
    if not len(starts):
        starts, of = wide_starts(result, landscape, number), "wide"
        starts = starts[np.isfinite(landscape.heights(starts))]
    if not len(starts):
        return nothing
    ends, heights = landscape.relax(starts)
    kept, hits = distinct(ends, heights, MAX_PLACES)
    return Places(ends[kept[:MAX_PLACES]], hits[:MAX_PLACES], of)


def places_of_pilot(result: "Result") -> Places:
    """The modes of the pilot's report; nowhere if the method has none."""
    modes = getattr(result.pilot, "modes", None)
    if modes is None or np.ndim(modes.x) != 2 or result.is_part:
        return Places(np.zeros((0, result.target.dim)), np.zeros(0, int))
    return Places(np.asarray(modes.x, float)[:MAX_PLACES], np.asarray(modes.num_hits, int)[:MAX_PLACES])
