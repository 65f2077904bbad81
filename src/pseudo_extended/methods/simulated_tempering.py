"""Simulated tempering (Marinari and Parisi 1992): one chain, whose temperature is a part of its state."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key
from numpy.typing import ArrayLike

from pseudo_extended import checks
from pseudo_extended.kernels import HMC, AbstractKernel, KernelInfo, KernelParameters, Metric
from pseudo_extended.kernels.tempered import TemperedPoint, tempered_point
from pseudo_extended.methods.abstract import AbstractMethod, Chain, Statistic, StepInfo, WeightedPoints
from pseudo_extended.methods.level_weights import (
    LevelSums,
    first_sums,
    leading_log_weight,
    level_log_weight,
    update_sums,
)
from pseudo_extended.methods.rungs import adapt_rungs, checked_step_sizes, fixed_rungs, start_rungs
from pseudo_extended.target import Target
from pseudo_extended.tempering.bands import band_betas, level_bands
from pseudo_extended.tempering.schedule import check_ladder, checked_betas
from pseudo_extended.warmup import Adaptation, Stage, WindowedWarmup


class TemperedState(NamedTuple):
    """A point, its level on the ladder, and what the end levels say about it."""

    path: TemperedPoint
    level: Int[Array, ""]
    moved_at: Int[Array, ""]
    """The level of the last move, which came before the level was drawn."""
    log_top: Float[Array, ""]
    """log P(β = 1 | x): how much this draw counts."""
    log_bottom: Float[Array, ""]
    """log P(hottest level | x)."""
    log_weight: Float[Array, " 2"]
    """The log weights of the hottest level and of β = 1 that this state was drawn with."""

    @property
    def position(self) -> Float[Array, " d"]:
        """The position of the chain."""
        return self.path.position


class LevelParameters(NamedTuple):
    """Tuned parameters of the kernels, with a leading axis of bands, and the log weight of each level."""

    step_size: Float[Array, "band step_size"]
    inverse_mass: Float[Array, "band d"] | Float[Array, "band d d"]
    log_weight: Float[Array, " level"]


class LevelAdaptation(NamedTuple):
    """The state of warm-up, of the kernels and of the weights."""

    kernels: Adaptation
    sums: LevelSums


class SimulatedTempering(AbstractMethod):
    """One chain on (x, k) with density ∝ exp{log γ_{β_k}(x) + w_k}: a move of x at β_k, then k from its conditional.

    `betas` increase to 1; there may be a thousand of them, because a change of level costs no evaluation. The weights
    w_k, which make all levels about equally likely when w_k = -log Z(β_k), are learned in warm-up and then frozen, or
    given as `log_weights`; the output is right for any of them, but only a chain that travels is of use.

    A draw is not a draw of the target unless k is the last level. Instead of waiting for it, each draw is weighted by
    p_K(x) = P(k = K | x), its importance: E[f] ≈ Σ p_K(x) f(x) / Σ p_K(x) (Rao-Blackwellised; Carlson et al. 2016).
    With betas from 0, Z/Z_0 is the ratio of the means of p_K(x) exp(-w_K) and p_0(x) exp(-w_0).

    Up to eight bands of neighbouring levels have a step size and a metric each, tuned in warm-up; `step_size`, one
    number or one for each β, fixes them. At β = 0 a base that can be sampled is drawn from. `result.statistics` has
    `level` and `beta` of each draw.

    Marinari and Parisi (1992), Simulated tempering: a new Monte Carlo scheme, Europhysics Letters 19.

    >>> import pseudo_extended as pe
    >>> pe.SimulatedTempering(np.linspace(0, 1, 1000), pe.HMC(20)).describe()
    'simulated tempering HMC, 1000 temperatures'
    """

    betas: Float[np.ndarray, " level"]
    log_weights: Float[np.ndarray, " level"] | None
    step_size: Float[np.ndarray, " level"] | None
    bands: Int[np.ndarray, " level"]
    kernel: AbstractKernel
    warmup: WindowedWarmup
    num_bands: int = eqx.field(static=True)
    reaches_base: bool = eqx.field(static=True)

    def __init__(
        self,
        betas: ArrayLike,
        kernel: AbstractKernel | None = None,
        *,
        log_weights: ArrayLike | None = None,
        step_size: ArrayLike | None = None,
        metric: str = "diagonal",
    ):
        owner = "SimulatedTempering"
        self.betas = checked_betas(owner, betas)
        self.kernel = checks.instance(
            "kernel", HMC() if kernel is None else kernel, AbstractKernel, "a kernel such as pe.HMC()"
        )
        self.log_weights = None
        if log_weights is not None:
            self.log_weights = checks.float_array(f"log_weights of {owner}", log_weights)
            if self.log_weights.shape != self.betas.shape:
                raise ValueError(
                    f"log_weights of {owner} must have one entry for each of {self.betas.size} betas; "
                    f"got {checks.describe(log_weights)}."
                )
        self.step_size = None if step_size is None else checked_step_sizes(owner, step_size, self.betas.size)
        self.bands = level_bands(self.betas) if step_size is None else np.arange(self.betas.size)
        self.num_bands = int(self.bands[-1]) + 1
        self.warmup = WindowedWarmup(metric)
        self.reaches_base = bool(self.betas[0] == 0)

    @property
    def needs_gradient(self) -> bool:
        """Whether the kernel uses the gradient."""
        return self.kernel.uses_gradient

    def check(self, target: Target) -> None:
        """β = 0 needs a base."""
        check_ladder("SimulatedTempering", self.betas, target)

    def covers(self, target: Target, x: Float[Array, "particle d"]) -> Bool[Array, " particle"]:
        """Whether the base is positive."""
        return jax.vmap(lambda u: jnp.isfinite(target.path_point(u).log_base))(x)

    def init(self, key: Key[Array, ""], target: Target, x: Float[Array, "particle d"]) -> Chain:
        """Start at the given point, on a level from its conditional, where all levels are equally likely."""
        key_step, key_level = jax.random.split(key)
        path = tempered_point(target, x[0], gradient=self.kernel.uses_gradient)
        sums = first_sums(jnp.asarray(self.betas), path.delta)
        log_weight = level_log_weight(sums) if self.log_weights is None else jnp.asarray(self.log_weights)
        if self.step_size is None:
            centres = band_betas(jnp.asarray(self.betas), jnp.asarray(self.bands), self.num_bands)
            kernels = start_rungs(key_step, self.kernel, self.warmup, target, centres, x[0])
        else:
            kernels = fixed_rungs(self.kernel, self.warmup, jnp.asarray(self.step_size), x.shape[1])
        adaptation = LevelAdaptation(jax.vmap(self.warmup.start)(kernels), sums)
        start = self._with_level(key_level, path, jnp.asarray(0), log_weight)
        return Chain(start, LevelParameters(*kernels, log_weight), adaptation)

    def step(self, key: Key[Array, ""], target: Target, chain: Chain) -> tuple[TemperedState, KernelInfo]:
        """One step of the kernel at the temperature of the level, then another level."""
        key_move, key_level = jax.random.split(key)
        level, parameters = chain.state.level, chain.parameters
        band = jnp.asarray(self.bands)[level]
        kernel = KernelParameters(parameters.step_size[band], parameters.inverse_mass[band])
        beta = jnp.asarray(self.betas)[level]

        def by_kernel() -> tuple[TemperedPoint, KernelInfo]:
            metric = Metric.from_inverse_mass(kernel.inverse_mass)
            return self.kernel.move_tempered(key_move, target, beta, chain.state.path, kernel.step_size, metric)

        def from_base() -> tuple[TemperedPoint, KernelInfo]:
            drawn = tempered_point(target, target.draw_base(key_move), gradient=self.kernel.uses_gradient)
            false, did_not_run = jnp.asarray(False), jnp.full(self.kernel.target_acceptance.shape, jnp.nan)
            return drawn, KernelInfo(did_not_run, false, false, jnp.asarray(1))

        if self.reaches_base and target.base is not None and target.base.can_sample:
            path, info = jax.lax.cond(level == 0, from_base, by_kernel)
        else:
            path, info = by_kernel()
        return self._with_level(key_level, path, level, parameters.log_weight), info

    def adapt(self, target: Target, chain: Chain, stage: Stage, info: KernelInfo) -> Chain:
        """The step size and metric of the band that has just moved, and the weights of all levels."""
        del target
        state, parameters, adaptation = chain
        kernels, kernel_adaptation = KernelParameters(*parameters[:2]), adaptation.kernels
        if self.step_size is None:
            kernel_adaptation, kernels = adapt_rungs(
                self.kernel,
                self.warmup,
                kernel_adaptation,
                kernels,
                stage,
                jnp.broadcast_to(state.position, (self.num_bands, state.position.size)),
                jnp.broadcast_to(info.acceptance_rate, (self.num_bands, info.acceptance_rate.size)),
                jnp.arange(self.num_bands) == jnp.asarray(self.bands)[state.moved_at],
            )
        log_weight, sums = parameters.log_weight, adaptation.sums
        if self.log_weights is None:
            betas, delta = jnp.asarray(self.betas), state.path.delta
            log_level = level_log_probabilities(betas, delta, log_weight)
            sums = update_sums(sums, betas, delta, state.moved_at, log_level, stage)
            chooses = sums.free | jnp.asarray(stage.ends_warmup)
            log_weight = jnp.where(chooses, level_log_weight(sums), leading_log_weight(sums, betas))
        return Chain(state, LevelParameters(*kernels, log_weight), LevelAdaptation(kernel_adaptation, sums))

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The statistics of `points`."""
        always = (Statistic("lp"), Statistic("level"), Statistic("beta"))
        evidence = (Statistic("evidence_top", ("factor",)), Statistic("evidence_bottom", ("factor",)))
        return always + evidence if self.reaches_base else always

    def points(self, target: Target, state: TemperedState) -> WeightedPoints:
        """The point, with P(β = 1 | x) as the importance of the draw."""
        del target
        statistics = {
            "lp": state.path.log_target,
            "level": state.level,
            "beta": jnp.asarray(self.betas)[state.level],
        }
        if self.reaches_base:
            statistics |= {
                "evidence_top": (state.log_top - state.log_weight[1])[None],
                "evidence_bottom": (state.log_bottom - state.log_weight[0])[None],
            }
        return WeightedPoints(state.position[None], jnp.zeros(1), statistics, state.log_top)

    def report(self, info: KernelInfo) -> StepInfo:
        """The kernel's own account; a draw from the base is always accepted."""
        rate = jnp.nan_to_num(jnp.nanmean(info.acceptance_rate), nan=1.0)
        return StepInfo(rate, info.diverging, info.non_finite, info.num_evaluations)

    def describe(self) -> str:
        """Name the method and its main settings, for tables and reports."""
        return f"simulated tempering {type(self.kernel).__name__}, {self.betas.size} temperatures"

    def _with_level(
        self, key: Key[Array, ""], path: TemperedPoint, moved_at: Int[Array, ""], log_weight: Float[Array, " level"]
    ) -> TemperedState:
        """Draw a level from its conditional, P(k | x)."""
        log_level = level_log_probabilities(jnp.asarray(self.betas), path.delta, log_weight)
        level = jax.random.categorical(key, log_level)
        return TemperedState(path, level, moved_at, log_level[-1], log_level[0], log_weight[jnp.array([0, -1])])


def level_log_probabilities(
    betas: Float[Array, " level"], delta: Float[Array, ""], log_weight: Float[Array, " level"]
) -> Float[Array, " level"]:
    """log P(k | x) = β_k Δ(x) + w_k, normalised; log γ0 is the same for all k."""
    scaled = jnp.where(betas == 0, 0.0, betas * jnp.where(betas == 0, 0.0, delta))
    return jax.nn.log_softmax(scaled + log_weight)
