"""Modes that are planted in a posterior, and the search for modes run on it again."""

from functools import partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pseudo_extended.compiled import Job, compile_once
from pseudo_extended.pilot.mode_search import ModeSearch
from pseudo_extended.target import Target

MAX_TRIES = 50
STANDS_OUT = 2.0
"""How far the planted density must be above the posterior's at its peak, in logs, to be a mode at all."""


class Planted(NamedTuple):
    """A normal that is added to the density; its numbers are arguments of the compiled search."""

    mean: Float[Array, " d"] | Float[np.ndarray, " d"]
    whitener: Float[Array, "d d"] | Float[np.ndarray, "d d"]
    """The inverse of the root of its covariance: |whitener (x - mean)| is the distance in standard deviations."""
    log_height: Float[Array, ""] | Float[np.ndarray, ""]
    """Its log density at the mean."""

    def log_density(self, u: Float[Array, " d"]) -> Float[Array, ""]:
        """The log density of the planted part alone."""
        return jnp.asarray(self.log_height) - 0.5 * jnp.sum((self.whitener @ (u - self.mean)) ** 2)

    def distances(self, x: Float[np.ndarray, "*point d"]) -> Float[np.ndarray, "*point"]:
        """Squared distances from the mean, in standard deviations."""
        return np.sum(((x - np.asarray(self.mean)) @ np.asarray(self.whitener).T) ** 2, axis=-1)


class Posterior(NamedTuple):
    """What planting needs to know of a posterior, on its unconstrained space."""

    target: Target
    log_z: float
    mean: Float[np.ndarray, " d"]
    root: Float[np.ndarray, "d d"]
    """Of its covariance."""


class PlantedTarget:
    """A target with a mode more; for all else it is the target."""

    def __init__(self, target: Target, planted: Planted):
        self._target, self._planted = target, planted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def log_target(self, u: Float[Array, " d"]) -> Float[Array, ""]:
        """The sum of both, in logs."""
        return jnp.logaddexp(self._target.log_target(u), self._planted.log_density(u))


def plant(rng: np.random.Generator, posterior: Posterior, mass: float, scale: float, spread: float) -> Planted | None:
    """A mode that holds `mass` of the new posterior, `scale` times as wide as the old one, at a random place.

    The place is drawn from a normal `spread` times as wide as the posterior, again and again until the planted mode
    stands out there; None if it never does.
    """
    dim = len(posterior.mean)
    whitener = np.linalg.inv(scale * posterior.root)
    log_height = (
        posterior.log_z + np.log(mass / (1 - mass)) + np.linalg.slogdet(whitener)[1] - dim / 2 * np.log(2 * np.pi)
    )
    for _ in range(MAX_TRIES):
        mean = posterior.mean + spread * posterior.root @ rng.normal(size=dim)
        if log_height > float(posterior.target.log_target(jnp.asarray(mean))) + STANDS_OUT:
            return Planted(mean, whitener, np.asarray(log_height))
    return None


class Searcher:
    """The search for modes on one posterior with any mode planted in it: compiled once."""

    def __init__(self, posterior: Posterior, max_evaluations: int | None):
        self.target, self.max_evaluations = posterior.target, max_evaluations
        dim = self.target.dim
        some = Planted(np.zeros(dim), np.eye(dim), np.zeros(()))
        self.programs = compile_once(
            *(Job(partial(self._run, i), (some, *job.arguments)) for i, job in enumerate(self._search(some).jobs))
        )

    def finds(self, key: Key[Array, ""], planted: Planted, starts: Float[np.ndarray, "start d"]) -> bool:
        """Whether a search ends with a mode within a standard deviation of the planted one, and hits it."""
        search = self._search(planted)
        search.programs = [partial(program, planted) for program in self.programs]
        modes = search.from_starts(key, starts)
        return bool(np.any(planted.distances(np.asarray(modes.x)) < len(planted.mean)))

    def _search(self, planted: Planted) -> ModeSearch:
        target = cast(Target, PlantedTarget(self.target, planted))
        return ModeSearch(target, gradient=self.target.is_differentiable, max_evaluations=self.max_evaluations)

    def _run(self, number: int, planted: Planted, *arguments: Any) -> Any:
        return self._search(planted).jobs[number].function(*arguments)


def as_plain_target(posterior: Posterior, planted: Planted) -> Target:
    """The planted posterior as a target of its own, on the unconstrained space, for a whole run."""
    planted = jax.tree.map(jnp.asarray, planted)
    whole = PlantedTarget(posterior.target, planted)
    return Target(whole.log_target, np.asarray(posterior.mean))
