"""Warm-up in windows, as in Stan: step size alone, step size and metric in windows that double, step size alone.

It is a state machine that the one loop drives iteration by iteration, so warm-up can be cut into chunks like the
draws; BlackJAX's own warm-up is one scan that owns the sampler.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from pseudo_extended import checks
from pseudo_extended.kernels import AbstractKernel, KernelInfo, KernelParameters, KernelState
from pseudo_extended.warmup.metric import RunningCovariance, add_point, inverse_mass, no_covariance, step_ratio
from pseudo_extended.warmup.step_size import DualAveraging, average_step, averaged_step, start_averaging


class Stage(NamedTuple):
    """What one iteration of warm-up does; for a whole warm-up, arrays with one entry an iteration."""

    tunes_step: Bool[np.ndarray, "*iteration"] | Bool[Array, "*iteration"]
    """The acceptance rates count towards the step sizes."""
    learns_metric: Bool[np.ndarray, "*iteration"] | Bool[Array, "*iteration"]
    """The point counts towards the metric."""
    ends_window: Bool[np.ndarray, "*iteration"] | Bool[Array, "*iteration"]
    """The metric is renewed and its window starts afresh."""
    ends_warmup: Bool[np.ndarray, "*iteration"] | Bool[Array, "*iteration"]
    """The parameters are frozen at their averages."""


class Adaptation(NamedTuple):
    """The state of warm-up; its size does not depend on the number of iterations."""

    averaging: DualAveraging
    covariance: RunningCovariance


class WindowedWarmup(eqx.Module):
    """Step sizes by dual averaging, and a diagonal or dense metric."""

    metric: str = eqx.field(static=True)

    def __init__(self, metric: str = "diagonal"):
        self.metric = checks.choice("metric", metric, ("diagonal", "dense"))

    @property
    def dense(self) -> bool:
        """Whether the metric is a matrix."""
        return self.metric == "dense"

    def start(self, parameters: KernelParameters) -> Adaptation:
        """Begin from the given step sizes."""
        dim = parameters.inverse_mass.shape[0]
        return Adaptation(start_averaging(parameters.step_size), no_covariance(dim, dense=self.dense))

    def update(
        self,
        kernel: AbstractKernel,
        adaptation: Adaptation,
        parameters: KernelParameters,
        stage: Stage,
        state: KernelState,
        info: KernelInfo,
    ) -> tuple[Adaptation, KernelParameters]:
        """Learn from one iteration: the new state of warm-up and the parameters of the next iteration."""
        rates = jnp.where(stage.tunes_step, info.acceptance_rate, jnp.nan)
        averaging = average_step(adaptation.averaging, rates, jnp.asarray(kernel.target_acceptance))
        covariance = jax.tree.map(
            lambda after, before: jnp.where(stage.learns_metric, after, before),
            add_point(adaptation.covariance, state.position),
            adaptation.covariance,
        )
        learned = Adaptation(averaging, covariance)

        def renew(_: None) -> tuple[Adaptation, KernelParameters]:
            metric = inverse_mass(covariance, parameters.inverse_mass)
            step_size = averaged_step(averaging) * step_ratio(parameters.inverse_mass, metric)
            renewed = KernelParameters(step_size, metric)
            return self.start(renewed), renewed

        def go_on(_: None) -> tuple[Adaptation, KernelParameters]:
            step_size = jnp.where(stage.ends_warmup, averaged_step(averaging), jnp.exp(averaging.log_step))
            return learned, KernelParameters(step_size, parameters.inverse_mass)

        return jax.lax.cond(stage.ends_window, renew, go_on, None)


def stages(num_warmup: int) -> Stage:
    """Stan's plan: 75 iterations, windows of 25, 50, 100, … and 50 at the end.

    A shorter warm-up has one window, between a first sixth and the last 25 iterations, which the step sizes need to
    settle in the new metric. Below 75 there is no time for a metric; below 20 not even for the step sizes, and the
    first guess is kept.

    >>> np.flatnonzero(stages(1000).ends_window) + 1
    array([100, 150, 250, 450, 950])
    """
    first, window, last = 75, 25, 50
    if num_warmup < first + window + last:
        first, last = num_warmup // 6, 25
        window = num_warmup - first - last
    tunes_step = np.full(num_warmup, num_warmup >= 20)
    learns_metric = np.zeros(num_warmup, bool)
    ends_window = np.zeros(num_warmup, bool)
    ends_warmup = np.zeros(num_warmup, bool)
    ends_warmup[-1:] = True
    if num_warmup >= 75:
        learns_metric[first : num_warmup - last] = True
        end = first + window
        while end <= num_warmup - last:
            # The last window takes what is left, when the next one would not fit any more.
            if end + 2 * window > num_warmup - last:
                end = num_warmup - last
            ends_window[end - 1] = True
            window *= 2
            end += window
    return Stage(tunes_step, learns_metric, ends_window, ends_warmup)
