"""Normals at all modes that were found."""

from pseudo_extended.pilot import choice
from pseudo_extended.pilot.annealer import Pilot
from pseudo_extended.pilot.candidates.abstract import AbstractCandidate, Course, Proposal, Proposals
from pseudo_extended.pilot.learned_base import broad_base, mode_base
from pseudo_extended.pilot.mode_search import MAX_MODES
from pseudo_extended.pilot.whitening import from_modes


class AtModes(AbstractCandidate):
    """A mixture of normals at the modes, and a broad part; at a single mode, a normal with wider ones around it.

    It suits a target whose modes can be listed, above all where they differ in width: there power tempering would
    weigh them wrongly by a factor exponential in the dimension. A longer list is proposed again.
    """

    def __init__(self) -> None:
        self.num_listed = 0

    def propose(self, course: Course) -> Proposals:
        """Propose the mixture if there are modes, more than before, and a list of them holds most of the target."""
        modes, number = course.modes, len(course.modes.x)
        if modes.is_empty or number == self.num_listed:
            return
        base, broad = mode_base(modes, broad_base(modes), MAX_MODES), _broad(course)
        if why_not := choice.why_not_listed(modes, base, broad):
            if broad is not None:
                course.notes.append(f"{why_not}: the modes cannot be listed.")
            return
        if course.preparation.whitens and modes.covariance.ndim == 3:
            course.annealer.whitening = from_modes(modes)
        self.num_listed = number
        # Not "at so many modes": ascents end at many places of a ring, and of many modes only some are listed.
        name = "a normal at the one mode" if number == 1 else f"a mixture of {min(number, MAX_MODES)} normals"
        yield Proposal(base, name)


def _broad(course: Course) -> Pilot | None:
    """The pilot from the broad normal, if there has been one."""
    return next((pilot for pilot in course.tried if pilot.base is course.round), None)
