"""A normal approximation of a target: mean-field fits from many starts, mixed by their evidence, moments matched.

Graham and Storkey (2017) make the base of continuous tempering so. Each fit maximises the evidence lower bound of a
diagonal normal with fixed noise (Kucukelbir et al. 2017, without the stochastic part, so that it converges).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from scipy.special import softmax

from pseudo_extended.compiled import Job, compile_once
from pseudo_extended.kernels import LogDensity

NUM_NOISE = 32
"""Noise vectors, in pairs of opposite sign."""
NUM_ITERATIONS = 400
LEARNING_RATE = 0.1
"""At first; it falls to zero as a cosine. Steps of Adam are of this size, and the scales are fitted in logs."""
DENSE_UP_TO = 50
"""Dimensions for which the normal has a full covariance."""


class NormalFit(NamedTuple):
    """A normal that covers the fits, and the log of the mass under the target that they account for."""

    mean: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, "d d"] | Float[np.ndarray, " d"]
    """A Cholesky factor, or standard deviations in many dimensions."""
    log_mass: float


class MeanField(NamedTuple):
    """A normal with a diagonal covariance."""

    mean: Float[Array, "*start d"]
    log_scale: Float[Array, "*start d"]


def fit_normal(key: Key[Array, ""], log_density: LogDensity, starts: Float[np.ndarray, "start d"]) -> NormalFit:
    """Fit a diagonal normal from every start, and match the moments of their mixture."""
    half = jax.random.normal(key, (NUM_NOISE // 2, starts.shape[1]), float)
    # Moments of the noise as they should be, so that the fit of a normal, and its bound, are exact.
    noise = jnp.concatenate([half, -half]) / jnp.sqrt(jnp.mean(half**2, axis=0))
    fit = jax.vmap(lambda noise, start: _fit(log_density, noise, start), in_axes=(None, 0))
    (compiled,) = compile_once(Job(fit, (noise, starts)))
    fits, bound = jax.tree.map(np.asarray, compiled(noise, starts))
    if not np.any(np.isfinite(bound)):
        raise ValueError(
            f"a normal base could not be fitted from any of {len(starts)} starts: the density is zero or not finite "
            "within a unit of them; give base and log_zeta."
        )
    return match_moments(fits.mean, np.exp(fits.log_scale), bound)


def match_moments(
    means: Float[np.ndarray, "fit d"], scales: Float[np.ndarray, "fit d"], bound: Float[np.ndarray, " fit"]
) -> NormalFit:
    """The moments of the mixture of normals with log masses `bound`; fits that found the same mode count once.

    >>> match_moments(np.array([[-2.0], [2.0], [2.0]]), np.ones((3, 1)), np.zeros(3)).scale
    array([[2.23606798]])
    """
    ok = np.isfinite(bound)
    means, scales, bound = means[ok], scales[ok], bound[ok]
    apart = np.max(np.abs(means[:, None] - means) / np.maximum(scales[:, None], scales), axis=2)
    log_mass = bound - np.log(np.sum(apart < 0.5, axis=1))
    weight = softmax(log_mass)
    mean = weight @ means
    away = means - mean
    variance = weight @ (scales**2 + away**2)
    if len(mean) > DENSE_UP_TO:
        return NormalFit(mean, np.sqrt(variance), float(np.logaddexp.reduce(log_mass)))
    covariance = np.diag(weight @ scales**2) + (weight[:, None] * away).T @ away
    return NormalFit(mean, np.linalg.cholesky(covariance), float(np.logaddexp.reduce(log_mass)))


def _fit(
    log_density: LogDensity, noise: Float[Array, "noise d"], start: Float[Array, " d"]
) -> tuple[MeanField, Float[Array, ""]]:
    """The best diagonal normal on the way from `start`, and its bound; -inf if none had one."""

    def bound(fit: MeanField) -> Float[Array, ""]:
        """The evidence lower bound: E log γ plus the entropy."""
        values = jax.vmap(log_density)(fit.mean + jnp.exp(fit.log_scale) * noise)
        return jnp.mean(values) + jnp.sum(fit.log_scale + 0.5 * jnp.log(2 * jnp.pi) + 0.5)

    import optax  # importing it takes as long as half of the library

    solver = optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, NUM_ITERATIONS))

    def ascend(_: Array, carry: tuple[MeanField, Any, MeanField, Array]) -> tuple[MeanField, Any, MeanField, Array]:
        fit, state, best, best_bound = carry
        value, gradient = jax.value_and_grad(lambda fit: -bound(fit))(fit)
        better = jnp.isfinite(value) & (-value > best_bound)
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), fit, best)
        # Where the density vanishes under some of the noise there is no gradient: shrink until there is.
        usable = jnp.isfinite(value) & jnp.all(jnp.isfinite(jnp.concatenate(jax.tree.leaves(gradient))))
        gradient = jax.tree.map(lambda part: jnp.where(usable, part, 0.0), gradient)
        update, state = solver.update(gradient, state)
        moved: Any = optax.apply_updates(fit, update)
        shrunk = fit._replace(log_scale=fit.log_scale - 0.5)
        fit = jax.tree.map(lambda new, old: jnp.where(usable, new, old), moved, shrunk)
        return fit, state, best, jnp.where(better, -value, best_bound)

    first = MeanField(start, jnp.zeros_like(start))
    carry = (first, solver.init(first), first, jnp.asarray(-jnp.inf))
    _, _, best, best_bound = jax.lax.fori_loop(0, NUM_ITERATIONS, ascend, carry)
    return best, best_bound
