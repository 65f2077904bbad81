"""Before the chains: learn a base, anneal a population along the path from it, and choose what the pilot favours.

Candidate bases (`pilot.candidates`) are annealed one after the other: first normals at the modes that many ascents
found; if the path from them is long, a broad normal and the prior of a model; at last, what improves the best of them.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from pseudo_extended.compiled import Job, compile_once
from pseudo_extended.generator import folded
from pseudo_extended.pilot import choice
from pseudo_extended.pilot.annealer import Annealer, Pilot, Preparation
from pseudo_extended.pilot.annealing import Annealed
from pseudo_extended.pilot.candidates import BROAD, FROM_MODES, IMPROVED, AbstractCandidate, Proposal
from pseudo_extended.pilot.candidates.broad import has_prior
from pseudo_extended.pilot.candidates.improved import SHORT_PATH
from pseudo_extended.pilot.density import Density
from pseudo_extended.pilot.laplace import is_near_normal
from pseudo_extended.pilot.learned_base import SHELLS, LearnedBase, broad_base, pad_components, shells
from pseudo_extended.pilot.mode_search import MAX_MODES, ModeSearch
from pseudo_extended.pilot.modes import MANY_DIMENSIONS, Modes
from pseudo_extended.pilot.prior_mass import NORMALISED, PriorMass, log_ratios, prior_mass
from pseudo_extended.pilot.report import PilotReport, no_modes
from pseudo_extended.pilot.symmetric_modes import with_images
from pseudo_extended.pilot.whitening import Whitening, from_points
from pseudo_extended.target import Target
from pseudo_extended.target.bases import NormalMixture, NormalShells
from pseudo_extended.tempering.guessed import Images

SECONDS_BETWEEN_NEWS = 5.0
NO_MODE_SCALE = 3.0
"""Of a normal around the starts, in units of one and of their distance from zero."""


class PreparedPath(NamedTuple):
    """The base that was chosen, and the path from it to the target."""

    base: LearnedBase | None
    annealed: Annealed
    shared_metric: Float[np.ndarray, "d d"] | None
    """A factor for the metric at all temperatures, where the pilot learned one."""
    notes: tuple[str, ...]
    report: PilotReport
    images: Images | None
    """Maps that seem to leave the density as it is, if the modes have too many images to be listed."""
    first_length: float
    """The length of the path from the first base that was annealed: how far the target is from normals at its modes."""

    @property
    def length(self) -> float:
        """Thermodynamic length of the path."""
        return float(self.annealed.length[-1])

    def target_scale(self) -> Float[np.ndarray, " d"]:
        """Scales for moves on the target, in whitened coordinates if there are any.

        They are the geometric means of the spread of the points and the inverse spread of their scores.
        """
        population = self.annealed.population
        x, score = np.asarray(population.position), np.asarray(population.grad_target)
        factor = self.shared_metric
        if factor is not None:
            x, score = np.linalg.solve(factor, x.T).T, score @ factor
        return np.sqrt((np.std(x, axis=0) + 1e-150) / (np.sqrt(np.mean(score**2, axis=0)) + 1e-150))

    @property
    def has_many_modes(self) -> bool:
        """Whether ascents ended in several modes."""
        return len(self.report.modes.x) > 1

    def starts(self, key: Key[Array, ""], num_chains: int, num_particles: int) -> Float[np.ndarray, "chain particle d"]:
        """Points of the annealed population for each chain; a chain's own do not depend on how many there are."""
        population = np.asarray(self.annealed.population.position)
        seed = np.asarray(jax.random.key_data(key))
        rngs = [np.random.default_rng([*seed, chain]) for chain in range(num_chains)]
        size, again = len(population), num_particles > len(population)
        return np.stack([population[rng.choice(size, num_particles, replace=again)] for rng in rngs])


def prepare_path(
    key: Key[Array, ""],
    preparation: Preparation,
    target: Target,
    x: Float[np.ndarray, "start d"],
    say: Callable[[str], None],
) -> PreparedPath:
    """Learn the base if there is none, and the path from it to the target."""
    learning = _Learning(key, preparation, target, x, say)
    return learning.learn() if preparation.learns_base else learning.keep_own()


class _Learning:
    """The course of one pilot: the candidates that have been tried, and what is known of the modes."""

    def __init__(
        self,
        key: Key[Array, ""],
        preparation: Preparation,
        target: Target,
        x: Float[np.ndarray, "start d"],
        say: Callable[[str], None],
    ):
        self.key, key_pilots = folded(key, 0), folded(key, 1)
        self.keys: Iterator[Key[Array, ""]] = (folded(key_pilots, i) for i in range(12))
        self.preparation, self.target, self.x, self.say = preparation, target, x, say
        self.density = Density(target, gradient=preparation.kernel.uses_gradient)
        self.annealer = Annealer(preparation, target, x, self.density)
        self.modes = no_modes(target.dim)
        self.tried: list[Pilot] = []
        self.notes: list[str] = []
        self.mass = NORMALISED
        self.round: NormalShells
        self.hollow = False

    def keep_own(self) -> PreparedPath:
        """The path from the base that the target has."""
        if has_prior(self.target) and self.target.dim <= MANY_DIMENSIONS:  # beyond, nothing would be known
            self.mass = self._weigh_prior()
        return self._finish(self._anneal(Proposal(None, _name_of_own(self.target), self.mass)), None)

    def learn(self) -> PreparedPath:
        """Find modes, try the candidates, and improve the best of them."""
        search = ModeSearch(self.target, gradient=self.density.gradient, density=self.density)
        self.say("compiling the density (the first of two programs)")
        self.density.compile()
        self.say("looking for modes")
        self.modes = self._listed(search.from_starts(self.key, self.x), search)
        self.notes.extend(search.notes)
        if has_prior(self.target):
            self.mass = self._weigh_prior()
        if self.modes.is_empty:
            self.notes.append("no ascent ended at a mode.")
        self.round = self._around_starts() if self.modes.is_empty else broad_base(self.modes)
        if self._may_be_left_to_nuts():
            self.annealer.far = choice.HOPELESS_PATH
        from_modes = [kind() for kind in FROM_MODES]
        self._try(from_modes)
        self._look_for_mass_elsewhere()
        if not self._is_settled():
            broad = self._try([kind() for kind in BROAD])
            self._require_a_path()
            self._whiten_by(broad[0])
            if not self.modes.is_empty:
                again = search.again(folded(self.key, 1), self.modes, broad[0].population)
                self.modes = self._listed(again, search)
                self._try(from_modes)
        return self._finish(self._improved(choice.choose(self.tried)), search)

    def _listed(self, found: Modes, search: ModeSearch) -> Modes:
        """The modes with their images under declared symmetries, and with matrices only where these are of use.

        In very many dimensions each product with a matrix is dear: they are kept for modes that are about normal.
        """
        modes = with_images(found, self.target.symmetries, MAX_MODES)
        if self.target.dim <= MANY_DIMENSIONS or modes.covariance.ndim == 2:
            return modes
        rng = np.random.default_rng(np.asarray(jax.random.key_data(self.key)))
        if not modes.is_empty and is_near_normal(modes, search.heights, rng):
            return modes
        self.annealer.whitening = None
        return modes.diagonal()

    def _try(self, candidates: Sequence[AbstractCandidate]) -> list[Pilot]:
        """Anneal from every base that the candidates propose."""
        annealed: list[Pilot] = []
        for candidate in candidates:
            proposals = candidate.propose(self)
            proposal = next(proposals, None)
            while proposal is not None:
                annealed.append(self._anneal(proposal))
                try:
                    proposal = proposals.send(annealed[-1])
                except StopIteration:
                    proposal = None
        return annealed

    def _anneal(self, proposal: Proposal) -> Pilot:
        """One pass, which is remembered."""
        self.say(f"annealing from {proposal.name}")
        tell = _Paced(self.say, f"annealing from {proposal.name}")
        pilot = self.annealer(proposal.base, next(self.keys), proposal.name, proposal.mass, tell)
        self.tried.append(pilot)
        self.notes.append(pilot.says())
        return pilot

    def _improved(self, best: Pilot) -> Pilot:
        """The best, or what the first candidate that can improve it makes of it."""
        if best.length < SHORT_PATH and best.annealed.finished:
            return best
        for candidate in [kind() for kind in IMPROVED]:
            if new := self._try([candidate]):
                return candidate.pick(self, best, new)
        return best

    def _is_settled(self) -> bool:
        """Whether no broad base need be tried: it could not do better, or would cost much and tell little.

        It would where there is one mode in many dimensions.
        """
        return not self.hollow and any(self._is_alone() or choice.is_settled(pilot) for pilot in self.tried)

    def _is_alone(self) -> bool:
        """Whether there is one mode, in many dimensions."""
        return not self.preparation.dense and len(self.modes.x) == 1

    def _may_be_left_to_nuts(self) -> bool:
        """Whether nothing but starts for NUTS comes of the first pass if its path is too long to be travelled."""
        is_last = self.modes.is_empty or (self._is_alone() and self.target.dim > MANY_DIMENSIONS)
        return is_last and not self.preparation.dense and not has_prior(self.target)

    def _look_for_mass_elsewhere(self) -> None:
        """See whether the modes that were found hold the target's mass; if not, nothing is made of them from here.

        In very many dimensions another pass would be dear, and what a single mode does not hold is left to NUTS. Where
        the islands of the first pass from a single mode agree about the mass, it has been found, far as it may be.
        """
        modes = self.modes
        if not self.tried or self.target.dim > MANY_DIMENSIONS or not choice.is_hollow(self.tried[0], modes):
            return
        if self._is_alone() and choice.is_reached(self.tried[0]):
            return
        self.notes.append("the mass is not at the modes that were found, as in a funnel.")
        self.hollow, self.round = True, self._around_starts()
        if self.preparation.whitens:
            self.annealer.whitening = Whitening.nothing(self.target.dim)

    def _around_starts(self) -> NormalShells:
        centre = self.x.mean(axis=0)
        scale = NO_MODE_SCALE * (1 + np.abs(centre))
        return shells(centre, np.diag(scale**2) if self.target.dim <= MANY_DIMENSIONS else scale**2)

    def _require_a_path(self) -> None:
        """Raise a `ValueError` if there is neither a mode nor a base that leads to the target.

        A density may be proper and have no mode, such as that of a hierarchy with a scale that may go to zero.
        """
        if self.modes.is_empty and not any(bool(each.annealed.finished) for each in self.tried):
            raise ValueError(
                "no ascent of the log density ended at a mode, and no path led to it from a normal around the starts: "
                "the density seems to have no finite integral. Give the target a base, such as base=pe.Normal(mean, "
                "scale), or choose method=pe.Plain() to see what it does."
            )

    def _whiten_by(self, pilot: Pilot) -> None:
        """Learn a metric from the points that a pass has reached."""
        if self.annealer.whitening is not None and bool(pilot.annealed.finished):
            score = np.asarray(pilot.annealed.population.grad_target)
            self.annealer.whitening = from_points(pilot.population, score)

    def _weigh_prior(self) -> PriorMass:
        [weigh] = compile_once(
            Job(partial(log_ratios, self.target), (self.key,), quick=True, name="weighing the prior")
        )
        return prior_mass(*weigh(folded(self.key, 2)))

    def _finish(self, best: Pilot, search: ModeSearch | None) -> PreparedPath:
        self.notes.append(f"chosen: {best.name}.")
        self.notes.extend(_on_evidence(best, self.mass))
        base = best.base
        if isinstance(base, NormalMixture):
            base = pad_components(base, 8 if base.num_components > len(SHELLS) else 1)
        images, num_search = None, 0
        if search is not None:
            is_listed = isinstance(base, NormalMixture) or len(self.modes.x) == 1
            images = None if is_listed or self.target.symmetries else search.symmetries()
            num_search = search.evaluations
        found = PilotReport(self.modes, tuple(pilot.report() for pilot in self.tried), best.name, num_search)
        factor = None if best.whitening is None else np.asarray(best.whitening.factor)
        return PreparedPath(base, best.annealed, factor, tuple(self.notes), found, images, self.tried[0].length)


class _Paced:
    """Says now and then how far along the path a pass is."""

    def __init__(self, say: Callable[[str], None], what: str):
        self.say, self.what, self.last = say, what, time.monotonic()

    def __call__(self, beta: float) -> None:
        """Hear that it is at β."""
        if time.monotonic() - self.last > SECONDS_BETWEEN_NEWS:
            self.last = time.monotonic()
            self.say(f"{self.what}: β = {beta:.2g}")


def _name_of_own(target: Target) -> str:
    if target.base is None:
        return "powers of the target"
    return "the prior" if target.log_likelihood is not None else "the base that was given"


def _on_evidence(chosen: Pilot, mass: PriorMass) -> list[str]:
    """What the evidence is, if the prior does not integrate to one."""
    if mass == NORMALISED:
        return []
    if chosen.base is not None:
        how = (
            f"log_prior integrates to exp({mass.log:.1f}): log_evidence is the log of the target's mass, that included."
        )
        return [how] if mass.is_known else []
    how_much = f"exp({mass.log:.1f})" if mass.is_known else "one, or perhaps not"
    return [f"log_prior integrates to {how_much}: log_evidence is the log of the target's mass over that."]
