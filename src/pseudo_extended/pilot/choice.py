"""The choice of the annealed base from which the chains start.

The evidence that each base finds tells whether it missed something; among those that did not, the shortest path wins.
"""

import numpy as np

from pseudo_extended.pilot.annealer import Pilot
from pseudo_extended.pilot.learned_base import LearnedBase, claimed
from pseudo_extended.pilot.mode_search import MAX_MODES, MAX_UNSEEN
from pseudo_extended.pilot.modes import Modes
from pseudo_extended.target.bases import NormalMixture

MIN_CLAIMED = 0.9
"""The part of the target that the longest list of modes has to hold, if there are more modes than that."""
SETTLED = 2.5
"""A path so short, from a base at all modes that were found, needs no rival."""
HOLLOW = 10.0
"""A log mass so far from Laplace's says that the modes are not where the mass is; more in many dimensions."""
AGREED = 0.5
"""An error of log Z, by the spread of the islands, of a pass that has found the mass."""
HOPELESS_PATH = 10.0
"""In many dimensions pseudo-samples do not travel so long a path to a single mode, and no fit makes it short."""
MISSED = 5.0
"""The length of path that a unit of log Z is worth: missing a tenth of the mass is as bad as half a unit more to go."""


def why_not_listed(modes: Modes, base: LearnedBase, broad: Pilot | None) -> str | None:
    """Why no mixture holds all modes, or None if one may.

    Chains whose base is at some of very many modes seldom reach the others, and from it no evidence need show that they
    are missed: a broad base must tell. Where it says that modes beyond the longest list hold little, the list will do.
    Before it has been annealed, a list that is too long is not tried.
    """
    if modes.unseen > MAX_UNSEEN:
        return f"{modes.unseen:.0%} of the ascents ended in a mode of their own"
    if len(modes.x) <= MAX_MODES:
        return None
    if broad is None:
        return f"there are {len(modes.x)} modes"
    if not broad.annealed.finished or not isinstance(base, NormalMixture):
        return None
    share = claimed(base, broad.population)
    if share >= MIN_CLAIMED:
        return None
    return f"the {MAX_MODES} heaviest of {len(modes.x)} modes hold {share:.0%} of what {broad.name} reached"


def is_hollow(pilot: Pilot, modes: Modes) -> bool:
    """Whether the target has quite another mass than normals at its modes say, so that they tell nothing of it.

    The neck of a funnel is high and holds next to nothing; where a scale may go to zero, an ascent ends in rounding.
    """
    room = HOLLOW * (1 + modes.x.shape[1] / 100) + 2 * pilot.error
    return abs(pilot.log_z - float(np.logaddexp.reduce(modes.log_mass))) > room


def is_reached(pilot: Pilot) -> bool:
    """Whether a pass has found the mass of the target wherever it is: its islands agree, on a path of fair length."""
    annealed = pilot.annealed
    whole = bool(annealed.finished) and float(annealed.covered) == 1
    return whole and pilot.length <= HOPELESS_PATH and pilot.error <= AGREED


def is_settled(pilot: Pilot) -> bool:
    """Whether nothing speaks against a base, and no other could do much better."""
    annealed = pilot.annealed
    return bool(annealed.finished) and float(annealed.covered) == 1 and pilot.length <= SETTLED and pilot.error <= 0.2


def fair(candidates: list[Pilot]) -> list[Pilot]:
    """Return the pilots that reached the target and missed nothing: their evidence is not below the highest.

    Strict, because half of the mass missed is a difference of log 2, and a longer path costs less than a mode.
    """
    candidates = [pilot for pilot in candidates if pilot.annealed.covered > 0] or candidates
    known = [pilot for pilot in candidates if pilot.base_mass.is_known] or candidates
    highest = max(known, key=lambda pilot: pilot.log_z - 2 * pilot.error)

    def missed(pilot: Pilot) -> bool:
        least = highest.log_z - 0.2 - 2 * np.hypot(pilot.error, highest.error)
        return pilot.base_mass.is_known and pilot.log_z <= least

    return [pilot for pilot in candidates if pilot.annealed.finished and not missed(pilot)] or [highest]


def choose(candidates: list[Pilot]) -> Pilot:
    """The shortest path among the fair ones; what one may have missed beyond its error makes it longer."""
    left = fair(candidates)
    known = [pilot for pilot in left if pilot.base_mass.is_known]
    if not known:
        return min(left, key=lambda pilot: pilot.length)
    highest = max(known, key=lambda pilot: pilot.log_z - pilot.error)

    def cost(pilot: Pilot) -> float:
        missed = highest.log_z - pilot.log_z - np.hypot(pilot.error, highest.error)
        return pilot.length + (MISSED * max(missed, 0.0) if pilot.base_mass.is_known else 0.0)

    return min(left, key=cost)


def in_doubt(best: Pilot, other: Pilot) -> bool:
    """Whether another base would do about as well, on a path that is long enough for the choice to matter."""
    return other is not best and other in fair([best, other]) and 1 < other.length < 1.25 * best.length
