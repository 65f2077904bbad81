"""Results of runs that never were: importance samples of a density with two modes, and a walk of temperatures."""

import jax
import jax.numpy as jnp
import numpy as np

import pseudo_extended as pe

MEANS, SCALES, MASSES = np.array([[-3.0, 0.0], [3.0, 1.0]]), np.array([0.5, 1.0]), np.array([0.3, 0.7])
WIDTH = 3.0


def log_density(position):
    """Normalised, of {"theta": (2,), "tau": ()}: two normals in theta, and an exponential."""
    z = jnp.sum((position["theta"] - MEANS) ** 2, axis=1) / SCALES**2
    in_theta = jax.nn.logsumexp(jnp.log(MASSES) - 2 * jnp.log(SCALES) - 0.5 * z) - jnp.log(2 * jnp.pi)
    return in_theta - position["tau"]


def target(function=log_density):
    return pe.Target(
        function,
        {"theta": np.zeros(2), "tau": 1.0},
        bounds={"tau": (0, None)},
        dims={"theta": ["side"]},
        coords={"side": ["left", "right_one"]},
    )


def two_modes(seed=0, chains=4, draws=200, particles=6, **fields):
    """Every draw is some points from a wide normal, weighted as the target wants; `fields` replace those of it."""
    rng = np.random.default_rng(seed)
    shape = (chains, draws, particles)
    theta = WIDTH * rng.normal(size=(*shape, 2))
    log_tau = np.log(rng.exponential(size=shape))
    z = np.sum((theta[..., None, :] - MEANS) ** 2, axis=-1) / SCALES**2
    log_p = np.log(np.sum(MASSES / SCALES**2 * np.exp(-0.5 * z), axis=-1) / (2 * np.pi))
    log_weights = log_p + 0.5 * np.sum(theta**2, axis=-1) / WIDTH**2 + np.log(2 * np.pi * WIDTH**2)
    beta = np.clip(np.cumsum(0.1 * rng.normal(size=shape), axis=1) % 2, 0, 2)
    beta = np.where(beta > 1, 2 - beta, beta)
    index = np.argmax(log_weights + rng.gumbel(size=shape), axis=2)
    np.put_along_axis(beta, index[..., None], 1.0, axis=2)
    flags = np.zeros((chains, draws), bool)
    made = {
        # On the unconstrained scale tau is its logarithm, and comes first: a dict is sorted.
        "unconstrained": np.concatenate([log_tau[..., None], theta], axis=-1),
        "log_weights": log_weights,
        "statistics": {
            "acceptance_rate": np.full((chains, draws), 0.8),
            "diverging": flags,
            "non_finite": flags,
            "num_evaluations": np.full((chains, draws), 10),
            "lp": np.take_along_axis(log_p, index[..., None], axis=2)[..., 0],
            "carrier": index,
            "beta": beta,
            "move_acceptance": rng.uniform(0.6, 1.0, size=shape),
            "refresh_acceptance": np.where(beta < 0.3, 0.5, 0.0),
            "evidence_top": np.log(np.mean(np.exp(log_weights), axis=2, keepdims=True)),
            "evidence_bottom": np.zeros((chains, draws, 1)),
        },
        "method": "adaptive pseudo-extended MCMC with HMC, N = 6",
        "seed": seed,
        "seconds": {"compile": 1.0, "prepare": 2.0, "run": 3.0},
        "stopped": None,
        "doubts": (),
        "notes": ("a broad normal: path of length 3.2, log Z 0.10 ± 0.20", "chosen: a broad normal."),
    }
    return pe.Result(**({"target": target()} | made | fields))
