"""Before the chains: learn a base, anneal a population along the path from it, and choose what the pilot favours.

Two bases are tried. A *broad* normal, which suits a target whose modes cannot be listed, and a *mixture* of normals at
the modes that many ascents found, which suits one whose modes can, above all where they differ in width: there power
tempering would weigh them wrongly by a factor exponential in the dimension. The prior of a model is a third. Each is
annealed, and the evidence that it finds tells whether it missed something; among those that did not, the shortest path
wins.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pseudo_extended.bases import NormalMixture
from pseudo_extended.compiled import Job, compile_once
from pseudo_extended.kernels import HMC, NUTS, AbstractKernel
from pseudo_extended.kernels.path_moves import evaluator
from pseudo_extended.target import Target
from pseudo_extended.warmup.annealing import Annealed, anneal
from pseudo_extended.warmup.learned_base import broad_base, mixture_base, pad_components, refit
from pseudo_extended.warmup.modes import Modes, ascend, curvature, distinct, merge

NUM_POINTS = 256
"""The population that is annealed, in four islands."""
NUM_ISLANDS = 4
NUM_ASCENTS = 512
"""In each of three rounds; a quarter of it in more than 50 dimensions, or for functions called in Python. A narrow mode
beside a wide one has a small basin in ten dimensions already: with 128 ascents, two normals of scales 1 and 0.5 were
not both found."""
MAX_MODES = 40
MAX_UNSEEN = 0.5
"""With more ascents than this in modes of their own, the modes cannot be listed."""
DENSE_UP_TO = 50
"""Dimensions for which components have full covariances."""


class Preparation(NamedTuple):
    """What to prepare for."""

    kernel: AbstractKernel
    learns_base: bool
    beta_min: float
    dense: bool


class Pilot(NamedTuple):
    """One base, annealed."""

    name: str
    base: NormalMixture | None
    """None for the target's own."""
    annealed: Annealed

    @property
    def log_z(self) -> float:
        """The mean of the islands."""
        return float(np.mean(np.asarray(self.annealed.log_z)[-1]))

    @property
    def error(self) -> float:
        """Its standard error, from the spread of the islands."""
        return float(np.std(np.asarray(self.annealed.log_z)[-1], ddof=1) / np.sqrt(NUM_ISLANDS))

    @property
    def length(self) -> float:
        """Thermodynamic length of the path."""
        return float(np.asarray(self.annealed.length)[-1])

    def says(self) -> str:
        """In words."""
        reached = "" if bool(self.annealed.finished) else ", which did not reach the target"
        return f"{self.name}: path of length {self.length:.1f}{reached}, log Z {self.log_z:.2f} ± {self.error:.2f}"


class PreparedPath(NamedTuple):
    """The winner."""

    base: NormalMixture | None
    annealed: Annealed
    notes: tuple[str, ...]

    def starts(self, key: Key[Array, ""], num_chains: int, num_particles: int) -> Float[np.ndarray, "chain particle d"]:
        """Points of the annealed population for each chain; a chain's own do not depend on how many there are."""
        population = np.asarray(self.annealed.population.x)
        seed = np.asarray(jax.random.key_data(key))
        rngs = [np.random.default_rng([*seed, chain]) for chain in range(num_chains)]
        return np.stack([population[rng.choice(len(population), num_particles, replace=False)] for rng in rngs])


def prepare_path(
    key: Key[Array, ""],
    preparation: Preparation,
    target: Target,
    x: Float[np.ndarray, "start d"],
    say: Callable[[str], None],
) -> PreparedPath:
    """Learn the base if there is none, and the path from it to the target."""
    key_starts, key_pilots = jax.random.split(key)
    keys = iter(jax.random.split(key_pilots, 8))
    annealed = _Annealer(preparation, target, x)
    if not preparation.learns_base:
        say("annealing along the path")
        pilot = annealed(next(keys), None, _name_of_own(target))
        return PreparedPath(None, pilot.annealed, (pilot.says(),))
    say("looking for modes")
    search = _Search(target, gradient=preparation.kernel.uses_gradient)
    modes = search.from_starts(key_starts, x)
    say("annealing from a broad normal")
    broad = annealed(next(keys), broad_base(modes), "a broad normal")
    candidates = [broad]
    if target.base is not None and target.base.can_sample:
        say("annealing from the prior")
        candidates.append(annealed(next(keys), None, "the prior"))
    population = np.asarray(broad.annealed.population.x)
    modes = search.again(modes, population)
    if modes.unseen <= MAX_UNSEEN:
        name = "a normal at the one mode" if len(modes.x) == 1 else f"a mixture at {min(len(modes.x), MAX_MODES)} modes"
        say(f"annealing from {name}")
        candidates.append(annealed(next(keys), mixture_base(modes, population, MAX_MODES), name))
    best = choose(candidates)
    notes = [pilot.says() for pilot in candidates]
    if modes.unseen > MAX_UNSEEN:
        notes.append(f"{modes.unseen:.0%} of the ascents ended in a mode of their own: the modes cannot be listed.")
    if best.base is not None:
        say("annealing once more")
        base = refit(best.base, np.asarray(best.annealed.population.x), is_broad=best is broad)
        again = annealed(next(keys), base, f"{best.name}, refitted")
        notes.append(again.says())
        best = choose([best, again])
    notes.append(f"chosen: {best.name}.")
    base = None if best.base is None else pad_components(best.base, 8 if best.base.num_components > 2 else 2)
    return PreparedPath(base, best.annealed, tuple(notes))


def choose(candidates: list[Pilot]) -> Pilot:
    """The shortest path among those that miss nothing: whose evidence is not clearly below the highest."""
    highest = max(candidates, key=lambda pilot: pilot.log_z - 2 * pilot.error)
    fair = [
        pilot
        for pilot in candidates
        if pilot.log_z > highest.log_z - 0.5 - 3 * np.hypot(pilot.error, highest.error) and pilot.annealed.finished
    ]
    return min(fair or [highest], key=lambda pilot: pilot.length)


class _Search:
    """Ascents and curvatures for one target, each compiled once."""

    def __init__(self, target: Target, *, gradient: bool):
        self.dim = target.dim
        is_dear = target.dim > DENSE_UP_TO or bool(target.host_functions)
        self.num_ascents = NUM_ASCENTS // 4 if is_dear else NUM_ASCENTS
        self.dense = target.dim <= DENSE_UP_TO
        self.target = target
        self.gradient = gradient
        if gradient:
            starts, places = (jnp.zeros((size, self.dim)) for size in (self.num_ascents, 2 * MAX_MODES))
            self.climb, self.curve = compile_once(
                Job(jax.vmap(partial(ascend, target.log_target)), (starts,)),
                Job(jax.vmap(partial(curvature, target.log_target, dense=self.dense)), (places,)),
            )

    def from_starts(self, key: Key[Array, ""], x: Float[np.ndarray, "start d"]) -> Modes:
        """Two rounds: from starts at all scales around the user's (and from the base), then around what was found."""
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        starts = self._around(rng, x, 10 ** rng.uniform(-1, 2, size=(self.num_ascents, 1)))
        if self.target.base is not None and self.target.base.can_sample:
            keys = jax.random.split(key, self.num_ascents // 2)
            starts[: len(keys)] = np.asarray(jax.vmap(self.target.draw_base)(keys))
        if not self.gradient:
            return self._unclimbed(starts)
        ends, values = self._climb(starts)
        good = np.isfinite(values) & np.all(np.isfinite(ends), axis=1)
        found = ends[good] if good.any() else x
        # Wild ends are common (a plateau, a flat tail): the middle of what was found decides where to look again, at
        # scales around its spread and its distance from the start.
        low, middle, high = np.quantile(found, [0.1, 0.5, 0.9], axis=0)
        away = np.sqrt(np.mean((middle - x.mean(axis=0)) ** 2))
        spread = np.maximum(high - low, away + 1e-2 * np.abs(middle) + 1e-2)
        scales = spread * 10 ** rng.uniform(-0.5, 0.5, size=(self.num_ascents, 1))
        second = self._around(rng, np.concatenate([x, np.tile(middle, (len(x), 1))]), scales)
        more_ends, more_values = self._climb(second)
        return self._modes(np.concatenate([ends, more_ends]), np.concatenate([values, more_values]))

    def _around(self, rng: np.random.Generator, centres: np.ndarray, scales: np.ndarray) -> np.ndarray:
        chosen = centres[rng.integers(len(centres), size=self.num_ascents)]
        return chosen + scales * rng.normal(size=chosen.shape)

    def again(self, modes: Modes, population: Float[np.ndarray, "point d"]) -> Modes:
        """More ascents, from points of the target, as a pilot sees it; its modes count as hits of those found."""
        if not self.gradient:
            return self._unclimbed(population)
        used = min(len(population), self.num_ascents)
        ends, values = self._climb(population[np.arange(self.num_ascents) % used])
        ends, values = ends[:used], values[:used]  # the rest are repetitions, which only fill the program
        old = np.repeat(modes.x, np.maximum(modes.num_hits, 1), axis=0)
        old_values = np.repeat(modes.log_density, np.maximum(modes.num_hits, 1))
        return self._modes(np.concatenate([ends, old]), np.concatenate([values, old_values]))

    def _climb(self, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ends, values = self.climb(jnp.asarray(starts))
        return np.asarray(ends), np.asarray(values)

    def _modes(self, ends: np.ndarray, values: np.ndarray) -> Modes:
        kept, hits = distinct(ends, values, MAX_MODES * 2)
        if len(kept) == 0:
            raise ValueError(
                "no ascent of the log density ended at a finite value: the density seems to have no mode. Give the "
                "target a base, such as base=pe.Normal(mean, scale), or choose method=pe.Plain() to see what it does."
            )
        places = np.zeros((MAX_MODES * 2, self.dim))
        places[: len(kept)] = ends[kept]
        curvatures = np.asarray(self.curve(jnp.asarray(places)))[: len(kept)]
        # Where the curvature is flat, a mode is as wide as the places near the top are apart; or, when there is but one
        # such place, as the other directions say.
        near_top = ends[kept][values[kept] > values[kept][0] - 50 - 5 * self.dim]
        diagonal = np.diagonal(curvatures, axis1=1, axis2=2) if self.dense else curvatures
        with np.errstate(divide="ignore", invalid="ignore"):
            local = np.nanmedian(np.where(diagonal > 0, diagonal, np.nan) ** -0.5, axis=0)
        widest = np.fmax(2 * np.std(near_top, axis=0), 3 * np.nan_to_num(local, nan=0.0))
        widest = np.where(widest > 0, widest, 1 + np.abs(ends[kept[0]]))
        return merge(ends[kept], values[kept], curvatures, hits, widest)

    def _unclimbed(self, points: np.ndarray) -> Modes:
        """Without gradients: the points themselves, as one place with their covariance."""
        covariance = np.cov(points.T).reshape(self.dim, self.dim)
        values = np.asarray(jax.vmap(self.target.log_target)(jnp.asarray(points)))
        best = points[int(np.argmax(np.where(np.isfinite(values), values, -np.inf)))]
        covariance = covariance if self.dense else np.diagonal(covariance)
        return Modes(best[None], np.max(values)[None], covariance[None], np.ones(1, int))


class _Annealer:
    """Anneals a target from any base; one program for all learned bases with the same number of components."""

    def __init__(self, preparation: Preparation, target: Target, x: Float[np.ndarray, "start d"]):
        kernel = preparation.kernel
        if isinstance(kernel, NUTS):  # all points move alike in the pilot
            kernel = HMC(8, target_acceptance=float(kernel.target_acceptance[0]))
        self.kernel, self.preparation, self.target = kernel, preparation, target
        self.x = jnp.asarray(x)
        self.programs: dict[Any, Callable[..., Annealed]] = {}

    def __call__(self, key: Key[Array, ""], base: NormalMixture | None, name: str) -> Pilot:
        """One pass."""
        padded = None if base is None else pad_components(base, 8 if self.target.dim > 16 else MAX_MODES + 8)
        arrays, structure = jax.tree.flatten(jax.tree.map(jnp.asarray, padded))
        shape = (structure, *(array.shape for array in arrays))
        if shape not in self.programs:
            run = partial(self._run, structure)
            [self.programs[shape]] = compile_once(Job(run, (arrays, key, self.x)))
        return Pilot(name, base, jax.block_until_ready(self.programs[shape](arrays, key, self.x)))

    def _run(self, structure: Any, arrays: list[Array], key: Key[Array, ""], x: Float[Array, "start d"]) -> Annealed:
        base = jax.tree.unflatten(structure, arrays)
        own = self.target if base is None else self.target.with_base(base)
        can_sample = own.base is not None and own.base.can_sample
        key_draw, key_anneal = jax.random.split(key)
        if can_sample:
            starts = jax.vmap(own.draw_base)(jax.random.split(key_draw, NUM_POINTS))
        else:
            starts = x[jnp.arange(NUM_POINTS) % x.shape[0]]
        return anneal(
            key_anneal,
            self.kernel,
            evaluator(own, gradient=self.kernel.uses_gradient),
            starts,
            beta_min=self.preparation.beta_min,
            num_islands=NUM_ISLANDS,
            num_moves=3 if isinstance(self.kernel, HMC) else 12,
            num_first_moves=10 if can_sample else 100,
            dense=self.preparation.dense,
        )


def _name_of_own(target: Target) -> str:
    if target.base is None:
        return "powers of the target"
    return "the prior" if target.log_likelihood is not None else "the base that was given"
