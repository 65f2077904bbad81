"""A point on the path from base to target, at no temperature in particular: what every tempering method moves.

log γ_β = log γ0 + β Δ is known at all β once log γ0 and Δ are (and its gradient likewise), so a change of temperature
costs no evaluation of the target.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pseudo_extended.instruments.abstract import tempered_terms
from pseudo_extended.kernels import AbstractKernel, KernelInfo, KernelParameters, KernelState, LogDensity
from pseudo_extended.target import PathPoint, Target, zero_if_invalid


class PathState(NamedTuple):
    """A position with log γ0 and Δ there; with a leading axis for several of them."""

    position: Float[Array, "*rung d"]
    log_base: Float[Array, "*rung"]
    delta: Float[Array, "*rung"]
    grad_base: Float[Array, "*rung d"] | None
    """None for kernels that use no gradient."""
    grad_delta: Float[Array, "*rung d"] | None


def path_state(target: Target, position: Float[Array, " d"], *, gradient: bool) -> PathState:
    """One evaluation of the target and its base; values that are no log density (nan, +inf) are densities of zero."""
    path, gradients = target.path_gradients(position) if gradient else (target.path_point(position), (None, None))
    return PathState(position, zero_if_invalid(path.log_base), zero_if_invalid(path.delta), *gradients)


def log_density_at(target: Target, beta: Float[Array, ""]) -> LogDensity:
    """log γ_β as a function of the position."""
    return lambda u: zero_if_invalid(tempered_terms(target.path_point(u), beta)[0])


def at_temperature(state: PathState, beta: Float[Array, ""]) -> KernelState:
    """The state as a kernel at β sees it, from what is known: no evaluation."""
    path = PathPoint(state.log_base, state.delta, state.log_base + state.delta)
    log_density = zero_if_invalid(tempered_terms(path, beta)[0])
    if state.grad_base is None or state.grad_delta is None:
        return KernelState(state.position, log_density, None)
    # At β = 0 the path is its base, whatever Δ does there.
    return KernelState(
        state.position, log_density, state.grad_base + jnp.where(beta == 0, 0.0, beta * state.grad_delta)
    )


def move(
    key: Key[Array, ""],
    kernel: AbstractKernel,
    target: Target,
    beta: Float[Array, ""],
    state: PathState,
    parameters: KernelParameters,
) -> tuple[PathState, KernelInfo]:
    """One step of the kernel at β.

    A kernel returns log γ_β and not its two parts. Without a base there is one part, so nothing is evaluated again;
    with a base the end of the step is, once, and counted.
    """
    new, info = kernel.step(key, log_density_at(target, beta), at_temperature(state, beta), parameters)
    if target.base is not None:
        moved = path_state(target, new.position, gradient=kernel.uses_gradient)
        return moved, info._replace(num_evaluations=info.num_evaluations + 1)
    grad_delta = None if new.gradient is None else new.gradient / beta
    moved = PathState(new.position, state.log_base, new.log_density / beta, state.grad_base, grad_delta)
    # What did not move keeps its Δ to the bit: multiplying and dividing by β again and again would let it drift.
    stayed = jnp.all(new.position == state.position)
    return jax.tree.map(lambda before, after: jnp.where(stayed, before, after), state, moved), info


def log_target(state: PathState) -> Float[Array, "*rung"]:
    """log γ, the end of the path."""
    return state.log_base + state.delta
