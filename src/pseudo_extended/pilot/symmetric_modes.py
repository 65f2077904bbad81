"""Modes and their images under the symmetries that a target declares: what was found once is known everywhere."""

from collections.abc import Sequence

import numpy as np

from pseudo_extended.pilot.modes import Modes
from pseudo_extended.pilot.neighbourhood import FARTHEST
from pseudo_extended.target.symmetries import Action, Element, elements

SAME_PLACE = 1.0
"""How far from each other, in standard deviations and on average over coordinates, two modes are one."""


def with_images(modes: Modes, actions: Sequence[Action], at_most: int) -> Modes:
    """The modes with all their images, the highest first; as they are if a mode has more images than `at_most`.

    A mode that lies at an image of a higher one is that image, and its hits count for it.
    """
    found = elements(actions, modes.x.shape[1], at_most) if actions and len(modes.x) else None
    if found is None:
        return modes
    kept: list[Modes] = []
    left = np.ones(len(modes.x), bool)
    for i in range(len(modes.x)):
        if not left[i]:
            continue
        orbit = _distinct(_images(modes, i, found))
        here = left & np.array([any(_close(orbit, j, x) for j in range(len(orbit.x))) for x in modes.x])
        here[i] = True
        left &= ~here
        hits = max(int(np.sum(modes.num_hits[here])), 1)
        kept.append(orbit._replace(num_hits=np.full(len(orbit.x), hits)))
    x, log_density, covariance, num_hits = (
        np.concatenate(parts) for parts in zip(*(each[:4] for each in kept), strict=True)
    )
    return modes._replace(x=x, log_density=log_density, covariance=covariance, num_hits=num_hits)


def _images(modes: Modes, i: int, found: Sequence[Element]) -> Modes:
    order = np.stack([np.asarray(element.order) for element in found])
    sign = np.stack([np.asarray(element.sign) for element in found])
    x, covariance = sign * modes.x[i][order], modes.covariance[i]
    if covariance.ndim == 1:
        covariances = covariance[order]
    else:
        covariances = covariance[order[:, :, None], order[:, None, :]] * sign[:, :, None] * sign[:, None, :]
    number = len(found)
    return Modes(x, np.full(number, modes.log_density[i]), covariances, np.ones(number, int))


def _distinct(orbit: Modes) -> Modes:
    """Without images at places that are there already: a mode may be its own image."""
    kept: list[int] = []
    for i in range(len(orbit.x)):
        if not any(_close(orbit, j, orbit.x[i]) for j in kept):
            kept.append(i)
    return Modes(orbit.x[kept], orbit.log_density[kept], orbit.covariance[kept], orbit.num_hits[kept])


def _close(modes: Modes, i: int, x: np.ndarray) -> bool:
    covariance = modes.covariance[i]
    variance = np.diagonal(covariance) if covariance.ndim == 2 else covariance
    square = (x - modes.x[i]) ** 2 / variance
    return bool(np.mean(square) < SAME_PLACE and np.max(square) < FARTHEST**2)
