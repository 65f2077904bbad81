"""The interface of a stopping rule: what the draws of a run so far still lack."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import equinox as eqx

from pseudo_extended.checks import describe
from pseudo_extended.results.result import Result


class AbstractStoppingRule(eqx.Module):
    """The base class of stopping rules: a new one writes `missing`, and `pe.sample(..., stop=MyRule())` takes it.

    The rule is asked after 100, 150, 225, … draws of each chain, whatever the schedule of the run, so where a run ends
    depends on its draws alone. A limit of time is no rule: it is the `time_limit` of `pe.sample`.
    """

    @abstractmethod
    def missing(self, result: Result) -> Sequence[str]:
        """Return what these draws still lack, a clause for each thing; the run ends when nothing is missing."""

    def share(self, result: Result) -> float | None:
        """Return the share of what is wanted that these draws have, which foretells the end; None if it cannot say."""
        del result
        return None

    @property
    def target_ess(self) -> float | None:
        """The effective sample size that is wanted, of a rule that wants nothing else."""
        return None

    def for_part(self, num_parts: int) -> "AbstractStoppingRule":
        """Return the rule for one of several runs whose draws are joined, as with `pilots=`; by default the same."""
        del num_parts
        return self

    def without_round_trips(self) -> "AbstractStoppingRule":
        """Return the rule for a target with one mode, where no trips along the path are needed; by default the same."""
        return self


def clauses(rule: AbstractStoppingRule, result: Result) -> list[str]:
    """Ask a rule, and refuse an answer that is not a list of clauses."""
    missing: Any = rule.missing(result)
    if isinstance(missing, str) or not (
        isinstance(missing, Sequence) and all(isinstance(clause, str) for clause in missing)
    ):
        raise TypeError(
            f"missing of {type(rule).__name__} must return a list of clauses, empty if nothing is missing; "
            f"got {describe(missing)}."
        )
    return list(missing)
