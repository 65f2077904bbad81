"""Rugged landscapes, where most ascents end in modes that hold nothing: periods and their aliases.

A good place is then made of parts: one coordinate is right here, another there. So an expedition recombines good places
and scans each coordinate of the best ones, with an ascent from every place of the scan to refit the others, until
nothing better comes up. Expeditions know nothing of each other: a mode that one of them takes for the heaviest may be
another alias, but one that two of them have found is not there by luck.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float, Int

from pseudo_extended.pilot.hidden_symmetries import Heights
from pseudo_extended.pilot.modes import LOOKS, Atlas, Ends, KnownMode, Modes
from pseudo_extended.pilot.proposals import Proposals
from pseudo_extended.pilot.race import Race

RUGGED = 0.3
"""With more of the ascents than this in modes without significant mass, the landscape is rugged."""
NUM_ELITE = 128
"""Good places, which are recombined."""
CANDIDATES = 8
"""Recombinations that are looked at, for one that is climbed from."""
MAX_EXCHANGES = 128
"""Of labels or blocks, looked at for each of the heaviest modes: if they are names of one thing, it is a mode too."""
NUM_SCANNED = 2
"""Modes of which the coordinates are scanned, the heaviest."""
LEAST_WEIGHT = 0.1
"""Of a coordinate along which all ascents came back, where one along which none did has one."""
SMOOTH = 0.25
"""A coordinate of less weight is not scanned closely."""
SPAN = 10.0
"""How far a coordinate without bounds is scanned, in standard deviations."""
BASIN = 10.0
"""How wide the basin of a mode is taken to be along a coordinate, in standard deviations of the narrowest mode."""
MAX_CLOSE = 8192
"""Places of a close scan, along all coordinates together."""
GAIN = 0.1
"""In log mass; what gains less has found the same mode again."""
MAX_QUIET = 2
"""Rounds that find nothing better, one after the other, each twice as large as the last."""
MAX_SURVEYED = 6
"""Places of a batch that are looked at, the highest: an expedition need not list the aliases that it comes through."""


def is_rugged(modes: Modes) -> bool:
    """Whether many ascents ended in modes that hold nothing."""
    converged = modes.num_ascents - modes.num_unconverged
    return int(np.sum(modes.num_hits[modes.is_significant])) < (1 - RUGGED) * converged


class Units(NamedTuple):
    """Coordinates in which an ascent begins: the widths of a mode, around it."""

    centre: Float[np.ndarray, " d"]
    width: Float[np.ndarray, " d"]


class Climb(Protocol):
    """Ascents from starts, in units that suit them, and raced if a race is given."""

    def __call__(
        self, starts: Float[np.ndarray, "start d"], units: Units | None = None, race: Race | None = None
    ) -> Ends:
        """The ends, in the order of the starts."""
        ...


class Means(NamedTuple):
    """What an expedition may use of the search that it belongs to."""

    climb: Climb
    heights: Heights
    affordable: Callable[[int, int], int]
    """How many evaluations of so many the budget allows, if each costs so much."""


class Expedition:
    """One search of a rugged landscape, on its own."""

    def __init__(self, proposals: Proposals, atlas: Atlas, means: Means):
        self.proposals, self.atlas, self.means, self.climb = proposals, atlas, means, means.climb
        self.weight = np.ones(atlas.dim)
        """How many of the ascents of a scan along each coordinate did not come back."""

    @property
    def best(self) -> float:
        """The log mass of the heaviest mode, by Laplace's approximation."""
        return max((mode.log_mass for mode in self.atlas.known), default=-np.inf)

    def run(self, size: int) -> None:
        """Go on until rounds find nothing better, nor does a close look along each coordinate."""
        quiet, now = 0, size
        while True:
            before = self.best
            if not self._recombine(now) or not self._scan(now):
                return  # the budget has ended
            if self.best > before + GAIN:
                quiet, now = 0, size
                continue
            quiet, now = quiet + 1, 2 * now
            if quiet < MAX_QUIET:
                continue
            if not self._scan_closely() or self.best <= before + GAIN:
                return
            quiet, now = 0, size

    def scatter(self, size: int) -> None:
        """Climb from starts at all scales and between the bounds."""
        self._add(self.climb(self.proposals.first(size)))

    def _recombine(self, size: int) -> bool:
        """Ascents from the best of many recombinations of good places; whether there was a budget for them."""
        [top] = self._heaviest(1) or [None]
        if top is None:
            return self._more_of_everything(size)
        places = self.proposals.recombined(self._elite(), CANDIDATES * size)
        exchanged = [self.proposals.exchanges(mode.x, MAX_EXCHANGES) for mode in self._heaviest(2 * NUM_SCANNED)]
        candidates = np.concatenate([*exchanged, places])
        candidates = candidates[: self.means.affordable(len(candidates), 1)]
        values = self.means.heights(candidates)
        starts = candidates[np.argsort(-values)[:size]]
        return self._add(self.climb(starts, _units(top), Race()))

    def _more_of_everything(self, size: int) -> bool:
        ends = self.climb(self.proposals.first(size))
        return self._add(ends)

    def _scan(self, size: int) -> bool:
        """Raced ascents along each coordinate of the heaviest modes, more where they do not come back."""
        numbers = _shared_out(self.weight, 2 * size, self.proposals.rng)
        return all(self._scan_from(mode, numbers) for mode in self._heaviest(NUM_SCANNED))

    def _scan_closely(self) -> bool:
        """Scan the heaviest mode so that no basin as wide as the narrowest mode's is left out."""
        if not self.atlas.known:
            return False
        [top] = self._heaviest(1)
        range_, bounded = self._range(top), self.proposals.bounded
        widths = []
        for mode in self.atlas.known:
            width = np.sqrt(_variance(mode))
            share = 1 / (1 + np.exp(-mode.x))
            widths.append(np.where(bounded, width * share * (1 - share), width / (2 * range_)))
        wanted = np.where(self.weight < SMOOTH, 0.0, 1 / (BASIN * np.min(widths, axis=0)))
        wanted *= min(1.0, MAX_CLOSE / max(np.sum(wanted), 1.0))
        return self._scan_from(top, np.ceil(wanted).astype(int))

    def _scan_from(self, mode: KnownMode, numbers: Int[np.ndarray, " d"]) -> bool:
        """Climb from so many places along each coordinate of a mode."""
        coordinate = np.repeat(np.arange(len(numbers)), numbers)
        if not len(coordinate):
            return True
        far = self._range(mode)
        starts = [self.proposals.scan(mode.x, i, far[i], int(number)) for i, number in enumerate(numbers) if number]
        units = _units(mode)

        def is_home(z: Float[np.ndarray, "point d"]) -> np.ndarray:
            return mode.neighbourhood.distance(z * units.width) < 1

        ends = self.climb(np.concatenate(starts), units, Race(is_home))
        reached = coordinate[: len(ends.x)]  # the budget may have ended
        gone = mode.neighbourhood.distance(ends.x - mode.x) >= 1
        count = np.bincount(reached, minlength=len(numbers))
        share = np.bincount(reached, gone, len(numbers)) / np.maximum(count, 1)
        self.weight = np.where(count > 0, np.maximum(0.5 * (self.weight + share), LEAST_WEIGHT), self.weight)
        return self._add(ends) and len(reached) == len(coordinate)

    def _add(self, ends: Ends) -> bool:
        self.atlas.add(ends.take(ends.is_valid), self.means.affordable(MAX_SURVEYED, LOOKS * self.atlas.dim))
        return len(ends.x) > 0

    def _range(self, mode: KnownMode) -> Float[np.ndarray, " d"]:
        """How far a coordinate without bounds is scanned on either side."""
        span = np.ptp(self._elite(), axis=0)
        return np.maximum(span, SPAN * np.sqrt(_variance(mode)))

    def _heaviest(self, number: int) -> list[KnownMode]:
        """The heaviest modes of different heights: those of one height are images of each other."""
        chosen: list[KnownMode] = []
        for mode in sorted(self.atlas.known, key=lambda mode: -mode.log_mass):
            if all(abs(mode.log_density - other.log_density) > 1e-3 for other in chosen):
                chosen.append(mode)
        return chosen[:number]

    def _elite(self) -> Float[np.ndarray, "place d"]:
        """Good places of different heights."""
        known = sorted(self.atlas.known, key=lambda mode: -mode.log_mass)
        x = np.concatenate([[mode.x for mode in known], self.atlas.waiting.x])
        height = np.concatenate([[mode.log_density for mode in known], self.atlas.waiting.log_density])
        _, first = np.unique(np.round(height, 2), return_index=True)
        return x[np.sort(first)][:NUM_ELITE]


def _shared_out(weight: Float[np.ndarray, " d"], size: int, rng: np.random.Generator) -> Int[np.ndarray, " d"]:
    """How many starts each coordinate has; in more dimensions than there are starts, a part of them has one."""
    wanted = size * weight / np.sum(weight)
    if len(wanted) <= size:
        return np.ceil(wanted).astype(int)
    return np.diff(np.floor(np.cumsum(wanted) + rng.uniform()), prepend=0.0).astype(int)


def _variance(mode: KnownMode) -> Float[np.ndarray, " d"]:
    covariance = mode.neighbourhood.covariance
    return covariance if covariance.ndim == 1 else np.diagonal(covariance)


def _units(mode: KnownMode) -> Units:
    return Units(mode.x, np.sqrt(_variance(mode)))
