"""Before the chains: learn a base, anneal a population along the path from it, and choose what the pilot favours.

Two bases are tried. A *broad* normal, which suits a target whose modes cannot be listed, and a *mixture* of normals at
the modes that many ascents found, which suits one whose modes can, above all where they differ in width: there power
tempering would weigh them wrongly by a factor exponential in the dimension. The prior of a model is a third. Each is
annealed, and the evidence that it finds tells whether it missed something; among those that did not, the shortest path
wins.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pseudo_extended.compiled import Job, compile_once
from pseudo_extended.kernels import HMC, NUTS, AbstractKernel
from pseudo_extended.kernels.path_moves import evaluator
from pseudo_extended.pilot.annealing import Annealed, anneal
from pseudo_extended.pilot.learned_base import SHELLS, broad_base, claimed, mixed, mixture_base, pad_components, refit
from pseudo_extended.pilot.mode_search import DENSE_UP_TO, MAX_MODES, MAX_UNSEEN, ModeSearch
from pseudo_extended.pilot.modes import Modes
from pseudo_extended.pilot.prior_mass import PriorMass, log_ratios, prior_mass
from pseudo_extended.target import Target
from pseudo_extended.target.bases import NormalMixture

NUM_POINTS = 256
"""The population that is annealed, in four islands."""
NUM_ISLANDS = 4


MIN_CLAIMED = 0.9
"""The part of the target that the longest list of modes has to hold, if there are more modes than that."""
MAX_REFITS = 3
SHORT_PATH = 1.0
"""A path that needs no improvement."""
MISSED = 5.0
"""The length of path that a unit of log Z is worth: missing a tenth of the mass is as bad as half a unit more to go."""


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
    base_mass: PriorMass = PriorMass()
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

    def says(self) -> str:
        """In words."""
        reached = "" if bool(self.annealed.finished) else ", which did not reach the target"
        text = f"{self.name}: path of length {self.length:.1f}{reached}"
        if float(self.annealed.covered) == 0:
            return f"{text}; the target vanishes at all of {NUM_POINTS} draws from it"
        if not self.base_mass.is_known:
            return f"{text}; what the prior integrates to is not known, nor is log Z"
        return f"{text}, log Z {self.log_z:.2f} ± {self.error:.2f}"


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
    anneal_from = _Annealer(preparation, target, x)
    if not preparation.learns_base:
        say("annealing along the path")
        pilot = anneal_from(None, next(keys), _name_of_own(target))
        if has_prior(target) and target.dim <= DENSE_UP_TO:  # beyond, nothing would be known
            [weigh] = compile_once(Job(partial(log_ratios, target), (key_starts,)))
            pilot = pilot._replace(base_mass=prior_mass(*weigh(key_starts)))
        return PreparedPath(None, pilot.annealed, (pilot.says(), *_on_evidence(pilot, pilot.base_mass)))
    search = ModeSearch(target, gradient=preparation.kernel.uses_gradient)
    say("compiling the pilot")
    weigh = [Job(partial(log_ratios, target), (key_starts,))] if has_prior(target) else []
    programs = anneal_from.compile_beside([*weigh, *search.jobs])
    search.programs = programs[len(weigh) :]
    say("looking for modes")
    modes = search.from_starts(key_starts, x)
    say("annealing from a broad normal")
    broad = anneal_from(broad_base(modes), next(keys), "a broad normal")
    candidates, mass = [broad], PriorMass()
    if weigh:
        say("annealing from the prior")
        mass = prior_mass(*programs[0](jax.random.fold_in(key_starts, 2)))
        candidates.append(anneal_from(None, next(keys), "the prior")._replace(base_mass=mass))
    population = np.asarray(broad.annealed.population.x)
    modes = search.again(jax.random.fold_in(key_starts, 1), modes, population)
    notes, listed = [], None
    mixture = mixture_base(modes, population, MAX_MODES)
    if not preparation.kernel.uses_gradient:
        notes.append("without gradients no modes are looked for.")
    elif why_not := why_not_listed(modes, mixture, broad):
        notes.append(f"{why_not}: the modes cannot be listed.")
    else:
        name = "a normal at the one mode" if len(modes.x) == 1 else f"a mixture at {min(len(modes.x), MAX_MODES)} modes"
        say(f"annealing from {name}")
        listed = anneal_from(mixture, next(keys), name)
        candidates.append(listed)
    notes = [*(pilot.says() for pilot in candidates), *notes]
    best = choose(candidates)
    rival = next((pilot for pilot in candidates if in_doubt(best, pilot)), None)
    if rival is not None and best.base is not None and rival.base is not None:
        say("annealing from two bases, mixed")
        both = anneal_from(mixed(best.base, rival.base), next(keys), f"{best.name} and {rival.name}, half each")
        notes.extend([f"{best.name} and {rival.name} do about as well.", both.says()])
        best = both if both in fair([*candidates, both]) else best
    elif (start := best if listed is None else listed).base is not None:
        say("annealing once more")
        refitted = _refits(anneal_from, start, candidates, keys, is_broad=start is broad)
        notes.extend(pilot.says() for pilot in refitted)
        best = choose([best, *refitted])
    notes.append(f"chosen: {best.name}.")
    notes.extend(_on_evidence(best, mass))
    base = None if best.base is None else pad_components(best.base, 8 if best.base.num_components > len(SHELLS) else 1)
    return PreparedPath(base, best.annealed, tuple(notes))


def has_prior(target: Target) -> bool:
    """Whether the target is a model with a prior that can be drawn from."""
    return target.log_likelihood is not None and target.base is not None and target.base.can_sample


def _on_evidence(chosen: Pilot, mass: PriorMass) -> list[str]:
    """What the evidence is, if the prior does not integrate to one."""
    if mass == PriorMass():
        return []
    if chosen.base is not None:
        how = (
            f"log_prior integrates to exp({mass.log:.1f}): log_evidence is the log of the target's mass, that included."
        )
        return [how] if mass.is_known else []
    how_much = f"exp({mass.log:.1f})" if mass.is_known else "one, or perhaps not"
    return [f"log_prior integrates to {how_much}: log_evidence is the log of the target's mass over that."]


def why_not_listed(modes: Modes, mixture: NormalMixture, broad: Pilot) -> str | None:
    """Why no mixture holds all modes, or None if one may.

    Chains whose base is at some of very many modes seldom reach the others, and from it no evidence need show that they
    are missed: a broad base must tell. Where it says that modes beyond the longest list hold little, the list will do.
    """
    if modes.unseen > MAX_UNSEEN:
        return f"{modes.unseen:.0%} of the ascents ended in a mode of their own"
    if len(modes.x) <= MAX_MODES or not broad.annealed.finished:
        return None
    share = claimed(mixture, np.asarray(broad.annealed.population.x))
    if share >= MIN_CLAIMED:
        return None
    return f"the {MAX_MODES} heaviest of {len(modes.x)} modes hold {share:.0%} of what {broad.name} reached"


def fair(candidates: list[Pilot]) -> list[Pilot]:
    """Those that reached the target and missed nothing: whose evidence is not below the highest.

    Strict, because half of the mass missed is a difference of log 2, and a longer path costs less than a mode.
    """
    candidates = [pilot for pilot in candidates if pilot.annealed.covered > 0] or candidates
    known = [pilot for pilot in candidates if pilot.base_mass.is_known] or candidates
    highest = max(known, key=lambda pilot: pilot.log_z - 2 * pilot.error)

    def missed(pilot: Pilot) -> bool:
        least = highest.log_z - 0.2 - 2 * np.hypot(pilot.error, highest.error)
        return pilot.base_mass.is_known and pilot.log_z <= least

    return [pilot for pilot in candidates if pilot.annealed.finished and not missed(pilot)] or [highest]


def choose(candidates: list[Pilot]) -> Pilot:
    """The shortest path among the fair ones; what one may have missed beyond its error makes it longer."""
    left = fair(candidates)
    known = [pilot for pilot in left if pilot.base_mass.is_known]
    if not known:
        return min(left, key=lambda pilot: pilot.length)
    highest = max(known, key=lambda pilot: pilot.log_z - pilot.error)

    def cost(pilot: Pilot) -> float:
        missed = highest.log_z - pilot.log_z - np.hypot(pilot.error, highest.error)
        return pilot.length + (MISSED * max(missed, 0.0) if pilot.base_mass.is_known else 0.0)

    return min(left, key=cost)


def _refits(
    anneal_from: "_Annealer", start: Pilot, candidates: list[Pilot], keys: Iterator[Key[Array, ""]], *, is_broad: bool
) -> list[Pilot]:
    """The base fitted to points of the target, and again as long as that shortens the path."""
    refitted = [start]
    while len(refitted) <= MAX_REFITS:
        last = refitted[-1]
        assert last.base is not None
        # What any of them has reached is part of the target, whichever base it is that misses it.
        reached = [last] if is_broad else [pilot for pilot in (*candidates, *refitted[1:]) if pilot.annealed.finished]
        points = np.concatenate([np.asarray(pilot.annealed.population.x) for pilot in reached or [last]])
        times = "refitted" if last is start else f"refitted {len(refitted)} times"
        refitted.append(anneal_from(refit(last.base, points, is_broad=is_broad), next(keys), f"{start.name}, {times}"))
        if is_broad or refitted[-1].length > 0.9 * last.length or refitted[-1].length < SHORT_PATH:
            break
    return refitted[1:]


def in_doubt(best: Pilot, other: Pilot) -> bool:
    """Whether another base would do about as well, on a path that is long enough for the choice to matter."""
    return other is not best and other in fair([best, other]) and 1 < other.length < 1.25 * best.length


class _Annealer:
    """Anneals a target from any base; one program for all learned bases with the same number of components."""

    def __init__(self, preparation: Preparation, target: Target, x: Float[np.ndarray, "start d"]):
        kernel = preparation.kernel
        if isinstance(kernel, NUTS):  # all points move alike in the pilot
            kernel = HMC(8, target_acceptance=float(kernel.target_acceptance[0]))
        self.kernel, self.preparation, self.target = kernel, preparation, target
        self.x = jnp.asarray(x)
        self.num_components = 8 if target.dim > 16 else MAX_MODES + 8
        """A multiple of it: the programs for many dimensions are worth keeping small."""
        self.programs: dict[Any, Callable[..., Annealed]] = {}

    def __call__(self, base: NormalMixture | None, key: Key[Array, ""], name: str) -> Pilot:
        """One pass."""
        padded = None if base is None else pad_components(base, self.num_components)
        arrays, structure = jax.tree.flatten(jax.tree.map(jnp.asarray, padded))
        shape = (structure, *(array.shape for array in arrays))
        if shape not in self.programs:
            [self.programs[shape]] = compile_once(self._job(structure, arrays))
        return Pilot(name, base, jax.block_until_ready(self.programs[shape](arrays, key, self.x)))

    def compile_beside(self, jobs: list[Job]) -> list[Callable[..., Any]]:
        """Compile other jobs, and beside them the program for learned bases, which they will lead to."""
        dim = self.target.dim
        unit = np.eye(dim) if dim <= DENSE_UP_TO else np.ones(dim)
        some = pad_components(NormalMixture(np.zeros((1, dim)), unit[None], np.ones(1)), self.num_components)
        arrays, structure = jax.tree.flatten(jax.tree.map(jnp.asarray, some))
        shape = (structure, *(array.shape for array in arrays))
        self.programs[shape], *others = compile_once(self._job(structure, arrays), *jobs)
        return others

    def _job(self, structure: Any, arrays: list[Array]) -> Job:
        return Job(partial(self._run, structure), (arrays, jax.random.key(0, impl="threefry2x32"), self.x))

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
            x,
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
