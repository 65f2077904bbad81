"""The default of this library on a NumPy function without a gradient."""

import pseudo_extended as pe
from suite.answer import Answer
from suite.peers.ours import sampled, target_of
from suite.problem import Problem


def run(problem: Problem, seed: int) -> Answer:
    """`pe.sample` on the NumPy version of the density, where the problem has one."""
    if problem.in_numpy is None:
        raise ValueError("the problem must have a NumPy version; it has none.")
    target = target_of(problem, pe.from_numpy(problem.in_numpy, vectorised=True))
    return sampled(problem, pe.sample(target, problem.first, seed=seed, progress=False))
