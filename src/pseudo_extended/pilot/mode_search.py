"""Looking for modes: rounds of ascents, few where all end in the same modes, more as long as something new appears.

Then once more, from points of a pilot. Every evaluation of the density is counted, and their number is bounded.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Array, Float, Key
from scipy.special import softmax

from pseudo_extended.compiled import Job
from pseudo_extended.pilot.ascents import MAX_EVALUATIONS, ascend
from pseudo_extended.pilot.budget import LEAST_ASCENT, Budget
from pseudo_extended.pilot.density import Density
from pseudo_extended.pilot.hidden_symmetries import FEWEST_TESTS, SHARE, HiddenSymmetries
from pseudo_extended.pilot.modes import LOOKS, MAX_EDGES, Atlas, Ends, KnownMode, Modes, no_ends
from pseudo_extended.pilot.proposals import Proposals, labelled
from pseudo_extended.pilot.race import Race
from pseudo_extended.pilot.rugged import Expedition, Means, Units, is_rugged
from pseudo_extended.pilot.screening import most_unexplained, scatter, unexplained
from pseudo_extended.target import Target
from pseudo_extended.target.labels import some_coordinates
from pseudo_extended.target.symmetries import Element
from pseudo_extended.tempering.guessed import Images

NUM_ASCENTS = 512
"""The most in one call of the program, and in one round."""
FIRST_ASCENTS = 32
"""In the first rounds; more only while something speaks for it. Half as many by differences, which are dear."""
MAX_ROUNDS = 10
NUM_SCREENED = 2**10
"""Points at which the density is looked at for what the modes do not explain: ascents alone do not find a narrow mode
beside a wide one, which has a small basin in ten dimensions already."""
MORE_SCREENED = 2
"""Times as many when there is more than one mode; then twice as many each time that this pays."""
MOST_SCREENED = 24
"""Times as many when modes differ in width by a factor of `UNEVEN`: there may be narrow ones among them."""
UNEVEN = 3.0
MAX_MODES = 40
MAX_IMAGES = 64
"""Maps that are offered as moves; together they make all others."""
MAX_UNSEEN = 0.5
"""With more ascents than this in modes of their own, the modes cannot be listed."""
EXPLAINED = 0.5
"""A log density that is so little above that of normals at the modes needs no ascent."""
SURELY_UNSEEN = 0.8
"""The same after the first round alone."""
OUTWEIGHS = 10.0
"""A mode that is so much heavier than all others together makes them negligible, however many there are."""
MAX_QUIET = 1
"""Rounds that find nothing new, one after the other, however few hits there are."""
MANY = 8
"""Significant modes; Good and Turing's estimate says little of fewer."""
ENOUGH_HITS = 3
"""A heavy mode that was hit less often was found by luck."""
HEAVY = 0.05
"""The part of the mass that makes a mode heavy."""
FEW_UNSEEN = 0.1
"""With fewer ascents than this in significant modes of their own, all have been seen."""
FAR_AWAY = 1e100
"""Beyond all walls, and where the square of it is still a number."""
DENSE_UP_TO = 512
"""Dimensions for which components have full covariances."""
SCREENED_UP_TO = 50
"""Dimensions in which the density is looked at between the modes; in more, no number of points is near a narrow one."""
RISES = 1.0
"""What an ascent gains at least that had not ended: at a wall there is nothing left to gain."""
WORTH_MORE = 0.01
"""The part of the mass that the modes of a round must hold for the budget to grow."""
LEAST_SHARE = 1e-4
"""Of the mass, of a mode of a rugged landscape that counts; Laplace's approximation may be wrong by a factor of ten."""
MAX_EXPEDITIONS = 12
SAME_MASS = 0.3
"""Two expeditions whose heaviest modes differ by less, in log mass, have found the same, or images of it."""
USUAL_ASCENT, USUAL_IN_RACE = 150, 30
"""Evaluations of an ascent, as a rule, on its own and in a race."""


class ModeSearch:
    """A search for the modes of one target, with gradients or with differences in their place.

    Whoever has a program of the density already gives it: `density`, or `search.programs = compile_once(*search.jobs)`.
    """

    def __init__(
        self, target: Target, *, gradient: bool, max_evaluations: int | None = None, density: Density | None = None
    ):
        self.target, self.dim, self.gradient = target, target.dim, gradient
        self.dense = target.dim <= DENSE_UP_TO
        self.density = Density(target, gradient=gradient) if density is None else density
        cost = 1 if gradient else 2 * target.dim + 1
        self.budget = Budget(cost=cost, max_evaluations=max_evaluations, on_host=bool(target.host_functions))
        self.first = FIRST_ASCENTS if gradient else FIRST_ASCENTS // 2
        self.gave_up = False
        """Since the modes cannot be listed."""
        self.explored = False
        """Whether expeditions have agreed on the heaviest mode of a rugged landscape, or have been given up."""
        self.hidden: HiddenSymmetries | None = None
        self.atlas = Atlas(self._look, self.dim, dense=self.dense, max_modes=2 * MAX_MODES)

    @property
    def evaluations(self) -> int:
        """Evaluations of the density so far; with its gradient it is one, and a gradient by differences 2 d."""
        return self.budget.evaluations

    @property
    def notes(self) -> list[str]:
        """Sentences on what was not done."""
        return self.budget.notes

    @property
    def jobs(self) -> list[Job]:
        """The jobs to compile as the programs of the search."""
        return [self.density.job]

    @property
    def programs(self) -> Sequence[Callable[..., Any]]:
        """The one that evaluates the density."""
        return [] if self.density.program is None else [self.density.program]

    @programs.setter
    def programs(self, programs: Sequence[Callable[..., Any]]) -> None:
        [self.density.program] = programs

    def from_starts(self, key: Key[Array, ""], x: Float[np.ndarray, "start d"]) -> Modes:
        """Ascents from the starts that were given and from all scales around them (and from the base), then further."""
        draw = self.target.draw_base if self.target.base is not None and self.target.base.can_sample else None
        proposals = Proposals(key, self.target, x, draw)
        given = x[: NUM_ASCENTS // 2]
        starts = np.concatenate([given, proposals.first(max(self.first - len(given), self.first // 2))])
        ends = self._climb(starts)
        self._refuse_what_nothing_depends_on(starts, ends)
        self._add(ends)
        self._rounds(proposals, self.first)
        if not self.atlas.known and not self._climbs_on():
            self.atlas.add_edge()
        return self._found()

    def again(self, key: Key[Array, ""], modes: Modes, points: Float[np.ndarray, "point d"]) -> Modes:
        """More ascents, from points of the target as a pilot sees it that the modes do not explain."""
        if self.gave_up:  # hits of starts in modes that are known would say nothing of the others
            return modes
        proposals = Proposals(key, self.target, points, None)
        some = proposals.some_of(points, self.first // 2)
        found = self.atlas.modes()
        if self.dense and self.budget.affordable(1) and not found.is_empty and not self._cannot_be_listed():
            looked = points[: self.budget.affordable(len(points), 1)]
            excess = unexplained(found, looked, self.heights(looked))
            best = looked[np.argsort(-excess)[: self.first // 2]]
            some = np.concatenate([best, some[: self.first // 4]])
        before = self._significant()
        self._add(self._climb(some))
        self._complete()
        if self._speaks_for_more(before):
            self._rounds(proposals, 2 * self.first)
        return self._found()

    def _found(self) -> Modes:
        """All modes, but of a rugged landscape only those that count: the aliases would crowd out the truth."""
        found = self.atlas.modes()
        return found.heavier_than(LEAST_SHARE) if self.explored and not self.gave_up else found

    def symmetries(self) -> Images | None:
        """Maps that seem to leave the density as it is; None if no guess agrees with it around the modes."""
        if not self.atlas.known:
            return None
        self._hidden().test(self.atlas, self.heights, self._num_tests())
        believed = [Element(guess.order, guess.sign) for guess in self._hidden().believed]  # pyright: ignore
        return Images.of(believed[:MAX_IMAGES]) if believed else None

    def _climbs_on(self) -> bool:
        """Whether the highest ends rise when they are given more evaluations: then there is no wall, but no end.

        In units of their own width there, which may be so small that an ascent from nothing would not find its step.
        """
        highest = self.atlas.unfinished.take(slice(MAX_EDGES))
        for x, value, curvature in zip(highest.x, highest.log_density, highest.curvature, strict=True):
            if not self.budget.affordable(MAX_EVALUATIONS):
                return False
            width = 1 / np.sqrt(np.where(curvature > 0, curvature, 1.0))
            climb = partial(
                ascend, partial(self._scaled, x, width), np.zeros((1, self.dim)), differences=not self.gradient
            )
            further = self.density.watched(climb, "looking for modes")
            self.budget.evaluations += self.budget.cost * int(further.num_evaluations[0])
            if further.log_density[0] > value + RISES:
                return True
        return False

    def _scaled(
        self, x: Float[np.ndarray, " d"], width: Float[np.ndarray, " d"], z: Float[np.ndarray, "point d"]
    ) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, "point d"]]:
        """The log density and its gradient at x + width z, by z."""
        values, gradients = self.density(x + width * z)
        return values, width * gradients

    def _rounds(self, proposals: Proposals, size: int) -> None:
        """Until a round finds nothing new; with more of everything each time that one does."""
        num_screened = min(NUM_SCREENED, 4 ** (self.dim + 3)) if self.dim <= SCREENED_UP_TO else 0
        quiet, factor, found = 0, self._unevenness(), 1.0
        for _ in range(MAX_ROUNDS):
            if (self._cannot_be_listed() and not self._dig_out(proposals, size)) or self.budget.is_spent(
                still_finds=found > WORTH_MORE
            ):
                break
            before, known = self._significant(), self.atlas.significant()
            near, elsewhere = self._propose(proposals, size, 0 if quiet else factor * num_screened)
            self._add(self._climb(near))
            in_between = self._significant()
            self._add(self._climb(elsewhere))
            if not self.explored and is_rugged(self.atlas.modes()) and self.atlas.known:
                self._explore(proposals, self.first)
            self._complete()
            was_cut_short = self.budget.is_short
            found = max(self._mass_of_new(known), found if was_cut_short else 0.0)
            if was_cut_short:  # such a round says little
                continue
            quiet = 0 if self._new_since(before) else quiet + 1
            if not self._speaks_for_more(before) or quiet > MAX_QUIET:
                break
            uneven = self._unevenness()
            if self._new_since(in_between):
                factor = max(min(2 * factor, MOST_SCREENED), uneven)
            else:
                factor = uneven if uneven > factor else 1
            size = min(2 * size, NUM_ASCENTS)
        else:
            if found > WORTH_MORE:
                self.budget.note(unsettled=True)

    def _complete(self) -> None:
        """Add the images of modes under symmetries that the density turns out to have."""
        if not self._cannot_be_listed():
            self._hidden().complete(self.atlas, self.heights, self._num_tests(), MAX_MODES)

    def _hidden(self) -> HiddenSymmetries:
        """What is guessed of the density's symmetries."""
        if self.hidden is None:
            self.hidden = HiddenSymmetries(self.dim, labelled(self.target))
        return self.hidden

    def _num_tests(self) -> int:
        """How many guesses may be compared with the density now."""
        return self.budget.affordable(max(FEWEST_TESTS, self.evaluations // SHARE), 1)

    def _explore(self, proposals: Proposals, size: int, *, until: float = -np.inf) -> None:
        """Independent expeditions, each larger than the last, until two have found the same heaviest mode.

        If the first finds nothing that outweighs `until`, there are no more.
        """
        self.explored = True
        means = Means(self._climb_in_units, self.heights, self.budget.affordable)
        tops: list[float] = []
        for number in range(MAX_EXPEDITIONS):
            atlas = self.atlas.copy() if number == 0 else self.atlas.empty()
            expedition = Expedition(proposals.alike(number), atlas, means)
            if number:
                expedition.scatter(size)
            expedition.run(size)
            self.atlas.merge(atlas)
            tops.append(expedition.best)
            if tops[0] < until + np.log(OUTWEIGHS):
                return
            self.budget.extend()
            self._complete()
            if np.sum(np.array(tops) > max(tops) - SAME_MASS) > 1:
                return
            if not self.budget.make_room(LEAST_ASCENT):
                break
            size = min(2 * size, NUM_ASCENTS) if number else size
        self.budget.note(unsettled=True)

    def _dig_out(self, proposals: Proposals, size: int) -> bool:
        """Explore where the modes cannot be listed: they may be only foothills of one that outweighs them all.

        As the aliases of two periods are, each of which fits a part of the data.
        """
        before, mass = self.atlas.copy(), float(np.logaddexp.reduce(self.atlas.modes().log_mass))
        if self.explored:
            return False
        self._explore(proposals, size, until=mass)
        self.gave_up = float(np.max(self.atlas.modes().log_mass)) < mass + np.log(OUTWEIGHS)
        if self.gave_up:  # recombinations of modes end in modes again, and would hide how many there are
            self.atlas = before
        return not self.gave_up

    def _climb_in_units(
        self, starts: Float[np.ndarray, "start d"], units: Units | None = None, race: Race | None = None
    ) -> Ends:
        """Ascents of an expedition, as many as the budget allows."""
        usual = USUAL_ASCENT if race is None else USUAL_IN_RACE
        self.budget.make_room(usual * len(starts))
        starts = starts[: self.budget.affordable(usual * len(starts)) // usual]
        return self._run(starts, MAX_EVALUATIONS, units, race, self.budget.affordable(MAX_EVALUATIONS * len(starts)))

    def _propose(
        self, proposals: Proposals, size: int, num_screened: int
    ) -> tuple[Float[np.ndarray, "start d"], Float[np.ndarray, "start d"]]:
        """Starts of a round: half near what was found, half where the modes do not explain the density.

        After a round that has found nothing new, the other half is around modes that were found by luck.
        """
        found = self.atlas.modes()
        near = proposals.near(found.x, size // 2)
        num_screened = self.budget.affordable(num_screened, 1)
        if found.is_empty:
            return near, near[:0]
        if not num_screened:
            return near, proposals.beside(found, size // 2)
        points, distance = scatter(proposals.rng, found, proposals.x, num_screened)
        points = proposals.within_bounds(points)
        excess = unexplained(found, points, self.heights(points))
        chosen = most_unexplained(excess, distance, size // 2)
        return near, points[chosen[excess[chosen] > EXPLAINED]]

    def _unevenness(self) -> int:
        """How much closer than at first to look at the density between the modes."""
        found = self.atlas.modes()
        some = found.covariance[found.is_significant]
        if len(some) < 2:
            return 1
        width = np.sqrt(some if some.ndim == 2 else np.diagonal(some, axis1=1, axis2=2))
        ratio = np.max(width.max(axis=0) / width.min(axis=0))
        cheap = not self.target.host_functions
        return MOST_SCREENED if cheap and ratio > UNEVEN else MORE_SCREENED

    def _significant(self) -> np.ndarray:
        """Give the places of the significant modes."""
        found = self.atlas.modes()
        return found.x[found.is_significant]

    def _new_since(self, before: np.ndarray) -> bool:
        """Whether a significant mode has been found that is none of those."""
        known = {mode.x.tobytes() for mode in self.atlas.known}
        gone = sum(place.tobytes() not in known for place in before)
        return len(self._significant()) > len(before) or gone > 0

    def _speaks_for_more(self, before: np.ndarray) -> bool:
        """Whether another round may find more: the last one did, or heavy modes were found by luck."""
        found = self.atlas.modes()
        if found.is_empty:
            return True
        share = np.exp(found.log_mass - found.log_mass.max())
        lucky = (share > HEAVY) & (found.num_hits < ENOUGH_HITS)
        return self._new_since(before) or bool(lucky.any()) or found.unseen > FEW_UNSEEN

    def _cannot_be_listed(self) -> bool:
        """Whether most ascents end in modes of their own, and these are many."""
        found = self.atlas.modes()
        self.gave_up = self.gave_up or bool(
            int(np.sum(found.is_significant)) + len(found.other_hits) > MANY
            and found.unseen > (MAX_UNSEEN if found.num_ascents > 2 * FIRST_ASCENTS else SURELY_UNSEEN)
        )
        return self.gave_up

    def _add(self, ends: Ends) -> None:
        """What it costs to look around is no more than the ascents did."""
        spent = int(np.sum(ends.num_evaluations))
        most = max(MANY, spent // (2 * self.dim))
        self.atlas.add(ends, min(most, self.budget.affordable(most * LOOKS * self.dim) // (LOOKS * self.dim)))

    def _mass_of_new(self, before: Sequence[KnownMode]) -> float:
        """The share of modes that were not known before, by Laplace's approximation."""
        now = self.atlas.significant()
        if not now:
            return 0.0
        mass = softmax([mode.log_mass for mode in now])
        known = np.array([mode.x for mode in before]).reshape(-1, self.dim)
        is_new = [not np.any(mode.neighbourhood.distance(known - mode.x) < 1) for mode in now]
        return float(np.sum(mass[is_new]))

    def _climb(self, starts: Float[np.ndarray, "start d"], limit: int = MAX_EVALUATIONS) -> Ends:
        """Ascents, as many as the budget allows."""
        number = min(len(starts), self.budget.affordable(limit * len(starts)) // LEAST_ASCENT)
        if number < len(starts):
            self.budget.note()
        parts = []
        for first in range(0, max(number, 1), NUM_ASCENTS):
            part = starts[first : min(first + NUM_ASCENTS, number)]
            each = min(limit, self.budget.affordable(limit * len(part)) // max(len(part), 1))
            parts.append(self._run(part, each))
        return Ends(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _look(
        self, points: Float[np.ndarray, "point d"]
    ) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, "point d"]]:
        """The log density and its gradient."""
        parts = [self._run(points[i : i + NUM_ASCENTS], 1) for i in range(0, len(points), NUM_ASCENTS)]
        return np.concatenate([part.log_density for part in parts]), np.concatenate([part.gradient for part in parts])

    def heights(self, points: Float[np.ndarray, "point d"]) -> Float[np.ndarray, " point"]:
        """The log density; without a gradient by differences, which would cost 2 d evaluations more."""
        if self.gradient or not len(points):
            return self._look(points)[0] if len(points) else np.zeros(0)
        values, _ = self.density.watched(partial(self.density, points), "looking for modes")
        self.budget.evaluations += len(points)
        return np.where(np.isfinite(values), values, -np.inf)

    def _run(
        self,
        starts: Float[np.ndarray, "start d"],
        limit: int,
        units: Units | None = None,
        race: Race | None = None,
        max_total: float = np.inf,
    ) -> Ends:
        """Ascents, whose evaluations are counted."""
        if not len(starts):
            return no_ends(self.dim)
        centre, width = units or Units(np.zeros(self.dim), np.ones(self.dim))
        evaluate = self.density if units is None else partial(self._scaled, centre, width)
        begin = starts if units is None else (starts - centre) / width
        climb = partial(ascend, evaluate, begin, limit, differences=not self.gradient, race=race, max_total=max_total)
        ends = Ends(*self.density.watched(climb, "looking for modes"))
        self.budget.evaluations += self.budget.cost * int(np.sum(ends.num_evaluations))
        if units is None:
            return ends
        return ends._replace(
            x=centre + width * ends.x, gradient=ends.gradient / width, curvature=ends.curvature / width**2
        )

    def _refuse_what_nothing_depends_on(self, starts: np.ndarray, ends: Ends) -> None:
        """What no ascent has moved may be flat between walls, as in a box; or nothing depends on it."""
        inside = np.flatnonzero(ends.is_valid)[:8]
        if not len(inside) or len(starts) != len(ends.x):
            return
        silent = np.all(ends.x == starts, axis=0)
        for i in np.flatnonzero(silent):
            far = FAR_AWAY * np.array([-1.0, 0.0, 1.0])[:, None, None] * np.eye(self.dim)[i]
            before, here, after = self._look((ends.x[inside] + far).reshape(-1, self.dim))[0].reshape(3, -1)
            silent[i] = np.array_equal(before, here) and np.array_equal(here, after)
        if silent.any():
            raise ValueError(
                "the log density must depend on every parameter, or it has no finite integral; it does not depend on "
                f"{some_coordinates(self.target.parameters, silent)}: drop it, or give it a prior or bounds."
            )
