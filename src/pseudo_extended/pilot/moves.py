"""Moves of a whole population at one temperature, from the host: what a level of annealing does after it resampled."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from pseudo_extended.compiled import Job, Program, compile_once
from pseudo_extended.kernels import AbstractKernel, KernelInfo, TemperedPoint
from pseudo_extended.target import Target
from pseudo_extended.tempering.moves import move_points

Local = Float[np.ndarray, " d"] | Float[np.ndarray, "d d"]
Shared = Float[np.ndarray, "d d"] | None


class Population(NamedTuple):
    """Tempered points on the host; see `kernels.TemperedPoint`. Gradients are zero where none are computed."""

    position: Float[np.ndarray, "point d"]
    log_base: Float[np.ndarray, " point"]
    delta: Float[np.ndarray, " point"]
    grad_base: Float[np.ndarray, "point d"]
    grad_delta: Float[np.ndarray, "point d"]

    @property
    def grad_target(self) -> Float[np.ndarray, "point d"]:
        """The gradient of the log density of the target."""
        return self.grad_base + self.grad_delta

    def gradient(self, beta: float) -> Float[np.ndarray, "point d"]:
        """The gradient of log γ_β."""
        return self.grad_base + beta * self.grad_delta

    def is_finite(self) -> Bool[np.ndarray, " point"]:
        """Whether all of a point is finite; one where it is not counts as one of density zero."""
        gradients = np.isfinite(self.grad_base) & np.isfinite(self.grad_delta)
        return np.isfinite(self.log_base) & np.isfinite(self.delta) & np.all(gradients, axis=1)

    def some(self, which: Int[np.ndarray, " chosen"]) -> "Population":
        """Some of the points, as often as they are named."""
        return Population(*(column[which] for column in self))

    def where(self, condition: Bool[np.ndarray, " point"], others: "Population") -> "Population":
        """Point by point, these where the condition holds and the others where not."""
        wide = condition[:, None]
        return Population(
            *(np.where(condition if a.ndim == 1 else wide, a, b) for a, b in zip(self, others, strict=True))
        )


Evaluate = Callable[[Float[np.ndarray, "point d"]], Population]
"""log γ0, Δ and their gradients at many points."""


class Moved(NamedTuple):
    """What became of a population."""

    population: Population
    acceptance_rate: float
    num_evaluations: int


@runtime_checkable  # so that types can be checked at run time
class Mover(Protocol):
    """One move of every point at β, with one step size and metric for all."""

    def __call__(
        self,
        rng: np.random.Generator,
        population: Population,
        beta: float,
        step_size: float,
        local: Local,
        shared: Shared,
    ) -> Moved:
        """The population after it."""
        ...


class HostHMC:
    """`kernels.leapfrog` for a population at one β, in NumPy, so that no loop is compiled with the density in it."""

    def __init__(self, evaluate: Evaluate, num_steps: int, jitter: float):
        self.evaluate, self.num_steps, self.jitter = evaluate, num_steps, jitter

    def __call__(
        self,
        rng: np.random.Generator,
        population: Population,
        beta: float,
        step_size: float,
        local: Local,
        shared: Shared,
    ) -> Moved:
        """Leapfrog steps of a length that is jittered for each point, then accept or stay."""
        size = len(population.position)
        factor = local if shared is None else shared * local if local.ndim == 1 else shared @ local

        def velocity(momentum: np.ndarray) -> np.ndarray:
            return factor * momentum if factor.ndim == 1 else momentum @ factor.T

        def force(points: Population) -> np.ndarray:
            gradient = points.gradient(beta)
            return factor * gradient if factor.ndim == 1 else gradient @ factor

        start, uniform = rng.normal(size=population.position.shape), rng.uniform(size=(2, size))
        jitter = 1 + self.jitter * (2 * uniform[0] - 1)
        length, now, momentum = step_size * jitter[:, None], population, start
        with np.errstate(all="ignore"):  # a trajectory that leaves the support, or flies away, is rejected
            for _ in range(self.num_steps):
                momentum = momentum + 0.5 * length * force(now)
                now = self.evaluate(now.position + length * velocity(momentum))
                momentum = momentum + 0.5 * length * force(now)
            gained = now.log_base - population.log_base + beta * (now.delta - population.delta)
            gained = gained + 0.5 * np.sum(start**2 - momentum**2, axis=1)
        gained = np.where(now.is_finite() & ~np.isnan(gained), gained, -np.inf)
        rate = np.exp(np.minimum(gained, 0.0))
        return Moved(now.where(uniform[1] < rate, population), float(np.mean(rate)), size * self.num_steps)


class CompiledMoves:
    """Moves of any other kernel, compiled with the density in them."""

    def __init__(self, kernel: AbstractKernel, target: Target, size: int, *, dense: bool, shared: Shared):
        dim, self.gradient = target.dim, kernel.uses_gradient
        # The base's numbers are arguments, so that another base of the same shape is the same program.
        self.arrays, rest = eqx.partition(target.base, eqx.is_array)

        def moved(
            arrays: Any, key: Array, points: TemperedPoint, beta: Any, step: Any, local: Any, shared: Any
        ) -> tuple[TemperedPoint, KernelInfo]:
            base = eqx.combine(arrays, rest)
            own = target if base is None else target.with_base(base)
            betas, steps = jnp.full(size, beta), jnp.full(size, step)
            return move_points(
                key, kernel, own, points, betas, steps, jnp.broadcast_to(local, (size, *local.shape)), shared
            )

        zeros, rows, local = np.zeros(size), np.zeros((size, dim)), np.eye(dim) if dense else np.ones(dim)
        points, key = Population(rows, zeros, zeros, rows, rows), jax.random.key(0, impl="threefry2x32")
        arguments = (self.arrays, key, self._traced(points), 0.0, 0.0, local, shared)
        [self.program] = compile_once(Job(moved, arguments, quick=True, name="moves of the pilot"))

    def __call__(
        self,
        rng: np.random.Generator,
        population: Population,
        beta: float,
        step_size: float,
        local: Local,
        shared: Shared,
    ) -> Moved:
        """One call of the program."""
        program = self.program.compiled if isinstance(self.program, Program) else self.program
        key = jax.random.key(int(rng.integers(2**63)), impl="threefry2x32")
        points, info = program(self.arrays, key, self._traced(population), beta, step_size, local, shared)
        rate, evaluations = np.asarray(info.acceptance_rate), np.asarray(info.num_evaluations)
        moved = (
            population if part is None else np.asarray(part)
            for part, population in zip(points, population, strict=True)
        )
        return Moved(Population(*moved), float(np.mean(rate)), int(np.sum(evaluations)))

    def _traced(self, population: Population) -> TemperedPoint:
        """The same points as the program takes them."""
        position, log_base, delta, grad_base, grad_delta = cast(Any, population)
        return TemperedPoint(
            position, log_base, delta, grad_base if self.gradient else None, grad_delta if self.gradient else None
        )


def mover_for(
    kernel: AbstractKernel, target: Target, evaluate: Evaluate, size: int, *, dense: bool, shared: Shared
) -> Mover:
    """Return what moves a population of a size, whose metrics have a shared part like this one."""
    if kernel.trajectory is not None:
        return HostHMC(evaluate, *kernel.trajectory)
    return CompiledMoves(kernel, target, size, dense=dense, shared=shared)
