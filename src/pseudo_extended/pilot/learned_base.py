"""Bases learned from modes and from points: a broad normal, and a mixture with a component at each mode."""

import numpy as np
from jaxtyping import Float
from scipy.cluster.vq import kmeans2
from scipy.special import softmax

from pseudo_extended.pilot.mode_search import MAX_MODES
from pseudo_extended.pilot.modes import Modes
from pseudo_extended.target.bases import NormalMixture

INFLATION = 1.5
"""Components are wider than what they were fitted to, in variance: a base must not be narrower than its target."""
BROAD_SHARE = 0.2
"""The broad part of a mixture: it reaches what no component does."""
SHELLS = ((1.0, 0.8), (2.5, 0.13), (6.25, 0.05), (15.625, 0.02))
"""Scales and shares of the broad part: about a Student t. Where the target has the heavier tails, pseudo-samples go
there seldom and stay long, and the error of an estimate does not show it; draws from the base go there at once."""


def broad_base(modes: Modes) -> NormalMixture:
    """A normal that covers all modes worth mentioning, with their own widths."""
    log_mass = modes.log_mass
    keep = log_mass > np.max(log_mass) - 20
    centres, covariance = modes.x[keep], modes.covariance[keep]
    mean = centres.mean(axis=0)
    within = covariance.mean(axis=0)
    away = centres - mean
    dense = within.ndim == 2
    between = away.T @ away / len(away) if dense else np.mean(away**2, axis=0)
    return _broad(mean, 2 * INFLATION * (within + between))


def mixture_base(modes: Modes, points: Float[np.ndarray, "point d"], num_kept: int) -> NormalMixture:
    """A component at each mode by Laplace, weighted by its mass but never negligible, and the broad part."""
    order = np.argsort(-modes.log_mass)[:num_kept]
    mass = softmax(modes.log_mass[order])
    weights = 0.7 * mass + 0.3 / len(order)
    covariance = INFLATION * modes.covariance[order]
    broad = moments_base(points, dense=covariance.ndim == 3)
    return NormalMixture(
        np.concatenate([modes.x[order], broad.means]),
        np.concatenate([_factor(covariance), broad.scales]),
        np.concatenate([(1 - BROAD_SHARE) * weights, BROAD_SHARE * np.exp(broad.log_weights)]),
    )


def claimed(base: NormalMixture, points: Float[np.ndarray, "point d"]) -> float:
    """The share of points that the components of a mixture at modes account for, and not its broad part."""
    return float(np.mean(np.sum(_shares(base, points)[:, : -len(SHELLS)], axis=1)))


def mixed(one: NormalMixture, other: NormalMixture) -> NormalMixture:
    """Half of each."""
    return NormalMixture(
        np.concatenate([one.means, other.means]),
        np.concatenate([one.scales, other.scales]),
        np.exp(np.concatenate([one.log_weights, other.log_weights])) / 2,
    )


def moments_base(points: Float[np.ndarray, "point d"], *, dense: bool) -> NormalMixture:
    """A normal with the mean and covariance of points, somewhat wider."""
    size, dim = points.shape
    variance = np.var(points, axis=0) + 1e-12 * (1 + np.mean(points, axis=0) ** 2)
    if not dense:
        return _broad(points.mean(axis=0), INFLATION * variance)
    covariance = np.cov(points.T).reshape(dim, dim)
    # Shrunk towards its diagonal, by more the fewer points there are for each dimension.
    share = dim / (dim + size / 4)
    return _broad(points.mean(axis=0), INFLATION * ((1 - share) * covariance + share * np.diag(variance)))


def refit(base: NormalMixture, points: Float[np.ndarray, "point d"], *, is_broad: bool) -> NormalMixture:
    """Fit the base to points of the target: moments for a broad base, one step of EM for a mixture.

    Each component keeps what it was as a prior worth a few points, so that one that has attracted none does not
    collapse, and none goes extinct. Points that only the broad part accounts for, such as those on a plateau beside a
    mode, get components of their own.
    """
    dense = base.scales.ndim == 3
    if is_broad:
        return moments_base(points, dense=dense)
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
        squares = np.einsum("pk,pki,pkj->kij", share, away, away)
        covariance = (prior * old + INFLATION * squares) / total[:, :, None]
    else:
        squares = np.einsum("pk,pki->ki", share, away**2)
        covariance = (prior * base.scales[:num_modes] ** 2 + INFLATION * squares) / total
    broad = moments_base(points, dense=dense)
    unclaimed = points[shares[:, num_modes:].sum(axis=1) > 0.5]
    groups = _groups(unclaimed, (MAX_MODES - num_modes) // 2)
    fitted = [moments_base(group, dense=dense) for group in groups]  # with wide tails: what is no mode may be long
    means = np.concatenate([means, *(normal.means for normal in fitted)])
    scales = np.concatenate([_factor(covariance), *(normal.scales for normal in fitted)])
    sizes = [len(group) * np.exp(normal.log_weights) for group, normal in zip(groups, fitted, strict=True)]
    count = np.concatenate([count, *sizes])
    weights = (count + 1) / np.sum(count + 1)
    return NormalMixture(
        np.concatenate([means, broad.means]),
        np.concatenate([scales, broad.scales]),
        np.concatenate([(1 - BROAD_SHARE) * weights, BROAD_SHARE * np.exp(broad.log_weights)]),
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


def _broad(mean: Float[np.ndarray, " d"], covariance: np.ndarray) -> NormalMixture:
    scale = _factor(covariance[None])[0]
    factors, shares = np.transpose(SHELLS)
    return NormalMixture(np.tile(mean, (len(SHELLS), 1)), np.multiply.outer(factors, scale), shares)


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
