"""BlackJAX's adaptive tempered SMC, its random walk tuned from the particles as in its sampling book."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.mcmc import random_walk
from blackjax.smc import extend_params, resampling
from blackjax.smc.inner_kernel_tuning import as_top_level_api as inner_kernel_tuning
from blackjax.smc.tuning.from_particles import particles_covariance_matrix

from suite.answer import Answer, weighted
from suite.on_host import OnHost
from suite.problem import Problem

NUM_PARTICLES = 5000
KEPT = 0.9
MAX_TEMPERATURES = 2000


def run(problem: Problem, seed: int) -> Answer:
    """5,000 particles, an effective sample size of nine tenths per step, max(10, 2 d) moves."""
    dim, moves = problem.dim, max(10, 2 * problem.dim)
    kernel = random_walk.build_rmh()

    def step(key, state, log_density, covariance):
        return kernel(key, state, log_density, lambda k, x: jax.random.multivariate_normal(k, x, covariance))

    def tune(_key, state, _info):
        covariance = jnp.atleast_2d(particles_covariance_matrix(state.particles))
        return extend_params({"covariance": 2.38**2 / dim * covariance + 1e-14 * jnp.eye(dim)})

    key, first = jax.random.split(jax.random.key(seed))
    start = OnHost(problem).transform_many(np.asarray(jax.random.uniform(first, (NUM_PARTICLES, dim))))
    smc = inner_kernel_tuning(
        smc_algorithm=blackjax.adaptive_tempered_smc,
        logprior_fn=problem.prior.log_density,
        loglikelihood_fn=lambda x: jnp.maximum(problem.log_ratio(x), -1e30),
        mcmc_step_fn=step,
        mcmc_init_fn=random_walk.init,
        resampling_fn=resampling.systematic,
        mcmc_parameter_update_fn=tune,
        initial_parameter_value=extend_params({"covariance": 2.38**2 / dim * jnp.cov(start.T).reshape(dim, dim)}),
        target_ess=KEPT,
        num_mcmc_steps=moves,
    )
    state, advance = smc.init(jnp.asarray(start)), jax.jit(smc.step)
    log_evidence, temperatures = 0.0, 0
    while float(state.sampler_state.tempering_param) < 1:
        key, now = jax.random.split(key)
        state, info = advance(now, state)
        log_evidence += float(info.log_likelihood_increment)
        temperatures += 1
        if temperatures > MAX_TEMPERATURES:
            raise RuntimeError(f"more than {MAX_TEMPERATURES} temperatures")
    particles = state.sampler_state
    return weighted(
        problem,
        np.asarray(particles.particles),
        np.log(np.asarray(particles.weights) + 1e-300),
        evaluations=NUM_PARTICLES * temperatures * (moves + 2),
        log_evidence=log_evidence,
        notes=[f"{temperatures} temperatures; it states no error of log Z"],
    )
