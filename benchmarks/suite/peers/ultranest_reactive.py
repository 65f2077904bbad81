"""UltraNest: reactive nested sampling, with slice steps in more than ten dimensions, as its documentation says."""

import logging

import numpy as np
import ultranest  # pyright: ignore[reportMissingImports]
import ultranest.stepsampler as steps  # pyright: ignore[reportMissingImports]

from suite.answer import Answer, weighted
from suite.on_host import OnHost
from suite.problem import Problem

REGION_DIM = 10


def run(problem: Problem, seed: int) -> Answer:
    """400 live points; regions up to ten dimensions, and slice steps beyond, two a dimension."""
    logging.getLogger("ultranest").setLevel(logging.WARNING)
    np.random.seed(seed)  # noqa: NPY002 — the only door that UltraNest has
    host = OnHost(problem)
    wrapped = [place in problem.periodic for place in range(problem.dim)]
    sampler = ultranest.ReactiveNestedSampler(
        [f"x{place}" for place in range(problem.dim)],
        host.many,
        host.transform_many,
        vectorized=True,
        wrapped_params=wrapped if any(wrapped) else None,
    )
    if problem.dim > REGION_DIM:
        sampler.stepsampler = steps.SliceSampler(
            nsteps=2 * problem.dim, generate_direction=steps.generate_mixture_random_direction
        )
    results = sampler.run(show_status=False, viz_callback=False)
    sample = results["weighted_samples"]
    weights = np.asarray(sample["weights"])
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    return weighted(
        problem,
        np.asarray(sample["points"]),
        log_weights,
        evaluations=host.count,
        log_evidence=float(results["logz"]),
        log_evidence_error=float(results["logzerr"]),
    )
