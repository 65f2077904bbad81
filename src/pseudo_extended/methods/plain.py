"""An ordinary kernel on the raw target: the baseline for everything else."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pseudo_extended import checks
from pseudo_extended.kernels import NUTS, AbstractKernel, KernelInfo, KernelState
from pseudo_extended.methods.abstract import AbstractMethod, Chain, Statistic, WeightedPoints
from pseudo_extended.methods.joint import adapt_chain, start_chain, step_chain
from pseudo_extended.target import Target
from pseudo_extended.warmup import Stage, WindowedWarmup


class Plain(AbstractMethod):
    """NUTS, HMC, MALA or a random walk on the target itself, without pseudo-samples.

    >>> import pseudo_extended as pe
    >>> pe.Plain(pe.HMC(num_steps=20)).describe()
    'HMC on the target'
    """

    kernel: AbstractKernel
    warmup: WindowedWarmup

    def __init__(self, kernel: AbstractKernel | None = None, *, metric: str = "diagonal"):
        self.kernel = checks.instance(
            "kernel", NUTS() if kernel is None else kernel, AbstractKernel, "a kernel such as pe.NUTS()"
        )
        self.warmup = WindowedWarmup(metric)

    @property
    def needs_gradient(self) -> bool:
        """Whether the kernel uses the gradient."""
        return self.kernel.uses_gradient

    def init(self, key: Key[Array, ""], target: Target, x: Float[Array, "particle d"]) -> Chain:
        """Start at the one given point."""
        return start_chain(key, self.kernel, self.warmup, target.log_target, x[0])

    def step(self, key: Key[Array, ""], target: Target, chain: Chain) -> tuple[KernelState, KernelInfo]:
        """Make one step of the kernel on log γ."""
        return step_chain(key, self.kernel, target.log_target, chain)

    def adapt(self, target: Target, chain: Chain, stage: Stage, info: KernelInfo) -> Chain:
        """Tune the step sizes and the metric."""
        del target
        return adapt_chain(self.kernel, self.warmup, chain, stage, info)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The statistics of `points`."""
        return (Statistic("lp"),)

    def points(self, target: Target, state: KernelState) -> WeightedPoints:
        """Return the point itself, with weight one."""
        del target
        return WeightedPoints(state.position[None], jnp.zeros(1), {"lp": state.log_density})

    def describe(self) -> str:
        """Name the method and its main settings, for tables and reports."""
        return f"{type(self.kernel).__name__} on the target"
