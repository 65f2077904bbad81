"""Pseudo-extended MCMC: any kernel on the extended target, with the index of the target's pseudo-sample summed out."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from pseudo_extended import checks
from pseudo_extended.extended import ExtendedTarget
from pseudo_extended.instruments import AbstractInstrument, Tempered
from pseudo_extended.kernels import NUTS, AbstractKernel, KernelInfo, KernelState
from pseudo_extended.methods.abstract import AbstractMethod, Chain, Statistic, StepInfo, WeightedPoints
from pseudo_extended.methods.joint import adapt_chain, start_chain, step_chain
from pseudo_extended.target import Target
from pseudo_extended.warmup import Stage, WindowedWarmup


class PseudoExtended(AbstractMethod):
    """The paper's method: an instrument, a kernel on the joint space, and N pseudo-samples.

    >>> import pseudo_extended as pe
    >>> pe.PseudoExtended(pe.Tempered(beta_min=0.01), kernel=pe.NUTS(), num_particles=5).describe()
    'pseudo-extended NUTS, N = 5, Tempered'
    """

    instrument: AbstractInstrument
    kernel: AbstractKernel
    warmup: WindowedWarmup
    num_particles: int = eqx.field(static=True)

    def __init__(
        self,
        instrument: AbstractInstrument | None = None,
        kernel: AbstractKernel | None = None,
        num_particles: int = 5,
        *,
        metric: str = "diagonal",
    ):
        self.instrument = checks.instance(
            "instrument",
            Tempered() if instrument is None else instrument,
            AbstractInstrument,
            "an instrument such as pe.Tempered()",
        )
        self.kernel = checks.instance(
            "kernel", NUTS() if kernel is None else kernel, AbstractKernel, "a kernel such as pe.NUTS()"
        )
        self.num_particles = checks.integer("num_particles", num_particles, minimum=1)
        self.warmup = WindowedWarmup(metric)

    @property
    def num_points(self) -> int:
        """The number of pseudo-samples, N."""
        return self.num_particles

    @property
    def needs_gradient(self) -> bool:
        """Whether the kernel uses the gradient."""
        return self.kernel.uses_gradient

    def check(self, target: Target) -> None:
        """Require an instrument that gives a proper extended target."""
        self.instrument.check(target, self.num_particles)

    def covers(self, target: Target, x: Float[Array, "particle d"]) -> Bool[Array, " particle"]:
        """Whether q is positive at the starting points."""
        extended = self.extended(target)
        return jnp.isfinite(extended.terms(extended.start(jax.random.key(0), x)).log_q)

    def init(self, key: Key[Array, ""], target: Target, x: Float[Array, "particle d"]) -> Chain:
        """Start at the given pseudo-samples."""
        key_instrument, key_step = jax.random.split(key)
        extended = self.extended(target)
        position = extended.start(key_instrument, x)
        return start_chain(key_step, self.kernel, self.warmup, extended.log_density, position)

    def step(self, key: Key[Array, ""], target: Target, chain: Chain) -> tuple[KernelState, KernelInfo]:
        """One step of the kernel on log π^N."""
        return step_chain(key, self.kernel, self.extended(target).log_density, chain)

    def adapt(self, target: Target, chain: Chain, stage: Stage, info: KernelInfo) -> Chain:
        """Tune step sizes and metric on the extended space."""
        del target
        return adapt_chain(self.kernel, self.warmup, chain, stage, info)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The statistics of `points`."""
        return (
            Statistic("lp"),
            Statistic("beta", ("particle",)),
        )

    def points(self, target: Target, state: KernelState) -> WeightedPoints:
        """Return all pseudo-samples, weighted by γ(x_i)π(β_i)/q(x_i, β_i)."""
        extended = self.extended(target)
        statistics = {"lp": state.log_density, "beta": extended.betas(state.position)}
        return WeightedPoints(extended.split(state.position).x, extended.terms(state.position).log_weight, statistics)

    def report(self, info: KernelInfo) -> StepInfo:
        """The kernel's own account; each of its evaluations is one of the target at every pseudo-sample."""
        report = super().report(info)
        return report._replace(num_evaluations=report.num_evaluations * self.num_particles)

    def describe(self) -> str:
        """Name the method and its main settings, for tables and reports."""
        kernel, instrument = type(self.kernel).__name__, type(self.instrument).__name__
        return f"pseudo-extended {kernel}, N = {self.num_particles}, {instrument}"

    def extended(self, target: Target) -> ExtendedTarget:
        """The extended target that the kernel sees."""
        return ExtendedTarget(target, self.instrument, self.num_particles)
