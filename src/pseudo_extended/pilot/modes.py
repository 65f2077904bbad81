"""Modes of a density, as ascents have found them, and the list that grows with each batch of ends."""

from copy import copy
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import logsumexp

from pseudo_extended.pilot.neighbourhood import Look, Neighbourhood, outline, survey

SIGNIFICANT = 1e-3
"""The part of the mass of all modes that one needs to count for something."""
NEGLIGIBLE = 20.0
"""Modes whose log mass is so far below the heaviest one's are not reported."""
CONVERGED = 1e-2
"""An ascent whose next step promises less than this has ended at a mode: within a seventh of its width."""
HIGHER = 1e-2
"""An end that is so much higher than the mode it belongs to takes its place."""
NUM_NEAR = 4
"""Modes to which the way from a new place is looked at."""
STOPS = np.array([0.25, 0.5, 0.75])
"""Where on the way, from the mode on."""
VALLEY = 0.1
"""How far the log density falls on the way from one mode to another, at least."""
MANY_DIMENSIONS = 200
"""Beyond so many a survey, two gradients for every dimension, is too dear for every place that may be a mode."""
MAX_PLACES = 512
"""Of those that have not been looked at."""
MAX_EDGES = 4
"""Ends that have not converged at which is looked for an edge."""
LOOKS = 8
"""Evaluations for each dimension that a look around a place takes at most, as a rule."""
MAX_ENDS = 4096
"""Ends that are kept, the highest."""


class Modes(NamedTuple):
    """Distinct modes, the highest first, and how they were found."""

    x: Float[np.ndarray, "mode d"]
    log_density: Float[np.ndarray, " mode"]
    covariance: Float[np.ndarray, "mode d d"] | Float[np.ndarray, "mode d"]
    """Of Laplace's approximation; its diagonal in many dimensions."""
    num_hits: Int[np.ndarray, " mode"]
    """How many ascents ended there."""
    num_ascents: int = 0
    """All that were made."""
    num_unconverged: int = 0
    """Those of them that did not end at a mode."""
    other_hits: Int[np.ndarray, " place"] = np.zeros(0, int)
    """How many ended at each of the places that nobody has looked at, and that may be significant modes."""

    @property
    def is_empty(self) -> bool:
        """Whether no mode was found, as for a density that is unbounded or has no finite integral."""
        return len(self.x) == 0

    @property
    def log_mass(self) -> Float[np.ndarray, " mode"]:
        """Laplace's approximation to the mass of each mode."""
        dim = self.x.shape[1]
        if self.covariance.ndim == 3:
            log_volume = 0.5 * np.linalg.slogdet(self.covariance)[1]
        else:
            log_volume = 0.5 * np.sum(np.log(self.covariance), axis=1)
        return self.log_density + log_volume + 0.5 * dim * np.log(2 * np.pi)

    def diagonal(self) -> "Modes":
        """The same modes with the variance of each coordinate given all others, in the place of matrices."""
        precision = np.linalg.inv(self.covariance)
        return self._replace(covariance=1 / np.diagonal(precision, axis1=1, axis2=2))

    @property
    def is_significant(self) -> Bool[np.ndarray, " mode"]:
        """Whether each mode has more than a thousandth of the mass of all."""
        log_mass = self.log_mass
        return log_mass > (logsumexp(log_mass) if len(log_mass) else 0.0) + np.log(SIGNIFICANT)

    def heavier_than(self, share: float) -> "Modes":
        """Leave out all that hold less than a share of the mass."""
        keep = self.log_mass > (logsumexp(self.log_mass) if len(self.x) else 0.0) + np.log(share)
        return self._replace(
            x=self.x[keep],
            log_density=self.log_density[keep],
            covariance=self.covariance[keep],
            num_hits=self.num_hits[keep],
        )

    @property
    def unseen(self) -> float:
        """The share of ascents that would end in a significant mode not seen yet: Good and Turing's estimate.

        It counts ascents that ended in significant modes only: a thousand more that hold nothing need no listing.
        """
        hits = np.concatenate([self.num_hits[self.is_significant], self.other_hits])
        return float(np.sum(hits == 1) / max(np.sum(hits), 1))


class Ends(NamedTuple):
    """The ends of ascents, as `Ascents` gives them."""

    x: Float[np.ndarray, "end d"]
    log_density: Float[np.ndarray, " end"]
    gradient: Float[np.ndarray, "end d"]
    promise: Float[np.ndarray, " end"]
    curvature: Float[np.ndarray, "end d"]
    num_evaluations: Int[np.ndarray, " end"]

    def take(self, which: np.ndarray | slice) -> "Ends":
        """Return some of the ends, by index."""
        return Ends(*(column[which] for column in self))

    def followed_by(self, others: "Ends") -> "Ends":
        """Join these ends with others."""
        return Ends(*(np.concatenate(columns) for columns in zip(self, others, strict=True)))

    @property
    def is_valid(self) -> Bool[np.ndarray, " end"]:
        """Whether each is a place with a density."""
        return np.isfinite(self.log_density) & np.all(np.isfinite(self.x), axis=1)


def no_ends(dim: int) -> Ends:
    """Return the ends of no ascent."""
    places, numbers = np.zeros((0, dim)), np.zeros(0)
    return Ends(places, numbers, places, numbers, places, np.zeros(0, int))


class KnownMode(NamedTuple):
    """One that is known."""

    x: Float[np.ndarray, " d"]
    log_density: float
    neighbourhood: Neighbourhood
    num_hits: int

    @property
    def log_mass(self) -> float:
        """Its mass by Laplace's approximation."""
        return self.log_density + self.neighbourhood.log_volume


class Atlas:
    """The modes that are known, and ends of ascents that may be in others."""

    def __init__(self, look: Look, dim: int, *, dense: bool, max_modes: int):
        self.look, self.dim, self.dense, self.max_modes = look, dim, dense, max_modes
        self.joins_tops = dim > MANY_DIMENSIONS or not dense
        """Whether places that no valley parts are one mode."""
        self.known: list[KnownMode] = []
        self.num_ascents = self.num_unconverged = 0
        self.waiting = no_ends(dim)
        """Ends that have converged, and are in no mode that is known: nobody has looked whether they are modes."""
        self.unfinished = self.waiting
        """Ends that have not converged, the highest first."""

    def add(self, ends: Ends, max_surveys: int) -> None:
        """Tell ends apart: hits of modes that are known, new modes, and what is none. It looks at so many places."""
        converged = ends.is_valid & (ends.promise < CONVERGED)
        self.num_ascents += len(ends.x)
        self.num_unconverged += int(np.sum(~converged))
        unfinished = self.unfinished.followed_by(ends.take(ends.is_valid & ~converged))
        self.unfinished = unfinished.take(np.argsort(-unfinished.log_density)[:MAX_PLACES])
        fresh = ends.take(converged)
        for mode in list(self.known):
            fresh = self._assign(mode, fresh)
        left = self.waiting.followed_by(fresh)
        left = left.take(np.argsort(-left.log_density))
        surveys_left = max_surveys
        while surveys_left:
            left = left.take(slice(MAX_ENDS))
            if not len(left.x) or left.log_density[0] <= self._least():
                break
            first, left = left.take(slice(1)), left.take(slice(1, None))
            if self.joins_tops and (same := self._on_one_top(first)) is not None:
                self._count(same, first)
                continue
            surveys_left -= 1
            found = self._survey(first)
            if found is None:
                self.num_unconverged += 1
                continue
            left = self._assign(self._absorb(found), left)
        self.waiting = left.take(slice(MAX_ENDS))

    def copy(self) -> "Atlas":
        """An atlas of the same, to go back to."""
        same = copy(self)
        same.known = [*self.known]
        return same

    def empty(self) -> "Atlas":
        """An atlas of the same density that knows nothing yet."""
        return Atlas(self.look, self.dim, dense=self.dense, max_modes=self.max_modes)

    def merge(self, other: "Atlas") -> None:
        """Add the modes that another search has found, with their hits."""
        for mode in other.known:
            if not any(mode is each for each in self.known):
                self._absorb(mode)

    def modes(self) -> Modes:
        """All that are known and not negligible, the highest first."""
        best = max((mode.log_mass for mode in self.known), default=0.0)
        known = [mode for mode in self.known if mode.log_mass > best - NEGLIGIBLE]
        known.sort(key=lambda mode: -mode.log_density)
        shape = (self.dim, self.dim) if self.dense else (self.dim,)
        return Modes(
            np.array([mode.x for mode in known]).reshape(-1, self.dim),
            np.array([mode.log_density for mode in known]),
            np.array([mode.neighbourhood.covariance for mode in known]).reshape(-1, *shape),
            np.array([mode.num_hits for mode in known], int),
            self.num_ascents,
            self.num_unconverged,
            self._other_hits(),
        )

    def significant(self) -> list[KnownMode]:
        """List those with a mass that counts."""
        best = max((mode.log_mass for mode in self.known), default=0.0)
        return [mode for mode in self.known if mode.log_mass > best + np.log(SIGNIFICANT)]

    def is_known(self, x: Float[np.ndarray, " d"]) -> bool:
        """Whether a place is within a standard deviation of a mode that is known."""
        return any(mode.neighbourhood.distance((x - mode.x)[None])[0] < 1 for mode in self.known)

    def add_image(self, mode: KnownMode, order: Int[np.ndarray, " d"], sign: Float[np.ndarray, " d"]) -> KnownMode:
        """The image of a mode under a symmetry of the density, with the hits of the mode."""
        return self._absorb(mode._replace(x=sign * mode.x[order], neighbourhood=mode.neighbourhood.image(order, sign)))

    def add_edge(self) -> None:
        """The highest end that has not converged, if the density falls from there all the same, as from a wall."""
        some = slice(MAX_EDGES)
        for x, value in zip(self.unfinished.x[some], self.unfinished.log_density[some], strict=True):
            around = outline(self.look, x, float(value), dense=self.dense)
            if around is not None:
                self.known.append(KnownMode(x, float(value), around, 0))
                break

    def _other_hits(self) -> Int[np.ndarray, " place"]:
        """Hits of places that have not been looked at, as far apart as modes of the usual width."""
        hits: list[int] = []
        places = self.waiting.x[self.waiting.log_density > self._least()]
        while len(places) and self.known and len(hits) < MAX_PLACES:
            same = self.known[0].neighbourhood.distance(places - places[0]) < 1
            hits.append(int(np.sum(same)))
            places = places[~same]
        return np.array(hits, int)

    def _survey(self, end: Ends) -> KnownMode | None:
        [x], [value], [gradient], _, [curvature], _ = end
        neighbourhood = survey(self.look, x, float(value), gradient, curvature, dense=self.dense)
        return None if neighbourhood is None else KnownMode(x, float(value), neighbourhood, 1)

    def _assign(self, mode: KnownMode, ends: Ends) -> Ends:
        """Count those that are in the mode, and return the others."""
        inside = mode.neighbourhood.distance(ends.x - mode.x) < 1
        if inside.any():
            self._count(mode, ends.take(inside))
        return ends.take(~inside)

    def _on_one_top(self, end: Ends) -> KnownMode | None:
        """The mode from which no valley parts a place, of those nearby; or None.

        On a ridge ascents end far apart, and no neighbourhood reaches along all of it.
        """
        near = sorted(self.known, key=lambda mode: float(mode.neighbourhood.distance(end.x - mode.x)[0]))[:NUM_NEAR]
        for mode in near:
            between = mode.x + STOPS[:, None] * (end.x - mode.x)
            if np.min(self.look(between)[0]) > min(mode.log_density, float(end.log_density[0])) - VALLEY:
                return mode
        return None

    def _count(self, mode: KnownMode, hits: Ends) -> None:
        """Count hits of a mode; a higher one may be what the mode is."""
        self.known = [each for each in self.known if each is not mode]
        best = hits.take(slice(int(np.argmax(hits.log_density)), None)).take(slice(1))
        if best.log_density[0] > mode.log_density + HIGHER and (higher := self._survey(best)) is not None:
            mode = higher._replace(num_hits=mode.num_hits)
        self._absorb(mode._replace(num_hits=mode.num_hits + len(hits.x)))

    def _absorb(self, mode: KnownMode) -> KnownMode:
        """Put a mode on the list; lower ones within one of its standard deviations are part of it."""
        for other in list(self.known):
            lower, higher = sorted((other, mode), key=lambda each: each.log_density)
            if higher.neighbourhood.distance((lower.x - higher.x)[None])[0] < 1:
                self.known = [each for each in self.known if each is not other]
                mode = higher._replace(num_hits=mode.num_hits + other.num_hits)
        self.known.append(mode)
        if len(self.known) > self.max_modes:
            lightest = min(self.known, key=lambda each: each.log_mass)
            self.known = [each for each in self.known if each is not lightest]
        return mode

    def _least(self) -> float:
        """How high an end has to be that may be a mode that counts, by the volumes of those that are known."""
        if not self.known:
            return -np.inf
        best = max(mode.log_mass for mode in self.known)
        volume = max(mode.neighbourhood.log_volume for mode in self.known)
        return best - volume - NEGLIGIBLE - self.dim
