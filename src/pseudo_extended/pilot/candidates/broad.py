"""Bases that know nothing of single modes: a broad normal, one around the starting points, and the prior of a model."""

from pseudo_extended.pilot.candidates.abstract import AbstractCandidate, Course, Proposal, Proposals
from pseudo_extended.target import Target


class BroadNormal(AbstractCandidate):
    """A normal that covers all modes, or the starting points where no ascent ended at a mode.

    It suits a target whose modes cannot be listed.
    """

    def propose(self, course: Course) -> Proposals:
        """Propose the normal in whose units the target is about round."""
        knows_nothing = course.modes.is_empty or course.hollow
        yield Proposal(course.round, "a normal around the starts" if knows_nothing else "a broad normal")


class Prior(AbstractCandidate):
    """The prior of a model, if it can be drawn from."""

    def propose(self, course: Course) -> Proposals:
        """Propose the target's own base."""
        if has_prior(course.target):
            yield Proposal(None, "the prior", course.mass)


def has_prior(target: Target) -> bool:
    """Whether the target is a model with a prior that can be drawn from."""
    return target.log_likelihood is not None and target.base is not None and target.base.can_sample
