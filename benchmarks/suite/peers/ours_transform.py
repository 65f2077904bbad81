"""The default of this library, through the door for nested samplers: a likelihood and a prior transform."""

import numpy as np

import pseudo_extended as pe
from suite.answer import Answer
from suite.peers.ours import sampled
from suite.problem import Problem


def run(problem: Problem, seed: int) -> Answer:
    """`pe.sample` on a target of `pe.from_prior_transform`, and no other option."""
    if not problem.is_model:
        raise ValueError("the problem must have a prior of its own; it is a plain density.")
    periodic = list(problem.periodic) or None
    target = pe.from_prior_transform(
        problem.log_ratio, problem.prior.from_cube, problem.dim, names=_names(problem), periodic=periodic
    )
    return sampled(problem, pe.sample(target, seed=seed, progress=False), _vector)


def _names(problem: Problem) -> list[str]:
    return [f"x{place}" for place in range(problem.dim)]


def _vector(points: dict[str, np.ndarray]) -> np.ndarray:
    """The vector of all parameters, at every point."""
    return np.stack([points[f"x{place}"] for place in range(len(points))], axis=-1)
