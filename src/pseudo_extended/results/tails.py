"""Whether the tails of a coordinate are too heavy for its mean to have an error, or to exist: Pareto's shape."""

import numpy as np
from jaxtyping import Float

from pseudo_extended.results.estimates import Weights
from pseudo_extended.results.pareto import MIN_TAIL, fit_tail

MAX_POINTS = 4000
"""Points of an equally weighted sample in which tails are looked at."""
MIN_POINTS = 400
TOO_HEAVY = 0.7
"""A shape of 1/2 has no variance and one of 1 no mean; estimates from a few hundred points in a tail are off by 0.1."""
MIN_FURTHER_OUT = 20
"""Points of the part of a tail that must be heavy too; the error of a shape k is (1 + k)/√n."""


def heaviest_tails(
    values: Float[np.ndarray, "chain draw particle d"], weights: Weights, ess: Float[np.ndarray, " d"]
) -> Float[np.ndarray, " d"]:
    """Pareto's shape of the heavier tail of every coordinate (Vehtari et al. 2024); nan where there are too few points.

    >>> rng = np.random.default_rng(0)
    >>> both = np.stack([rng.normal(size=(4, 1000, 1)), rng.standard_cauchy(size=(4, 1000, 1))], axis=-1)
    >>> normal, cauchy = heaviest_tails(both, np.ones((4, 1000, 1)), np.full(2, 4000.0))
    >>> bool(normal < 0.2), bool(0.7 < cauchy < 1.3)
    (True, True)
    """
    share = weights.ravel() / max(float(weights.sum()), 1e-300)
    shapes = np.full(values.shape[-1], np.nan)
    if not np.all(np.isfinite(share)) or share.sum() == 0:
        return shapes
    flat = values.reshape(-1, values.shape[-1])
    for i, effective in enumerate(np.nan_to_num(ess, nan=0.0)):
        size = int(min(effective, MAX_POINTS))
        if size < MIN_POINTS:
            continue
        rows = np.searchsorted(np.cumsum(share), (np.arange(size) + 0.5) / size).clip(max=len(share) - 1)
        x = flat[rows, i]
        if np.all(np.isfinite(x)) and np.ptp(x) > 0:
            shapes[i] = max(_upper_shape(x), _upper_shape(-x))
    return shapes


def _upper_shape(x: Float[np.ndarray, " point"]) -> float:
    """The shape of a generalised Pareto fitted to the largest points (Zhang and Stephens 2009).

    A heavy tail is heavy at every height. A light mode far out looks like one from below, but its own tail is not
    heavy: so what looks heavy is looked at again from further out, as long as there are points enough.
    """
    ordered = np.sort(x)
    size = int(min(0.2 * len(x), 3 * np.sqrt(len(x))))
    shape = _fitted_shape(ordered, size)
    while shape > TOO_HEAVY and size >= 2 * MIN_FURTHER_OUT:
        size //= 2
        further_out = _fitted_shape(ordered, size)
        if further_out < TOO_HEAVY - 2 * (1 + TOO_HEAVY) / np.sqrt(size):
            return further_out
    return shape


def _fitted_shape(ordered: Float[np.ndarray, " point"], size: int) -> float:
    tail = ordered[-size:] - ordered[-size - 1]
    tail = tail[tail > 0]
    return fit_tail(tail).shape if len(tail) >= MIN_TAIL else -np.inf
