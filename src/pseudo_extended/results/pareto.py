"""The generalised Pareto distribution: how heavy a tail is, and what its largest values should have been."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

MIN_TAIL = 10
"""Points that a fit needs."""
PRIOR_SIZE, PRIOR_SHAPE = 10, 0.5
"""Of Vehtari et al. (2024): a weak prior on the shape, worth so many points."""


class Tail(NamedTuple):
    """A generalised Pareto distribution of exceedances."""

    shape: float
    """k: the distribution has moments of order below 1/k only."""
    scale: float

    def quantile(self, probability: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        """How large an exceedance is with this probability at most."""
        if abs(self.shape) < 1e-12:
            return -self.scale * np.log1p(-probability)
        return self.scale * np.expm1(-self.shape * np.log1p(-probability)) / self.shape


def fit_tail(exceedances: Float[np.ndarray, " point"]) -> Tail:
    """Fit to positive values in ascending order, by the posterior mean of Zhang and Stephens (2009).

    >>> uniform = (np.arange(1, 1001) - 0.5) / 1000
    >>> fitted = fit_tail(Tail(shape=0.4, scale=2.0).quantile(uniform))
    >>> bool(abs(fitted.shape - 0.4) < 0.02), bool(abs(fitted.scale - 2.0) < 0.05)
    (True, True)
    """
    size = len(exceedances)
    number = 30 + int(np.sqrt(size))
    grid = 1 - np.sqrt(number / (np.arange(1, number + 1) - 0.5))
    grid = grid / (3 * exceedances[int(size / 4 + 0.5) - 1]) + 1 / exceedances[-1]
    shape = np.mean(np.log1p(-grid[:, None] * exceedances), axis=1)
    likelihood = size * (np.log(-grid / shape) - shape - 1)
    weight = np.exp(likelihood - logsumexp(likelihood))
    mean = float(np.sum(grid * weight))
    fitted = float(np.mean(np.log1p(-mean * exceedances)))
    return Tail(fitted, -fitted / mean)


def with_prior(shape: float, size: int) -> float:
    """The shape, drawn a little towards one half, as it is for Pareto-smoothed importance sampling."""
    return (size * shape + PRIOR_SIZE * PRIOR_SHAPE) / (size + PRIOR_SIZE)
