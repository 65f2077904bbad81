"""Models whose densities factorise matrices, sampled whole: run as a program by `test_nothing_hangs.py`.

At the pilot's numbers of points, jaxlib 0.10.2 cuts their batches of matrices into pieces.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

import pseudo_extended as pe
from pseudo_extended.compiled import Job, compile_once
from pseudo_extended.precision import double_precision

RNG = np.random.default_rng(4)
NUM_SERIES, NUM_FACTORS, NUM_TIMES = 10, 2, 30
LOADINGS = RNG.normal(size=(NUM_SERIES, NUM_FACTORS))
SERIES = RNG.normal(size=(NUM_TIMES, NUM_FACTORS)) @ LOADINGS.T + 0.5 * RNG.normal(size=(NUM_TIMES, NUM_SERIES))
TIMES = np.linspace(0.0, 3.0, 40)
CURVE = np.sin(2 * TIMES) + 0.2 * RNG.normal(size=TIMES.size)


def factor_density(x):
    """Loadings and noise of a factor model, the factors integrated out: d = 21."""
    loadings, log_noise = x[:-1].reshape(NUM_SERIES, NUM_FACTORS), x[-1]
    covariance = loadings @ loadings.T + jnp.exp(2 * log_noise) * jnp.eye(NUM_SERIES)
    root = jnp.linalg.cholesky(covariance)
    whitened = solve_triangular(root, jnp.asarray(SERIES.T), lower=True)
    log_det = jnp.sum(jnp.log(jnp.diag(root)))
    return -0.5 * jnp.sum(whitened**2) - NUM_TIMES * log_det - 0.5 * jnp.vdot(x, x)


def normal_density(x):
    """A normal of 12 dimensions whose scale and correlation are unknown: d = 14."""
    mean, log_scale, z = x[:-2], x[-2], x[-1]
    ages = jnp.abs(jnp.arange(12.0)[:, None] - jnp.arange(12.0))
    covariance = jnp.exp(log_scale) * (jnp.exp(-ages * jnp.exp(z)) + 0.1 * jnp.eye(12))
    log_likelihood = jax.scipy.stats.multivariate_normal.logpdf(
        jnp.asarray(SERIES[:, :1]) * jnp.ones(12), mean, covariance
    )
    return jnp.sum(log_likelihood) - 0.5 * jnp.vdot(x, x)


def numpyro_gaussian_process():
    """Amplitude, length and noise of a Gaussian process at forty times: d = 3."""
    import numpyro
    import numpyro.distributions as dist

    def model():
        amplitude = numpyro.sample("amplitude", dist.LogNormal(0.0, 1.0))
        length = numpyro.sample("length", dist.LogNormal(0.0, 1.0))
        noise = numpyro.sample("noise", dist.LogNormal(-1.0, 1.0))
        distance = (TIMES[:, None] - TIMES) / length
        covariance = amplitude * jnp.exp(-0.5 * distance**2) + (noise + 1e-6) * jnp.eye(TIMES.size)
        numpyro.sample("curve", dist.MultivariateNormal(0.0, covariance), obs=CURVE)

    return pe.from_numpyro(model)


def pymc_factor_model():
    """The factor model with lower-triangular loadings, as PyMC writes it."""
    import pymc as pm
    import pytensor.tensor as pt

    with pm.Model() as model:
        loadings = pm.Normal("loadings", shape=(NUM_SERIES, NUM_FACTORS))
        noise = pm.HalfNormal("noise")
        covariance = loadings @ loadings.T + (noise + 0.01) ** 2 * pt.eye(NUM_SERIES)
        pm.MvNormal("series", np.zeros(NUM_SERIES), cov=covariance, observed=SERIES)
    return model


MODELS = {
    "factor": lambda: (factor_density, 0.3 * np.ones(21)),
    "normal": lambda: (normal_density, np.zeros(14)),
    "gaussian_process": lambda: (numpyro_gaussian_process(), None),
    "pymc": lambda: (pymc_factor_model(), None),
}


def gaussian_process_density(x):
    """The Gaussian process at half of the times, in plain JAX."""
    distance = (TIMES[::2, None] - TIMES[::2]) / jnp.exp(x[1])
    covariance = jnp.exp(x[0] - 0.5 * distance**2) + (jnp.exp(x[2]) + 1e-6) * jnp.eye(TIMES[::2].size)
    root = jnp.linalg.cholesky(covariance)
    whitened = solve_triangular(root, jnp.asarray(CURVE[::2]), lower=True)
    return -0.5 * jnp.vdot(whitened, whitened) - jnp.sum(jnp.log(jnp.diag(root))) - 0.5 * jnp.vdot(x, x)


def curvatures():
    """Its Hessian at 80 points, twenty times: what hung first."""
    with double_precision():
        points = np.random.default_rng(1).normal(size=(80, 3))
        [curvature] = compile_once(Job(jax.vmap(jax.hessian(gaussian_process_density)), (points,)))
        for _ in range(20):
            jax.block_until_ready(curvature(points))


if __name__ == "__main__":
    if sys.argv[1] == "curvatures":
        curvatures()
        sys.exit()
    target, init = MODELS[sys.argv[1]]()
    result = pe.sample(target, init, warmup=100, draws=100, chains=2, seed=1, cores=2, progress=False)
    sys.stdout.write(f"sampled {result.num_draws}")
