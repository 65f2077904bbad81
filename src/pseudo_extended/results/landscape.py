"""The log density of a target as a landscape: heights, ascents and passes between places, for many places at once."""

from copy import copy

import numpy as np
from jaxtyping import Float
from scipy.spatial.distance import cdist

from pseudo_extended.pilot.ascents import ascend
from pseudo_extended.pilot.density import Density, Values
from pseudo_extended.precision import in_double_precision
from pseudo_extended.target import Target

INTERIOR = np.arange(1, 12) / 12
"""Where a segment is looked at between its ends."""
NUM_NEIGHBOURS = 10

Points = Float[np.ndarray, "point d"]
Heights = Float[np.ndarray, " point"]


class Landscape:
    """Heights of log γ on the unconstrained space, in which `sample` are equally weighted points of the target.

    Distances are in units of the sample's spread at first, and the first step of an ascent is as long as what separates
    neighbours in the sample along one coordinate, so that it does not leave its mode.
    """

    def __init__(self, target: Target, sample: Points):
        self.target, self.sample = target, sample
        self.density = Density(target, gradient=target.is_differentiable)
        self._measure(np.std(sample, axis=0))

    def _measure(self, scale: Float[np.ndarray, " d"]) -> None:
        self.scale = scale + 1e-12 * (1 + np.abs(self.sample).max(axis=0))
        """The unit of each coordinate."""
        distances = cdist(self.sample / self.scale, self.sample / self.scale)
        distances[distances == 0] = np.inf  # a point itself, and points that were drawn twice
        gap = float(np.median(distances.min(axis=1)))
        self.unit = gap if np.isfinite(gap) else 1.0
        """The median distance of a point of the sample to the nearest other one, in those units."""

    def rescaled(self, scale: Float[np.ndarray, " d"]) -> "Landscape":
        """The same landscape with other units, and the programs that are compiled already."""
        other = copy(self)
        other._measure(scale)
        return other

    @in_double_precision
    def heights(self, x: Points) -> Heights:
        """log γ at every point; -inf where the density vanishes."""
        return self.density(x)[0]

    @in_double_precision
    def relax(self, x: Points) -> tuple[Points, Heights]:
        """Points further up in the same mode, and their heights: what is left is the place, without the noise.

        A typical point of d dimensions lies d/2 below the top of its mode, which would hide every valley on the way to
        another. Ascents take that away; for a density without a gradient, the mean of the neighbours in the sample.
        """
        if self.target.is_differentiable:
            length = self.scale * self.unit / np.sqrt(2 * x.shape[1])
            ends = self._ascend(x, length)
        else:
            ends = self._average(self._average(x))
        before, after = self.heights(x), self.heights(ends)
        better = np.all(np.isfinite(ends), axis=1) & (after >= before)
        return np.where(better[:, None], ends, x), np.where(better, after, before)

    def profiles(self, start: Points, end: Points) -> Float[np.ndarray, "point place"]:
        """Heights along the segments between two lists of points, without the ends."""
        places = start[:, None] + INTERIOR[:, None] * (end - start)[:, None]
        return self.heights(places.reshape(-1, start.shape[1])).reshape(len(start), len(INTERIOR))

    def passes(self, start: Points, end: Points) -> tuple[Heights, Points]:
        """The lowest heights on the segments between two lists of points, and where they are."""
        profiles = self.profiles(start, end)
        lowest = np.argmin(profiles, axis=1)
        places = start + INTERIOR[lowest][:, None] * (end - start)
        return profiles[np.arange(len(start)), lowest], places

    def distances(self, x: Points, others: Points) -> Float[np.ndarray, "point other"]:
        """Distances in units of the distance between neighbours in the sample."""
        return cdist(x / self.scale, others / self.scale) / self.unit

    def _average(self, x: Points) -> Points:
        near = np.argsort(self.distances(x, self.sample), axis=1)[:, :NUM_NEIGHBOURS]
        return self.sample[near].mean(axis=1)

    @in_double_precision
    def _ascend(self, x: Points, length: Float[np.ndarray, " d"]) -> Points:
        """Ends of ascents in units of a length for each coordinate."""

        def evaluate(z: Points) -> Values:
            value, gradient = self.density(z * length)
            return value, gradient * length

        return self.density.watched(lambda: ascend(evaluate, x / length), "modes of the result").x * length
