"""What a method is: a Markov chain made from a target, and how each of its states yields weighted points.

The loop knows nothing else, so every method shares its clock, its weights, its chunks and its progress bar.
"""

from abc import abstractmethod
from typing import Any, NamedTuple, Protocol, runtime_checkable

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
    over the draws of a chain, because each has tuned a ladder of its own; see `analysis.evidence` for several.
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

    def plus(self, other: "StepInfo") -> "StepInfo":
        """Both steps together: rates and evaluations add up, and what happened in either has happened."""
        return StepInfo(
            self.acceptance_rate + other.acceptance_rate,
            self.diverging | other.diverging,
            self.non_finite | other.non_finite,
            self.num_evaluations + other.num_evaluations,
        )


@runtime_checkable
class Pilot(Protocol):
    """Short runs for a method that must look before it leaps: the loop's own programs, on a few chains."""

    def __call__(
        self, method: "AbstractMethod", x: Float[np.ndarray, "chain particle d"], num_warmup: int, num_draws: int
    ) -> tuple[Chain, "PilotRecord"]:
        """Run chains from `x`; the chains at the end and their draws, with leading axes (chain, ...)."""
        ...


class PilotRecord(NamedTuple):
    """The draws of a pilot."""

    x: Float[np.ndarray, "chain draw particle d"]
    log_weight: Float[np.ndarray, "chain draw particle"]
    statistics: dict[str, np.ndarray]


class Prepared(NamedTuple):
    """A method ready to run, and sentences about what was chosen and why."""

    method: "AbstractMethod"
    x: Float[np.ndarray, "chain particle d"]
    """Where its chains start."""
    notes: tuple[str, ...]


class AbstractMethod(eqx.Module):
    """A method: `init`, `step` and `points`, and `adapt` while warming up."""

    @property
    @abstractmethod
    def width(self) -> int:
        """How many chains one program advances, vectorised, unless the user says otherwise.

        It depends on the method alone and never on the number of chains or cores, because XLA rounds differently for
        another width: 1 for kernels that branch, more where a step is cheap and the same for every chain.
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
    def prepare(
        self, key: Key[Array, ""], target: Target, x: Float[np.ndarray, "chain particle d"], pilot: Pilot
    ) -> Prepared:
        """Choose what all chains share, before any of them starts; most methods have nothing to choose."""

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
