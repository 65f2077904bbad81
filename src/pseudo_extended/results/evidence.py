"""The evidence from the terms that a method records: log Z = Σ_factors log mean exp(top) - log mean exp(bottom)."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import chdtrc, logsumexp, ndtr, stdtrit

from pseudo_extended.results.estimates import Estimate
from pseudo_extended.results.series import effective_sample_size, standard_error

DISAGREEMENT = 1e-3
"""Chains disagree if they are further apart than in one of so many cases."""

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

    Where the chains are further apart than these errors say, their spread is the error; and where they disagree more
    than chance allows, it gets Student's factor for so few chains.

    >>> rng = np.random.default_rng(0)
    >>> log_weight = rng.normal(-0.5, 1.0, size=(4, 1000, 1))  # E exp = 1
    >>> estimate = log_evidence(log_weight, np.zeros_like(log_weight))
    >>> bool(abs(estimate.value) < 4 * estimate.standard_error < 0.2)
    True
    """
    log_top, series_top = _log_mean_of_products(top)
    log_bottom, series_bottom = _log_mean_of_products(bottom)
    series = series_top - series_bottom
    error, ess = float(standard_error(series)), float(effective_sample_size(series))
    agreement = compare_chains(top, bottom)
    raised = max(agreement.spread, agreement.raised)
    if raised > error:
        error, ess = raised, ess * (error / raised) ** 2
    return Estimate(log_top - log_bottom, error, ess)


class Agreement(NamedTuple):
    """What each chain alone says of the evidence."""

    values: Float[np.ndarray, " chain"]
    within: float
    """The error of their mean if they agree, from the error of each."""
    p_value: float
    """How likely chains that agree would be so far apart; 1 for a single chain."""
    spread: float
    """The error of their mean from how far they are apart; 0 for a single chain."""

    @property
    def between(self) -> float:
        """The same with Student's factor for so few."""
        number = len(self.values)
        return float(stdtrit(number - 1, ndtr(1.0)) * self.spread) if number > 1 else 0.0

    @property
    def raised(self) -> float:
        """The error to state, if the chains disagree; else 0."""
        return self.between if self.p_value < DISAGREEMENT else 0.0


def compare_chains(top: Terms, bottom: Terms) -> Agreement:
    """log Z from each chain alone, and whether they agree.

    An error that was estimated within a chain from n effective draws is itself known to a factor of 1 ± 1/√(2n), but
    not whether that chain has seen everything; how far chains are apart tells that, if some of them have.
    """
    number = len(top)
    values, errors = np.zeros(number), np.zeros(number)
    for chain in range(number):
        log_top, series_top = _log_mean_of_products(top[chain : chain + 1])
        log_bottom, series_bottom = _log_mean_of_products(bottom[chain : chain + 1])
        values[chain], errors[chain] = log_top - log_bottom, float(standard_error(series_top - series_bottom))
    if number < 2 or not np.all(np.isfinite(values)):
        return Agreement(values, float(np.mean(errors)), 1.0, 0.0)
    errors = np.nan_to_num(errors, nan=0.0)
    within = float(np.sqrt(np.sum(errors**2)) / number)
    spread = float(np.std(values, ddof=1) / np.sqrt(number))
    if spread <= 1e-12 * (1 + np.max(np.abs(values))):
        return Agreement(values, within, 1.0, spread)
    excess = (spread / within) ** 2 * (number - 1) if within > 0 else np.inf
    return Agreement(values, within, float(chdtrc(number - 1, excess)), spread)


def _log_mean_of_products(terms: Terms) -> tuple[float, Float[np.ndarray, "chain draw"]]:
    """log of the mean over chains of Π_factors mean exp(a_t), and a series of mean one with its relative error."""
    log_mean = logsumexp(terms, axis=1, keepdims=True) - np.log(terms.shape[1])
    log_product = np.sum(log_mean, axis=(1, 2))
    value = float(logsumexp(log_product) - np.log(log_product.size))
    with np.errstate(invalid="ignore"):  # a chain whose terms are all -inf
        share = np.exp(log_product - value)[:, None]
        return value, share * (1 + np.sum(np.exp(terms - log_mean) - 1, axis=2))
