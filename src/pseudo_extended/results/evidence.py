"""The evidence from the terms that a method records: log Z = Σ_factors log mean exp(top) - log mean exp(bottom)."""

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from pseudo_extended.results.estimates import Estimate
from pseudo_extended.results.series import effective_sample_size, standard_error

Terms = Float[np.ndarray, "chain draw factor"]


def log_evidence(top: Terms, bottom: Terms) -> Estimate:
    """log Z with its error by the delta method.

    The factors of a chain belong to a ladder of its own, so they are multiplied within the chain: N = Π mean exp(top)
    and D = Π mean exp(bottom), with N/D = Z up to noise. Over chains Z is Σ N / Σ D, and not the mean of N/D: a chain
    that hardly saw one end has a tiny D, and would outweigh all others with a Z that is far too large. With one factor
    that is the ratio of the means over all draws, and the unbiased mean of all weights for annealed importance.

    A mean of exp(a_t) is off, in relative terms, by the mean of u_t - 1 with u_t = exp(a_t)/mean, so log Z is off by
    the mean of one series, to which all factors add: correlations between factors and between draws count in it, and
    so do differences between chains. `ess` is the effective number of draws of that series.

    >>> rng = np.random.default_rng(0)
    >>> log_weight = rng.normal(-0.5, 1.0, size=(4, 1000, 1))  # E exp = 1
    >>> estimate = log_evidence(log_weight, np.zeros_like(log_weight))
    >>> bool(abs(estimate.value) < 4 * estimate.standard_error < 0.2)
    True
    """
    log_top, series_top = _log_mean_of_products(top)
    log_bottom, series_bottom = _log_mean_of_products(bottom)
    series = series_top - series_bottom
    return Estimate(log_top - log_bottom, float(standard_error(series)), float(effective_sample_size(series)))


def _log_mean_of_products(terms: Terms) -> tuple[float, Float[np.ndarray, "chain draw"]]:
    """log of the mean over chains of Π_factors mean exp(a_t), and a series of mean one with its relative error."""
    log_mean = logsumexp(terms, axis=1, keepdims=True) - np.log(terms.shape[1])
    log_product = np.sum(log_mean, axis=(1, 2))
    value = float(logsumexp(log_product) - np.log(log_product.size))
    with np.errstate(invalid="ignore"):  # a chain whose terms are all -inf
        share = np.exp(log_product - value)[:, None]
        return value, share * (1 + np.sum(np.exp(terms - log_mean) - 1, axis=2))
