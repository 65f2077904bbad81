"""Modes that are one but for a permutation of coordinates, or for signs: labellings of a mixture, signs of factors.

A symmetry is guessed from two modes, by matching the coordinates of one with those of the other, and believed only if
the log density agrees with it at points all over the sample: a guess that is wrong costs a few evaluations.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

from pseudo_extended.target.labels import Parameter

MAX_MODES = 128
"""Of more modes than this no symmetries are looked for."""
NUM_POINTS = 16
"""At which the density must agree with a symmetry."""
TOLERANCE = 1e-8
"""Of the log density, relative to its size."""
SAME_PLACE = 1.0
"""How far from each other, in standard deviations of a mode, two places of it may be on average over coordinates."""
APART = 1e6
"""The cost of matching coordinates of different parameters."""

Points = Float[np.ndarray, "point d"]
Costs = Float[np.ndarray, "to from"]


class Symmetry(NamedTuple):
    """y = sign · x[order]."""

    order: Int[np.ndarray, " d"]
    sign: Float[np.ndarray, " d"]

    def __call__(self, x: Float[np.ndarray, "*point d"]) -> Float[np.ndarray, "*point d"]:
        """The image of points."""
        return self.sign * x[..., self.order]


class Shapes(NamedTuple):
    """What matching needs to know of modes: a place and a width of each, and which coordinates belong together."""

    place: Float[np.ndarray, "mode d"]
    width: Float[np.ndarray, "mode d"]
    parameters: Sequence[Parameter]


def group_modes(
    shapes: Shapes, log_density: Callable[[Points], Float[np.ndarray, " point"]], points: Points
) -> Int[np.ndarray, " mode"]:
    """A number for every mode, the same for those that a symmetry of the density maps onto each other.

    >>> from pseudo_extended.target.labels import Parameter
    >>> def log_density(x):
    ...     return np.logaddexp(-np.sum((x - [1, 4]) ** 2, axis=1), -np.sum((x - [4, 1]) ** 2, axis=1))
    >>> shapes = Shapes(np.array([[1.0, 4.0], [4.0, 1.0]]), np.ones((2, 2)), [Parameter("x", (2,), ("i",))])
    >>> group_modes(shapes, log_density, np.random.default_rng(0).normal(size=(20, 2)))
    array([0, 0])
    """
    number = len(shapes.place)
    group = np.arange(number)
    if not 1 < number <= MAX_MODES:
        return group
    points = points[np.linspace(0, len(points) - 1, min(NUM_POINTS, len(points))).astype(int)]
    heights = log_density(points)
    tried: dict[bytes, bool] = {}
    for i in range(number):
        for j in range(i + 1, number):
            if group[i] == group[j]:
                continue
            for symmetry in _guesses(shapes, i, j):
                if _distance(symmetry(shapes.place[i]), shapes, j) > SAME_PLACE:
                    continue
                name = symmetry.order.tobytes() + symmetry.sign.tobytes()
                if name not in tried:
                    tried[name] = _agrees(log_density(symmetry(points)), heights)
                if tried[name]:
                    _join(group, symmetry, shapes)
                    break
    return np.unique(group, return_inverse=True)[1]


def _join(group: Int[np.ndarray, " mode"], symmetry: Symmetry, shapes: Shapes) -> None:
    """Every mode joins the one that a symmetry maps it onto."""
    for i, place in enumerate(symmetry(shapes.place)):
        distances = [_distance(place, shapes, j) for j in range(len(group))]
        j = int(np.argmin(distances))
        if distances[j] < SAME_PLACE:
            first, second = sorted((group[i], group[j]))
            group[group == second] = first


def _distance(place: Float[np.ndarray, " d"], shapes: Shapes, mode: int) -> float:
    return float(np.mean(((place - shapes.place[mode]) / shapes.width[mode]) ** 2))


def _agrees(found: Float[np.ndarray, " point"], expected: Float[np.ndarray, " point"]) -> bool:
    inside = np.isfinite(expected)
    if not inside.any() or not np.array_equal(inside, np.isfinite(found)):
        return False
    allowed = TOLERANCE * (1 + np.abs(expected[inside]).max())
    return bool(np.all(np.abs(found[inside] - expected[inside]) < allowed))


def _guesses(shapes: Shapes, i: int, j: int) -> Iterator[Symmetry]:
    """Ways to map mode i onto mode j: coordinate by coordinate, or by changing an index of several arrays alike."""
    sizes = [parameter.size for parameter in shapes.parameters]
    owner = np.repeat(np.arange(len(sizes)), sizes)
    for signed in (False, True):
        costs = _costs(shapes, i, j, signed)
        order = linear_sum_assignment(np.where(owner[:, None] == owner, costs, APART))[1]
        yield _with_signs(shapes, i, j, order, signed)
        for blocks in _index_blocks(shapes.parameters):
            order = np.arange(len(owner))
            first, second = np.meshgrid(np.arange(blocks.shape[0]), np.arange(blocks.shape[0]), indexing="ij")
            together = costs[blocks[first], blocks[second]].sum(axis=2)
            order[blocks] = blocks[linear_sum_assignment(together)[1]]
            yield _with_signs(shapes, i, j, order, signed)


def _costs(shapes: Shapes, i: int, j: int, signed: bool) -> Costs:
    """What it costs to take coordinate b of mode i for coordinate a of mode j."""
    width = shapes.width[j][:, None]
    here, there = shapes.place[i], shapes.place[j][:, None]
    apart = (there - here) ** 2
    if signed:
        apart = np.minimum(apart, (there + here) ** 2)
    return apart / width**2 + np.log(shapes.width[i] / width) ** 2


def _with_signs(shapes: Shapes, i: int, j: int, order: Int[np.ndarray, " d"], signed: bool) -> Symmetry:
    agrees = np.sign(shapes.place[i][order]) * np.sign(shapes.place[j])
    return Symmetry(order, np.where(agrees < 0, -1.0, 1.0) if signed else np.ones(len(order)))


def _index_blocks(parameters: Sequence[Parameter]) -> Iterator[Int[np.ndarray, "index coordinate"]]:
    """Find for every index that may be exchanged the coordinates that go with each of its values.

    An index is an axis of a length that all parameters with such an axis share, or, of one long vector, a part of it:
    (mu_1, mu_2, sigma_1, sigma_2) and (mu_1, sigma_1, mu_2, sigma_2) are both two components.
    """
    ends = np.cumsum([parameter.size for parameter in parameters])
    numbers = np.split(np.arange(ends[-1]), ends[:-1])
    places = [each.reshape(parameter.shape) for each, parameter in zip(numbers, parameters, strict=True)]
    lengths = sorted({length for parameter in parameters for length in parameter.shape if length > 1})
    for length in lengths:
        rows = []
        for place, parameter in zip(places, parameters, strict=True):
            axes = [axis for axis, size in enumerate(parameter.shape) if size == length]
            if axes:
                rows.append(np.moveaxis(place, axes[0], 0).reshape(length, -1))
        yield np.concatenate(rows, axis=1)
    if len(parameters) == 1 and len(parameters[0].shape) == 1:
        dim = parameters[0].size
        for length in range(2, dim // 2 + 1):
            if dim % length == 0:
                yield places[0].reshape(-1, length).T
                yield places[0].reshape(length, -1)
