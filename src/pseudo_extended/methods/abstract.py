"""What a method is: a Markov chain made from a target, and how each of its states yields weighted points.

The loop knows nothing else, so every method shares its clock, its weights, its chunks and its progress bar.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from pseudo_extended import checks
from pseudo_extended.target import Target
from pseudo_extended.warmup import Stage

Method = TypeVar("Method", bound="AbstractMethod")


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
    """The points, one in each row."""
    log_weight: Float[Array, " particle"]
    """The log weight of each point relative to the others of the draw."""
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


class Statistic(NamedTuple):
    """The declaration of a statistic: a number, or an array of numbers, that a method reports with every draw."""

    name: str
    """The key in `result.statistics`."""
    dims: tuple[str, ...] = ()
    """Names of its axes in stores and in ArviZ output, besides chain and draw; none for a number."""


class StepInfo(NamedTuple):
    """What every method reports about one step; the loop counts it and the result keeps it."""

    acceptance_rate: Float[Array, ""]
    """The mean acceptance rate of the moves of the step."""
    diverging: Bool[Array, ""]
    """Whether the energy error of a trajectory grew without bound."""
    non_finite: Bool[Array, ""]
    """Whether a density or gradient was not finite where a move would have ended."""
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
    """The method with all that was chosen for it."""
    x: Float[np.ndarray, "chain particle d"]
    """Where its chains start."""
    notes: tuple[str, ...]
    """One sentence for each choice; they become `result.notes`."""
    report: Any = None
    """What was found on the way, for the result: a named tuple that a store can hold, or None."""
    num_evaluations: int = 0
    """Of the density, to prepare."""
    num_warmup: int = 1000
    """Iterations of warm-up that the chains need now."""
    needs_round_trips: bool = True
    """Whether estimates are good only after trips along the path, as they are not needed where there is one mode."""


class AbstractMethod(eqx.Module):
    """The base class of methods: a new one writes `init`, `step` and `points`, and `adapt` if warm-up tunes anything.

    All the other members have defaults, for a method with one weighted point per draw that can sample any target.
    docs/howto/extending.md has an example.
    """

    width: int = eqx.field(static=True, default=1, kw_only=True)
    """How many chains one program advances, vectorised; `with_width` changes it.

    It belongs to the method, and not to how a run is scheduled, because XLA rounds differently for another width; so
    it never depends on the number of chains or cores. 1 suits kernels that branch, more a step that is cheap and the
    same for every chain.
    """

    @abstractmethod
    def init(self, key: Key[Array, ""], target: Target, x: Float[Array, "particle d"]) -> Chain:
        """Start a chain at the given points, one for each weighted point of a draw."""

    @abstractmethod
    def step(self, key: Key[Array, ""], target: Target, chain: Chain) -> tuple[PyTree, Any]:
        """Return the next state, and an account of what happened on the way."""

    @abstractmethod
    def points(self, target: Target, state: PyTree) -> WeightedPoints:
        """Return the weighted points of a state."""

    def adapt(self, target: Target, chain: Chain, stage: Stage, info: Any) -> Chain:
        """Learn from one iteration of warm-up, after its step; by default nothing is tuned."""
        del target, stage, info
        return chain

    def report(self, info: Any) -> StepInfo:
        """Translate the account of a step for the loop; that of a kernel, and a `StepInfo`, need no translation."""
        return StepInfo(jnp.nanmean(info.acceptance_rate), info.diverging, info.non_finite, info.num_evaluations)

    @property
    def num_points(self) -> int:
        """The number of weighted points in a draw."""
        return 1

    @property
    def needs_gradient(self) -> bool:
        """Whether the method differentiates the target, whose gradient is then checked before the run."""
        return True

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The statistics that `points` gives, with the names of their axes."""
        return ()

    def check(self, target: Target) -> None:
        """Raise a one-sentence error for a target that the method cannot sample."""
        del target

    def covers(self, target: Target, x: Float[Array, "particle d"]) -> Bool[Array, " particle"]:
        """Whether the method's own densities, besides the target's, are positive at these starting points."""
        del target
        return jnp.ones(x.shape[0], bool)

    def describe(self) -> str:
        """Name the method and its main settings, for tables and reports."""
        return type(self).__name__

    def with_width(self: Method, width: int) -> Method:
        """Return the same method with another number of chains per compiled program.

        >>> import pseudo_extended as pe
        >>> pe.Plain(pe.HMC(5)).with_width(4).width
        4
        """
        width = checks.integer("width", width, minimum=1, maximum=1024)
        values = {field.name: getattr(self, field.name) for field in fields(self)} | {"width": width}
        copy = object.__new__(type(self))
        for name, value in values.items():
            object.__setattr__(copy, name, value)
        return copy


class AbstractPreparedMethod(AbstractMethod):
    """A method with something to choose before any chain starts."""

    @property
    def max_starts(self) -> int:
        """How many positions of a user's batch `prepare` can make use of."""
        return self.num_points

    @property
    def runs_until_good(self) -> bool:
        """Whether a run goes on until its estimates are good, unless the user says how many draws to make."""
        return False

    @abstractmethod
    def prepare(
        self, key: Key[Array, ""], target: Target, x: Float[np.ndarray, "chain particle d"], say: Callable[[str], None]
    ) -> Prepared:
        """Choose what all chains share, before any of them starts.

        `x` has the starting points of each chain, and behind them more of a user's batch, up to `max_starts`.
        What is chosen must not depend on the number of chains; `say` shows a line about what is going on.
        """
