"""Ends of ascents sorted into distinct places."""

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

CLOSE = 1e-2
"""How near two ends of one place are, as a part of the spread."""


def distinct(
    x: Float[np.ndarray, "end d"], log_density: Float[np.ndarray, " end"], wanted: int
) -> tuple[Int[np.ndarray, " kept"], Int[np.ndarray, " kept"]]:
    """Find the distinct places among ends near the top, the highest first, and count how many ended at each.

    Two ends are one place when they are closer than a hundredth of the spread: ascents end where the next step gains
    nothing, not at the last digit. If that makes more places than `wanted`, three hundredths; but not more, because a
    plateau has any number of places, and circles that hold it in a few would hold modes beside it too.
    """
    good = np.isfinite(log_density) & np.all(np.isfinite(x), axis=1)
    order = np.argsort(-np.where(good, log_density, -np.inf))[: good.sum()]
    order = order[log_density[order] > log_density[order[:1]] - near_top(x.shape[1])]
    if not order.size:  # none is finite, or all are so high that nothing is below the highest: there is no mode
        return np.zeros(0, int), np.zeros(0, int)
    unit = np.std(x[order], axis=0) + 1e-12
    kept, hits = _places(x, order, unit)
    return (kept, hits) if len(kept) <= wanted else _places(x, order, 3 * unit)


def near_top(dim: int) -> float:
    """How far below the highest mode the log density of one may be that is worth looking at."""
    return 50.0 + 5.0 * dim


def _places(x: np.ndarray, order: np.ndarray, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Assign ends in the given order, each to the first place that it is close to."""
    scaled = x[order] / unit
    tree = KDTree(scaled)
    left = np.ones(len(order), bool)
    kept: list[int] = []
    hits: list[int] = []
    for i, point in enumerate(scaled):
        if left[i]:
            near = np.array(tree.query_ball_point(point, CLOSE, p=np.inf), int)
            kept.append(int(order[i]))
            hits.append(int(np.sum(left[near])))
            left[near] = False
    return np.array(kept, int), np.array(hits, int)
