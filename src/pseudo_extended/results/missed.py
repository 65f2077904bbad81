"""Modes that an ascent has found and no draw has: where they are, and how heavy they would be."""

from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy.special import chdtri, logsumexp

from pseudo_extended.results.laplace import approximate

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

CORE = 0.5
"""The part of a mode's mass that is looked for near its peak."""
MUCH_LESS = 0.2
"""A mode is missed if the draws have less than this share of what Laplace's approximation says that it holds."""


class Missed(NamedTuple):
    """A mode that holds no draws."""

    place: pd.Series
    """Its highest place, in the user's space."""
    mass: float
    """Its probability by Laplace's approximation: a normal of the curvature at the place."""
    sampled: float
    """The probability that the draws give to the middle of that normal, over the part of it that the middle holds."""
    found_by: str
    """Whose ascents have found it: "pilot", or "second look" for those after the run."""

    def where(self, max_named: int = 4) -> str:
        """The place in words."""
        named = ", ".join(f"{name} = {value:.4g}" for name, value in list(self.place.items())[:max_named])
        more = len(self.place) - max_named
        return f"{named}, {more} more" if more > 0 else named


def find_missed(
    result: "Result",
    log_mass: Float[np.ndarray, " mode"],
    empty: Float[np.ndarray, "place d"],
    is_pilots: Bool[np.ndarray, " place"],
    min_mass: float,
) -> tuple[Missed, ...]:
    """Find places without draws whose modes should have some, the heaviest first.

    `log_mass` is Laplace's for the modes that have draws. The mass of a place is told by theirs, and by the
    evidence where that is normalised: the smaller of the two, because bent modes hold more than Laplace says.
    """
    if not len(empty):
        return ()
    found = approximate(result.target, empty)
    shares = [found.log_mass - logsumexp(np.append(log_mass[np.isfinite(log_mass)], -np.inf))]
    if "evidence_top" in result.statistics and result.target.base is None:
        shares.append(found.log_mass - result.log_evidence.value)
    with np.errstate(over="ignore", invalid="ignore"):
        odds = np.exp(np.fmin(*shares) if len(shares) == 2 else shares[0])
        mass = np.where(np.isfinite(odds), odds / (1 + odds), np.where(odds == np.inf, 1.0, np.nan))
    shown = result.show(empty[None, :, None])
    values = np.concatenate([np.asarray(leaf).reshape(len(empty), -1) for leaf in jax.tree.leaves(shown)], axis=1)
    missed = []
    for i in np.argsort(-np.nan_to_num(mass), kind="stable"):
        if not mass[i] >= min_mass:
            continue
        sampled = _mass_near(result, empty[i], found.covariance[i])
        if sampled < MUCH_LESS * mass[i]:
            by = "pilot" if is_pilots[i] else "second look"
            missed.append(Missed(pd.Series(values[i], result.labels), float(mass[i]), sampled, by))
    return tuple(missed)


def _mass_near(result: "Result", place: Float[np.ndarray, " d"], covariance: Float[np.ndarray, "d d"]) -> float:
    """The share of the weights in the middle of a normal, over the part of a normal that lies there."""
    root = np.linalg.inv(np.linalg.cholesky(covariance))
    away = np.sum(((result.unconstrained - place) @ root.T) ** 2, axis=-1)
    near = away < chdtri(len(place), 1 - CORE)  # the quantile of chi-squared
    return float(np.sum(result.weights[near]) / np.sum(result.weights) / CORE)
