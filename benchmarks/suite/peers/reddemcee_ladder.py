"""reddemcee: emcee's ensembles on an adaptive ladder of temperatures."""

import jax
import numpy as np
import reddemcee  # pyright: ignore[reportMissingImports]

from suite.answer import Answer, quantities_at
from suite.on_host import OnHost
from suite.problem import Problem

NUM_TEMPERATURES = 10
NUM_SWEEPS, STEPS = 2000, 2
THINNED = 5


def run(problem: Problem, seed: int) -> Answer:
    """Ten temperatures, max(32, 2 d) walkers, 2,000 sweeps of two steps, half of them discarded."""
    np.random.seed(seed)  # noqa: NPY002 — the only door that reddemcee has
    host, count = OnHost(problem), max(32, 2 * problem.dim)
    prior = jax.jit(problem.prior.log_density)
    sampler = reddemcee.PTSampler(count, problem.dim, host.one, lambda x: float(prior(x)), ntemps=NUM_TEMPERATURES)
    rng = np.random.default_rng(seed)
    start = [host.transform_many(rng.uniform(size=(count, problem.dim))) for _ in range(NUM_TEMPERATURES)]
    sampler.run_mcmc(start, nsweeps=NUM_SWEEPS, nsteps=STEPS)
    discarded = NUM_SWEEPS * STEPS // 2
    points = np.asarray(sampler.get_chain(discard=discarded)[0])[::THINNED]
    values = quantities_at(problem, points.reshape(len(points), count, problem.dim))[None]
    log_evidence, error = sampler.get_evidence_ti(discard=discarded // STEPS)
    return Answer(
        values,
        np.full(values.shape[:3], 1 / count),
        host.count,
        log_evidence=float(log_evidence),
        log_evidence_error=float(error),
    )
