"""Weighted estimates with their Monte Carlo errors.

Within a draw the weights turn N points into one number, Σ_i w_i f(x_i); over draws that number is a series whose mean
estimates E[f] (theorem 2.1). Its error counts both the weights, through the spread of the series, and the
autocorrelation. Variances, covariances and quantiles are means of series too, by the delta method.

The weights of a draw sum to one, or to the importance of the draw where draws do not count alike. Then E[f] is a ratio
of two means, Σ_t v_t s_t / Σ_t v_t, and its error that of the mean of v_t (s_t - E[f]) / mean(v): the delta method.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from pseudo_extended import checks
from pseudo_extended.results.markup import estimate_html
from pseudo_extended.results.series import standard_error

Values = Float[np.ndarray, "chain draw particle *entry"]
Weights = Float[np.ndarray, "chain draw particle"]


UNBOUNDED = np.errstate(over="ignore", invalid="ignore")
"""Squares of draws without bound overflow; a warning of the result tells of such draws, and NumPy need not."""


class Estimate(NamedTuple):
    """A number, or an array or pytree of them, with its Monte Carlo error."""

    value: Any
    """The estimate: a number, or an array or dict of them."""
    standard_error: Any
    """Its Monte Carlo standard error, of the same shape."""
    ess: Any
    """Effective sample size: how many independent draws from the target would have this error."""

    def _repr_html_(self) -> str:
        return estimate_html(self)


def weighted_series(values: Values, weights: Weights) -> Float[np.ndarray, "chain draw *entry"]:
    """Σ_i w_i f(x_i) for each draw; a point of weight zero counts for nothing, whatever f is there."""
    return _sum_of_terms(lambda i: values[:, :, i], values.shape[3:], weights)


def mean_value(values: Values, weights: Weights) -> Float[np.ndarray, "*entry"] | np.floating[Any]:
    """E[f] without its error."""
    return weighted_series(values, weights).mean(axis=(0, 1)) / _mean_total(weights)


def mean_square(values: Values, weights: Weights, centre: Any) -> Any:
    """E[(f - centre)²] without its error."""
    series = _sum_of_terms(lambda i: (values[:, :, i] - centre) ** 2, values.shape[3:], weights)
    return series.mean(axis=(0, 1)) / _mean_total(weights)


def _sum_of_terms(
    term: Callable[[int], np.ndarray], shape: tuple[int, ...], weights: Weights
) -> Float[np.ndarray, "chain draw *entry"]:
    """The weighted sum over particles, one after the other: a copy of all values would double the memory of a run."""
    total = np.zeros((*weights.shape[:2], *shape))
    for i in range(weights.shape[2]):
        weight = weights[:, :, i].reshape(*weights.shape[:2], *(1,) * len(shape))
        total += weight * np.where(weight > 0, term(i), 0.0)
    return total


def contributions(values: Values, weights: Weights) -> Float[np.ndarray, "chain draw *entry"]:
    """What each draw says about E[f]: a series whose mean is the estimate, and whose error is the estimate's error.

    It is Σ_i w_i f(x_i) where the weights of every draw sum to one, and else E[f] + v_t (s_t - E[f]) / mean(v).
    """
    series, value, scale = weighted_series(values, weights), mean_value(values, weights), _mean_total(weights)
    total = np.sum(weights, axis=2).reshape(series.shape[:2] + (1,) * (series.ndim - 2))
    return series / scale + value * (1 - total / scale)


@UNBOUNDED
def mean(values: Values, weights: Weights) -> Estimate:
    """Estimate E[f] from weighted draws."""
    value, error = mean_value(values, weights), standard_error(contributions(values, weights))
    variance_of_f = mean_square(values, weights, value)
    with np.errstate(divide="ignore", invalid="ignore"):
        # f is not constant, but where it changes the weights are so small that its error has underflowed: not known.
        varies = np.sqrt(variance_of_f) > 1e-12 * np.abs(value)  # more than by rounding
        error = np.where((error == 0) & varies, np.nan, error)[()]
        return Estimate(value, error, variance_of_f / error**2)


@UNBOUNDED
def variance(values: Values, weights: Weights) -> Estimate:
    """Var[f]: the mean of the squared distance to the estimated mean, whose own error is of second order."""
    return mean((values - mean_value(values, weights)) ** 2, weights)


@UNBOUNDED
def covariance(values: Float[np.ndarray, "chain draw particle d"], weights: Weights) -> Estimate:
    """Cov[f, g] for all pairs of entries."""
    centred = values - mean_value(values, weights)
    rows = [mean(centred[..., i : i + 1] * centred, weights) for i in range(values.shape[-1])]
    return Estimate(*(np.stack(parts) for parts in zip(*rows, strict=True)))


def quantile(values: Values, weights: Weights, probability: float | Sequence[float]) -> Estimate:
    """The `probability` quantile; of several, one after the other along a first axis.

    Its error is that of the probability below it, turned into a distance by the quantile function itself
    (Woodruff's interval): a quarter of what lies between the quantiles two standard errors to either side. Between two
    modes, where a quantile jumps, one standard error would often not reach the other mode.
    """
    wanted = probability.tolist() if isinstance(probability, np.ndarray) else probability
    if isinstance(wanted, (list, tuple)) and wanted:
        several = [_quantiles(values, weights, each) for each in wanted]
        return Estimate(*(np.stack(parts) for parts in zip(*several, strict=True)))
    return _quantiles(values, weights, wanted)


def _quantiles(values: Values, weights: Weights, probability: Any) -> Estimate:
    probability = checks.real("probability", probability, low=0, high=1)
    flat = values.reshape(*values.shape[:3], -1)
    columns = [_quantile(flat[..., i], weights, probability) for i in range(flat.shape[-1])]
    shape = values.shape[3:]
    return Estimate(*(np.reshape(parts, shape) for parts in zip(*columns, strict=True)))


def _mean_total(weights: Weights) -> float:
    """The mean over draws of the sum of their weights: one, for all chains of a run together."""
    return float(np.mean(np.sum(weights, axis=2)))


def _quantile(values: Float[np.ndarray, "chain draw particle"], weights: Weights, probability: float) -> Estimate:
    counts = weights.ravel() > 0
    if not np.any(counts):
        return Estimate(np.nan, np.nan, np.nan)
    order = np.argsort(values.ravel()[counts], kind="stable")
    ordered = values.ravel()[counts][order]
    share = np.cumsum(weights.ravel()[counts][order])
    share /= share[-1]

    def inverse(p: float) -> float:
        return float(ordered[min(np.searchsorted(share, p), len(ordered) - 1)])

    point = inverse(probability)
    _, error, ess = (float(part) for part in mean((values <= point).astype(float), weights))
    if not np.isfinite(error):
        return Estimate(point, np.nan, ess)
    low, high = inverse(max(probability - 2 * error, 0.0)), inverse(min(probability + 2 * error, 1.0))
    return Estimate(point, (high - low) / 4, ess)
