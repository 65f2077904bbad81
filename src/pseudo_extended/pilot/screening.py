"""Starts for ascents at places where the known modes do not explain the density.

An ascent from a random start finds a mode as often as the start is in its basin. A narrow mode beside wide ones has a
small basin, less than a thousandth of the space between them in five dimensions already. But an ascent costs some fifty
gradients, and a look at the density one evaluation: so look at very many points, and climb from those that are far more
likely than normals at the known modes would make them.
"""

import numpy as np
from jaxtyping import Float, Int

from pseudo_extended.pilot.modes import Modes

NUM_BINS = 16
MOST_WIDTHS = 100.0
"""How far a coordinate is moved at most, in widths of the mode, or in units if these are longer."""


def scatter(
    rng: np.random.Generator, modes: Modes, x: Float[np.ndarray, "start d"], number: int
) -> tuple[Float[np.ndarray, "point d"], Float[np.ndarray, " point"]]:
    """Points at many distances from the starts and the modes, and how far.

    A fifth of them have one coordinate of a mode moved, by one to a hundred of its widths or units: where coordinates
    have widths of their own, no scale that they share would meet another mode along one of them. Of the rest, half, or
    a quarter if there is more than one mode, are at any scale from 0.1 to 100, and the others at distances like those
    of the modes from each other and from the starts, every second of these as far in each direction as the modes lie
    apart in it.
    """
    dim = x.shape[1]
    centres = np.concatenate([x, modes.x])
    width = np.sqrt(modes.covariance if modes.covariance.ndim == 2 else np.diagonal(modes.covariance, axis1=1, axis2=2))
    apart = np.maximum(np.ptp(centres, axis=0), 3 * np.median(width, axis=0))
    alike = np.full(dim, np.sqrt(np.mean(apart**2)))
    along = _along_coordinates(rng, modes, width, number // 5)
    number -= len(along)
    kind = np.arange(number) % 4
    num_wide = 2 if len(modes.x) == 1 else 1
    as_modes = [alike, np.maximum(apart, 0.03 * alike), alike]
    shape = np.stack([*[np.ones(dim)] * num_wide, *as_modes][:4])[kind]
    far = np.where(kind < num_wide, 10 ** rng.uniform(-1, 2, number), 10 ** rng.uniform(-0.4, 0.3, number))
    points = centres[rng.integers(len(centres), size=number)] + far[:, None] * shape * rng.normal(size=(number, dim))
    distance = far * np.sqrt(np.mean(shape**2, axis=1))
    return np.concatenate([points, along]), np.concatenate([distance, np.full(len(along), np.median(distance))])


def _along_coordinates(
    rng: np.random.Generator, modes: Modes, width: Float[np.ndarray, "mode d"], number: int
) -> Float[np.ndarray, "point d"]:
    """Modes with one coordinate moved, and all others as they are."""
    which, coordinate = rng.integers(len(modes.x), size=number), rng.integers(modes.x.shape[1], size=number)
    least = width[which, coordinate]
    far = least * (MOST_WIDTHS * np.maximum(1.0, 1 / least)) ** rng.uniform(size=number)
    points = modes.x[which].copy()
    points[np.arange(number), coordinate] += rng.choice([-1.0, 1.0], size=number) * far
    return points


def unexplained(
    modes: Modes, points: Float[np.ndarray, "point d"], log_density: Float[np.ndarray, " point"]
) -> Float[np.ndarray, " point"]:
    """How much higher the log density is than that of normals at the modes, as high as these; -inf outside the support.

    >>> here = Modes(np.zeros((1, 2)), np.zeros(1), np.eye(2)[None], np.ones(1, int))
    >>> unexplained(here, np.array([[1.0, 1.0], [3.0, 4.0]]), np.array([-1.0, -2.5])).round(6) + 0.0
    array([ 0., 10.])
    """
    # In one product for all modes, with the middle of the points as origin, so that few digits are lost.
    middle = points.mean(axis=0)
    if modes.covariance.ndim == 3:
        unit = np.sqrt(np.diagonal(modes.covariance, axis1=1, axis2=2))
        correlation = modes.covariance / (unit[:, :, None] * unit[:, None, :]) + 1e-12 * np.eye(modes.x.shape[1])
        whiteners = np.swapaxes(np.linalg.inv(np.linalg.cholesky(correlation)), 1, 2) / unit[:, :, None]
        away = np.einsum("pi,kij->pkj", points - middle, whiteners, optimize=True)
        away -= np.einsum("ki,kij->kj", modes.x - middle, whiteners)
    else:
        away = (points[:, None, :] - modes.x) / np.sqrt(modes.covariance)
    heights = modes.log_density - 0.5 * np.einsum("pki,pki->pk", away, away)
    top = heights.max(axis=1)
    excess = log_density - top - np.log(np.sum(np.exp(heights - top[:, None]), axis=1))
    return np.where(np.isnan(excess) | ~np.isfinite(log_density), -np.inf, excess)


def most_unexplained(
    excess: Float[np.ndarray, " point"], distance: Float[np.ndarray, " point"], number: int
) -> Int[np.ndarray, " chosen"]:
    """The points with the largest excess, as many from each range of distances.

    In heavy tails all the far ones are unexplained, and must not crowd out the others.
    """
    ranges = np.array_split(np.argsort(distance), NUM_BINS)
    most = -(-number // NUM_BINS)
    return np.concatenate([each[np.argsort(-excess[each])[:most]] for each in ranges])[:number]
