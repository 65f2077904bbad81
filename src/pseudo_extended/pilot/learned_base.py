"""Bases learned from modes and from points: a broad normal, and a mixture with a component at each mode."""

import numpy as np
from jaxtyping import Float
from scipy.cluster.vq import kmeans2
from scipy.special import softmax

from pseudo_extended.pilot.mode_search import MAX_MODES
from pseudo_extended.pilot.modes import Modes
from pseudo_extended.target.bases import NormalMixture, NormalShells

BROAD_SHARE = 0.2
"""The broad part of a mixture: it reaches what no component does."""
SHELLS = ((1.0, 0.9), (2.5, 0.06), (6.25, 0.025), (15.625, 0.015))
"""Scales and shares of the broad part: about a Student t. Where the target has the heavier tails, pseudo-samples go
there seldom and stay long, and the error of an estimate does not show it; draws from the base go there at once."""

LearnedBase = NormalShells | NormalMixture


def inflation(dim: int) -> float:
    """How much wider, in variance, a normal is made than what it was fitted to.

    A base must not be narrower than its target. But the path from a normal that is wider by a factor grows with the
    root of the dimension, so the factor falls with it, and a normal keeps a path of length near zero.

    >>> round(inflation(1), 2), round(inflation(100), 2)
    (2.23, 1.08)
    """
    return float(np.exp(0.8 / np.sqrt(dim)))


def broad_base(modes: Modes) -> NormalShells:
    """A normal that covers all modes worth mentioning, with their own widths."""
    log_mass = modes.log_mass
    keep = log_mass > np.max(log_mass) - 20
    centres, covariance = modes.x[keep], modes.covariance[keep]
    mean = centres.mean(axis=0)
    within = covariance.mean(axis=0)
    away = centres - mean
    dense = within.ndim == 2
    between = away.T @ away / len(away) if dense else np.mean(away**2, axis=0)
    return shells(mean, 3 * (within + between))


def mode_base(modes: Modes, broad: NormalShells, num_kept: int) -> LearnedBase:
    """A component at each mode by Laplace, weighted by its mass but never negligible, and the broad part.

    Of a single mode, a normal there with wider ones around it.
    """
    covariance = inflation(modes.x.shape[1]) * modes.covariance
    if len(modes.x) == 1:
        return shells(modes.x[0], covariance[0])
    order = np.argsort(-modes.log_mass)[:num_kept]
    mass = softmax(modes.log_mass[order])
    return _with_broad_part(modes.x[order], _factor(covariance[order]), 0.7 * mass + 0.3 / len(order), broad)


def as_mixture(base: LearnedBase) -> NormalMixture:
    """The same density as a mixture."""
    if isinstance(base, NormalMixture):
        return base
    factors = np.exp(base.log_factors)
    return NormalMixture(
        np.tile(base.mean, (len(factors), 1)), np.multiply.outer(factors, base.scale), np.exp(base.log_shares)
    )


def _with_broad_part(means: np.ndarray, scales: np.ndarray, weights: np.ndarray, broad: NormalShells) -> NormalMixture:
    wide = as_mixture(broad)
    return NormalMixture(
        np.concatenate([means, wide.means]),
        np.concatenate([scales, wide.scales]),
        np.concatenate([(1 - BROAD_SHARE) * weights / np.sum(weights), BROAD_SHARE * np.exp(wide.log_weights)]),
    )


def claimed(base: NormalMixture, points: Float[np.ndarray, "point d"]) -> float:
    """The share of points that the components of a mixture at modes account for, and not its broad part."""
    return float(np.mean(np.sum(_shares(base, points)[:, : -len(SHELLS)], axis=1)))


def mixed(one: LearnedBase, other: LearnedBase) -> NormalMixture:
    """Return the mixture of two bases in equal shares."""
    first, second = as_mixture(one), as_mixture(other)
    return NormalMixture(
        np.concatenate([first.means, second.means]),
        np.concatenate([first.scales, second.scales]),
        np.exp(np.concatenate([first.log_weights, second.log_weights])) / 2,
    )


def moments_base(points: Float[np.ndarray, "point d"], like: NormalShells) -> NormalShells:
    """A normal with the mean and covariance of points, somewhat wider.

    The covariance is estimated where `like` is round, and shrunk towards its diagonal there, by more the fewer points
    there are for each dimension: correlations that `like` knows already are not shrunk away.
    """
    size, dim = points.shape
    mean = points.mean(axis=0)
    least = 1e-12 * (1 + mean**2)
    if like.scale.ndim == 1:
        return shells(mean, inflation(dim) * (np.var(points, axis=0) + least))
    white = (points - mean) @ like.whitener.T
    second = white.T @ white / size
    share = dim / (dim + size)
    second = (1 - share) * second + share * np.diag(np.diagonal(second))
    covariance = like.scale @ second @ like.scale.T + np.diag(least)
    return shells(mean, inflation(dim) * covariance)


def refit(base: LearnedBase, points: Float[np.ndarray, "point d"], like: NormalShells) -> LearnedBase:
    """Fit the base to points of the target: moments for a normal, one step of EM for a mixture.

    Each component keeps what it was as a prior worth a few points, so that one that has attracted none does not
    collapse, and none goes extinct. Points that only the broad part accounts for, such as those on a plateau beside a
    mode, get components of their own.
    """
    if isinstance(base, NormalShells):
        return moments_base(points, base)
    dense = base.scales.ndim == 3
    num_modes = base.num_components - len(SHELLS)
    dim = base.means.shape[1]
    shares = _shares(base, points)
    share = shares[:, :num_modes]
    count = share.sum(axis=0)
    prior = dim + 2.0
    total = (count + prior)[:, None]
    means = (prior * base.means[:num_modes] + share.T @ points) / total
    away = points[:, None, :] - means
    if dense:
        old = base.scales[:num_modes] @ np.swapaxes(base.scales[:num_modes], 1, 2)
        squares = np.einsum("pk,pki,pkj->kij", share, away, away, optimize=True)
        covariance = (prior * old + inflation(dim) * squares) / total[:, :, None]
    else:
        squares = np.einsum("pk,pki->ki", share, away**2)
        covariance = (prior * base.scales[:num_modes] ** 2 + inflation(dim) * squares) / total
    unclaimed = points[shares[:, num_modes:].sum(axis=1) > 0.5]
    groups = _groups(unclaimed, (MAX_MODES - num_modes) // 2)
    fitted = [as_mixture(moments_base(group, like)) for group in groups]  # wide tails: what is no mode may be long
    sizes = [len(group) * np.exp(normal.log_weights) for group, normal in zip(groups, fitted, strict=True)]
    return _with_broad_part(
        np.concatenate([means, *(normal.means for normal in fitted)]),
        np.concatenate([_factor(covariance), *(normal.scales for normal in fitted)]),
        np.concatenate([count, *sizes]) + 1,
        moments_base(points, like),
    )


def _groups(points: Float[np.ndarray, "point d"], room: int) -> list[Float[np.ndarray, "point d"]]:
    """Points that lie together, each group large enough for a covariance; at most `room` of them."""
    least = 2 * (points.shape[1] + 1)
    number = min(room, len(points) // least)
    if number < 1:
        return []
    scaled = (points - points.mean(axis=0)) / (points.std(axis=0) + 1e-12)
    _, label = kmeans2(scaled, number, minit="++", rng=np.random.default_rng(0))
    groups = [points[label == each] for each in range(number)]
    return [group for group in groups if len(group) >= least // 2]


def pad_components(base: NormalMixture, multiple: int = 8) -> NormalMixture:
    """The same density with a number of components that is a multiple of some number, so that programs can be shared.

    The first component is split into equal parts. A few more cost little next to compiling for each number of modes.
    """
    num = base.num_components
    missing = -num % multiple
    weights = np.exp(base.log_weights)
    weights[0] /= missing + 1
    repeat = np.concatenate([np.arange(num), np.zeros(missing, int)])
    return NormalMixture(base.means[repeat], base.scales[repeat], weights[repeat])


def shells(mean: Float[np.ndarray, " d"], covariance: np.ndarray) -> NormalShells:
    """A normal with wider ones around it, as `SHELLS` says."""
    factors, shares = np.transpose(SHELLS)
    return NormalShells(mean, _factor(covariance[None])[0], factors, shares)


def _factor(covariance: np.ndarray) -> np.ndarray:
    """Cholesky factors, or standard deviations, of covariances of any scale."""
    if covariance.ndim == 2:
        return np.sqrt(covariance)
    unit = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    correlation = covariance / (unit[:, :, None] * unit[:, None, :])
    correlation = correlation + 1e-9 * np.eye(covariance.shape[1])
    return unit[:, :, None] * np.linalg.cholesky(correlation)


def _shares(base: NormalMixture, points: Float[np.ndarray, "point d"]) -> Float[np.ndarray, "point component"]:
    """The probability that each point came from each component."""
    away = points - base.centre
    whitened = away @ base.whiteners if base.is_dense else away[:, None, :] * base.whiteners
    whitened = whitened.reshape(len(points), *base.means.shape)
    return softmax(base.log_heights - 0.5 * np.sum((whitened - base.offsets) ** 2, axis=2), axis=1)
