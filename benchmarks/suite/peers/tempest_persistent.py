"""Tempest, the successor of pocoMC: persistent sampling."""

import numpy as np
import tempest  # pyright: ignore[reportMissingImports]

from suite.answer import Answer, weighted
from suite.on_host import OnHost
from suite.problem import Problem

NUM_PARTICLES = 512


def run(problem: Problem, seed: int) -> Answer:
    """The defaults, with at least 512 particles: 2 d, the package's own number, finds no second mode of ours."""
    host = OnHost(problem)
    sampler = tempest.Sampler(
        host.transform,
        host.many,
        n_dim=problem.dim,
        n_particles=max(NUM_PARTICLES, 2 * problem.dim),
        periodic=list(problem.periodic) or None,
        vectorize=True,
        random_state=seed,
    )
    sampler.run(progress=False)
    points, weights, _ = sampler.posterior()[:3]
    log_evidence, error = sampler.evidence()
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    return weighted(
        problem,
        points,
        log_weights,
        evaluations=host.count,
        log_evidence=float(log_evidence),
        log_evidence_error=None if error is None else float(error),
    )
