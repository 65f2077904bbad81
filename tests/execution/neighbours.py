"""Ours and another sampler on one model in one process, in single precision outside: run by `test_neighbours.py`."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import pseudo_extended as pe

RNG = np.random.default_rng(6)
COVARIATES = RNG.normal(size=(30, 3))
OUTCOMES = COVARIATES @ np.ones(3) + RNG.normal(size=30)


@jax.jit  # which JAX keeps the program of
def log_density(b):
    return -0.5 * jnp.sum((OUTCOMES - COVARIATES @ b) ** 2) - 0.5 * jnp.sum(b**2)


def model():
    import numpyro
    import numpyro.distributions as dist

    b = numpyro.sample("b", dist.Normal(np.zeros(3), np.ones(3)).to_event(1))
    numpyro.sample("y", dist.Normal(COVARIATES @ b, 1.0), obs=OUTCOMES)


def pymc_model():
    import pymc as pm

    with pm.Model() as made:
        b = pm.Normal("b", shape=3)
        pm.Normal("y", COVARIATES @ b, 1.0, observed=OUTCOMES)
    return made


def in_jax():
    """What a user does by hand, compiled and not."""
    ones = jnp.ones(3)
    assert (COVARIATES @ ones).dtype == jnp.float32
    assert jax.grad(log_density)(ones).dtype == jnp.float32
    assert jax.jit(jax.vmap(jax.value_and_grad(log_density)))(jnp.ones((4, 3)))[1].dtype == jnp.float32
    assert jax.jit(jax.hessian(log_density))(ones).dtype == jnp.float32
    assert jax.eval_shape(log_density, ones).dtype == jnp.float32
    return log_density, jnp.zeros(3)


def in_numpyro():
    from numpyro.infer import MCMC, NUTS

    chain = MCMC(NUTS(model), num_warmup=20, num_samples=20, progress_bar=False)
    chain.run(jax.random.key(0))
    assert chain.get_samples()["b"].dtype == jnp.float32
    return pe.from_numpyro(model), None


def in_blackjax():
    import blackjax

    sampler = blackjax.nuts(log_density, step_size=0.1, inverse_mass_matrix=jnp.ones(3))
    state = sampler.init(jnp.zeros(3))
    for key in jax.random.split(jax.random.key(0), 3):
        state, _ = jax.jit(sampler.step)(key, state)
    assert state.position.dtype == jnp.float32
    return log_density, jnp.zeros(3)


def in_pymc():
    from pymc.sampling.jax import get_jaxified_logp

    made = pymc_model()
    position = [jnp.ones(3, jnp.float32)]
    assert np.isfinite(jax.jit(get_jaxified_logp(made))(position))
    return made, None


OURS = {
    "jax": lambda: (log_density, jnp.zeros(3)),
    "numpyro": lambda: (pe.from_numpyro(model), None),
    "blackjax": lambda: (log_density, jnp.zeros(3)),
    "pymc": lambda: (pymc_model(), None),
}
OTHERS = {"jax": in_jax, "numpyro": in_numpyro, "blackjax": in_blackjax, "pymc": in_pymc}


def ours(target, init):
    result = pe.sample(target, init, method=pe.Plain(pe.HMC(4)), warmup=20, draws=20, chains=1, seed=1, progress=False)
    assert jax.tree.leaves(result.points)[0].dtype == np.float64
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(result.points)])


if __name__ == "__main__":
    name, first = sys.argv[1:]
    other = OTHERS[name]
    if first == "ours":
        before = ours(*OURS[name]())
        other()
    else:
        before = ours(*other())
    other()
    np.testing.assert_array_equal(ours(*other()), before)
