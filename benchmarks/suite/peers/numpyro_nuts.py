"""NumPyro's NUTS."""

from samplers import Sampled, with_numpyro
from suite.answer import Answer
from suite.problem import Problem


def answer(sampled: Sampled) -> Answer:
    """The answer of a chain of plain draws; every evaluation has a gradient."""
    return Answer(sampled.values, sampled.weights, sampled.evaluations, sampled.evaluations, notes=sampled.notes)


def run(problem: Problem, seed: int) -> Answer:
    """Four chains, 1,000 iterations of warm-up and 1,000 draws each."""
    return answer(with_numpyro(problem.posterior(), 1000, seed))
