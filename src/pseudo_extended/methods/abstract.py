"""What a method is: a Markov chain made from a target, and how each of its states yields weighted points.

The loop knows nothing else, so every method shares its clock, its weights, its chunks and its progress bar.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from pseudo_extended.target import Target
from pseudo_extended.warmup import Stage


class Chain(NamedTuple):
    """All that a chain needs to go on: pytrees of arrays, whose sizes never change."""

    state: PyTree
    """What `step` moves."""
    parameters: PyTree
    """What warm-up tunes; frozen when the draws begin."""
    adaptation: PyTree
    """The state of warm-up itself."""


class WeightedPoints(NamedTuple):
    """The output of one draw: points on the unconstrained space, with log weights up to a constant."""

    x: Float[Array, "particle d"]
    log_weight: Float[Array, " particle"]
    statistics: dict[str, Array]
    """More numbers about this state, such as the temperatures.

    A method that estimates the evidence gives `evidence_top` and `evidence_bottom`, vectors of log values with one
    entry for each factor: log Z is the sum over factors of log mean exp(top) - log mean exp(bottom). The means are
    over the draws of a chain, because each has tuned a ladder of its own; see `results.evidence` for several.
    """
    log_importance: Float[Array, ""] | None = None
    """How much this draw counts beside the others, up to a constant that all draws share; None if all count alike.

    `log_weight` cannot say it: weights are normalised within a draw. Annealed importance sampling and simulated
    tempering need it, and then E[f] is estimated by Σ_t v_t Σ_i w_ti f(x_ti) / Σ_t v_t.
    """


class StepInfo(NamedTuple):
    """What every method reports about one step; the loop counts it and the result keeps it."""

    acceptance_rate: Float[Array, ""]
    diverging: Bool[Array, ""]
    non_finite: Bool[Array, ""]
    num_evaluations: Int[Array, ""]
    """Of the target's density, or of density and gradient, at one point."""

    def plus(self, other: "StepInfo") -> "StepInfo":
        """Both steps together: rates and evaluations add up, and what happened in either has happened."""
        return StepInfo(
            self.acceptance_rate + other.acceptance_rate,
            self.diverging | other.diverging,
            self.non_finite | other.non_finite,
            self.num_evaluations + other.num_evaluations,
        )


class Prepared(NamedTuple):
    """A method ready to run, and sentences about what was chosen and why."""

    method: "AbstractMethod"
    x: Float[np.ndarray, "chain particle d"]
    """Where its chains start."""
    notes: tuple[str, ...]


class AbstractMethod(eqx.Module):
    """A method: `init`, `step` and `points`, and `adapt` while warming up."""

    width: eqx.AbstractVar[int]
    """How many chains one program advances, vectorised.

    It belongs to the method, and not to how a run is scheduled, because XLA rounds differently for another width; so
    it never depends on the number of chains or cores. 1 suits kernels that branch, more a step that is cheap and the
    same for every chain.
    """

    @property
    @abstractmethod
    def num_points(self) -> int:
        """How many weighted points a draw has."""

    @property
    @abstractmethod
    def needs_gradient(self) -> bool:
        """Whether the method differentiates the target."""

    @abstractmethod
    def check(self, target: Target) -> None:
        """Refuse, in a sentence, a target that the method cannot sample."""

    @abstractmethod
    def covers(self, target: Target, x: Float[Array, "particle d"]) -> Bool[Array, " particle"]:
        """Whether the method's own densities, besides the target's, are positive at these starting points."""

    @abstractmethod
    def init(self, key: Key[Array, ""], target: Target, x: Float[Array, "particle d"]) -> Chain:
        """A chain that starts at the given points."""

    @abstractmethod
    def step(self, key: Key[Array, ""], target: Target, chain: Chain) -> tuple[PyTree, Any]:
        """The next state, and what happened on the way."""

    @abstractmethod
    def adapt(self, target: Target, chain: Chain, stage: Stage, info: Any) -> Chain:
        """Learn from one iteration of warm-up, after its step."""

    @abstractmethod
    def points(self, target: Target, state: PyTree) -> WeightedPoints:
        """The weighted points of a state."""

    @abstractmethod
    def report(self, info: Any) -> StepInfo:
        """What the loop counts of what happened."""

    @abstractmethod
    def describe(self) -> str:
        """A line about the method for tables and reports."""


class AbstractPreparedMethod(AbstractMethod):
    """A method with something to choose before any chain starts."""

    @property
    def max_starts(self) -> int:
        """How many positions of a user's batch `prepare` can make use of."""
        return self.num_points

    @abstractmethod
    def prepare(
        self, key: Key[Array, ""], target: Target, x: Float[np.ndarray, "chain particle d"], say: Callable[[str], None]
    ) -> Prepared:
        """Choose what all chains share, before any of them starts.

        `x` has the starting points of each chain, and behind them more of a user's batch, up to `max_starts`.
        What is chosen must not depend on the number of chains; `say` shows a line about what is going on.
        """
