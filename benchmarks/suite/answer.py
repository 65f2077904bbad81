"""What a sampler answered, and what is recorded of it."""

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from pseudo_extended.results import estimates
from pseudo_extended.results.series import r_hat
from suite.problem import Problem

BATCH = 20_000


@dataclass(frozen=True)
class Answer:
    """Weighted points, the evidence if the sampler has it, and what they cost."""

    values: Float[np.ndarray, "chain draw particle quantity"]
    """The problem's quantities at every point."""
    weights: Float[np.ndarray, "chain draw particle"]
    evaluations: int
    """Evaluations of the density, with or without gradient, everything counted."""
    gradients: int = 0
    """How many of them were with a gradient."""
    log_evidence: float | None = None
    log_evidence_error: float | None = None
    """As the sampler states it; None if it states none."""
    are_independent: bool = False
    """Whether the points are one weighted sample and no time series: errors are then those of importance sampling."""
    notes: list[str] = field(default_factory=list)


def quantities_at(
    problem: Problem, points: Float[np.ndarray, "*leading d"], *, latent: bool = False
) -> Float[np.ndarray, "*leading quantity"]:
    """The problem's quantities at many points, on the user's scale or the unconstrained one."""
    one = problem.posterior().quantities if latent else problem.quantities
    function = jax.jit(jax.vmap(one))
    flat = np.asarray(points, float).reshape(-1, points.shape[-1])
    short = -len(flat) % min(BATCH, max(len(flat), 1))
    padded = np.concatenate([flat, np.repeat(flat[-1:], short, axis=0)])
    parts = [np.asarray(function(part)) for part in padded.reshape(-1, min(BATCH, len(padded)), flat.shape[1])]
    return np.concatenate(parts)[: len(flat)].reshape(*points.shape[:-1], -1)


def weighted(
    problem: Problem, points: Float[np.ndarray, "point d"], log_weights: Float[np.ndarray, " point"], **rest: Any
) -> Answer:
    """The answer of a sampler that gives one weighted sample, as nested samplers and SMC do."""
    weights = np.exp(log_weights - np.max(log_weights))
    counts = weights > 0
    values = quantities_at(problem, points[counts])
    return Answer(values[None, None], (weights[counts] / weights.sum())[None, None], are_independent=True, **rest)


def record(problem: Problem, answer: Answer) -> dict[str, Any]:
    """Estimates and errors as the sampler states them; true values are compared later, when a table is made."""
    if answer.are_independent:
        weights, values = answer.weights.ravel(), answer.values.reshape(-1, answer.values.shape[-1])
        value = weights @ values
        error = np.sqrt(weights**2 @ (values - value) ** 2)
        ess, worst = float(1 / np.sum(weights**2)), None
    else:
        estimate = estimates.mean(answer.values, answer.weights)
        value, error = estimate.value, estimate.standard_error
        ess = float(np.nanmin(estimate.ess)) if np.isfinite(estimate.ess).any() else None
        with np.errstate(all="ignore"):
            hats = r_hat(estimates.contributions(answer.values, answer.weights))
        worst = float(np.nanmax(hats)) if np.isfinite(hats).any() else None
    return {
        "dim": problem.dim,
        "value": _rounded(value),
        "error": _rounded(error),
        "ess": ess,
        "r_hat": worst,
        "log_evidence": answer.log_evidence,
        "log_evidence_error": answer.log_evidence_error,
        "evaluations": int(answer.evaluations),
        "gradients": int(answer.gradients),
        "notes": answer.notes,
    }


def _rounded(numbers: np.ndarray) -> list[float | None]:
    return [float(f"{number:.5g}") if np.isfinite(number) else None for number in numbers]
