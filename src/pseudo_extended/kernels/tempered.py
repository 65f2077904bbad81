"""A tempered point: a position on the path from base to target, with all that is needed to move it at any temperature.

log γ_β = log γ0 + β Δ is known at every β once log γ0 and Δ are, and its gradient likewise, so a change of temperature
costs no evaluation of the target.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from pseudo_extended.target import Target, zero_if_invalid
from pseudo_extended.target.path import tempered_terms


class TemperedPoint(NamedTuple):
    """A position with log γ0 and Δ there, and their gradients; with a leading axis for several positions."""

    position: Float[Array, "*batch d"]
    """Where the point is, on the unconstrained scale."""
    log_base: Float[Array, "*batch"]
    """log γ0 at the position; 0 without a base."""
    delta: Float[Array, "*batch"]
    """Δ = log γ - log γ0 at the position."""
    grad_base: Float[Array, "*batch d"] | None
    """None for kernels that use no gradient."""
    grad_delta: Float[Array, "*batch d"] | None
    """The gradient of Δ; None for kernels that use no gradient."""

    @property
    def log_target(self) -> Float[Array, "*batch"]:
        """The log density of the target, log γ, which is the end of the path."""
        return self.log_base + self.delta

    @property
    def grad_target(self) -> Float[Array, "*batch d"] | None:
        """The gradient of the log density of the target."""
        return None if self.grad_base is None or self.grad_delta is None else self.grad_base + self.grad_delta

    def log_density(self, beta: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """The log density at β, from what is known; at β = 0 that of the base, whatever Δ is there."""
        return zero_if_invalid(self.log_base + beta * jnp.where(beta == 0, 0.0, self.delta))

    def gradient(self, beta: Float[Array, "*batch"]) -> Float[Array, "*batch d"] | None:
        """The gradient of `log_density` at β, from what is known; at β = 0 that of the base, whatever Δ does there."""
        if self.grad_base is None or self.grad_delta is None:
            return None
        beta = beta[..., None]
        return self.grad_base + beta * jnp.where(beta == 0, 0.0, self.grad_delta)

    def is_finite(self) -> Bool[Array, "*batch"]:
        """Whether log γ0, Δ and their gradients are finite, so that the point can be moved at every temperature."""
        finite = jnp.isfinite(self.log_base) & jnp.isfinite(self.delta)
        for gradient in (self.grad_base, self.grad_delta):
            if gradient is not None:
                finite = finite & jnp.all(jnp.isfinite(gradient), axis=-1)
        return finite


T = TypeVar("T")
Evaluate = Callable[[Float[Array, " d"]], TemperedPoint]


def tempered_point(target: Target, position: Float[Array, " d"], *, gradient: bool) -> TemperedPoint:
    """Evaluate the target and its base once; values that are no log density (nan, +inf) are densities of zero."""
    path, gradients = target.path_gradients(position) if gradient else (target.path_point(position), (None, None))
    return TemperedPoint(position, zero_if_invalid(path.log_base), zero_if_invalid(path.delta), *gradients)


def evaluator(target: Target, *, gradient: bool) -> Evaluate:
    """Return the function that evaluates a target at one position."""
    return partial(tempered_point, target, gradient=gradient)


def log_density_at(target: Target, beta: Float[Array, ""]) -> Callable[[Float[Array, " d"]], Float[Array, ""]]:
    """Return the log density at β as a function of the position."""
    return lambda u: zero_if_invalid(tempered_terms(target.path_point(u), beta)[0])


def select(accepted: Bool[Array, "*batch"], yes: T, no: T) -> T:
    """Take each point, or all that is known with it, from `yes` where it was accepted, and from `no` elsewhere."""
    accepted = jax.lax.optimization_barrier(accepted)  # or XLA works it out again for every array

    def choose(a: Array, b: Array) -> Array:
        return jnp.where(accepted.reshape(accepted.shape + (1,) * (a.ndim - accepted.ndim)), a, b)

    return jax.tree.map(choose, yes, no)
