"""A target annealed from any base, and what that says about the base."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pseudo_extended.compiled import Job, compile_once
from pseudo_extended.kernels import AbstractKernel
from pseudo_extended.pilot.annealing import Annealed, anneal
from pseudo_extended.pilot.learned_base import LearnedBase, pad_components
from pseudo_extended.pilot.mode_search import MAX_MODES, QUICK_UP_TO
from pseudo_extended.pilot.prior_mass import NORMALISED, PriorMass
from pseudo_extended.pilot.report import CandidateReport
from pseudo_extended.pilot.whitening import Whitening
from pseudo_extended.target import Target
from pseudo_extended.target.bases import NormalMixture

NUM_POINTS = 128
"""The population that is annealed, in four islands."""
NUM_ISLANDS = 4
NUM_FIRST_MOVES = 5
"""Of draws from the base, which need none: to find the step size."""
NUM_FIRST_MOVES_FROM_STARTS = 100


class Preparation(NamedTuple):
    """What to prepare for."""

    kernel: AbstractKernel
    learns_base: bool
    beta_min: float
    dense: bool
    """Whether each temperature has a metric with correlations of its own."""
    whitens: bool
    """Whether one factor for all temperatures is learned."""


class Pilot(NamedTuple):
    """One base, annealed."""

    name: str
    base: LearnedBase | None
    """None for the target's own."""
    annealed: Annealed
    whitening: Whitening | None
    """The coordinates in which its metrics are."""
    base_mass: PriorMass = NORMALISED
    """What the base integrates to, if that is not one."""

    @property
    def log_z(self) -> float:
        """The mean of the islands."""
        return float(np.mean(np.asarray(self.annealed.log_z)[-1])) + self.base_mass.log

    @property
    def error(self) -> float:
        """Its standard error, from the spread of the islands and the share of their starts that was of use."""
        covered = float(self.annealed.covered)
        if covered == 0:
            return np.inf
        spread = np.std(np.asarray(self.annealed.log_z)[-1], ddof=1) / np.sqrt(NUM_ISLANDS)
        return float(np.linalg.norm([spread, np.sqrt((1 - covered) / (covered * NUM_POINTS)), self.base_mass.error]))

    @property
    def length(self) -> float:
        """Thermodynamic length of the path."""
        return float(np.asarray(self.annealed.length)[-1])

    @property
    def population(self) -> Float[np.ndarray, "point d"]:
        """Points of the target, as far as this pass reached it."""
        return np.asarray(self.annealed.population.position)

    def says(self) -> str:
        """In words."""
        reached = "" if bool(self.annealed.finished) else ", which did not reach the target"
        text = f"{self.name}: path of length {self.length:.1f}{reached}"
        if float(self.annealed.covered) == 0:
            return f"{text}; the target vanishes at all of {NUM_POINTS} draws from it"
        if not self.base_mass.is_known:
            return f"{text}; what the prior integrates to is not known, nor is log Z"
        return f"{text}, log Z {self.log_z:.2f} ± {self.error:.2f}"

    def report(self) -> CandidateReport:
        """For the record."""
        finished, evaluations = bool(self.annealed.finished), int(self.annealed.num_evaluations)
        return CandidateReport(self.name, self.length, self.log_z, self.error, finished, evaluations)


class Annealer:
    """Anneals a target from any base; one program for all bases with the same shapes."""

    def __init__(self, preparation: Preparation, target: Target, x: Float[np.ndarray, "start d"]):
        self.kernel, self.preparation, self.target = preparation.kernel.in_lockstep(), preparation, target
        self.x = jnp.asarray(x)
        self.num_components = 8 if target.dim > 16 else MAX_MODES + 8
        """A multiple of it: the programs for many dimensions are worth keeping small."""
        self.whitening = Whitening.nothing(target.dim) if preparation.whitens else None
        self.programs: dict[Any, Callable[..., Annealed]] = {}

    def __call__(
        self, base: LearnedBase | None, key: Key[Array, ""], name: str, base_mass: PriorMass = NORMALISED
    ) -> Pilot:
        """One pass."""
        padded = pad_components(base, self.num_components) if isinstance(base, NormalMixture) else base
        arrays, structure = jax.tree.flatten(jax.tree.map(jnp.asarray, (padded, self.whitening)))
        shape = (structure, *(array.shape for array in arrays))
        if shape not in self.programs:
            arguments = (arrays, jax.random.key(0, impl="threefry2x32"), self.x)
            quick = self.target.dim <= QUICK_UP_TO
            job = Job(partial(self._run, structure), arguments, quick=quick, name="annealing")
            [self.programs[shape]] = compile_once(job)
        annealed = jax.block_until_ready(self.programs[shape](arrays, key, self.x))
        return Pilot(name, base, annealed, self.whitening, base_mass)

    def _run(self, structure: Any, arrays: list[Array], key: Key[Array, ""], x: Float[Array, "start d"]) -> Annealed:
        base, whitening = jax.tree.unflatten(structure, arrays)
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
            own,
            starts,
            x,
            beta_min=self.preparation.beta_min,
            num_islands=NUM_ISLANDS,
            num_moves=self.kernel.num_moves_to_settle,
            num_first_moves=NUM_FIRST_MOVES if can_sample else NUM_FIRST_MOVES_FROM_STARTS,
            dense=self.preparation.dense,
            whitening=whitening,
        )
