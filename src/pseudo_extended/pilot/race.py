"""Races: many ascents side by side, of which only the best go on.

Most starts of a scan are in basins that nobody wants, and it shows long before an ascent has converged. So at a few
numbers of evaluations those that are lower than most others there are given up; and so are those that go back to the
mode from which the scan started.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

RUNGS = (12, 24)
"""Evaluations after which an ascent is compared with the others."""
KEPT = 1 / 3
"""The part that goes on from each."""

Home = Callable[[Float[np.ndarray, "point d"]], Bool[np.ndarray, " point"]]
"""Whether points are at places from which the ascents were meant to lead away."""


class Race:
    """Compares ascents that may start at different times: each with all that have come as far.

    >>> race = Race(rungs=(2,), kept=0.5)
    >>> race.lost(np.array([2, 2, 1]), np.zeros((3, 1)), np.array([5.0, 4.0, 0.0]))
    array([False,  True, False])
    >>> race.lost(np.array([2, 3]), np.zeros((2, 1)), np.array([6.0, 0.0]))
    array([False, False])
    """

    def __init__(self, home: Home | None = None, rungs: Sequence[int] = RUNGS, kept: float = KEPT):
        self.home, self.kept = home, kept
        self.seen = {rung: np.zeros(0) for rung in rungs}

    def lost(
        self,
        num_evaluations: Int[np.ndarray, " lane"],
        x: Float[np.ndarray, "lane d"],
        value: Float[np.ndarray, " lane"],
    ) -> Bool[np.ndarray, " lane"]:
        """Tell which of these ascents to give up."""
        out = np.zeros(len(value), bool)
        for rung, seen in self.seen.items():
            here = np.flatnonzero(num_evaluations == rung)
            if not len(here):
                continue
            if self.home is not None:
                back = self.home(x[here])
                out[here[back]] = True
                here = here[~back]
            self.seen[rung] = np.concatenate([seen, value[here]])
            if len(here):
                out[here] = value[here] < np.quantile(self.seen[rung], 1 - self.kept)
        return out
