"""Starts for ascents: around the starts that were given, from the base, inside bounds, around what was found."""

from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from pseudo_extended.pilot.modes import Modes
from pseudo_extended.target import Target


class Proposals:
    """Where ascents may start, out of what is known of a target."""

    def __init__(
        self,
        key: Key[Array, ""],
        target: Target,
        x: Float[np.ndarray, "start d"],
        draw: Callable[[Key[Array, ""]], Array] | None,
    ):
        self.key, self.x, self.draw = key, x, draw
        self.rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        self.bounded = two_sided(target)
        """The coordinates with two bounds; on their unconstrained scale the uniform law between is the logistic."""

    def first(self, number: int) -> Float[np.ndarray, "start d"]:
        """At any scale from 0.1 to 100 around the starts, half of them from the base if it can be drawn from."""
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
        return self.within_bounds(self._around(np.concatenate([self.x, middle[None]]), scales))

    def beside(self, modes: Modes, number: int) -> Float[np.ndarray, "start d"]:
        """Some standard deviations beside the modes, those with few hits above all: whether an ascent comes back."""
        chance = modes.is_significant / (1.0 + modes.num_hits)
        chosen = self.rng.choice(len(modes.x), number, p=chance / chance.sum())
        noise = self.rng.normal(size=(number, self.x.shape[1])) * 10 ** self.rng.uniform(0, 1, (number, 1))
        if modes.covariance.ndim == 2:
            return modes.x[chosen] + np.sqrt(modes.covariance[chosen]) * noise
        values, vectors = np.linalg.eigh(modes.covariance[chosen])
        return modes.x[chosen] + np.einsum("nij,nj->ni", vectors * np.sqrt(np.abs(values))[:, None, :], noise)

    def within_bounds(self, points: Float[np.ndarray, "point d"]) -> Float[np.ndarray, "point d"]:
        """Every other point with its bounded coordinates uniform between the bounds."""
        if self.bounded.any():
            points[::2, self.bounded] = self.rng.logistic(size=(len(points[::2]), int(self.bounded.sum())))
        return points

    def some_of(self, points: Float[np.ndarray, "point d"], number: int) -> Float[np.ndarray, "start d"]:
        """At random, none twice."""
        return points[self.rng.permutation(len(points))[:number]]

    def _around(self, centres: np.ndarray, scales: np.ndarray) -> np.ndarray:
        chosen = centres[self.rng.integers(len(centres), size=len(scales))]
        return chosen + scales * self.rng.normal(size=chosen.shape)


def two_sided(target: Target) -> Bool[np.ndarray, " d"]:
    """Which coordinates of the unconstrained vector have a lower and an upper bound."""
    parts = [
        np.zeros(parameter.size, bool) if bounds is None else np.isfinite(bounds.lower) & np.isfinite(bounds.upper)
        for parameter, bounds in zip(target.parameters, target.bounds, strict=True)
    ]
    return np.concatenate(parts)
