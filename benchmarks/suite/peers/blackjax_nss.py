"""BlackJAX's nested slice sampling, set as in its sampling book."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.ns.utils import finalise, log_weights

from suite.answer import Answer, weighted
from suite.on_host import OnHost
from suite.problem import Problem

NUM_LIVE, NUM_DELETED = 1000, 100
STOP = -10.0
"""log Z of the live points below that of the dead ones; the book's rule where there may be a phase transition."""


def run(problem: Problem, seed: int) -> Answer:
    """1,000 live points, a tenth of them replaced at a time by max(5, 2 d) slice moves."""
    key, first, last = jax.random.split(jax.random.key(seed), 3)
    start = OnHost(problem).transform_many(np.asarray(jax.random.uniform(first, (NUM_LIVE, problem.dim))))
    algorithm = blackjax.nss(
        logprior_fn=problem.prior.log_density,
        loglikelihood_fn=lambda x: jnp.where(
            jnp.isfinite(problem.prior.log_density(x)), jnp.maximum(problem.log_ratio(x), -1e30), -jnp.inf
        ),
        num_inner_steps=max(5, 2 * problem.dim),
        num_delete=NUM_DELETED,
    )
    state, advance, dead = algorithm.init(jnp.asarray(start)), jax.jit(algorithm.step), []
    while float(state.integrator.logZ_live - state.integrator.logZ) > STOP:
        key, now = jax.random.split(key)
        state, info = advance(now, state)
        dead.append(info)
    run_info = finalise(state, dead)
    volumes = np.asarray(log_weights(last, run_info, shape=200))
    evidences = np.asarray(jax.scipy.special.logsumexp(volumes, axis=0))
    update = run_info.update_info
    count = NUM_LIVE + int(np.sum(np.asarray(update.num_shrink) + np.asarray(update.num_expansions) + 2))
    return weighted(
        problem,
        np.asarray(run_info.particles.position),
        np.asarray(jax.scipy.special.logsumexp(volumes - evidences, axis=1)),
        evaluations=count,
        log_evidence=float(evidences.mean()),
        log_evidence_error=float(evidences.std()),
    )
