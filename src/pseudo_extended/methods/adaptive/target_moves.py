"""Moves that the pseudo-sample which carries the target makes alone, by NUTS, in a metric that warm-up learns.

On a long path to one mode that pseudo-sample does most of the work, and the short moves of all are a gain only where
NUTS does badly. So the two share the evaluations: each step makes either part with a probability that gives the target
its share of them, whatever a trajectory costs, and both are frozen when the draws begin.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from pseudo_extended.kernels import AbstractKernel, KernelInfo, TemperedPoint
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


def first_log_step(dim: int) -> float:
    """The step to begin with, in a metric that makes the target about round."""
    return float(np.log(0.5) - 0.25 * np.log(dim))


class TargetParameters(NamedTuple):
    """What warm-up tunes in each chain."""

    log_step: Float[Array, ""]
    factor: SharedFactor
    cost: Float[Array, ""]
    """Evaluations of a move."""


class TargetAdaptation(NamedTuple):
    """The state of warm-up."""

    window: Window
    num_updates: Float[Array, ""]
    """Of the step size in the present metric."""
    average_log_step: Float[Array, ""]


class TargetMoves(eqx.Module):
    """Moves of a kernel for the target's pseudo-sample, which are to have a share of all evaluations."""

    kernel: AbstractKernel
    share: float = eqx.field(static=True)
    least: float = eqx.field(static=True)
    """The moves of all are made with this probability at least; so that the share is kept, a step may then have more
    than one move of the target."""

    def start(self, parameters: TargetParameters, dim: int) -> TargetAdaptation:
        """The state of adaptation before the first move."""
        return TargetAdaptation(empty_window(dim), jnp.zeros(()), parameters.log_step)

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
    ) -> tuple[TemperedPoint, KernelInfo]:
        """Make so many moves; the account has the mean of the acceptance rates, and the sum of the evaluations."""
        one, unit, step_size = jnp.ones(()), jnp.ones_like(point.position), jnp.exp(parameters.log_step)

        def again(i: Array, carry: tuple[TemperedPoint, KernelInfo]) -> tuple[TemperedPoint, KernelInfo]:
            point, so_far = carry
            here = jax.random.fold_in(key, i)
            point, info = move_point(here, self.kernel, target, point, one, step_size, unit, parameters.factor)
            return point, KernelInfo(
                so_far.acceptance_rate + info.acceptance_rate / number,
                so_far.diverging | info.diverging,
                so_far.non_finite | info.non_finite,
                so_far.num_evaluations + info.num_evaluations,
            )

        nothing = KernelInfo(jnp.zeros(()), jnp.asarray(False), jnp.asarray(False), jnp.asarray(0))
        return jax.lax.fori_loop(0, number, again, (point, nothing))

    def adapt(
        self,
        parameters: TargetParameters,
        adaptation: TargetAdaptation,
        stage: Stage,
        carrier: TemperedPoint,
        info: KernelInfo,
        number: Int[Array, ""],
    ) -> tuple[TargetParameters, TargetAdaptation]:
        """The step size towards the kernel's acceptance rate; the metric from the draws of each window."""
        counts = (number > 0) & stage.tunes_step
        num_updates = adaptation.num_updates + counts
        forget = jnp.minimum(2 / (num_updates + 1), 1.0)
        error = info.acceptance_rate - jnp.asarray(self.kernel.target_acceptance)[0]
        log_step = parameters.log_step + jnp.where(counts, 1.5 / jnp.sqrt(num_updates + 10.0), 0.0) * error
        average = adaptation.average_log_step
        average = average + jnp.where(counts, forget, 0.0) * (log_step - average)
        each = info.num_evaluations / jnp.maximum(number, 1)
        cost = parameters.cost + jnp.where(counts, jnp.maximum(forget, SLOWLY), 0.0) * (each - parameters.cost)
        score = carrier.grad_target
        assert score is not None  # or there would be no NUTS
        window = add_draw(adaptation.window, carrier.position, score, jnp.asarray(stage.learns_metric))
        renews = stage.ends_window & (window.number >= LEAST_DRAWS)

        def renew() -> tuple[TargetParameters, TargetAdaptation]:
            factor = learned(window, parameters.factor)
            new = TargetParameters(jnp.asarray(first_log_step(carrier.position.shape[0])), factor, cost)
            return new, TargetAdaptation(window._replace(number=0 * window.number), 0 * num_updates, new.log_step)

        def go_on() -> tuple[TargetParameters, TargetAdaptation]:
            end = jnp.where(stage.ends_warmup, average, log_step)
            return TargetParameters(end, parameters.factor, cost), TargetAdaptation(window, num_updates, average)

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
    return TargetParameters(jnp.asarray(first_log_step(dim)), factor, jnp.asarray(FIRST_COST))
