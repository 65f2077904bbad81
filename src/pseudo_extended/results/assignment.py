"""Points of modes that are known for some points only: by their neighbours, or by the normal densities of the modes."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

NUM_FOLDS = 5
NUM_NEIGHBOURS = 3
BLOCK = 8192
TREE_DIMENSIONS = 8
"""Up to so many dimensions a tree finds neighbours quicker than looking at all."""

Points = Float[np.ndarray, "point d"]
Labels = Int[np.ndarray, " point"]
Rule = Callable[[Points], Labels]


def learn_rule(x: Points, labels: Labels, weights: Float[np.ndarray, " point"]) -> tuple[Rule, float]:
    """A rule that says which label a new point has, and the share of points that it gets wrong (cross-validated)."""
    if labels.max() == 0:
        return lambda new: np.zeros(len(new), int), 0.0
    makers = (_by_neighbours, _by_normals)
    folds = np.arange(len(x)) % NUM_FOLDS
    wrong = np.zeros(len(makers))
    for fold in range(NUM_FOLDS):
        train, test = folds != fold, folds == fold
        for i, make in enumerate(makers):
            rule = make(x[train], labels[train], weights[train])
            wrong[i] += np.sum(weights[test] * (rule(x[test]) != labels[test]))
    best = int(np.argmin(wrong))
    return makers[best](x, labels, weights), float(wrong[best] / weights.sum())


def _by_neighbours(x: Points, labels: Labels, weights: Float[np.ndarray, " point"]) -> Rule:
    """The label that most of the nearest points have."""
    del weights
    scale = _width(x, labels)
    num_labels, count = int(labels.max()) + 1, min(NUM_NEIGHBOURS, len(x))
    tree = KDTree(x / scale) if x.shape[1] <= TREE_DIMENSIONS else None

    def nearest(block: Points) -> Int[np.ndarray, "point neighbour"]:
        if tree is not None:
            return np.asarray(tree.query(block / scale, count)[1]).reshape(len(block), count)
        return np.argpartition(cdist(block / scale, x / scale), count - 1, axis=1)[:, :count]

    def rule(new: Points) -> Labels:
        votes = [labels[nearest(new[i : i + BLOCK])] for i in range(0, len(new), BLOCK)]
        counts = np.sum(np.concatenate(votes)[..., None] == np.arange(num_labels), axis=1)
        return np.argmax(counts, axis=1)

    return rule


def _width(x: Points, labels: Labels) -> Float[np.ndarray, " d"]:
    """The spread of every coordinate within the labels, and not between them."""
    away = x.copy()
    for label in np.unique(labels):
        away[labels == label] -= x[labels == label].mean(axis=0)
    return np.sqrt(np.mean(away**2, axis=0)) + 1e-12 * np.std(x, axis=0) + 1e-300


def _by_normals(x: Points, labels: Labels, weights: Float[np.ndarray, " point"]) -> Rule:
    """The label whose normal density, times its share, is highest; covariances shrink towards a diagonal."""
    centre, scale = x.mean(axis=0), np.std(x, axis=0) + 1e-300
    z, dim = (x - centre) / scale, x.shape[1]
    total = np.cov(z.T, aweights=weights).reshape(dim, dim) if len(z) > 1 else np.eye(dim)
    parts = []
    for label in range(int(labels.max()) + 1):
        here = labels == label
        if not here.any():
            continue
        share, mean = weights[here].sum() / weights.sum(), np.average(z[here], axis=0, weights=weights[here])
        away, number = z[here] - mean, int(here.sum())
        covariance = (away * weights[here][:, None]).T @ away / weights[here].sum()
        spread = np.diag(np.diagonal(covariance) if number > 2 else np.diagonal(total))
        covariance = (number * covariance + (dim + 2) * spread) / (number + dim + 2)
        root = np.linalg.cholesky(covariance + 1e-9 * np.diag(np.diagonal(total)) + 1e-12 * np.eye(dim))
        parts.append((label, np.log(share) - np.sum(np.log(np.diagonal(root))), mean, np.linalg.inv(root)))

    def rule(new: Points) -> Labels:
        y = (new - centre) / scale
        scores = [height - 0.5 * np.sum(((y - mean) @ root.T) ** 2, axis=1) for _, height, mean, root in parts]
        return np.array([label for label, *_ in parts])[np.argmax(scores, axis=0)]

    return rule
