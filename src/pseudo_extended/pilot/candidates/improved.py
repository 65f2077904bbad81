"""Bases made from the best of the others: half of two, and one fitted to the points that were reached."""

import numpy as np

from pseudo_extended.pilot import choice
from pseudo_extended.pilot.annealer import Pilot
from pseudo_extended.pilot.candidates.abstract import AbstractCandidate, Course, Proposal, Proposals
from pseudo_extended.pilot.learned_base import mixed, refit

MAX_REFITS = 3
SHORT_PATH = 1.0
"""A path that needs no improvement."""


class HalfEach(AbstractCandidate):
    """Half of the best base and half of its rival, if the two do about as well."""

    def propose(self, course: Course) -> Proposals:
        """Propose the mixture of the two."""
        best = choice.choose(course.tried)
        rival = next((pilot for pilot in course.tried if choice.in_doubt(best, pilot)), None)
        if rival is not None and best.base is not None and rival.base is not None:
            yield Proposal(mixed(best.base, rival.base), f"{best.name} and {rival.name}, half each")

    def pick(self, course: Course, best: Pilot, new: list[Pilot]) -> Pilot:
        """Prefer the mixture unless it missed something: neither of the two needs to be right alone."""
        [both] = new
        return both if both in choice.fair(course.tried) else best


class Refitted(AbstractCandidate):
    """The best base fitted to points of the target, and again as long as that shortens the path."""

    def propose(self, course: Course) -> Proposals:
        """Propose fits to all that has been reached."""
        start = last = choice.choose(course.tried)
        is_alone = len(course.tried) == 1 and not course.preparation.dense
        if is_alone and start.length > choice.HOPELESS_PATH:
            return
        for number in range(1, MAX_REFITS + 1):
            if last.base is None:
                return
            # What any of them has reached is part of the target, whichever base it is that misses it.
            fair = [pilot for pilot in choice.fair(course.tried) if pilot.annealed.finished] or [last]
            points = np.concatenate([pilot.population for pilot in fair])
            times = "refitted" if number == 1 else f"refitted {number} times"
            pilot = yield Proposal(refit(last.base, points, course.round), f"{start.name}, {times}")
            if pilot.length > 0.9 * last.length or pilot.length < SHORT_PATH:
                return
            last = pilot
