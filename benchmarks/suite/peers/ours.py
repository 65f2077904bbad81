"""The default of this library, with nothing tuned."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import pseudo_extended as pe
from suite.answer import Answer, quantities_at
from suite.priors import Box
from suite.problem import Problem

if TYPE_CHECKING:
    from suite.slow import Host


def target_of(problem: Problem, log_density: Any = None) -> pe.Target:
    """The problem as a user would write it: the density, and bounds where the prior is a box."""
    bounds = (problem.prior.low, problem.prior.high) if problem.is_model and isinstance(problem.prior, Box) else None
    return pe.Target(log_density or problem.log_gamma, problem.first, bounds=bounds)


def run(problem: Problem, seed: int) -> Answer:
    """`pe.sample(target, start)`, and no other option."""
    return _run(problem, target_of(problem), seed)


def run_on_host(function: "Host") -> Callable[[Problem, int], Answer]:
    """The default on a NumPy function with its gradient."""

    def run(problem: Problem, seed: int) -> Answer:
        density = pe.from_numpy(function.value, function.gradient)
        return _run(problem, target_of(problem, density), seed)

    return run


def _run(problem: Problem, target: pe.Target, seed: int) -> Answer:
    result = pe.sample(target, problem.first, seed=seed, progress=False)
    return sampled(problem, result)


def sampled(problem: Problem, result: pe.Result, vector: Callable[[Any], np.ndarray] = np.asarray) -> Answer:
    """The answer of a run; `vector` makes one array out of the positions that the result shows."""
    evaluations = result.evaluations
    assert evaluations is not None
    evidence = result.log_evidence
    total = int(sum(evaluations))
    notes = [*result.notes, *(f"! {sentence}" for sentence in result.warnings)]
    return Answer(
        quantities_at(problem, vector(result.points)),
        result.weights,
        total,
        total if result.target.is_differentiable else 0,
        float(evidence.value),
        float(evidence.standard_error),
        notes=notes,
    )
