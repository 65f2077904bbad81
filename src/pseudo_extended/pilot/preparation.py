"""Before the chains: learn a base, anneal a population along the path from it, and choose what the pilot favours.

Two bases are tried. One of normals at the modes that many ascents found suits a target whose modes can be listed, above
all where they differ in width: there power tempering would weigh them wrongly by a factor exponential in the dimension.
If the path from it is short, that is all. A *broad* normal suits a target whose modes cannot be listed; the prior of a
model is a third. What wins is refitted to the points that it has reached.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from pseudo_extended.compiled import Job, compile_once
from pseudo_extended.pilot import choice
from pseudo_extended.pilot.annealer import Annealer, Pilot, Preparation
from pseudo_extended.pilot.annealing import Annealed
from pseudo_extended.pilot.learned_base import (
    SHELLS,
    LearnedBase,
    broad_base,
    mixed,
    mode_base,
    pad_components,
    refit,
    shells,
)
from pseudo_extended.pilot.mode_search import DENSE_UP_TO, MAX_MODES, ModeSearch
from pseudo_extended.pilot.modes import Modes
from pseudo_extended.pilot.prior_mass import NORMALISED, PriorMass, log_ratios, prior_mass
from pseudo_extended.pilot.report import PilotReport, no_modes
from pseudo_extended.pilot.symmetric_modes import with_images
from pseudo_extended.pilot.whitening import from_modes, from_points
from pseudo_extended.target import Target
from pseudo_extended.target.bases import NormalMixture, NormalShells

MAX_REFITS = 3
NO_MODE_SCALE = 3.0
"""Of a normal around the starts, in units of one and of their distance from zero."""
SHORT_PATH = 1.0
"""A path that needs no improvement."""


class PreparedPath(NamedTuple):
    """The winner."""

    base: LearnedBase | None
    annealed: Annealed
    shared_metric: Float[np.ndarray, "d d"] | None
    """A factor for the metric at all temperatures, where the pilot learned one."""
    notes: tuple[str, ...]
    report: PilotReport

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
        return np.stack([population[rng.choice(len(population), num_particles, replace=False)] for rng in rngs])


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


def has_prior(target: Target) -> bool:
    """Whether the target is a model with a prior that can be drawn from."""
    return target.log_likelihood is not None and target.base is not None and target.base.can_sample


class _Learning:
    """The course of one pilot: what has been tried, and what is known of the modes."""

    def __init__(
        self,
        key: Key[Array, ""],
        preparation: Preparation,
        target: Target,
        x: Float[np.ndarray, "start d"],
        say: Callable[[str], None],
    ):
        self.key, key_pilots = jax.random.split(key)
        self.keys: Iterator[Key[Array, ""]] = iter(jax.random.split(key_pilots, 12))
        self.preparation, self.target, self.x, self.say = preparation, target, x, say
        self.annealer = Annealer(preparation, target, x)
        self.tried: list[Pilot] = []
        self.notes: list[str] = []
        self.mass = NORMALISED
        self.round: NormalShells
        """In whose units the target is about round."""

    def anneal(self, base: LearnedBase | None, name: str, base_mass: PriorMass = NORMALISED) -> Pilot:
        """One pass, which is remembered."""
        self.say(f"annealing from {name}")
        pilot = self.annealer(base, next(self.keys), name, base_mass)
        self.tried.append(pilot)
        self.notes.append(pilot.says())
        return pilot

    def keep_own(self) -> PreparedPath:
        """The path from the base that the target has."""
        if has_prior(self.target) and self.target.dim <= DENSE_UP_TO:  # beyond, nothing would be known
            self.mass = self._weigh_prior()
        return self._finish(self.anneal(None, _name_of_own(self.target), self.mass), None, 0)

    def learn(self) -> PreparedPath:
        """Find modes, try bases, and refit the best of them."""
        search = ModeSearch(self.target, gradient=self.preparation.kernel.uses_gradient)
        self.say("compiling the search for modes")
        search.programs = compile_once(*search.jobs)
        self.say("looking for modes")
        modes = with_images(search.from_starts(self.key, self.x), self.target.symmetries, MAX_MODES)
        self.notes.extend(search.notes)
        if has_prior(self.target):
            self.mass = self._weigh_prior()
        if modes.is_empty:
            best = self._try_without_modes()
        else:
            modes, best = self._try_bases(search, modes)
        best = self._improve(best)
        return self._finish(best, modes, search.evaluations)

    def _try_without_modes(self) -> Pilot:
        """A normal around the starts, and the prior; `ValueError` if neither leads to the target.

        A density may be proper and have no mode, such as that of a hierarchy with a scale that may go to zero.
        """
        self.notes.append("no ascent ended at a mode.")
        centre = self.x.mean(axis=0)
        scale = NO_MODE_SCALE * (1 + np.abs(centre))
        self.round = shells(centre, np.diag(scale**2) if self.target.dim <= DENSE_UP_TO else scale**2)
        pilot = self.anneal(self.round, "a normal around the starts")
        if has_prior(self.target):
            self.anneal(None, "the prior", self.mass)
        if not any(bool(each.annealed.finished) for each in self.tried):
            raise ValueError(
                "no ascent of the log density ended at a mode, and no path led to it from a normal around the starts: "
                "the density seems to have no finite integral. Give the target a base, such as base=pe.Normal(mean, "
                "scale), or choose method=pe.Plain() to see what it does."
            )
        self._whiten_by(pilot)
        return choice.choose(self.tried)

    def _try_bases(self, search: ModeSearch, modes: Modes) -> tuple[Modes, Pilot]:
        """Normals at the modes first; a broad normal and the prior unless that settles it."""
        self.round = broad_base(modes)
        listed = self._list(modes, None)
        if listed is not None and (choice.is_settled(listed) or self._is_alone(modes)):
            return modes, listed
        broad = self.anneal(self.round, "a broad normal")
        if has_prior(self.target):
            self.anneal(None, "the prior", self.mass)
        self._whiten_by(broad)
        before = len(modes.x)
        modes = search.again(jax.random.fold_in(self.key, 1), modes, broad.population)
        modes = with_images(modes, self.target.symmetries, MAX_MODES)
        if listed is None or len(modes.x) != before:
            self._list(modes, broad)
        return modes, choice.choose(self.tried)

    def _is_alone(self, modes: Modes) -> bool:
        """Whether there is one mode, in so many dimensions that a broad normal would cost much and tell little."""
        return self.preparation.whitens and len(modes.x) == 1 and modes.num_hits[0] > 1

    def _list(self, modes: Modes, broad: Pilot | None) -> Pilot | None:
        """Anneal from normals at the modes, if they can be listed."""
        base = mode_base(modes, broad_base(modes), MAX_MODES)
        if why_not := choice.why_not_listed(modes, base, broad):
            if broad is not None:
                self.notes.append(f"{why_not}: the modes cannot be listed.")
            return None
        if self.preparation.whitens and modes.covariance.ndim == 3:
            self.annealer.whitening = from_modes(modes)
        name = "a normal at the one mode" if len(modes.x) == 1 else f"a mixture at {min(len(modes.x), MAX_MODES)} modes"
        return self.anneal(base, name)

    def _whiten_by(self, pilot: Pilot) -> None:
        """Learn a metric from the points that a pass has reached."""
        if self.preparation.whitens and bool(pilot.annealed.finished):
            population = pilot.annealed.population
            score = np.asarray(population.grad_target)
            self.annealer.whitening = from_points(pilot.population, score)

    def _improve(self, best: Pilot) -> Pilot:
        """Mix the two best bases if they do about as well; otherwise fit the best to points of the target."""
        if best.length < SHORT_PATH and best.annealed.finished:
            return best
        rival = next((pilot for pilot in self.tried if choice.in_doubt(best, pilot)), None)
        if rival is not None and best.base is not None and rival.base is not None:
            both = self.anneal(mixed(best.base, rival.base), f"{best.name} and {rival.name}, half each")
            return both if both in choice.fair(self.tried) else best
        if best.base is None:
            return best
        return choice.choose([best, *self._refits(best)])

    def _refits(self, start: Pilot) -> list[Pilot]:
        """The base fitted to points of the target, and again as long as that shortens the path."""
        refitted = [start]
        while len(refitted) <= MAX_REFITS:
            last = refitted[-1]
            assert last.base is not None
            # What any of them has reached is part of the target, whichever base it is that misses it.
            fair = [pilot for pilot in choice.fair(self.tried) if pilot.annealed.finished] or [last]
            points = np.concatenate([pilot.population for pilot in fair])
            times = "refitted" if last is start else f"refitted {len(refitted)} times"
            refitted.append(self.anneal(refit(last.base, points, self.round), f"{start.name}, {times}"))
            if refitted[-1].length > 0.9 * last.length or refitted[-1].length < SHORT_PATH:
                break
        return refitted[1:]

    def _weigh_prior(self) -> PriorMass:
        [weigh] = compile_once(
            Job(partial(log_ratios, self.target), (self.key,), quick=True, name="weighing the prior")
        )
        return prior_mass(*weigh(jax.random.fold_in(self.key, 2)))

    def _finish(self, best: Pilot, modes: Modes | None, num_search: int) -> PreparedPath:
        self.notes.append(f"chosen: {best.name}.")
        self.notes.extend(_on_evidence(best, self.mass))
        base = best.base
        if isinstance(base, NormalMixture):
            base = pad_components(base, 8 if base.num_components > len(SHELLS) else 1)
        found = PilotReport(
            no_modes(self.target.dim) if modes is None else modes,
            tuple(pilot.report() for pilot in self.tried),
            best.name,
            num_search,
        )
        factor = None if best.whitening is None else np.asarray(best.whitening.factor)
        return PreparedPath(base, best.annealed, factor, tuple(self.notes), found)


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
