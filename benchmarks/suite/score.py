"""How far an answer is from the truth."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from suite.problem import Problem

FOUND = 0.1
"""A mode counts as found if it was given at least this share of its mass."""
COUNTED = 1e-3
"""Modes with less mass than this are not asked for."""
STATED = 2.0
"""Within so many stated errors an answer is covered: 95 % of them, if errors are right and normal."""


@dataclass(frozen=True)
class Score:
    """Errors of one record; None where nothing is asked or nothing was answered."""

    mass: float | None
    """The largest error of the mass of a mode."""
    moment: float | None
    """The largest error of a moment, in standard deviations of its function."""
    evidence: float | None
    """The error of log Z, with its sign."""
    evidence_z: float | None
    """The same in stated errors, those of the reference included."""
    covered: float | None
    """The share of masses and moments within two stated errors of the truth."""
    found: int
    """Modes found, of `modes`."""
    modes: int


def score(problem: Problem, outcome: dict[str, Any]) -> Score:
    """The errors of a record."""
    value = np.array([np.nan if part is None else part for part in outcome["value"]], float)
    error = np.array([np.nan if part is None else part for part in outcome["error"]], float)
    mass, moment, within = [], [], []
    found = modes = 0
    for name, asked in problem.asked.items():
        part = problem.slices[name]
        if len(value) < part.stop:  # a record from before this was asked
            continue
        gap = np.abs(value[part] - asked.truth)
        allowed = STATED * np.hypot(error[part], 0.0 if asked.error is None else asked.error)
        within.append(np.nan_to_num(gap, nan=np.inf) <= allowed + 1e-9)
        if asked.is_mass:
            mass.append(_largest(gap))
            counted = asked.truth > COUNTED
            modes += int(counted.sum())
            found += int(np.sum(value[part][counted] > FOUND * asked.truth[counted]))
        else:
            assert asked.sd is not None
            moment.append(_largest(gap / asked.sd))
    evidence, evidence_z = _evidence(problem, outcome)
    return Score(
        max(mass) if mass else None,
        max(moment) if moment else None,
        evidence,
        evidence_z,
        float(np.mean(np.concatenate(within))) if within else None,
        found,
        modes,
    )


def _evidence(problem: Problem, outcome: dict[str, Any]) -> tuple[float | None, float | None]:
    stated = outcome["log_evidence"]
    if problem.log_evidence is None or stated is None:
        return None, None
    gap = stated - problem.log_evidence
    if not outcome["log_evidence_error"]:
        return gap, None
    return gap, gap / float(np.hypot(outcome["log_evidence_error"], problem.log_evidence_error))


def _largest(gaps: Float[np.ndarray, " quantity"]) -> float:
    return float(np.max(np.nan_to_num(gaps, nan=np.inf)))
