"""Parallel tempering (Geyer 1991): a chain at every temperature, and neighbours that swap their points."""

import warnings
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key
from numpy.typing import ArrayLike

from pseudo_extended import checks
from pseudo_extended.kernels import NUTS, AbstractKernel, KernelInfo, KernelParameters, Metric, RandomWalk
from pseudo_extended.kernels.tempered import TemperedPoint, tempered_point
from pseudo_extended.methods.abstract import AbstractMethod, Chain, Statistic, StepInfo, WeightedPoints
from pseudo_extended.methods.rungs import adapt_rungs, checked_step_sizes, fixed_rungs, start_rungs
from pseudo_extended.target import Target
from pseudo_extended.tempering.schedule import check_ladder, checked_betas
from pseudo_extended.tempering.swaps import equal_rejections, swap_acceptance, swap_order
from pseudo_extended.warmup import Adaptation, Stage, WindowedWarmup


class Replicas(NamedTuple):
    """One point for each rung, the hottest first, and what the last step did."""

    path: TemperedPoint
    replica: Int[Array, " rung"]
    """Which replica sits on each rung: a replica keeps its number when it is swapped."""
    odd: Bool[Array, ""]
    """Whether the next even-odd swap is that of the odd pairs."""
    swap_acceptance: Float[Array, " pair"]
    """The probability that each pair of neighbours would have swapped, proposed or not."""
    betas: Float[Array, " rung"]
    """The ladder that this state was drawn with."""

    @property
    def position(self) -> Float[Array, "rung d"]:
        """The positions of all rungs."""
        return self.path.position


class LadderParameters(NamedTuple):
    """Tuned parameters of every rung's kernel, with a leading rung axis, and the ladder itself."""

    step_size: Float[Array, "kernel step_size"]
    inverse_mass: Float[Array, "kernel d"] | Float[Array, "kernel d d"]
    betas: Float[Array, " rung"]


class LadderAdaptation(NamedTuple):
    """The state of warm-up: that of every rung's kernel, and how often swaps were rejected in this window."""

    kernels: Adaptation
    rejections: Float[Array, " pair"]
    num_steps: Float[Array, ""]


class Moves(NamedTuple):
    """The account of one step: what happened at each kernel, and how many points were drawn from the base."""

    kernels: KernelInfo
    num_draws: Int[Array, ""]
    """Fresh draws from the base."""


class ParallelTempering(AbstractMethod):
    """A chain at each β of a ladder, moved by a kernel of its own, and swaps between neighbours.

    `betas` increase to 1. Rung k has density γ_β ∝ γ0^(1-β) γ^β, or γ^β for a target without a base; at β = 0 it is
    drawn afresh from a base that can be sampled. Neighbours k and k+1 swap with probability

        min{1, exp[(β_{k+1} - β_k)(Δ(x_k) - Δ(x_{k+1}))]},   Δ = log γ - log γ0.

    `swaps="even_odd"` proposes all even pairs in one step and all odd ones in the next, which carries points through
    the ladder fastest (Okabe et al. 2001; Syed et al. 2022); `swaps="random_pair"` proposes one pair, drawn uniformly,
    with probability `swap_probability`. Warm-up tunes the step sizes and metric of every rung, and moves the inner
    betas until all pairs swap equally often, unless `adapt_betas=False`. With `step_size`, one for each β, nothing of
    the kernels is tuned.

    The output is the cold chain. All rungs start at the same point. `result.statistics` has `beta`, `delta`, `replica`
    and `swap_acceptance` of each draw, which `pe.results.tempering` turns into swap rates, round trips and more; with
    betas from 0, `result.log_evidence` is estimated by stepping stones.

    Geyer (1991), Markov chain Monte Carlo maximum likelihood. Syed, Bouchard-Côté, Deligiannidis and Doucet (2022),
    Non-reversible parallel tempering, JRSS B 84.

    >>> import pseudo_extended as pe
    >>> pe.ParallelTempering(np.geomspace(0.01, 1, 6), pe.HMC(5)).describe()
    'parallel tempering HMC, 6 temperatures'
    """

    betas: Float[np.ndarray, " rung"]
    step_size: Float[np.ndarray, " rung"] | None
    swap_probability: Float[np.ndarray, ""]
    kernel: AbstractKernel
    warmup: WindowedWarmup
    swaps: str = eqx.field(static=True)
    adapt_betas: bool = eqx.field(static=True)
    reaches_base: bool = eqx.field(static=True)

    def __init__(
        self,
        betas: ArrayLike,
        kernel: AbstractKernel | None = None,
        *,
        swaps: str = "even_odd",
        swap_probability: float = 1.0,
        adapt_betas: bool = True,
        step_size: ArrayLike | None = None,
        metric: str = "diagonal",
    ):
        owner = "ParallelTempering"
        self.betas = checked_betas(owner, betas)
        self.kernel = checks.instance(
            "kernel", NUTS() if kernel is None else kernel, AbstractKernel, "a kernel such as pe.NUTS()"
        )
        self.swaps = checks.choice("swaps", swaps, ("even_odd", "random_pair"))
        self.swap_probability = np.asarray(checks.real("swap_probability", swap_probability, low=0, high=1))
        self.adapt_betas = checks.choice("adapt_betas", adapt_betas, (True, False))
        self.step_size = None if step_size is None else checked_step_sizes(owner, step_size, self.betas.size)
        self.warmup = WindowedWarmup(metric)
        self.reaches_base = bool(self.betas[0] == 0)
        if self.swaps == "even_odd" and self.swap_probability != 1:
            raise ValueError(
                "swap_probability goes with swaps='random_pair'; even-odd swaps are always proposed; "
                f"got {checks.describe(swap_probability)}."
            )
        if self.step_size is not None and self.adapt_betas:
            raise ValueError("step_size belongs to fixed betas: pass adapt_betas=False with it; got True.")

    @classmethod
    def kou_2006(cls) -> "ParallelTempering":
        """The setting of Kou, Zhou and Wong (2006) for 20 modes: five temperatures, a random walk, rare swaps.

        T = (1, 2.8, 7.7, 21.6, 60), normal steps of 0.25 √T, and one pair proposed in a tenth of the iterations. They
        started all chains uniformly on the unit square and kept 50,000 draws in each of 20 runs.

        >>> ParallelTempering.kou_2006().step_size.round(3)
        array([1.936, 1.162, 0.694, 0.418, 0.25 ])
        """
        temperatures = np.array([60.0, 21.6, 7.7, 2.8, 1.0])
        return cls(
            1 / temperatures,
            RandomWalk(),
            swaps="random_pair",
            swap_probability=0.1,
            adapt_betas=False,
            step_size=0.25 * np.sqrt(temperatures),
        )

    @classmethod
    def kou2006(cls) -> "ParallelTempering":
        """The old name of `kou_2006`; it will be removed in version 0.4."""
        warnings.warn("kou2006 is deprecated: use ParallelTempering.kou_2006.", DeprecationWarning, stacklevel=2)
        return cls.kou_2006()

    @property
    def needs_gradient(self) -> bool:
        """Whether the kernel uses the gradient."""
        return self.kernel.uses_gradient

    def check(self, target: Target) -> None:
        """Require a base if the ladder begins at β = 0."""
        check_ladder("ParallelTempering", self.betas, target)

    def covers(self, target: Target, x: Float[Array, "particle d"]) -> Bool[Array, " particle"]:
        """Whether the base is positive."""
        return jax.vmap(lambda u: jnp.isfinite(target.path_point(u).log_base))(x)

    def init(self, key: Key[Array, ""], target: Target, x: Float[Array, "particle d"]) -> Chain:
        """Start every rung at the one given point."""
        betas, first = jnp.asarray(self.betas), self._num_drawn(target)
        one = tempered_point(target, x[0], gradient=self.kernel.uses_gradient)
        path = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (betas.size, *leaf.shape)), one)
        replicas = Replicas(path, jnp.arange(betas.size), jnp.asarray(False), jnp.zeros(betas.size - 1), betas)
        if self.step_size is None:
            kernels = start_rungs(key, self.kernel, self.warmup, target, betas[first:], x[0])
        else:
            kernels = fixed_rungs(self.kernel, self.warmup, jnp.asarray(self.step_size)[first:], x.shape[1])
        adaptation = LadderAdaptation(jax.vmap(self.warmup.start)(kernels), jnp.zeros(betas.size - 1), jnp.zeros(()))
        return Chain(replicas, LadderParameters(*kernels, betas), adaptation)

    def step(self, key: Key[Array, ""], target: Target, chain: Chain) -> tuple[Replicas, Moves]:
        """Move every rung, then swap neighbours."""
        key_base, key_kernels, key_propose, key_accept = jax.random.split(key, 4)
        betas = chain.parameters.betas
        path, info = self._move(key_base, key_kernels, target, chain.state.path, chain.parameters)
        acceptance = swap_acceptance(betas, path.delta)
        proposed = self._propose(key_propose, chain.state.odd, acceptance.size)
        order = swap_order(proposed & (jax.random.uniform(key_accept, acceptance.shape, float) < acceptance))
        path, replica = jax.tree.map(lambda leaf: leaf[order], (path, chain.state.replica))
        return Replicas(path, replica, ~chain.state.odd, acceptance, betas), info

    def adapt(self, target: Target, chain: Chain, stage: Stage, info: Moves) -> Chain:
        """Step sizes and metrics of all rungs, and the ladder at the end of each window."""
        parameters, adaptation, first = chain.parameters, chain.adaptation, self._num_drawn(target)
        kernels, kernel_adaptation = KernelParameters(*parameters[:2]), adaptation.kernels
        if self.step_size is None:
            visited = jnp.ones(info.kernels.diverging.shape, bool)
            kernel_adaptation, kernels = adapt_rungs(
                self.kernel,
                self.warmup,
                kernel_adaptation,
                kernels,
                stage,
                chain.state.path.position[first:],
                info.kernels.acceptance_rate,
                visited,
            )
        counts = jnp.asarray(stage.learns_metric, float)
        rejections = adaptation.rejections + counts * (1 - chain.state.swap_acceptance)
        num_steps = adaptation.num_steps + counts
        betas, ends = parameters.betas, jnp.asarray(stage.ends_window)
        if self.adapt_betas:
            betas = jnp.where(ends, equal_rejections(betas, rejections / jnp.maximum(num_steps, 1)), betas)
        learned = LadderAdaptation(kernel_adaptation, jnp.where(ends, 0.0, rejections), jnp.where(ends, 0.0, num_steps))
        return Chain(chain.state, LadderParameters(*kernels, betas), learned)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The statistics of `points`."""
        always = (
            Statistic("lp"),
            Statistic("beta", ("rung",)),
            Statistic("delta", ("rung",)),
            Statistic("replica", ("rung",)),
            Statistic("swap_acceptance", ("pair",)),
        )
        evidence = (Statistic("evidence_top", ("pair",)), Statistic("evidence_bottom", ("pair",)))
        return always + evidence if self.reaches_base else always

    def points(self, target: Target, state: Replicas) -> WeightedPoints:
        """The cold chain's point, with weight one; what tells how the ladder works as statistics."""
        del target
        path = state.path
        statistics = {
            "lp": path.log_target[-1],
            "beta": state.betas,
            "delta": path.delta,
            "replica": state.replica,
            "swap_acceptance": state.swap_acceptance,
        }
        if self.reaches_base:
            # Z_{k+1}/Z_k by a bridge half-way: E_k[exp(δΔ/2)] / E_{k+1}[exp(-δΔ/2)] with δ = β_{k+1} - β_k.
            half = 0.5 * jnp.diff(state.betas)
            statistics |= {"evidence_top": half * path.delta[:-1], "evidence_bottom": -half * path.delta[1:]}
        return WeightedPoints(path.position[-1:], jnp.zeros(1), statistics)

    def report(self, info: Moves) -> StepInfo:
        """Sum up the moves of all rungs."""
        kernels = info.kernels
        return StepInfo(
            jnp.nanmean(kernels.acceptance_rate),
            jnp.any(kernels.diverging),
            jnp.any(kernels.non_finite),
            jnp.sum(kernels.num_evaluations) + info.num_draws,
        )

    def describe(self) -> str:
        """Name the method and its main settings, for tables and reports."""
        return f"parallel tempering {type(self.kernel).__name__}, {self.betas.size} temperatures"

    def _num_drawn(self, target: Target) -> int:
        """How many rungs, from the hottest, are drawn from the base and need no kernel: one or none."""
        return int(self.reaches_base and target.base is not None and target.base.can_sample)

    def _move(
        self,
        key_base: Key[Array, ""],
        key_kernels: Key[Array, ""],
        target: Target,
        path: TemperedPoint,
        parameters: LadderParameters,
    ) -> tuple[TemperedPoint, Moves]:
        first = self._num_drawn(target)
        betas, kernels = parameters.betas[first:], KernelParameters(*parameters[:2])
        keys = jax.random.split(key_kernels, betas.size)
        rest = jax.tree.map(lambda leaf: leaf[first:], path)

        def move(
            key: Any, beta: Any, point: TemperedPoint, kernel: KernelParameters
        ) -> tuple[TemperedPoint, KernelInfo]:
            metric = Metric.from_inverse_mass(kernel.inverse_mass)
            return self.kernel.move_tempered(key, target, beta, point, kernel.step_size, metric)

        moved, info = jax.vmap(move)(keys, betas, rest, kernels)
        if first:
            drawn = tempered_point(target, target.draw_base(key_base), gradient=self.kernel.uses_gradient)
            moved = jax.tree.map(lambda one, others: jnp.concatenate([one[None], others]), drawn, moved)
        return moved, Moves(info, jnp.asarray(first))

    def _propose(self, key: Key[Array, ""], odd: Bool[Array, ""], num_pairs: int) -> Bool[Array, " pair"]:
        """The pairs that may swap, no two of them neighbours."""
        pairs = jnp.arange(num_pairs)
        if self.swaps == "even_odd":
            return (pairs % 2 == 1) == odd
        key_whether, key_which = jax.random.split(key)
        chosen = pairs == jax.random.randint(key_which, (), 0, num_pairs)
        return chosen & (jax.random.uniform(key_whether, (), float) < self.swap_probability)
