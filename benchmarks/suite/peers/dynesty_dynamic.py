"""dynesty: dynamic nested sampling with its defaults."""

import dynesty  # pyright: ignore[reportMissingImports]
import numpy as np

from suite.answer import Answer, weighted
from suite.on_host import OnHost
from suite.problem import Problem

MAX_CALLS = 10_000_000


def run(problem: Problem, seed: int) -> Answer:
    """The dynamic sampler, multiple ellipsoids, and stopping rule of the quick start."""
    host = OnHost(problem)
    sampler = dynesty.DynamicNestedSampler(
        host.one,
        host.transform,
        problem.dim,
        periodic=list(problem.periodic) or None,
        rstate=np.random.default_rng(seed),
    )
    sampler.run_nested(print_progress=False, maxcall=MAX_CALLS)
    results = sampler.results
    return weighted(
        problem,
        results.samples,
        results.logwt - results.logz[-1],
        evaluations=host.count,
        log_evidence=float(results.logz[-1]),
        log_evidence_error=float(results.logzerr[-1]),
    )
