"""The rule of the default method: a run ends when its estimates are good."""

import numpy as np

from pseudo_extended import checks
from pseudo_extended.results import estimates
from pseudo_extended.results.result import Result
from pseudo_extended.results.series import r_hat as r_hat_of
from pseudo_extended.results.travel import travel
from pseudo_extended.stopping.abstract import AbstractStoppingRule
from pseudo_extended.weights import whole_weights


class GoodEnough(AbstractStoppingRule):
    """Go on until estimates are good, in the unconstrained space in which the chains move.

    Args:
        ess: The effective sample size that the mean of every coordinate must have.
        r_hat: The largest R-hat that a coordinate may have; None if any will do.
        round_trips: The number of trips to the base and back that the pseudo-samples of every chain must have made;
            None if none are needed. Methods without a path make none, and it does not count for them.

    >>> import pseudo_extended as pe
    >>> pe.stopping.GoodEnough(ess=500, round_trips=None)
    GoodEnough(ess=500.0, r_hat=1.01, round_trips=None)
    """

    ess: float
    r_hat: float | None
    round_trips: int | None

    def __init__(self, ess: float = 2000, r_hat: float | None = 1.01, round_trips: int | None = 10):
        self.ess = checks.real("ess of GoodEnough", ess, low=1)
        self.r_hat = None if r_hat is None else checks.real("r_hat of GoodEnough", r_hat, low=1, closed="()")
        self.round_trips = None
        if round_trips is not None:
            self.round_trips = checks.integer("round_trips of GoodEnough", round_trips, minimum=1)

    def missing(self, result: Result) -> list[str]:
        """Return which of effective sample size, R-hat and round trips are not good enough yet."""
        x, weights = result.unconstrained, whole_weights(result.log_weights, result.log_importance)
        missing, least = [], float(np.min(estimates.mean(x, weights).ess))
        if not least >= self.ess:
            missing.append(f"the effective sample size is {least:.0f}")
        if self.r_hat is not None:
            worst = float(np.max(r_hat_of(estimates.contributions(x, weights))))
            if not worst <= self.r_hat:
                missing.append(f"R-hat is {worst:.3f}")
        travelled = None if self.round_trips is None else travel(result.statistics)
        if travelled is not None and self.round_trips is not None:
            fewest = int(np.min(travelled.round_trips))
            if fewest < self.round_trips:
                missing.append(f"a chain has made {fewest} round trips")
        return missing

    def share(self, result: Result) -> float:
        """Return the share of the effective sample size, or of the round trips, whichever is the smaller."""
        x, weights = result.unconstrained, whole_weights(result.log_weights, result.log_importance)
        shares = [float(np.min(estimates.mean(x, weights).ess)) / self.ess]
        travelled = None if self.round_trips is None else travel(result.statistics)
        if travelled is not None and self.round_trips is not None:
            shares.append(float(np.min(travelled.round_trips)) / self.round_trips)
        return float(np.clip(np.nan_to_num(min(shares)), 0.0, 1.0))

    @property
    def target_ess(self) -> float | None:
        """The effective sample size that is wanted, if nothing else is."""
        return self.ess if self.r_hat is None and self.round_trips is None else None

    def for_part(self, num_parts: int) -> "GoodEnough":
        """Return the rule for one of several runs, which need a share of the effective sample size each."""
        return GoodEnough(max(self.ess / num_parts, 1.0), self.r_hat, self.round_trips)

    def without_round_trips(self) -> "GoodEnough":
        """Return the rule for a target with one mode, where no trips along the path are needed."""
        return GoodEnough(self.ess, self.r_hat, None)
