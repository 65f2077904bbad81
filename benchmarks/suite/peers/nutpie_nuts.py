"""nutpie's NUTS."""

from samplers import with_nutpie
from suite.answer import Answer
from suite.peers.numpyro_nuts import answer
from suite.problem import Problem


def run(problem: Problem, seed: int) -> Answer:
    """Four chains, 1,000 iterations of warm-up and 1,000 draws each."""
    return answer(with_nutpie(problem.posterior(), 1000, seed))
