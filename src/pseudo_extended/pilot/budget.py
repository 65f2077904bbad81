"""How many evaluations of the density a search for modes may make, and what is said when they were not enough."""

import numpy as np

from pseudo_extended.messages import kinds

BUDGET = 400_000
"""Evaluations of the density in a search, if nothing else is said."""
BUDGET_ON_HOST = 20_000
"""The same for functions called in Python, which are dear."""
MOST_GROWTH = 8
"""Times as many, if nothing is said, while the search still finds modes with mass."""
ENOUGH_TO_AGREE = 640_000
"""Evaluations to which any budget may grow, if nothing is said, for a second opinion on a rugged landscape."""
LEAST_ASCENT = 10
"""Evaluations below which an ascent is not worth starting."""


class Budget:
    """Evaluations that were made, and that may be made: the number grows while there is something to find.

    >>> budget = Budget(cost=1, max_evaluations=100)
    >>> budget.evaluations += 95
    >>> budget.affordable(30), budget.is_spent(still_finds=True)
    (5, True)
    """

    def __init__(self, *, cost: int, max_evaluations: int | None = None, on_host: bool = False):
        self.cost = cost
        """Evaluations of a value with its gradient: one, or more by differences."""
        self.evaluations = 0
        self.max_evaluations = max_evaluations or (BUDGET_ON_HOST if on_host else BUDGET)
        self._is_given = max_evaluations is not None
        self._most = self.max_evaluations * (1 if max_evaluations else MOST_GROWTH)
        self.notes: list[str] = []
        """Sentences on what was not done."""

    def affordable(self, number: int, cost: int | None = None) -> int:
        """Tell how many evaluations of so many it allows, with gradients unless the cost of one is given."""
        return int(np.clip((self.max_evaluations - self.evaluations) // (cost or self.cost), 0, number))

    @property
    def is_short(self) -> bool:
        """Whether there is nothing left."""
        return self.affordable(LEAST_ASCENT) < LEAST_ASCENT

    def is_spent(self, *, still_finds: bool) -> bool:
        """Whether it is used up; it grows while the search still finds something."""
        if not self.is_short:
            return False
        if still_finds and self._grow():
            return False
        self.note(unsettled=still_finds)
        return True

    def make_room(self, number: int) -> bool:
        """Let it grow, as far as it may, until it allows so many evaluations with gradients; whether it does."""
        while (allowed := self.affordable(number)) < number and self._grow():
            pass
        return allowed >= number

    def extend(self) -> None:
        """Let it grow further than otherwise, unless a budget was given, since what was found must be found again."""
        if not self._is_given:
            self._most = max(self._most, ENOUGH_TO_AGREE)

    def note(self, *, unsettled: bool = False) -> None:
        """Say that the search ended too early, and, if it had not settled, in a warning."""
        if unsettled:
            self.notes = [kinds.SEARCH_UNSETTLED(evaluations=f"{self.evaluations:,}")]
        elif not self.notes:
            self.notes = [
                f"the search for modes ended at its budget of {self.max_evaluations:,} evaluations of the density: "
                "there may be modes that it has not found."
            ]

    def _grow(self) -> bool:
        if self.max_evaluations >= self._most:
            return False
        self.max_evaluations = min(2 * self.max_evaluations, self._most)
        self.notes.clear()
        return True
