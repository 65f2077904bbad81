"""The candidate bases of the pilot, in the order in which they are tried. A new one is a file and an entry here."""

from pseudo_extended.pilot.candidates.abstract import AbstractCandidate as AbstractCandidate
from pseudo_extended.pilot.candidates.abstract import Course as Course
from pseudo_extended.pilot.candidates.abstract import Proposal as Proposal
from pseudo_extended.pilot.candidates.abstract import Proposals as Proposals
from pseudo_extended.pilot.candidates.at_modes import AtModes
from pseudo_extended.pilot.candidates.broad import BroadNormal, Prior
from pseudo_extended.pilot.candidates.improved import HalfEach, Refitted

FROM_MODES: tuple[type[AbstractCandidate], ...] = (AtModes,)
"""Tried first, and again after the broad ones have shown more modes; a short path from one of them settles it."""
BROAD: tuple[type[AbstractCandidate], ...] = (BroadNormal, Prior)
"""Tried unless that settles it. The first of them gives the metric, and the points for a second look for modes."""
IMPROVED: tuple[type[AbstractCandidate], ...] = (HalfEach, Refitted)
"""Made from the best of the others, unless its path is short; the first that proposes anything is the last."""
