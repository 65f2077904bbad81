"""Intervals of highest density of weighted points."""

import numpy as np
from jaxtyping import Float

Points = Float[np.ndarray, " point"]


def narrowest_interval(values: Points, weights: Points, prob: float) -> tuple[float, float]:
    """The shortest interval that holds a share `prob` of the weight.

    >>> values = np.array([0.0, 1.0, 2.0, 3.0, 100.0])
    >>> narrowest_interval(values, np.ones(5), 0.8)
    (0.0, 3.0)
    """
    counts = weights > 0
    order = np.argsort(values[counts], kind="stable")
    ordered, upto = values[counts][order], np.cumsum(weights[counts][order])
    if not len(ordered) or not np.isfinite(upto[-1]):
        return float("nan"), float("nan")
    before = np.append(0.0, upto[:-1]) / upto[-1]
    last = np.searchsorted(upto / upto[-1], before + prob * (1 - 1e-12))
    fits = last < len(ordered)
    widths = np.where(fits, ordered[np.minimum(last, len(ordered) - 1)] - ordered, np.inf)
    first = int(np.argmin(widths))
    return float(ordered[first]), float(ordered[last[first]])


def highest_density_intervals(grid: Points, density: Points, prob: float) -> list[tuple[float, float]]:
    """The intervals, perhaps several, where a density on a regular grid is highest, with a share `prob` of its mass.

    >>> grid = np.linspace(-6, 6, 1201)
    >>> density = np.exp(-50 * (np.abs(grid) - 3) ** 2)
    >>> [tuple(round(end, 1) for end in part) for part in highest_density_intervals(grid, density, 0.95)]
    [(-3.2, -2.8), (2.8, 3.2)]
    """
    total = density.sum()
    if not total > 0:
        return []
    ordered = np.sort(density)[::-1]
    level = ordered[min(np.searchsorted(np.cumsum(ordered), prob * total), len(ordered) - 1)]
    inside = np.concatenate([[False], density >= level, [False]])
    edges = np.flatnonzero(np.diff(inside.astype(int)))
    half = (grid[1] - grid[0]) / 2
    return [
        (float(grid[first] - half), float(grid[last - 1] + half))
        for first, last in zip(edges[::2], edges[1::2], strict=True)
    ]
