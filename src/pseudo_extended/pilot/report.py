"""What the pilot found and why it chose what it chose: kept with the result, and in the store."""

from typing import NamedTuple

import numpy as np

from pseudo_extended.pilot.modes import Modes


class CandidateReport(NamedTuple):
    """One base that was annealed."""

    name: str
    length: float
    """Thermodynamic length of the path from it to the target."""
    log_z: float
    log_z_error: float
    finished: bool
    """Whether its path reached the target."""
    num_evaluations: int


class PilotReport(NamedTuple):
    """What the pilot saw before the chains started."""

    modes: Modes
    """Empty if no search was made, or if it found none."""
    candidates: tuple[CandidateReport, ...]
    """The bases that were annealed, in turn."""
    chosen: str
    """The name of the candidate that the chains start from."""
    num_search_evaluations: int
    """Evaluations of the density by the search for modes."""

    @property
    def num_evaluations(self) -> int:
        """Evaluations of the density by all of the pilot; a value with its gradient counts once."""
        return self.num_search_evaluations + sum(candidate.num_evaluations for candidate in self.candidates)


def no_modes(dim: int) -> Modes:
    """What a pilot without a search reports."""
    return Modes(np.zeros((0, dim)), np.zeros(0), np.zeros((0, dim)), np.zeros(0, int))
