"""WalkEnd importance sampling (Neal 2001): independent walks from the base to the target, weighted."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key
from numpy.typing import ArrayLike

from pseudo_extended import checks
from pseudo_extended.kernels import HMC, AbstractKernel, KernelParameters, Metric
from pseudo_extended.kernels.tempered import TemperedPoint, tempered_point
from pseudo_extended.methods.abstract import AbstractMethod, Chain, Statistic, StepInfo, WeightedPoints
from pseudo_extended.methods.rungs import adapt_rungs, checked_step_sizes, fixed_rungs, start_rungs
from pseudo_extended.target import Target
from pseudo_extended.tempering.bands import band_betas, level_bands
from pseudo_extended.tempering.schedule import checked_schedule
from pseudo_extended.warmup import Stage, WindowedWarmup


class WalkEnd(NamedTuple):
    """The end of a walk, with its weight."""

    path: TemperedPoint
    log_weight: Float[Array, ""]

    @property
    def position(self) -> Float[Array, " d"]:
        """The position where the walk ended."""
        return self.path.position


class Walk(NamedTuple):
    """The account of a walk, by bands of temperatures."""

    position: Float[Array, "band d"]
    """Where the walk left the band."""
    acceptance_sum: Float[Array, "band step_size"]
    num_moves: Float[Array, "band step_size"]
    diverging: Bool[Array, ""]
    non_finite: Bool[Array, ""]
    num_evaluations: Int[Array, ""]


class AnnealedImportance(AbstractMethod):
    """Each draw is a walk of its own, from a draw of the base through one move at every β, with a weight.

        log w = Σ_k (β_k - β_{k-1}) Δ(x_{k-1}),   Δ = log γ - log γ0.

    Draws are independent, and count by their weights: E[f] ≈ Σ w f(x) / Σ w, and the mean of w is an unbiased estimate
    of Z, or of Z/Z_0 if the base is not normalised. There is no chain that could fail to mix, but the weights get very
    uneven if the schedule is too short; `result.warnings` tells.

    `schedule` is "sigmoidal" (shorter steps near both ends), "linear", or betas that increase from 0 to 1; `num_steps`
    is the number of betas after the first, 100 unless given. The target needs a base that can be sampled. Up to eight
    bands of neighbouring temperatures have a step size and a metric each, tuned in warm-up and frozen; `step_size`, one
    number or one for each β between the ends, fixes them, and then no warm-up is needed.

    Neal (2001), WalkEnd importance sampling, Statistics and Computing 11.

    >>> import pseudo_extended as pe
    >>> pe.AnnealedImportance("linear", pe.HMC(10), num_steps=1000).describe()
    'annealed importance sampling HMC, 1000 steps'
    """

    betas: Float[np.ndarray, " rung"]
    step_size: Float[np.ndarray, " inner"] | None
    bands: Int[np.ndarray, " inner"]
    kernel: AbstractKernel
    warmup: WindowedWarmup
    num_bands: int = eqx.field(static=True)

    def __init__(
        self,
        schedule: str | ArrayLike = "sigmoidal",
        kernel: AbstractKernel | None = None,
        *,
        num_steps: int | None = None,
        step_size: ArrayLike | None = None,
        metric: str = "diagonal",
    ):
        owner = "AnnealedImportance"
        self.betas = checked_schedule(owner, schedule, num_steps)
        self.kernel = checks.instance(
            "kernel", HMC() if kernel is None else kernel, AbstractKernel, "a kernel such as pe.HMC()"
        )
        inner = self.betas[1:-1]
        self.step_size = None if step_size is None else checked_step_sizes(owner, step_size, inner.size)
        self.bands = level_bands(inner) if step_size is None else np.arange(inner.size)
        self.num_bands = int(self.bands[-1]) + 1
        self.warmup = WindowedWarmup(metric)

    @property
    def needs_gradient(self) -> bool:
        """Whether the kernel uses the gradient."""
        return self.kernel.uses_gradient

    def check(self, target: Target) -> None:
        """Require a base that can be sampled, from which the walks start."""
        if target.base is None or not target.base.can_sample:
            got = "a target without a base" if target.base is None else "a base without a sampler"
            raise ValueError(
                "AnnealedImportance needs a target whose base can be sampled (base=pe.Normal(), pe.Base(log_density, "
                f"sampler), or sample_prior= with log_prior and log_likelihood); got {got}."
            )

    def covers(self, target: Target, x: Float[Array, "particle d"]) -> Bool[Array, " particle"]:
        """Whether the base is positive."""
        return jax.vmap(lambda u: jnp.isfinite(target.path_point(u).log_base))(x)

    def init(self, key: Key[Array, ""], target: Target, x: Float[Array, "particle d"]) -> Chain:
        """Make a chain; the given point only serves to find first step sizes."""
        if self.step_size is None:
            centres = band_betas(jnp.asarray(self.betas)[1:-1], jnp.asarray(self.bands), self.num_bands)
            kernels = start_rungs(key, self.kernel, self.warmup, target, centres, x[0])
        else:
            kernels = fixed_rungs(self.kernel, self.warmup, jnp.asarray(self.step_size), x.shape[1])
        state = WalkEnd(tempered_point(target, x[0], gradient=self.kernel.uses_gradient), jnp.zeros(()))
        return Chain(state, kernels, jax.vmap(self.warmup.start)(kernels))

    def step(self, key: Key[Array, ""], target: Target, chain: Chain) -> tuple[WalkEnd, Walk]:
        """Make a whole walk from the base to the target; nothing of the last one is left."""
        key_base, key_walk = jax.random.split(key)
        betas = jnp.asarray(self.betas)
        start = tempered_point(target, target.draw_base(key_base), gradient=self.kernel.uses_gradient)
        zero, false = jnp.zeros(chain.parameters.step_size.shape), jnp.asarray(False)
        position = jnp.zeros((self.num_bands, target.dim))

        def onward(carry: tuple[WalkEnd, Walk], k: Int[Array, ""]) -> tuple[tuple[WalkEnd, Walk], None]:
            (path, log_weight), walk = carry
            band = jnp.asarray(self.bands)[k - 1]
            parameters = KernelParameters(*(part[band] for part in chain.parameters))
            log_weight = log_weight + (betas[k] - betas[k - 1]) * path.delta
            path, info = self.kernel.move_tempered(
                jax.random.fold_in(key_walk, k),
                target,
                betas[k],
                path,
                parameters.step_size,
                Metric.from_inverse_mass(parameters.inverse_mass),
            )
            ran = ~jnp.isnan(info.acceptance_rate)
            walk = Walk(
                walk.position.at[band].set(path.position),
                walk.acceptance_sum.at[band].add(jnp.where(ran, info.acceptance_rate, 0.0)),
                walk.num_moves.at[band].add(ran.astype(float)),
                walk.diverging | info.diverging,
                walk.non_finite | info.non_finite,
                walk.num_evaluations + info.num_evaluations,
            )
            return (WalkEnd(path, log_weight), walk), None

        first = (WalkEnd(start, jnp.zeros(())), Walk(position, zero, zero, false, false, jnp.asarray(1)))
        (end, walk), _ = jax.lax.scan(onward, first, jnp.arange(1, betas.size - 1))
        return WalkEnd(end.path, end.log_weight + (betas[-1] - betas[-2]) * end.path.delta), walk

    def adapt(self, target: Target, chain: Chain, stage: Stage, info: Walk) -> Chain:
        """Step sizes and metric of each band, by the mean acceptance in it and the point where the walk left it."""
        del target
        if self.step_size is not None:
            return chain
        adaptation, parameters = adapt_rungs(
            self.kernel,
            self.warmup,
            chain.adaptation,
            chain.parameters,
            stage,
            info.position,
            info.acceptance_sum / info.num_moves,  # nan where no part of a mixture ran
            jnp.ones(self.num_bands, bool),
        )
        return Chain(chain.state, parameters, adaptation)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The statistics of `points`."""
        return (
            Statistic("lp"),
            Statistic("evidence_top", ("factor",)),
            Statistic("evidence_bottom", ("factor",)),
        )

    def points(self, target: Target, state: WalkEnd) -> WeightedPoints:
        """The end of the walk, with w as the importance of the draw."""
        del target
        terms = {"evidence_top": state.log_weight[None], "evidence_bottom": jnp.zeros(1)}
        statistics = {"lp": state.path.log_target} | terms
        return WeightedPoints(state.position[None], jnp.zeros(1), statistics, state.log_weight)

    def report(self, info: Walk) -> StepInfo:
        """Sum up the walk: mean acceptance, failures and evaluations."""
        rate = jnp.sum(info.acceptance_sum) / jnp.sum(info.num_moves)
        return StepInfo(rate, info.diverging, info.non_finite, info.num_evaluations)

    def describe(self) -> str:
        """Name the method and its main settings, for tables and reports."""
        return f"annealed importance sampling {type(self.kernel).__name__}, {self.betas.size - 1} steps"
