"""What the density of a prior integrates to, if its own draws can tell.

Users leave out constants, and then the evidence found from the prior is not the same number as the evidence found from
a learned base. Draws of the prior and of a normal fitted to them give the ratio of their masses by the optimal bridge
(Meng and Wong 1996), with an error that says whether it can be relied on.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from scipy.special import logsumexp

from pseudo_extended.target import Target

NUM_DRAWS = 1024
"""Half of them for the fit, and half for the bridge, in batches."""
NUM_BATCHES = 4
MAX_ERROR = 0.2
"""Beyond which nothing is known."""
NEGLIGIBLE = 0.1


class PriorMass(NamedTuple):
    """log ∫ of a prior's density; zero for one that is normalised, as far as anybody can tell."""

    log: float = 0.0
    error: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether the evidence found from this prior compares with others."""
        return self.error <= MAX_ERROR


NORMALISED = PriorMass()
"""Of a density that integrates to one, or that nobody has weighed."""


def log_ratios(target: Target, key: Key[Array, ""]) -> tuple[Float[Array, " draw"], Float[Array, " draw"]]:
    """log prior less the log density of the fitted normal: at draws of the prior, and at draws of the normal."""
    key_prior, key_normal = jax.random.split(key)
    u = jax.vmap(target.draw_base)(jax.random.split(key_prior, NUM_DRAWS))
    fitted, kept = u[: NUM_DRAWS // 2], u[NUM_DRAWS // 2 :]
    mean, dim = jnp.mean(fitted, axis=0), u.shape[1]
    # With as many draws as numbers in a covariance matrix, or fewer, only the diagonal is known.
    if dim**2 > NUM_DRAWS:
        scale = jnp.std(fitted, axis=0) + 1e-300
        z, log_det = jax.random.normal(key_normal, kept.shape, float), jnp.sum(jnp.log(scale))
        normal, white = mean + scale * z, (kept - mean) / scale
    else:
        scale = jnp.linalg.cholesky(jnp.cov(fitted.T).reshape(dim, dim))
        z, log_det = jax.random.normal(key_normal, kept.shape, float), jnp.sum(jnp.log(jnp.diagonal(scale)))
        normal, white = mean + z @ scale.T, jax.scipy.linalg.solve_triangular(scale, (kept - mean).T, lower=True).T
    log_prior = jax.vmap(lambda u: target.path_point(u).log_base)(jnp.concatenate([kept, normal]))
    log_normal = -0.5 * jnp.sum(jnp.concatenate([white, z]) ** 2, axis=1) - log_det - 0.5 * dim * jnp.log(2 * jnp.pi)
    ratio = jnp.where(jnp.isnan(log_prior), -jnp.inf, log_prior) - log_normal
    return ratio[: len(kept)], ratio[len(kept) :]


def prior_mass(at_prior: Any, at_normal: Any) -> PriorMass:
    """Estimate the mass by a bridge, in batches whose spread gives its error.

    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.logistic(size=512), 2 * rng.normal(size=512)
    >>> def ratio(x):                              # a logistic density without its constants, over a normal one
    ...     return 5 - x - 2 * np.log1p(np.exp(-x)) + 0.5 * (x / 2) ** 2 + np.log(2 * np.sqrt(2 * np.pi))
    >>> mass = prior_mass(ratio(x), ratio(y))
    >>> mass.is_known, abs(mass.log - 5) < 4 * mass.error < 0.1
    (True, True)
    """
    batches = zip(
        np.reshape(np.asarray(at_prior), (NUM_BATCHES, -1)),
        np.reshape(np.asarray(at_normal), (NUM_BATCHES, -1)),
        strict=True,
    )
    found = [_bridge(*batch) for batch in batches]
    if not np.all(np.isfinite(found)):
        return PriorMass(0.0, np.inf)
    log, error = float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(NUM_BATCHES))
    if error <= MAX_ERROR and abs(log) < NEGLIGIBLE + 3 * error:
        return PriorMass()
    return PriorMass(log, error)


def _bridge(at_prior: Float[np.ndarray, " draw"], at_normal: Float[np.ndarray, " draw"]) -> float:
    """The fixed point of the optimal bridge; -inf or nan where the two do not meet."""
    if not np.all(np.isfinite(at_prior)) or not np.any(np.isfinite(at_normal)):
        return np.nan
    log = float(np.median(at_prior))
    for _ in range(100):
        top = np.asarray(logsumexp(at_normal - np.logaddexp(at_normal, log)))
        bottom = np.asarray(logsumexp(-np.logaddexp(at_prior, log)))
        log = float(top - bottom)
    return log
