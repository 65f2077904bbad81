"""The evidence from the terms that a method records: log Z = Σ_factors log mean exp(top) - log mean exp(bottom)."""

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from pseudo_extended.analysis.estimates import Estimate
from pseudo_extended.analysis.series import effective_sample_size, standard_error

Terms = Float[np.ndarray, "chain draw factor"]


def log_evidence(top: Terms, bottom: Terms) -> Estimate:
    """log Z with its error by the delta method.

    Each chain gives a Z of its own, because its factors belong to a ladder of its own, and Z is their mean over chains
    (for annealed importance sampling that is the mean of all weights, which is unbiased).

    A mean of exp(a_t) is off, in relative terms, by the mean of u_t - 1 with u_t = exp(a_t)/mean, so log Z of a chain
    is off by the mean of one series, the sum of those of all factors: correlations between factors and between draws
    count in it, and so do differences between chains. `ess` is the effective number of draws of that series.

    >>> rng = np.random.default_rng(0)
    >>> log_weight = rng.normal(-0.5, 1.0, size=(4, 1000, 1))  # E exp = 1
    >>> estimate = log_evidence(log_weight, np.zeros_like(log_weight))
    >>> bool(abs(estimate.value) < 4 * estimate.standard_error < 0.2)
    True
    """
    log_top, relative_top = _log_mean(top)
    log_bottom, relative_bottom = _log_mean(bottom)
    log_z = np.sum(log_top - log_bottom, axis=(1, 2))
    value = float(logsumexp(log_z) - np.log(log_z.size))
    with np.errstate(invalid="ignore"):  # a chain whose terms are all -inf
        share = np.exp(log_z - value)[:, None]
        series = share * (1 + np.sum(relative_top - relative_bottom, axis=2))
    return Estimate(value, float(standard_error(series)), float(effective_sample_size(series)))


def _log_mean(terms: Terms) -> tuple[Float[np.ndarray, "chain 1 factor"], Terms]:
    """log mean exp over the draws of each chain, and exp(a_t)/mean."""
    log_mean = logsumexp(terms, axis=1, keepdims=True) - np.log(terms.shape[1])
    with np.errstate(invalid="ignore"):
        return log_mean, np.exp(terms - log_mean)
