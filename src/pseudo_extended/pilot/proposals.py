"""Starts for ascents: around the starts that were given, from the base, inside bounds, around what was found."""

import math
from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from pseudo_extended.pilot.modes import Modes
from pseudo_extended.target import Target

MAX_LABELS = 20
"""On an axis whose labels may be exchanged, as of components or factors."""


class Proposals:
    """Starting points for ascents, made from what is known of a target."""

    def __init__(
        self,
        key: Key[Array, ""],
        target: Target,
        x: Float[np.ndarray, "start d"],
        draw: Callable[[Key[Array, ""]], Array] | None,
    ):
        self.key, self.target, self.x, self.draw = key, target, x, draw
        self.rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        self.bounded = two_sided(target)
        """The coordinates with two bounds; on their unconstrained scale the uniform law between is the logistic."""
        self.labelled = labelled(target)

    def alike(self, number: int) -> "Proposals":
        """Proposals of the same kind with randomness of their own."""
        return Proposals(jax.random.fold_in(self.key, number), self.target, self.x, self.draw)

    def first(self, number: int) -> Float[np.ndarray, "start d"]:
        """Propose points at scales from 0.1 to 100 around the starts, half of them drawn from a base that allows it."""
        points = self.within_bounds(self._around(self.x, 10 ** self.rng.uniform(-1, 2, size=(number, 1))))
        if self.draw is not None:
            keys = jax.random.split(self.key, number // 2)
            points[: len(keys)] = np.asarray(jax.jit(jax.vmap(self.draw))(keys))
        return points

    def near(self, found: Float[np.ndarray, "mode d"], number: int) -> Float[np.ndarray, "start d"]:
        """Around the starts and the middle of what was found, at scales around its spread and its distance."""
        low, middle, high = np.quantile(found if len(found) else self.x, [0.1, 0.5, 0.9], axis=0)
        away = np.sqrt(np.mean((middle - self.x.mean(axis=0)) ** 2))
        spread = np.maximum(high - low, away + 1e-2 * np.abs(middle) + 1e-2)
        scales = spread * 10 ** self.rng.uniform(-0.5, 0.5, size=(number, 1))
        points = self._around(np.concatenate([self.x, middle[None]]), scales)
        if len(found):
            mirrored = self._mirrored(found, number // 4)
            points[: len(mirrored)] = mirrored
        return self.within_bounds(points)

    def beside(self, modes: Modes, number: int) -> Float[np.ndarray, "start d"]:
        """Some standard deviations beside the modes, those with few hits above all: whether an ascent comes back."""
        chance = modes.is_significant / (1.0 + modes.num_hits)
        chosen = self.rng.choice(len(modes.x), number, p=chance / chance.sum())
        noise = self.rng.normal(size=(number, self.x.shape[1])) * 10 ** self.rng.uniform(0, 1, (number, 1))
        if modes.covariance.ndim == 2:
            return modes.x[chosen] + np.sqrt(modes.covariance[chosen]) * noise
        values, vectors = np.linalg.eigh(modes.covariance[chosen])
        return modes.x[chosen] + np.einsum("nij,nj->ni", vectors * np.sqrt(np.abs(values))[:, None, :], noise)

    def recombined(self, elite: Float[np.ndarray, "place d"], number: int) -> Float[np.ndarray, "point d"]:
        """Coordinates of good places put together anew: crossings of two, and differences added."""
        size, dim = elite.shape
        makers = [self._crossed, self._crossed, self._stepped]
        points = np.empty((number, dim))
        for i in range(number):
            # Better places more often; the others differ from it.
            ranks = np.minimum((size * self.rng.uniform(size=4) ** 2).astype(int), size - 1)
            points[i] = makers[i % len(makers)](elite[ranks])
        return points

    def scan(
        self, x: Float[np.ndarray, " d"], coordinate: int, span: float, number: int
    ) -> Float[np.ndarray, "point d"]:
        """A place with one coordinate anywhere in its range: between its bounds, or within a span on either side."""
        points = np.tile(x, (number, 1))
        share = (np.arange(number) + self.rng.uniform(size=number)) / number
        if self.bounded[coordinate]:
            points[:, coordinate] = np.log(share / (1 - share))
        else:
            points[:, coordinate] += span * (2 * share - 1)
        return points

    def exchanges(self, x: Float[np.ndarray, " d"], most: int) -> Float[np.ndarray, "point d"]:
        """Places with two labels of an axis that parameters share, or two blocks of neighbours, exchanged."""
        pairs = [(each[i], each[j]) for each in self.labelled for j in range(len(each)) for i in range(j)]
        pairs = [*pairs[:most], *self._blocks(len(x), max(most - len(pairs), 0))]
        points = np.tile(x, (len(pairs), 1))
        for point, (one, other) in zip(points, pairs, strict=True):
            point[one], point[other] = x[other], x[one]
        return points

    def _blocks(self, dim: int, most: int) -> list[tuple[Int[np.ndarray, " place"], Int[np.ndarray, " place"]]]:
        """Pairs of blocks of neighbours that do not overlap, all of them or as many as asked for.

        There are about dim³/12, too many to list in some hundred dimensions: they are told by a number. Blocks of one
        length that begin at i and j + length are pair j(j + 1)/2 + i of that length, where i <= j.
        """
        lengths = np.arange(1, dim // 2 + 1)
        rooms = dim - 2 * lengths + 1
        ends = np.cumsum(rooms * (rooms + 1) // 2)
        total = int(ends[-1]) if len(ends) else 0
        blocks = []
        for number in self.rng.choice(total, min(most, total), replace=False) if total else ():
            which = int(np.searchsorted(ends, number, side="right"))
            length, rest = which + 1, int(number) - (int(ends[which - 1]) if which else 0)
            j = (math.isqrt(8 * rest + 1) - 1) // 2
            one = np.arange(length) + rest - j * (j + 1) // 2
            blocks.append((one, np.arange(length) + j + length))
        return blocks

    def _crossed(self, parents: Float[np.ndarray, "4 d"]) -> Float[np.ndarray, " d"]:
        """Some coordinates of one and the others of another, at random or between two places in their order."""
        dim = parents.shape[1]
        if self.rng.uniform() < 0.5:
            taken = self.rng.uniform(size=dim) < 0.5
        else:
            first, last = np.sort(self.rng.integers(0, dim + 1, size=2))
            taken = (np.arange(dim) >= first) & (np.arange(dim) < last)
        return np.where(taken, parents[0], parents[1])

    def _stepped(self, parents: Float[np.ndarray, "4 d"]) -> Float[np.ndarray, " d"]:
        """A step of differential evolution (Storn and Price 1997)."""
        taken = self.rng.uniform(size=parents.shape[1]) < 0.7
        return np.where(taken, parents[0] + 0.7 * (parents[1] - parents[2]), parents[0])

    def within_bounds(self, points: Float[np.ndarray, "point d"]) -> Float[np.ndarray, "point d"]:
        """Every other point with its bounded coordinates uniform between the bounds."""
        if self.bounded.any():
            points[::2, self.bounded] = self.rng.logistic(size=(len(points[::2]), int(self.bounded.sum())))
        return points

    def some_of(self, points: Float[np.ndarray, "point d"], number: int) -> Float[np.ndarray, "start d"]:
        """Choose points at random, none of them twice."""
        return points[self.rng.permutation(len(points))[:number]]

    def _mirrored(self, found: Float[np.ndarray, "mode d"], number: int) -> Float[np.ndarray, "start d"]:
        """Draw starts on the lines from the starts' middle, or from zero, through what was found, mostly beyond.

        In a hundred dimensions a random direction is at right angles to every mode; these are the ones that are known.
        """
        centre = np.where(self.rng.uniform(size=(number, 1)) < 0.5, self.x.mean(axis=0), 0.0)
        far = 10 ** self.rng.uniform(-0.5, 0.5, (number, 1)) * np.where(np.arange(number) % 4 == 3, 1.0, -1.0)[:, None]
        return centre + far * (found[self.rng.integers(len(found), size=number)] - centre)

    def _around(self, centres: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """Draw starts at these scales, every other one with a shift that all coordinates share.

        Otherwise the mean of many coordinates would be the same in all starts, and coordinates that play like parts in
        a model, such as the effects of groups, are often large or small together.
        """
        chosen = centres[self.rng.integers(len(centres), size=len(scales))]
        noise = self.rng.normal(size=chosen.shape)
        share = np.where(np.arange(len(scales)) % 2 == 0, self.rng.uniform(size=len(scales)), 0.0)[:, None]
        noise = np.sqrt(share) * self.rng.normal(size=(len(scales), 1)) + np.sqrt(1 - share) * noise
        return chosen + scales * noise


def two_sided(target: Target) -> Bool[np.ndarray, " d"]:
    """Find the coordinates of the unconstrained vector that have both a lower and an upper bound."""
    parts = [
        np.zeros(parameter.size, bool) if bounds is None else np.isfinite(bounds.lower) & np.isfinite(bounds.upper)
        for parameter, bounds in zip(target.parameters, target.bounds, strict=True)
    ]
    return np.concatenate(parts)


def labelled(target: Target) -> list[Int[np.ndarray, "label place"]]:
    """Group coordinates by label, for each length that the first axis of parameters has."""
    found: dict[int, list[np.ndarray]] = {}
    first = 0
    for parameter in target.parameters:
        places = first + np.arange(parameter.size)
        first += parameter.size
        if parameter.shape and 1 < parameter.shape[0] <= MAX_LABELS:
            found.setdefault(parameter.shape[0], []).append(places.reshape(parameter.shape[0], -1))
    return [np.concatenate(each, axis=1) for each in found.values()]
