"""The default of this library, with nothing tuned."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

import pseudo_extended as pe
from counting import Counted
from suite.answer import Answer
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
    values = np.asarray(result.map_points(problem.quantities))
    evaluations = getattr(result, "evaluations", None)
    total = int(sum(jax.tree.leaves(evaluations))) if evaluations is not None else counted(problem, seed, result)
    evidence = result.log_evidence
    notes = [*result.notes, *(f"! {sentence}" for sentence in result.warnings)]
    return Answer(
        values,
        result.weights,
        total,
        total,
        float(evidence.value),
        float(evidence.standard_error),
        notes=notes,
    )


def counted(problem: Problem, seed: int, result: pe.Result) -> int:
    """Evaluations of a run that does not report them: pilot and warm-up once more, with a density that counts."""
    density = Counted(problem.log_gamma)
    pe.sample(target_of(problem, density), problem.first, seed=seed, draws=1, progress=False)
    return density.count + int(np.sum(result.statistics["num_evaluations"]))
