"""The interface of a kernel: one step that leaves a density on a flat vector invariant."""

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from pseudo_extended.kernels.tempered import TemperedPoint, log_density_at, tempered_point
from pseudo_extended.target import Target

LogDensity = Callable[[Float[Array, " dim"]], Float[Array, ""]]


class KernelState(NamedTuple):
    """The state of a kernel: the point, and the density there so that it is not computed again."""

    position: Float[Array, " dim"]
    log_density: Float[Array, ""]
    gradient: Float[Array, " dim"] | None
    """None for kernels that use no gradient."""


class KernelInfo(NamedTuple):
    """The account of one step: acceptance, failures and costs."""

    acceptance_rate: Float[Array, " step_size"]
    """One for each step size of the kernel; nan for a part of a mixture that did not run."""
    diverging: Bool[Array, ""]
    """The energy error was above 1,000, or not a number."""
    non_finite: Bool[Array, ""]
    """The density or its gradient was not finite where the move would have ended, so it did not."""
    num_evaluations: Int[Array, ""]
    """Evaluations of the density (with its gradient, where one is used)."""


class KernelParameters(NamedTuple):
    """The step sizes and the metric, which warm-up tunes."""

    step_size: Float[Array, " step_size"]
    inverse_mass: Float[Array, " dim"] | Float[Array, "dim dim"]
    """Diagonal or dense: an estimate of the covariance."""


class AbstractKernel(eqx.Module):
    """A Markov kernel with step sizes to tune, in a metric that all of them share."""

    target_acceptance: eqx.AbstractVar[Float[np.ndarray, " step_size"]]

    @property
    @abstractmethod
    def uses_gradient(self) -> bool:
        """Whether the kernel differentiates the density."""

    @abstractmethod
    def step(
        self, key: Key[Array, ""], log_density: LogDensity, state: KernelState, parameters: KernelParameters
    ) -> tuple[KernelState, KernelInfo]:
        """Move the state once, and report what happened."""

    def move_tempered(
        self,
        key: Key[Array, ""],
        target: Target,
        beta: Float[Array, ""],
        point: TemperedPoint,
        parameters: KernelParameters,
    ) -> tuple[TemperedPoint, KernelInfo]:
        """Move a tempered point once at the inverse temperature β; every tempering method moves its points by this.

        A step returns log γ_β and not its two parts. Without a base there is one part, so nothing is evaluated again;
        with a base the end of the step is, once, and counted. A kernel that carries the two parts itself can override
        this and save that evaluation.
        """
        start = KernelState(point.position, point.log_density(beta), point.gradient(beta))
        new, info = self.step(key, log_density_at(target, beta), start, parameters)
        if target.base is not None:
            moved = tempered_point(target, new.position, gradient=self.uses_gradient)
            return moved, info._replace(num_evaluations=info.num_evaluations + 1)
        grad_delta = None if new.gradient is None else new.gradient / beta
        moved = TemperedPoint(new.position, point.log_base, new.log_density / beta, point.grad_base, grad_delta)
        # What did not move keeps its Δ to the bit: multiplying and dividing by β again and again would let it drift.
        stayed = jnp.all(new.position == point.position)
        return jax.tree.map(lambda before, after: jnp.where(stayed, before, after), point, moved), info


def initial_state(log_density: LogDensity, position: Float[Array, " dim"], *, gradient: bool) -> KernelState:
    """The state at `position`."""
    if not gradient:
        return KernelState(position, log_density(position), None)
    return KernelState(position, *jax.value_and_grad(log_density)(position))


def unit_parameters(kernel: AbstractKernel, dim: int, *, dense: bool) -> KernelParameters:
    """Parameters before any tuning: a unit metric, and a step that suits it in `dim` dimensions."""
    step_size = jnp.full(kernel.target_acceptance.shape, dim**-0.25)
    return KernelParameters(step_size, jnp.eye(dim) if dense else jnp.ones(dim))
