"""Monte Carlo errors of means of autocorrelated series, shape (chain, draw, …), one series for each trailing entry.

ArviZ computes the same numbers one series at a time, by different calls in its two lines; here all entries go
through one FFT, and the tests hold the results against ArviZ.
"""

from collections.abc import Callable
from functools import wraps

import numpy as np
from jaxtyping import Bool, Float
from scipy.fft import next_fast_len
from scipy.special import ndtri

Series = Float[np.ndarray, "chain draw *entry"]
Entry = Float[np.ndarray, "*entry"]
BLOCK = 2**24
"""Numbers of a series that are looked at together."""


def _some_at_a_time(estimate: Callable[[Series], Entry]) -> Callable[[Series], Entry]:
    """The same for many entries, in blocks: ranks and spectra take ten times the memory of the series."""

    @wraps(estimate)
    def each(series: Series) -> Entry:
        if series.size <= BLOCK:
            return estimate(series)
        columns = series.reshape(*series.shape[:2], -1)
        step = max(BLOCK // (series.shape[0] * series.shape[1]), 1)
        parts = [estimate(columns[..., i : i + step]) for i in range(0, columns.shape[-1], step)]
        return np.concatenate(parts).reshape(series.shape[2:])

    return each


@_some_at_a_time
def effective_sample_size(series: Series) -> Entry:
    """How many independent draws of the series would give its mean the same error (Vehtari et al. 2021).

    nan for a series that never changes: it may be a constant, or a chain that is stuck, and nothing here can tell.

    >>> noise = np.random.default_rng(0).normal(size=(4, 1000))
    >>> bool(3000 < effective_sample_size(noise) < 5000)
    True
    """
    split = _split(series)
    num_chains, num_draws = split.shape[:2]
    total = num_chains * num_draws
    if num_draws < 4:
        return np.full(series.shape[2:], np.nan)
    covariance = _autocovariance(split)
    within = covariance[:, 0].mean(axis=0) * num_draws / (num_draws - 1)
    pooled = within * (num_draws - 1) / num_draws
    if num_chains > 1:
        pooled = pooled + np.var(split.mean(axis=1), axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = 1 - (within - covariance.mean(axis=0)) / pooled
    correlation[0] = 1.0
    # Geyer's initial monotone sequence: sums of neighbours, as long as they are positive, never rising.
    num_pairs = num_draws // 2
    pairs = correlation[: 2 * num_pairs : 2] + correlation[1 : 2 * num_pairs : 2]
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    monotone = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    # The even lag that follows is taken too, if it is positive (as in Stan): it matters for antithetic chains.
    follows = np.minimum(2 * positive.sum(axis=0), num_draws - 1)
    even = np.take_along_axis(correlation, follows[None], axis=0)[0]
    time = -1 + 2 * monotone.sum(axis=0) + np.maximum(even, 0.0)
    # Antithetic chains can be better than independent draws, but no estimate of that is trusted beyond this.
    ess = total / np.maximum(time, 1 / np.log10(total))
    return np.where(_is_constant(series) | np.isnan(pooled), np.nan, ess)


def standard_error(series: Series) -> Entry:
    """Standard error of the mean of `series` over chains and draws."""
    spread = series.reshape(-1, *series.shape[2:]).std(axis=0)
    return np.asarray(spread / np.sqrt(effective_sample_size(series)))


@_some_at_a_time
def r_hat(series: Series) -> Entry:
    """Rank-normalised split R̂, of the location or the spread, whichever is worse (Vehtari et al. 2021)."""
    folded = np.abs(series - np.median(series, axis=(0, 1)))
    return np.asarray(np.fmax(_split_r_hat(_normal_scores(series)), _split_r_hat(_normal_scores(folded))))


def _split_r_hat(series: Series) -> Entry:
    split = _split(series)
    num_draws = split.shape[1]
    if num_draws < 2:
        return np.full(series.shape[2:], np.nan)
    within = split.var(axis=1, ddof=1).mean(axis=0)
    between = split.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt((num_draws - 1) / num_draws + between / within)
    return np.where(_is_constant(series), np.nan, ratio)


def _is_constant(series: Series) -> Bool[np.ndarray, "*entry"]:
    return np.asarray(np.all(series == series[:1, :1], axis=(0, 1)))


def _normal_scores(series: Series) -> Series:
    flat = series.reshape(-1, *series.shape[2:])
    return ndtri((ranks(flat) - 0.375) / (len(flat) + 0.25)).reshape(series.shape)


def ranks(values: Float[np.ndarray, " draw *entry"]) -> Float[np.ndarray, " draw *entry"]:
    """Ranks along the first axis from 1 on, equal values with the mean of theirs; NaN where a column has one.

    As `scipy.stats.rankdata`, whose import takes half a second.

    >>> ranks(np.array([3.0, 1.0, 3.0, 2.0]))
    array([3.5, 1. , 3.5, 2. ])
    """
    if not len(values):
        return values
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    place = np.arange(len(values)).reshape(-1, *(1,) * (values.ndim - 1))
    differs, end = ordered[1:] != ordered[:-1], np.ones((1, *values.shape[1:]), bool)
    first = np.maximum.accumulate(np.where(np.concatenate([end, differs]), place, 0), axis=0)
    last = np.where(np.concatenate([differs, end]), place, len(values) - 1)
    last = np.minimum.accumulate(last[::-1], axis=0)[::-1]
    found = np.empty(values.shape)
    np.put_along_axis(found, order, 0.5 * (first + last) + 1, axis=0)
    return np.where(np.any(np.isnan(values), axis=0), np.nan, found)


def _split(series: Series) -> Float[np.ndarray, "split half *entry"]:
    """Both halves of each chain as chains of their own."""
    half = series.shape[1] // 2
    return np.concatenate([series[:, :half], series[:, -half:]]) if half else series


def _autocovariance(series: Series) -> Series:
    num_draws = series.shape[1]
    centred = series - series.mean(axis=1, keepdims=True)
    length = next_fast_len(2 * num_draws)
    spectrum = np.fft.rfft(centred, n=length, axis=1)
    power = spectrum.real**2 + spectrum.imag**2
    return np.fft.irfft(power, n=length, axis=1)[:, :num_draws] / num_draws
