"""Why every parameter is extended: a small problem on which sharing some of them gives a wrong answer.

θ ~ N(0, 1), x | θ ~ N(0, e^{2θ}), y ~ N(x, ½²), y = 2. The published horseshoe programs keep one copy of θ and give
only x copies, with q(x | θ) = p(y | x)^β p(x | θ), which is not normalised in x: integrating out all x but one leaves a
factor C(θ)^(N-1), C(θ) = ∫q(x | θ)dx, on the posterior of θ.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from pseudo_extended import checks
from pseudo_extended.target import Target

CITATION = "made for this library; the programs with shared parameters are those of Nemeth et al. (2019), section 4.3"
Y, NOISE = 2.0, 0.5


class SharedProblem(NamedTuple):
    """The posterior of (θ, x), and the exact mean of θ under it."""

    target: Target
    """What to pass to `pe.sample`."""
    mean_theta: float
    """E θ under the target, by quadrature."""
    citation: str
    """Where the problem comes from."""


def theta_and_x() -> SharedProblem:
    """The posterior itself, with the prior as base: what pseudo-extended MCMC samples when all parameters are extended.

    >>> round(theta_and_x().mean_theta, 3)
    0.554
    """
    target = Target(
        example={"theta": np.zeros(()), "x": np.zeros(())},
        log_prior=lambda p: _log_normal(p["theta"], 1.0) + _log_normal(p["x"], jnp.exp(p["theta"])),
        log_likelihood=lambda p: _log_normal(Y - p["x"], NOISE),
    )
    return SharedProblem(target, _mean_theta(1, 1.0), CITATION)


def with_shared_theta(num_particles: int, beta: float) -> SharedProblem:
    """The extended target as the published programs build it, with one θ for all pseudo-samples: biased.

    Its `mean_theta` is what it gives for E θ, by quadrature, and not the truth.

    >>> [round(with_shared_theta(n, 0.75).mean_theta, 3) for n in (1, 2, 5)]
    [0.554, 0.612, 0.643]
    """
    num_particles = checks.integer("num_particles", num_particles, minimum=1)
    beta = checks.real("beta", beta, low=0, high=1, closed="(]")

    def log_density(p: dict[str, Array]) -> Float[Array, ""]:
        log_likelihood = _log_normal(Y - p["x"], NOISE)
        log_prior = _log_normal(p["theta"], 1.0) + jnp.sum(_log_normal(p["x"], jnp.exp(p["theta"])))
        return log_prior + logsumexp((1 - beta) * log_likelihood) + jnp.sum(beta * log_likelihood)

    target = Target(log_density, {"theta": np.zeros(()), "x": np.zeros(num_particles)})
    return SharedProblem(target, _mean_theta(num_particles, beta), CITATION)


def _mean_theta(num_particles: int, beta: float) -> float:
    """E θ under p(θ) p(y | θ) C(θ)^(N-1), all three normal in y."""

    def density(theta: float) -> float:
        variance = np.exp(2 * theta)
        evidence = _normal(Y, variance + NOISE**2)
        # p(y|x)^β is a normal of variance NOISE²/β up to a constant, which does not depend on θ.
        tempered = _normal(Y, variance + NOISE**2 / beta)
        return float(_normal(theta, 1.0) * evidence * tempered ** (num_particles - 1))

    from scipy.integrate import quad  # importing it takes half a second

    mass, first = (quad(lambda t, k=k: t**k * density(t), -12, 12, limit=200, points=[0.0])[0] for k in (0, 1))
    return first / mass


def _normal(x: float, variance: float) -> float:
    return float(np.exp(-0.5 * x**2 / variance) / np.sqrt(2 * np.pi * variance))


def _log_normal(x: Float[Array, "*shape"], scale: Float[Array, ""] | float) -> Float[Array, "*shape"]:
    return -0.5 * (x / scale) ** 2 - jnp.log(scale) - 0.5 * jnp.log(2 * jnp.pi)
