"""All that there is to say against a result, and what of it is said against its evidence."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from pseudo_extended.messages import Message, kinds, recall
from pseudo_extended.results import estimates
from pseudo_extended.results.diagnosis import (
    diagnose,
    diagnose_divergences,
    diagnose_evidence,
    diagnose_importance,
    diagnose_tails,
)
from pseudo_extended.results.estimates import Estimate
from pseudo_extended.results.markup import paragraph
from pseudo_extended.results.mode_warnings import diagnose_search
from pseudo_extended.results.modes import Search
from pseudo_extended.results.second_look import GoodTuring, places_of_pilot
from pseudo_extended.results.series import r_hat
from pseudo_extended.results.stop_reason import StopReason
from pseudo_extended.results.travel import diagnose_travel
from pseudo_extended.target.labels import coordinates
from pseudo_extended.weights import normalise

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

AGAINST_EVIDENCE = frozenset(
    kind.code
    for kind in (
        kinds.UNKNOWN_CONSTANT,
        kinds.CHANGES,
        kinds.STUCK,
        kinds.LOW_ACCEPTANCE,
        kinds.NAN_WEIGHTS,
        kinds.DRIFTED,
        kinds.NO_WEIGHT,
        kinds.RAN_AWAY,
        kinds.FEW_HOLD_ALL,
        kinds.TOO_FEW_DRAWS,
        kinds.NOT_MIXED,
        kinds.NO_SWITCH,
        kinds.NEVER_HOT,
        kinds.FEW_ROUND_TRIPS,
        kinds.EVIDENCE_UNKNOWN,
        kinds.EVIDENCE_OF_FEW,
        kinds.EVIDENCE_DISAGREES,
        kinds.MODE_MISSED,
        kinds.MODE_LATE,
        kinds.MODE_OF_SOME_CHAINS,
        kinds.PILOTS_DISAGREE,
        kinds.UNEQUAL_TWINS,
        kinds.MODE_OF_SOME_PILOTS,
        kinds.SEARCH_UNSETTLED,
    )
)
"""Codes of warnings after which an evidence is marked wherever it is shown."""


def against_evidence(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Choose the messages for which an evidence must not be trusted."""
    return tuple(message for message in messages if message.code in AGAINST_EVIDENCE)


def diagnose_result(
    result: "Result",
    values: Float[np.ndarray, "chain draw particle d"],
    r_hats: Float[np.ndarray, " d"],
    labels: list[str],
) -> tuple[Message, ...]:
    """One message for each thing that the draws and statistics tell against a result; `values` have the labels."""
    ess = estimates.mean(values, result.weights).ess
    within = normalise(result.log_weights)
    found = diagnose(result.unconstrained, within, result.statistics, r_hats, ess, labels)
    found += diagnose_tails(values, result.weights, np.where(_has_bounds(result), 0.0, ess), labels)
    if result.log_importance is not None:
        found += diagnose_importance(result.log_importance)
    if result.travel is not None:
        found += diagnose_travel(result.travel, result.num_draws)
    found += diagnose_evidence(result.statistics)
    found += [recall(note, kinds.NOTE) for note in result.notes if kinds.SEARCH_UNSETTLED.says(note)]
    how = None if result.stopped is None else StopReason(result.stopped).sentence
    if how is not None:
        found.insert(0, kinds.STOPPED(how=how, draws=result.num_draws * result.thinned))
    if result.thinned > 1:
        found.insert(0, kinds.THINNED(thinned=result.thinned, store=result.store))
    return (*(recall(doubt, kinds.DOUBT) for doubt in result.doubts), *found)


def _has_bounds(result: "Result") -> Bool[np.ndarray, " d"]:
    """Tell which coordinates have finite bounds on both sides, and so every moment."""
    target = result.target
    if target.view is not None:
        return np.zeros(1, bool)
    return np.concatenate(
        [
            np.zeros(parameter.size, bool)
            if bounds is None
            else np.isfinite(np.broadcast_to(bounds.upper - bounds.lower, parameter.size))
            for parameter, bounds in zip(target.parameters, target.bounds, strict=True)
        ]
    )


def notes_on_run(result: "Result") -> list[Message]:
    """Divergences that are no warning, and what the pilot's ascents say about basins that none of them has seen."""
    hits = places_of_pilot(result).hits
    search = diagnose_search(Search(hits, GoodTuring.of(hits)) if hits.size else None, "pilot")
    return [*(each for each in diagnose_divergences(result.statistics) if each.severity == "note"), *search]


class Evidence(Estimate):
    """log Z with its error; wherever it is shown, so are the codes of the warnings for which it must not be trusted."""

    _result: "Result | None" = None

    @classmethod
    def of(cls, result: "Result", estimate: Estimate) -> "Evidence":
        """Attach an estimate to the result whose warnings speak against it."""
        made = cls(*estimate)
        made._result = result
        return made

    @property
    def doubts(self) -> tuple[Message, ...]:
        """The warnings for which it must not be trusted: none, if it may be."""
        return () if self._result is None else self._result.evidence_doubts

    def __repr__(self) -> str:
        return f"{super().__repr__()}{mark(self.doubts)}"

    def _repr_html_(self) -> str:
        return f"{super()._repr_html_()}{paragraph(f'! log evidence{mark(self.doubts)}') if self.doubts else ''}"


def mark(doubts: tuple[Message, ...]) -> str:
    """What follows an evidence that must not be trusted; nothing for one that may be.

    >>> mark((kinds.EVIDENCE_OF_FEW(),))
    ', NOT TO BE TRUSTED (PE402)'
    """
    codes = ", ".join(dict.fromkeys(doubt.code for doubt in doubts))
    return f", NOT TO BE TRUSTED ({codes})" if codes else ""


def evidence_in_words(evidence: Estimate, doubts: tuple[Message, ...]) -> str:
    """log Z with its error, marked if it must not be trusted.

    >>> evidence_in_words(Estimate(-1.5, 0.02, 900.0), (kinds.EVIDENCE_OF_FEW(),))
    'log evidence: -1.500 ± 0.020, NOT TO BE TRUSTED (PE402)'
    """
    return f"log evidence: {evidence.value:.3f} ± {evidence.standard_error:.3f}{mark(doubts)}"


def evidence_attributes(evidence: Estimate, doubts: tuple[Message, ...]) -> dict[str, float | str]:
    """log Z, its error and the codes that speak against it, as plain values for tables, ArviZ and stores."""
    return {
        "log_evidence": float(evidence.value),
        "log_evidence_error": float(evidence.standard_error),
        "log_evidence_doubts": " ".join(dict.fromkeys(doubt.code for doubt in doubts)),
    }


def evidence_for_store(result: "Result") -> dict[str, float | str] | None:
    """The same, judged on the unconstrained space: in the user's, a model in Python would be called for every point."""
    if "evidence_top" not in result.statistics:
        return None
    u, target = result.unconstrained, result.target
    r_hats = r_hat(estimates.contributions(u, result.weights))
    found = diagnose_result(result, u, r_hats, coordinates(target.parameters, target.coords))
    return evidence_attributes(result.log_evidence, against_evidence((*found, *result._warnings_of_modes)))
