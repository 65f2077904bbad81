"""NUTS of this library on the density itself."""

import jax
import numpy as np

import pseudo_extended as pe
from suite.answer import Answer
from suite.peers.ours import target_of
from suite.problem import Problem


def run(problem: Problem, seed: int) -> Answer:
    """Four chains of 1,000 draws."""
    result = pe.sample(target_of(problem), problem.first, method=pe.Plain(pe.NUTS()), seed=seed, progress=False)
    reported = getattr(result, "evaluations", None)
    steps = result.statistics["num_evaluations"] if reported is None else jax.tree.leaves(reported)
    total = int(np.sum(steps))
    values = np.asarray(result.map_points(problem.quantities))
    return Answer(values, result.weights, total, total, notes=[f"! {sentence}" for sentence in result.warnings])
