"""A target annealed from any base, and what that says about the base."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Key

from pseudo_extended.kernels import AbstractKernel
from pseudo_extended.pilot.annealing import Annealed, Metric, Moves, anneal
from pseudo_extended.pilot.density import Density
from pseudo_extended.pilot.host_bases import HostBase, host_base
from pseudo_extended.pilot.learned_base import LearnedBase
from pseudo_extended.pilot.moves import Population, mover_for
from pseudo_extended.pilot.prior_mass import NORMALISED, PriorMass
from pseudo_extended.pilot.report import CandidateReport
from pseudo_extended.pilot.whitening import Whitening
from pseudo_extended.target import Target

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
    """A base, and what annealing the target from it showed."""

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
        """Describe the pass in a line for the notes."""
        reached = "" if bool(self.annealed.finished) else ", which did not reach the target"
        text = f"{self.name}: path of length {self.length:.1f}{reached}"
        if float(self.annealed.covered) == 0:
            return f"{text}; the target vanishes at all of {NUM_POINTS} draws from it"
        if not self.base_mass.is_known:
            return f"{text}; what the prior integrates to is not known, nor is log Z"
        return f"{text}, log Z {self.log_z:.2f} ± {self.error:.2f}"

    def report(self) -> CandidateReport:
        """Return the entry for the pilot's report."""
        finished, evaluations = bool(self.annealed.finished), int(self.annealed.num_evaluations)
        return CandidateReport(self.name, self.length, self.log_z, self.error, finished, evaluations)


class Annealer:
    """Anneals a target from any base, with one program of its density for all of them."""

    def __init__(
        self, preparation: Preparation, target: Target, x: Float[np.ndarray, "start d"], density: Density | None = None
    ):
        kernel = preparation.kernel.in_lockstep()
        self.kernel, self.preparation, self.target, self.x = kernel, preparation, target, np.asarray(x)
        self.density = Density(target, gradient=kernel.uses_gradient) if density is None else density
        self.whitening = Whitening.nothing(target.dim) if preparation.whitens else None
        self.far = np.inf
        """The length of a path from which nothing but starting points is wanted."""

    def __call__(
        self,
        base: LearnedBase | None,
        key: Key[jax.Array, ""],
        name: str,
        base_mass: PriorMass = NORMALISED,
        tell: Callable[[float], None] = lambda beta: None,
    ) -> Pilot:
        """One pass; `tell` hears how far along the path it is."""
        own = self.target if base is None else self.target.with_base(base)
        start, gradient = host_base(own), self.kernel.uses_gradient
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        num = NUM_POINTS
        x = start.draw(rng, num) if start.can_sample else np.resize(self.x, (num, self.target.dim))
        evaluate = partial(evaluate_path, start, self.density)
        metrics = Metric(self.preparation.dense, gradient, self.whitening)
        shared = None if self.whitening is None else np.asarray(self.whitening.factor)
        moves = Moves(
            mover_for(self.kernel, own, evaluate, num, dense=metrics.dense, shared=shared),
            num=self.kernel.num_moves_to_settle,
            num_first=NUM_FIRST_MOVES if start.can_sample else NUM_FIRST_MOVES_FROM_STARTS,
            target_acceptance=float(self.kernel.target_acceptance[0]),
            far=np.inf if self.kernel.trajectory is None else self.far,  # a compiled move has a size
        )
        run = partial(
            anneal,
            rng,
            moves,
            evaluate,
            x,
            self.x,
            beta_min=self.preparation.beta_min,
            num_islands=NUM_ISLANDS,
            metrics=metrics,
            tell=tell,
        )
        return Pilot(name, base, self.density.watched(run, f"annealing from {name}"), self.whitening, base_mass)


def evaluate_path(base: HostBase, density: Density, x: Float[np.ndarray, "point d"]) -> Population:
    """log γ0 and Δ with their gradients."""
    (log_base, of_base), (log_target, of_target) = base(x), density(x)
    with np.errstate(invalid="ignore"):  # neither of them is positive there
        return Population(x, log_base, log_target - log_base, of_base, of_target - of_base)
