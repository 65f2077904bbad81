"""What the modes of a result tell against it: modes without draws, found late, by some chains only, of wrong masses."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from pseudo_extended.messages import Message, kinds
from pseudo_extended.results import estimates
from pseudo_extended.results.estimates import Weights
from pseudo_extended.results.missed import Missed
from pseudo_extended.results.modes import Modes, Search

MANY_UNSEEN = 0.05
"""A share of basins not seen from which on it is a warning and no note."""
FEW_DRAWS = 20
"""A mode that should have fewer draws of a chain than this may be missed by one."""
HEAVY = 0.05
MANY_VISITS = 10
"""A chain that should have come to a mode ten times comes for the first time in its second half once in 150 times."""
SIGMAS = 5.0
NUM_NAMED = 3
"""Modes that one kind of message names, the heaviest."""


def diagnose_modes(modes: Modes, weights: Weights) -> tuple[Message, ...]:
    """One message for each mode that a user should know about."""
    inside = modes.labels[..., None] == np.arange(len(modes))
    return (
        *_missed(modes.missed),
        *_visits(modes, np.einsum("cdp,cdpm->cdm", weights, inside)),
        *_twins(modes, inside, weights),
        *_unseen(modes.second_look, "second look"),
    )


def diagnose_search(search: Search | None, by: str) -> list[Message]:
    """What ascents say about basins that none of them has seen: always something, if there were any."""
    if search is None or search.unseen.num_ascents == 0:
        return []
    found = search.unseen
    kind = kinds.UNSEEN_BASINS if found.unseen > MANY_UNSEEN else kinds.BASINS_SEEN
    return [kind(once=found.num_once, number=found.num_ascents, unseen=found.unseen, bound=found.bound, by=by)]


def _unseen(search: Search | None, by: str) -> list[Message]:
    if search is not None and search.starts == "wide":  # far out, ascents end anywhere: only modes with mass count
        return []
    return [message for message in diagnose_search(search, by) if message.severity != "note"]


def _missed(missed: Sequence[Missed]) -> list[Message]:
    return [
        kinds.MODE_MISSED(
            where=each.where(),
            whose="of the pilot" if each.found_by == "pilot" else "after the run",
            mass=each.mass,
        )
        for each in missed[:NUM_NAMED]
    ]


def _visits(modes: Modes, held: Float[np.ndarray, "chain draw mode"]) -> list[Message]:
    """Modes that a chain never came to, or came to late, though it should have come often."""
    never, late = [], []
    num_draws = held.shape[1]
    there = held > 1e-3
    for k, mass in enumerate(modes.mass.value):
        expected = _expected_visits(there[..., k], float(mass))
        if len(modes) == 1 or mass * num_draws < FEW_DRAWS or (mass < HEAVY and expected < MANY_VISITS):
            continue
        first = np.where(there[..., k].any(axis=1), np.argmax(there[..., k], axis=1), num_draws)
        chain = int(np.argmax(first))
        if first[chain] == num_draws:
            never.append(kinds.MODE_OF_SOME_CHAINS(chain=chain, mode=k, mass=mass))
        elif first[chain] > 0.5 * num_draws:
            late.append(kinds.MODE_LATE(chain=chain, mode=k, mass=mass, percent=100 * first[chain] / num_draws))
    return [*never[:NUM_NAMED], *late[:NUM_NAMED]]


def _expected_visits(there: Bool[np.ndarray, "chain draw"], mass: float) -> float:
    """How often a chain should come to a mode, from how long the chains stay that do come."""
    arrivals = np.sum(there[:, :1]) + np.sum(there[:, 1:] & ~there[:, :-1])
    return mass * there.shape[1] * arrivals / max(np.sum(there), 1)


def _twins(modes: Modes, inside: np.ndarray, weights: Weights) -> list[Message]:
    """Modes that are equal by symmetry, and whose sampled masses are not."""
    found = []
    for group in np.unique(modes.group):
        members = np.flatnonzero(modes.group == group)
        first, last = int(members[0]), int(members[-1])
        if first == last or modes.mass.value[last] > 0.67 * modes.mass.value[first]:
            continue
        difference = inside[..., first].astype(float) - inside[..., last]
        value, error, _ = estimates.mean(difference, weights)
        if not abs(value) < SIGMAS * error:
            found.append(kinds.UNEQUAL_TWINS(first=first, second=last, sigmas=abs(value) / error if error else np.inf))
    return found[:NUM_NAMED]
