"""Moves that the pseudo-sample which carries the target makes alone, by NUTS, in a metric that warm-up learns.

On a long path to one mode that pseudo-sample does most of the work, and the short moves of all are a gain only where
NUTS does badly. So the two share the evaluations: each step makes either part with a probability that gives the target
its share of them, whatever a trajectory costs, and both are frozen when the draws begin.

In the neck of a funnel and on a thin ridge every trajectory of the usual step fails, so that they are never entered,
and nothing in the draws shows it. So some moves are careful, by HMC that tries again with much smaller steps where the
usual ones fail; which ones is drawn by a probability that does not depend on the place, and is the higher the more
moves have failed in warm-up.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from pseudo_extended.kernels import AbstractKernel, KernelInfo, Metric, TemperedPoint
from pseudo_extended.kernels.delayed import FAILED, move_with_delay
from pseudo_extended.kernels.metric import Factor, SharedFactor
from pseudo_extended.target import Target
from pseudo_extended.tempering.moves import move_point
from pseudo_extended.warmup import Stage
from pseudo_extended.warmup.fisher import (
    Window,
    add_draw,
    empty_window,
    learned,
    low_rank,
)

LEAST_DRAWS = 10
"""Of a window, for a metric."""
SLOWLY = 0.02
"""The weight of the last step in the average of what a move costs, at least: trajectories change with the metric."""
FIRST_COST = 32.0
"""Evaluations of a move, before there were any."""
FEW_FAILURES = 0.01
"""As there may be anywhere while the step size is tuned."""
PER_FAILURE = 10.0
"""The probability of careful moves, for that of more failures."""
LEAST_CAREFUL, MOST_CAREFUL = 0.1, 0.5
"""That probability, at least, as warm-up may not have come to where it is needed, and at most."""
LENGTH = 0.5
"""Steps of a careful trajectory, for one evaluation of an average move: a tree is about twice as long as it must be."""
FEWEST_STEPS, MOST_STEPS = 2, 64


def first_log_step(dim: int) -> float:
    """The step to begin with, in a metric that makes the target about round."""
    return float(np.log(0.5) - 0.25 * np.log(dim))


class TargetParameters(NamedTuple):
    """What warm-up tunes in each chain."""

    log_step: Float[Array, ""]
    factor: SharedFactor
    cost: Float[Array, ""]
    """Evaluations of a move."""
    careful: Float[Array, ""]
    """The probability that a move is careful."""


class TargetAdaptation(NamedTuple):
    """The state of warm-up."""

    window: Window
    num_updates: Float[Array, ""]
    """Of the step size in the present metric."""
    average_log_step: Float[Array, ""]
    failures: Float[Array, ""]
    """The share of moves that have failed, of those that were not careful."""


class TargetInfo(NamedTuple):
    """The account of the target's moves in one step."""

    num_moves: Int[Array, ""]
    num_usual: Int[Array, ""]
    """How many were not careful."""
    num_failed: Int[Array, ""]
    """How many of those failed."""
    acceptance_rate: Float[Array, ""]
    """The mean of theirs."""
    diverging: Bool[Array, ""]
    non_finite: Bool[Array, ""]
    num_evaluations: Int[Array, ""]


def no_moves(num_moves: Int[Array, ""]) -> TargetInfo:
    """The account before the first of so many moves."""
    zero, no = jnp.asarray(0), jnp.asarray(False)
    return TargetInfo(num_moves, zero, zero, jnp.zeros(()), no, no, zero)


class TargetMoves(eqx.Module):
    """Moves of a kernel for the target's pseudo-sample, which are to have a share of all evaluations."""

    kernel: AbstractKernel
    share: float = eqx.field(static=True)
    least: float = eqx.field(static=True)
    """The moves of all are made with this probability at least; so that the share is kept, a step may then have more
    than one move of the target."""

    def start(self, parameters: TargetParameters, dim: int) -> TargetAdaptation:
        """The state of adaptation before the first move."""
        return TargetAdaptation(empty_window(dim), jnp.zeros(()), parameters.log_step, jnp.zeros(()))

    def rates(self, parameters: TargetParameters, cost_of_all: float) -> tuple[Array, Array]:
        """The mean number of the target's moves in a step, and the probability that it has the moves of all."""
        odds = self.share / (1 - self.share) * cost_of_all / parameters.cost
        of_all = jnp.clip(1 / odds, self.least, 1.0)
        return odds * of_all, of_all

    def move(
        self,
        key: Key[Array, ""],
        target: Target,
        point: TemperedPoint,
        parameters: TargetParameters,
        number: Int[Array, ""],
    ) -> tuple[TemperedPoint, TargetInfo]:
        """Make so many moves."""
        one, unit, step_size = jnp.ones(()), jnp.ones_like(point.position), jnp.exp(parameters.log_step)
        length = jnp.clip(jnp.round(LENGTH * parameters.cost), FEWEST_STEPS, MOST_STEPS).astype(int)

        def usually(key: Key[Array, ""], point: TemperedPoint) -> tuple[TemperedPoint, KernelInfo]:
            return move_point(key, self.kernel, target, point, one, step_size, unit, parameters.factor)

        def carefully(key: Key[Array, ""], point: TemperedPoint) -> tuple[TemperedPoint, KernelInfo]:
            metric = Metric.from_factor(unit, parameters.factor)
            moved, info = move_with_delay(key, target, one, point, step_size, metric, length)
            return moved, info._replace(acceptance_rate=info.acceptance_rate[0])

        def again(i: Array, carry: tuple[TemperedPoint, TargetInfo]) -> tuple[TemperedPoint, TargetInfo]:
            point, before = carry
            key_which, key_move = jax.random.split(jax.random.fold_in(key, i))
            usual = jax.random.uniform(key_which, dtype=float) >= parameters.careful
            point, info = jax.lax.cond(usual, usually, carefully, key_move, point)
            rate, num_usual = info.acceptance_rate, before.num_usual + usual
            mean = before.acceptance_rate
            return point, TargetInfo(
                number,
                num_usual,
                before.num_failed + (usual & (rate < FAILED)),
                mean + jnp.where(usual, (rate - mean) / jnp.maximum(num_usual, 1), 0.0),
                before.diverging | info.diverging,
                before.non_finite | info.non_finite,
                before.num_evaluations + info.num_evaluations,
            )

        return jax.lax.fori_loop(0, number, again, (point, no_moves(number)))

    def adapt(
        self,
        parameters: TargetParameters,
        adaptation: TargetAdaptation,
        stage: Stage,
        carrier: TemperedPoint,
        info: TargetInfo,
        num_iterations: Float[Array, ""],
    ) -> tuple[TargetParameters, TargetAdaptation]:
        """The step size towards the kernel's acceptance rate; the metric from the draws of each window.

        `num_iterations` of warm-up have gone before.
        """
        counts = (info.num_usual > 0) & stage.tunes_step
        num_updates = adaptation.num_updates + counts
        forget = jnp.minimum(2 / (num_updates + 1), 1.0)
        error = info.acceptance_rate - jnp.asarray(self.kernel.target_acceptance)[0]
        log_step = parameters.log_step + jnp.where(counts, 1.5 / jnp.sqrt(num_updates + 10.0), 0.0) * error
        average = adaptation.average_log_step
        average = average + jnp.where(counts, forget, 0.0) * (log_step - average)
        each = info.num_evaluations / jnp.maximum(info.num_moves, 1)
        cost = parameters.cost + jnp.where(counts, jnp.maximum(forget, SLOWLY), 0.0) * (each - parameters.cost)
        failed = info.num_failed / jnp.maximum(info.num_usual, 1)
        # Over all of warm-up: a chain that is far from the neck when the metric is renewed need not forget it.
        of_all = jnp.where(counts, 2 / (num_iterations + 2), 0.0)
        failures = adaptation.failures + of_all * (failed - adaptation.failures)
        careful = jnp.clip(LEAST_CAREFUL + PER_FAILURE * (failures - FEW_FAILURES), LEAST_CAREFUL, MOST_CAREFUL)
        score = carrier.grad_target
        assert score is not None  # or there would be no NUTS
        window = add_draw(adaptation.window, carrier.position, score, jnp.asarray(stage.learns_metric))
        renews = stage.ends_window & (window.number >= LEAST_DRAWS)

        def renew() -> tuple[TargetParameters, TargetAdaptation]:
            factor = learned(window, parameters.factor)
            new = TargetParameters(jnp.asarray(first_log_step(carrier.position.shape[0])), factor, cost, careful)
            empty = window._replace(number=0 * window.number)
            return new, TargetAdaptation(empty, 0 * num_updates, new.log_step, failures)

        def go_on() -> tuple[TargetParameters, TargetAdaptation]:
            end = jnp.where(stage.ends_warmup, average, log_step)
            after = TargetAdaptation(window, num_updates, average, failures)
            return TargetParameters(end, parameters.factor, cost, careful), after

        return jax.lax.cond(renews, renew, go_on)


def first_parameters(
    local: Factor, shared: Float[Array, "d d"] | None, scale: Float[np.ndarray, " d"]
) -> TargetParameters:
    """The parameters as the pilot leaves them.

    `local` is the metric of its short moves at the target, a matrix in few dimensions; `scale` is what suits long ones,
    in the coordinates of `shared`.
    """
    if local.ndim == 2:
        factor = jnp.asarray(local)
    elif shared is not None:
        factor = jnp.asarray(shared) * scale
    else:
        factor = low_rank(jnp.asarray(scale))
    dim = scale.shape[0]
    return TargetParameters(
        jnp.asarray(first_log_step(dim)), factor, jnp.asarray(FIRST_COST), jnp.asarray(LEAST_CAREFUL)
    )
