"""The interface of candidate bases: what a candidate sees of the pilot, and what it proposes."""

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Array, Float, Key

from pseudo_extended.pilot import choice
from pseudo_extended.pilot.annealer import Annealer, Pilot, Preparation
from pseudo_extended.pilot.learned_base import LearnedBase
from pseudo_extended.pilot.modes import Modes
from pseudo_extended.pilot.prior_mass import NORMALISED, PriorMass
from pseudo_extended.target import Target
from pseudo_extended.target.bases import NormalShells


@runtime_checkable  # so that types can be checked at run time
class Course(Protocol):
    """A pilot on its way, as candidates see it."""

    key: Key[Array, ""]
    target: Target
    preparation: Preparation
    annealer: Annealer
    x: Float[np.ndarray, "start d"]
    """The starting points that the user gave, or that were drawn."""
    modes: Modes
    """All modes that were found so far; it may be empty."""
    round: NormalShells
    """A broad normal in whose units the target is about round."""
    hollow: bool
    """Whether the mass of the target is not at its modes; the broad normal is one around the starts then."""
    mass: PriorMass
    """The mass of the prior, where the target has one."""
    tried: list[Pilot]
    """The bases that have been annealed so far, in order."""
    notes: list[str]
    """Sentences for the result."""


class Proposal(NamedTuple):
    """A base from which the target is to be annealed."""

    base: LearnedBase | None
    """None for the target's own."""
    name: str
    """The name in notes and reports, such as "a broad normal"."""
    mass: PriorMass = NORMALISED
    """The integral of the base, if that is not one."""


Proposals = Generator[Proposal, Pilot, None]


class AbstractCandidate(ABC):
    """A way to make bases for a target. It is made anew for every pilot, so it may remember what it proposed.

    A new candidate is a class in a file of its own and an entry in one of the lists of `pilot.candidates`.
    """

    @abstractmethod
    def propose(self, course: Course) -> Proposals:
        """Yield bases one after the other, or none if they do not suit; each `yield` returns the annealed pilot."""

    def pick(self, course: Course, best: Pilot, new: list[Pilot]) -> Pilot:
        """Return the better of the best pilot so far and those of this candidate, for candidates that improve it."""
        del course
        return choice.choose([best, *new])
