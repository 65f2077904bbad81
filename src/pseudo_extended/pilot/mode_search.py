"""Looking for modes: ascents from over-dispersed starts, around what was found, and where that does not explain enough.

Then once more, from points of a pilot.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pseudo_extended.compiled import Job
from pseudo_extended.pilot.ascents import ascend
from pseudo_extended.pilot.modes import Modes, curvature, distinct, merge
from pseudo_extended.pilot.screening import most_unexplained, scatter, unexplained
from pseudo_extended.target import Target
from pseudo_extended.target.labels import some_coordinates

NUM_ASCENTS = 512
"""In each round; a quarter of it in more than 50 dimensions, or for functions called in Python, which are dear. A
narrow mode beside a wide one has a small basin in ten dimensions already: with 128 ascents, two normals of scales 1 and
0.5 were not both found."""
MAX_ROUNDS = 6
"""Around what was found, as long as each finds something new."""
NUM_SCREENED = 2**16
"""Points at which the density is looked at for what the modes do not explain, from four dimensions on. A sixteenth of
it in two, and for functions called in Python; none in more than 50, where no number of points is near a narrow mode."""
SCREENED_AT_ONCE = 2**12
MAX_PRODUCTS = 2**30
"""In comparing the points with all modes: with very many modes, fewer points."""
MAX_PLACES = 800
"""At which ascents ended; there may be many in one mode."""
MAX_MODES = 40
MAX_UNSEEN = 0.5
"""With more ascents than this in modes of their own, the modes cannot be listed."""
FAR_AWAY = 1e100
"""Beyond all walls, and where the square of it is still a number."""
DENSE_UP_TO = 200
"""Dimensions for which components have full covariances."""


class ModeSearch:
    """Ascents and curvatures for one target; without gradients, points take the place of modes.

    Its programs are compiled by who uses it, beside others that are needed soon: `search.programs = compile(jobs)`.
    """

    programs: Sequence[Callable[..., Any]]
    """For the ascents, for the curvatures, and for the density at many points."""

    evaluations = 0

    def __init__(self, target: Target, *, gradient: bool):
        self.target, self.dim, self.gradient = target, target.dim, gradient
        self.dense = target.dim <= DENSE_UP_TO
        self.num_ascents = NUM_ASCENTS // 4 if target.host_functions or not self.dense else NUM_ASCENTS
        self.num_screened = SCREENED_AT_ONCE if target.host_functions else min(NUM_SCREENED, 4 ** (target.dim + 4))

    @property
    def jobs(self) -> list[Job]:
        """To be compiled as its programs."""
        if not self.gradient:
            return []
        log_target = self.target.log_target
        jobs = [
            Job(partial(ascend, log_target), (np.zeros((self.num_ascents, self.dim)),)),
            Job(jax.vmap(partial(curvature, log_target, dense=self.dense)), (np.zeros((2 * MAX_MODES, self.dim)),)),
        ]
        return [*jobs, Job(jax.vmap(log_target), (np.zeros((SCREENED_AT_ONCE, self.dim)),))] if self.dense else jobs

    def from_starts(self, key: Key[Array, ""], x: Float[np.ndarray, "start d"]) -> Modes:
        """Ascents from the starts that were given and from all scales around them (and from the base), then further."""
        rng = _numpy_rng(key)
        starts = self._around(rng, x, 10 ** rng.uniform(-1, 2, size=(self.num_ascents, 1)))
        if self.target.base is not None and self.target.base.can_sample:
            keys = jax.random.split(key, self.num_ascents // 2)
            starts[: len(keys)] = np.asarray(jax.vmap(self.target.draw_base)(keys))
        given = x[: self.num_ascents // 2]
        starts[-len(given) :] = given
        if not self.gradient:
            return self._one_place(starts)
        ends, values = self._climb(starts)
        self._refuse_what_nothing_depends_on(starts, ends, values)
        num_found = 0
        for _ in range(MAX_ROUNDS):
            starts = self._near(rng, ends, values, x)
            self._look_elsewhere(rng, starts, self._modes(ends, values), x)
            new_ends, new_values = self._climb(starts)
            ends, values = np.concatenate([ends, new_ends]), np.concatenate([values, new_values])
            kept, hits = distinct(ends, values, 2 * MAX_MODES)
            before, num_found = num_found, len(kept)
            if num_found == before or np.sum(hits == 1) > MAX_UNSEEN * np.sum(hits):
                break
        return self._modes(ends, values)

    def again(self, key: Key[Array, ""], modes: Modes, points: Float[np.ndarray, "point d"]) -> Modes:
        """More ascents, from points of the target as a pilot sees it; the modes found before keep their hits."""
        if not self.gradient:
            return self._one_place(points)
        starts = points[np.arange(self.num_ascents) % len(points)]
        looked = self._look_elsewhere(_numpy_rng(key), starts, modes, points)
        ends, values = self._climb(starts)
        if not looked:  # beyond the points are repetitions, which only fill the program
            ends, values = ends[: len(points)], values[: len(points)]
        old = np.repeat(modes.x, np.maximum(modes.num_hits, 1), axis=0)
        old_values = np.repeat(modes.log_density, np.maximum(modes.num_hits, 1))
        return self._modes(np.concatenate([ends, old]), np.concatenate([values, old_values]))

    def _refuse_what_nothing_depends_on(self, starts: np.ndarray, ends: np.ndarray, values: np.ndarray) -> None:
        """What no ascent has moved may be flat between walls, as in a box; or nothing depends on it."""
        inside = np.flatnonzero(np.isfinite(values))[:8]
        silent = np.all(ends == starts, axis=0)
        if not len(inside):
            return
        for i in np.flatnonzero(silent):
            far = FAR_AWAY * np.array([-1.0, 0.0, 1.0])[:, None, None] * np.eye(self.dim)[i]
            before, here, after = np.asarray(jax.vmap(jax.vmap(self.target.log_target))(ends[inside] + far))
            silent[i] = np.array_equal(before, here) and np.array_equal(here, after)
        if silent.any():
            raise ValueError(
                "the log density must depend on every parameter, or it has no finite integral; it does not depend on "
                f"{some_coordinates(self.target.parameters, silent)}: drop it, or give it a prior or bounds."
            )

    def _near(self, rng: np.random.Generator, ends: np.ndarray, values: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Starts around what was found.

        Wild ends are common (a plateau, a flat tail): the middle of what was found decides where to look again, at
        scales around its spread and its distance from the start.
        """
        good = np.isfinite(values) & np.all(np.isfinite(ends), axis=1)
        low, middle, high = np.quantile(ends[good] if good.any() else x, [0.1, 0.5, 0.9], axis=0)
        away = np.sqrt(np.mean((middle - x.mean(axis=0)) ** 2))
        spread = np.maximum(high - low, away + 1e-2 * np.abs(middle) + 1e-2)
        scales = spread * 10 ** rng.uniform(-0.5, 0.5, size=(self.num_ascents, 1))
        return self._around(rng, np.concatenate([x, np.tile(middle, (len(x), 1))]), scales)

    def _look_elsewhere(self, rng: np.random.Generator, starts: np.ndarray, modes: Modes, x: np.ndarray) -> bool:
        """Put half of the starts, the last ones, where the modes do not explain the density, and tell whether."""
        if not self.dense or modes.unseen > MAX_UNSEEN:  # or they cannot be listed anyway
            return False
        affordable = min(self.num_screened, MAX_PRODUCTS // (len(modes.x) * self.dim**2))
        points, distance = scatter(rng, modes, x, max(affordable // SCREENED_AT_ONCE, 1) * SCREENED_AT_ONCE)
        batches = points.reshape(-1, SCREENED_AT_ONCE, self.dim)
        excess = np.concatenate([unexplained(modes, batch, np.asarray(self.programs[2](batch))) for batch in batches])
        number = self.num_ascents // 2
        starts[-number:] = points[most_unexplained(excess, distance, number)]
        return True

    def _around(self, rng: np.random.Generator, centres: np.ndarray, scales: np.ndarray) -> np.ndarray:
        chosen = centres[rng.integers(len(centres), size=self.num_ascents)]
        return chosen + scales * rng.normal(size=chosen.shape)

    def _climb(self, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ends, values = self.programs[0](starts)
        return np.asarray(ends), np.asarray(values)

    def _modes(self, ends: np.ndarray, values: np.ndarray) -> Modes:
        kept, hits = (found[:MAX_PLACES] for found in distinct(ends, values, 2 * MAX_MODES))
        if len(kept) == 0:
            raise ValueError(
                "no ascent of the log density ended at a finite value: the density seems to have no mode, or no "
                "finite integral. Give the target a base, such as base=pe.Normal(mean, scale), or choose "
                "method=pe.Plain() to see what it does."
            )
        places = ends[kept]
        # Where the curvature is flat, a mode is as wide as the places near the top are apart; or, when there is but one
        # such place, as the curvature at most of them says, or at the most visited ones: many places may be one mode.
        curvatures = self._curvatures(places[: 2 * MAX_MODES])
        diagonal = np.diagonal(curvatures, axis1=1, axis2=2) if self.dense else curvatures
        with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of a coordinate that is flat at every place
            width = np.where(diagonal > 0, diagonal, np.nan) ** -0.5
            if self.dense:  # across all of a ridge, where there is a peak
                width = np.fmax(width, [_marginal(curvature) for curvature in curvatures])
            visited = np.repeat(width, hits[: len(width)], axis=0)
            local = np.fmax(np.nanmedian(width, axis=0), np.nanmedian(visited, axis=0))
        widest = np.fmax(2 * np.std(places, axis=0), 3 * np.nan_to_num(local, nan=0.0))
        widest = np.where(widest > 0, widest, 1 + np.abs(places[0]))
        return merge(places, values[kept], hits, widest, self._curvatures, 2 * MAX_MODES)

    def _curvatures(self, places: np.ndarray) -> np.ndarray:
        """At up to 2 MAX_MODES places."""
        padded = np.zeros((2 * MAX_MODES, self.dim))
        padded[: len(places)] = places
        return np.asarray(self.programs[1](padded))[: len(places)]

    def _one_place(self, points: np.ndarray) -> Modes:
        """The best of the points, with their covariance."""
        covariance = np.cov(points.T).reshape(self.dim, self.dim)
        values = np.asarray(jax.vmap(self.target.log_target)(jnp.asarray(points)))
        best = points[int(np.argmax(np.where(np.isfinite(values), values, -np.inf)))]
        covariance = covariance if self.dense else np.diagonal(covariance)
        return Modes(best[None], np.max(values)[None], covariance[None], np.ones(1, int))


def _numpy_rng(key: Key[Array, ""]) -> np.random.Generator:
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def _marginal(curvature: np.ndarray) -> np.ndarray:
    """Standard deviations of the normal with this curvature; nan if it has none."""
    nothing = np.full(len(curvature), np.nan)
    if not np.all(np.isfinite(curvature)) or np.any(np.diagonal(curvature) <= 0):
        return nothing
    unit = np.sqrt(np.diagonal(curvature))
    values, vectors = np.linalg.eigh(curvature / np.outer(unit, unit))
    return np.sqrt((vectors**2 / values).sum(axis=1)) / unit if values[0] > 1e-10 else nothing
