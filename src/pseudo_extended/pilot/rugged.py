"""Starts for ascents in a rugged landscape, where most end in modes that hold nothing: periods and their aliases.

A good place is then made of parts: one coordinate is right here, another there. So good places are recombined, and
each coordinate of the best ones is scanned, with an ascent from every place of the scan to refit the others.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from pseudo_extended.pilot.hidden_symmetries import Heights
from pseudo_extended.pilot.modes import Atlas, Ends, Modes
from pseudo_extended.pilot.proposals import Proposals

Climb = Callable[[Float[np.ndarray, "start d"]], Ends]

RUGGED = 0.3
"""With more of the ascents than this in modes without significant mass, the landscape is rugged."""
NUM_ELITE = 64
"""Good places, which are recombined."""
CANDIDATES = 4
"""Recombinations that are looked at, for one that is climbed from."""
MAX_EXCHANGES = 128
"""Of labels or blocks, looked at for each of the heaviest modes: if they are names of one thing, it is a mode too."""
NUM_SCANNED = 2
"""Modes of which the coordinates are scanned, the heaviest."""
LEAST_WEIGHT = 0.1
"""Of a coordinate along which all ascents came back, where one along which none did has one."""
SPAN = 10.0
"""How far a coordinate without bounds is scanned, in standard deviations."""


def is_rugged(modes: Modes) -> bool:
    """Whether many ascents ended in modes that hold nothing."""
    converged = modes.num_ascents - modes.num_unconverged
    return int(np.sum(modes.num_hits[modes.is_significant])) < (1 - RUGGED) * converged


class Ruggedness:
    """What is known of the landscape along each coordinate."""

    def __init__(self, dim: int):
        self.weight = np.ones(dim)
        """How many of the ascents of a scan along it did not come back."""

    def _numbers(self, rng: np.random.Generator, size: int) -> Int[np.ndarray, " d"]:
        """How many starts each coordinate has; in more dimensions than there are starts, a part of them has one."""
        wanted = size * self.weight / np.sum(self.weight)
        if len(wanted) <= size:
            return np.ceil(wanted).astype(int)
        return np.diff(np.floor(np.cumsum(wanted) + rng.uniform()), prepend=0.0).astype(int)

    def recombined(
        self, proposals: Proposals, atlas: Atlas, heights: Heights, size: int
    ) -> Float[np.ndarray, "start d"]:
        """The best of many recombinations of good places."""
        known = sorted(atlas.known, key=lambda mode: -mode.log_mass)
        elite = np.concatenate([[mode.x for mode in known], atlas.waiting.x])[:NUM_ELITE]
        exchanged = [proposals.exchanges(mode.x, MAX_EXCHANGES) for mode in known[: 2 * NUM_SCANNED]]
        candidates = np.concatenate([*exchanged, proposals.recombined(elite, CANDIDATES * size)])
        values = heights(candidates)
        return candidates[np.argsort(-values)[:size]]

    def scan(self, proposals: Proposals, atlas: Atlas, climb: Climb, size: int) -> list[Ends]:
        """Ascents from scans along each coordinate of the heaviest modes, more where they do not come back."""
        known = sorted(atlas.known, key=lambda mode: -mode.log_mass)[:NUM_SCANNED]
        span = np.ptp(np.concatenate([atlas.waiting.x, [mode.x for mode in atlas.known]]), axis=0)
        numbers = self._numbers(proposals.rng, size)
        coordinate = np.repeat(np.arange(len(numbers)), numbers)
        found = []
        for mode in known:
            variance = mode.neighbourhood.covariance
            far = np.maximum(span, SPAN * np.sqrt(variance if variance.ndim == 1 else np.diagonal(variance)))
            starts = [proposals.scan(mode.x, i, far[i], number) for i, number in enumerate(numbers)]
            ends = climb(np.concatenate(starts))
            found.append(ends)
            gone = mode.neighbourhood.distance(ends.x - mode.x) > 1
            reached = coordinate[: len(gone)]  # the budget may have ended
            share = np.bincount(reached, gone, len(numbers)) / np.maximum(
                np.bincount(reached, minlength=len(numbers)), 1
            )
            self.weight = np.maximum(0.5 * (self.weight + share), LEAST_WEIGHT)
        return found
