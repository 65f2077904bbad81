"""emcee, with the differential-evolution moves that its documentation recommends for several modes."""

import emcee  # pyright: ignore[reportMissingImports]
import jax
import numpy as np

from suite.answer import Answer, quantities_at
from suite.on_host import OnHost
from suite.problem import Problem

NUM_STEPS, DISCARDED = 10_000, 2_000
THINNED = 10


def run(problem: Problem, seed: int) -> Answer:
    """max(32, 4 d) walkers from the prior, 10,000 steps, the first fifth discarded."""
    host, count = OnHost(problem), max(32, 4 * problem.dim)
    density = jax.jit(jax.vmap(problem.log_gamma))
    rng = np.random.default_rng(seed)
    start = host.transform_many(rng.uniform(size=(count, problem.dim)))

    def log_density(x: np.ndarray) -> np.ndarray:
        host.count += len(x)
        short = -len(x) % (count // 2)
        values = np.array(density(np.concatenate([x, np.repeat(x[-1:], short, axis=0)])))[: len(x)]
        return np.where(np.isnan(values), -np.inf, values)

    moves = [(emcee.moves.DEMove(), 0.8), (emcee.moves.DESnookerMove(), 0.2)]
    sampler = emcee.EnsembleSampler(count, problem.dim, log_density, moves=moves, vectorize=True)
    sampler.random_state = np.random.RandomState(seed).get_state()
    sampler.run_mcmc(start, NUM_STEPS, progress=False)
    points = np.asarray(sampler.get_chain(discard=DISCARDED, thin=THINNED))
    # Walkers depend on one another: one chain of many points a draw.
    values = quantities_at(problem, points)[None]
    notes = [f"acceptance {float(np.mean(sampler.acceptance_fraction)):.3f}"]
    return Answer(values, np.full(values.shape[:3], 1 / count), host.count, notes=notes)
