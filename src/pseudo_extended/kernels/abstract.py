"""The interface of a kernel: one step that leaves a density on a flat vector invariant."""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from pseudo_extended.kernels.metric import Metric, SharedFactor, times, transpose_times
from pseudo_extended.kernels.tempered import TemperedPoint, log_density_at, select, tempered_point
from pseudo_extended.target import Target

LogDensity = Callable[[Float[Array, " dim"]], Float[Array, ""]]


class KernelState(NamedTuple):
    """The state of a kernel: the point, and the density there so that it is not computed again."""

    position: Float[Array, " dim"]
    """Where the chain is, on the unconstrained scale."""
    log_density: Float[Array, ""]
    """The log density at the position, up to a constant."""
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
    """One for each entry of the kernel's `target_acceptance`."""
    inverse_mass: Float[Array, " dim"] | Float[Array, "dim dim"]
    """Diagonal or dense: an estimate of the covariance."""


class Trajectory(NamedTuple):
    """A move by leapfrog steps: how many, and how much its length varies, as in `HMC`."""

    num_steps: int
    jitter: float


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
        step_size: Float[Array, " step_size"],
        metric: Metric,
    ) -> tuple[TemperedPoint, KernelInfo]:
        """Move a tempered point once at the inverse temperature β; every tempering method moves its points by this.

        `step` returns log γ_β and not its two parts, so the end of the move is evaluated once more, and counted.
        Without a base there is one part, and that is not needed. A kernel that carries the two parts itself overrides
        this and saves the evaluation, as `HMC` and `MALA` do. A shared metric is a change of variables,
        x = x₀ + F z: the kernel sees z, which starts at zero.
        """
        shared, log_density = metric.shared, log_density_at(target, beta)
        start = KernelState(point.position, point.log_density(beta), point.gradient(beta))
        place = _identity
        if shared is not None:
            place = partial(_place, point.position, shared)
            gradient = None if start.gradient is None else transpose_times(shared, start.gradient)
            start = KernelState(jnp.zeros_like(point.position), start.log_density, gradient)
        parameters = KernelParameters(step_size, metric.inverse_mass)
        new, info = self.step(key, lambda z: log_density(place(z)), start, parameters)
        if target.base is not None or shared is not None:
            moved = tempered_point(target, place(new.position), gradient=self.uses_gradient)
            return moved, info._replace(num_evaluations=info.num_evaluations + 1)
        grad_delta = None if new.gradient is None else new.gradient / beta
        moved = TemperedPoint(new.position, point.log_base, new.log_density / beta, point.grad_base, grad_delta)
        # What did not move keeps its Δ to the bit: multiplying and dividing by β again and again would let it drift.
        return select(jnp.any(new.position != point.position), moved, point), info

    @property
    def trajectory(self) -> Trajectory | None:
        """The leapfrog steps of one move, for the pilot, which makes them without compiling them; None for others."""
        return None

    @property
    def num_moves_to_settle(self) -> int:
        """Moves after which a point has about forgotten where in its mode it was; the pilot makes so many a level."""
        return 12

    def in_lockstep(self) -> "AbstractKernel":
        """Return a kernel like this one whose moves all cost the same, for a population that moves at once."""
        return self


def _identity(z: Float[Array, " d"]) -> Float[Array, " d"]:
    return z


def _place(origin: Float[Array, " d"], shared: SharedFactor, z: Float[Array, " d"]) -> Float[Array, " d"]:
    return origin + times(shared, z)


def initial_state(log_density: LogDensity, position: Float[Array, " dim"], *, gradient: bool) -> KernelState:
    """The state at `position`."""
    if not gradient:
        return KernelState(position, log_density(position), None)
    return KernelState(position, *jax.value_and_grad(log_density)(position))


def unit_parameters(kernel: AbstractKernel, dim: int, *, dense: bool) -> KernelParameters:
    """Parameters before any tuning: a unit metric, and a step that suits it in `dim` dimensions."""
    step_size = jnp.full(kernel.target_acceptance.shape, dim**-0.25)
    return KernelParameters(step_size, jnp.eye(dim) if dense else jnp.ones(dim))
