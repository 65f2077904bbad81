"""Moves of many points along a path at once, each at an inverse temperature of its own.

They leave γ_β = γ0^(1-β) γ^β of each point alone. The values and gradients of log γ0 and Δ are carried apart: when β
changes, nothing has to be computed again. BlackJAX's HMC knows one density and would evaluate it once more in every
step, so the leapfrog steps are written here; NUTS and the random walk are the kernels of this package, mapped.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from pseudo_extended.kernels.abstract import AbstractKernel, KernelParameters, KernelState
from pseudo_extended.kernels.hamiltonian import HMC, MALA
from pseudo_extended.randomness import normals_and_uniforms
from pseudo_extended.target import Target


class PathState(NamedTuple):
    """Points with the values and gradients at them."""

    x: Float[Array, "*batch d"]
    log_base: Float[Array, "*batch"]
    delta: Float[Array, "*batch"]
    gradient_base: Float[Array, "*batch d"]
    gradient_delta: Float[Array, "*batch d"]

    def log_density(self, beta: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """log γ_β."""
        return self.log_base + beta * self.delta

    def gradient(self, beta: Float[Array, "*batch"]) -> Float[Array, "*batch d"]:
        """The gradient of log γ_β."""
        return self.gradient_base + beta[..., None] * self.gradient_delta

    def is_valid(self) -> Bool[Array, "*batch"]:
        """Whether all of it is finite; a point where it is not counts as one of density zero."""
        finite = jnp.isfinite(self.log_base) & jnp.isfinite(self.delta)
        gradients = jnp.isfinite(self.gradient_base) & jnp.isfinite(self.gradient_delta)
        return finite & jnp.all(gradients, axis=-1)


class MoveInfo(NamedTuple):
    """What happened to each point."""

    acceptance_rate: Float[Array, "*batch"]
    diverging: Bool[Array, "*batch"]
    non_finite: Bool[Array, "*batch"]
    num_evaluations: Float[Array, "*batch"]


Evaluate = Callable[[Float[Array, " d"]], PathState]
Local = Float[Array, "*batch d"] | Float[Array, "*batch d d"]
"""Standard deviations of the proposal, or lower-triangular factors."""


class Scale(NamedTuple):
    """The metric of some points: momenta are stretched by `local`, of each point, then by `shared`, of all of them.

    A matrix for each temperature would have to be fetched for each point in every step; in many dimensions one
    matrix, which makes the target round, and a vector for each temperature cost a product of matrices instead.
    """

    local: Local
    shared: Float[Array, "d d"] | None = None

    def apply(self, vector: Float[Array, "particle d"]) -> Float[Array, "particle d"]:
        """The factor of the metric times a vector for each point: a velocity out of a momentum."""
        local = self.local
        vector = local * vector if local.ndim == 2 else jnp.einsum("pij,pj->pi", local, vector)
        return vector if self.shared is None else vector @ self.shared.T

    def apply_transpose(self, vector: Float[Array, "particle d"]) -> Float[Array, "particle d"]:
        """The transposed factor times a vector for each point: a force out of a gradient."""
        local = self.local
        vector = vector if self.shared is None else vector @ self.shared
        return local * vector if local.ndim == 2 else jnp.einsum("pji,pj->pi", local, vector)

    def inverse_mass(self) -> Float[Array, " d"] | Float[Array, "d d"]:
        """The part of the metric of one point that is its own, as BlackJAX has it: variances or a covariance matrix."""
        return self.local**2 if self.local.ndim == 1 else self.local @ self.local.T


MAX_ENERGY_ERROR = 1000.0


def evaluator(target: Target, *, gradient: bool) -> Evaluate:
    """The function that evaluates a point; the gradients are zero where none are used."""

    def evaluate(x: Float[Array, " d"]) -> PathState:
        if not gradient:
            path = target.path_point(x)
            return PathState(x, path.log_base, path.delta, jnp.zeros_like(x), jnp.zeros_like(x))
        path, gradients = target.path_gradients(x)
        return PathState(x, path.log_base, path.delta, gradients.log_base, gradients.delta)

    return evaluate


def move(
    key: Key[Array, ""],
    kernel: AbstractKernel,
    evaluate: Evaluate,
    state: PathState,
    beta: Float[Array, " particle"],
    step_size: Float[Array, " particle"],
    scale: Scale,
) -> tuple[PathState, MoveInfo]:
    """One step of the kernel for every point, at its own β with its own step size and metric."""
    if isinstance(kernel, (HMC, MALA)):
        num_steps = kernel.num_steps if isinstance(kernel, HMC) else 1
        return _hmc(key, evaluate, state, beta, step_size, scale, num_steps)
    keys = jax.random.split(key, beta.shape[0])

    def one(key: Any, state: PathState, beta: Any, step_size: Any, local: Any) -> tuple[PathState, MoveInfo]:
        return kernel_move(kernel, evaluate, key, state, beta, step_size, Scale(local, scale.shared))

    return jax.vmap(one)(keys, state, beta, step_size, scale.local)


def refresh(
    key: Key[Array, ""],
    draw_base: Callable[[Key[Array, ""]], Float[Array, " d"]],
    evaluate: Evaluate,
    state: PathState,
    beta: Float[Array, " particle"],
) -> tuple[PathState, Float[Array, " particle"], Float[Array, " particle"]]:
    """Propose a draw from the base for every point, and accept it with probability min(1, exp{β (Δ' - Δ)}).

    Returns the points, the acceptance rates, and Δ at what was proposed, -inf where the target vanishes.
    """
    keys = jax.random.split(key, beta.shape[0] + 1)
    fresh = jax.vmap(lambda key: evaluate(draw_base(key)))(keys[1:])
    valid = fresh.is_valid()
    rate = jnp.where(valid, jnp.exp(jnp.minimum(beta * (fresh.delta - state.delta), 0.0)), 0.0)
    accepted = jax.random.uniform(keys[0], beta.shape, dtype=float) < rate
    return _select(accepted, fresh, state), rate, jnp.where(valid, fresh.delta, -jnp.inf)


def _hmc(
    key: Key[Array, ""],
    evaluate: Evaluate,
    state: PathState,
    beta: Float[Array, " particle"],
    step_size: Float[Array, " particle"],
    scale: Scale,
    num_steps: int,
) -> tuple[PathState, MoveInfo]:
    """HMC with the same number of leapfrog steps for all, of a length that is jittered for each.

    Jitter keeps trajectories from returning to where they began, as they do for a normal density when their length
    is a multiple of its period.
    """
    start, uniform = normals_and_uniforms(key, state.x.shape[-1], 2, batch=beta.shape)
    size = step_size * (0.6 + 0.8 * uniform[:, 0]) if num_steps > 1 else step_size

    def leapfrog(_: Any, carry: tuple[PathState, Float[Array, "particle d"]]) -> tuple[PathState, Array]:
        now, momentum = carry
        momentum = momentum + 0.5 * size[:, None] * scale.apply_transpose(now.gradient(beta))
        now = jax.vmap(evaluate)(now.x + size[:, None] * scale.apply(momentum))
        return now, momentum + 0.5 * size[:, None] * scale.apply_transpose(now.gradient(beta))

    end, momentum = jax.lax.fori_loop(0, num_steps, leapfrog, (state, start))
    valid = end.is_valid()
    gained = end.log_density(beta) - state.log_density(beta)
    gained = gained + 0.5 * (jnp.sum(start**2, axis=-1) - jnp.sum(momentum**2, axis=-1))
    gained = jnp.where(valid & ~jnp.isnan(gained), gained, -jnp.inf)
    rate = jnp.exp(jnp.minimum(gained, 0.0))
    info = MoveInfo(rate, -gained > MAX_ENERGY_ERROR, ~valid, jnp.full(beta.shape, float(num_steps)))
    return _select(uniform[:, 1] < rate, end, state), info


def kernel_move(
    kernel: AbstractKernel,
    evaluate: Evaluate,
    key: Key[Array, ""],
    state: PathState,
    beta: Float[Array, ""],
    step_size: Float[Array, ""],
    scale: Scale,
) -> tuple[PathState, MoveInfo]:
    """One step of any kernel for one point; the end is evaluated once more, for log γ0 and Δ apart.

    A shared metric is a change of variables, x = x₀ + F z: the kernel sees z, which starts at zero.
    """
    shared = scale.shared

    def place(z: Float[Array, " d"]) -> Float[Array, " d"]:
        return z if shared is None else state.x + shared @ z

    def log_density(z: Float[Array, " d"]) -> Float[Array, ""]:
        value = evaluate(place(z)).log_density(beta)
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    gradient = state.gradient(beta) if kernel.uses_gradient else None
    if shared is not None and gradient is not None:
        gradient = gradient @ shared
    before = KernelState(state.x if shared is None else jnp.zeros_like(state.x), state.log_density(beta), gradient)
    steps = jnp.broadcast_to(step_size, kernel.target_acceptance.shape)
    after, info = kernel.step(key, log_density, before, KernelParameters(steps, scale.inverse_mass()))
    end = evaluate(place(after.position))
    return _select(end.is_valid(), end, state), MoveInfo(
        jnp.nanmean(info.acceptance_rate),
        info.diverging,
        info.non_finite,
        jnp.asarray(info.num_evaluations + 1.0, float),
    )


def _select(condition: Bool[Array, "*batch"], yes: PathState, no: PathState) -> PathState:
    def choose(a: Array, b: Array) -> Array:
        return jnp.where(condition.reshape(condition.shape + (1,) * (a.ndim - condition.ndim)), a, b)

    return jax.tree.map(choose, yes, no)
