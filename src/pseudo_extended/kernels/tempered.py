"""A tempered point: a position on the path from base to target, with all that is needed to move it at any temperature.

log γ_β = log γ0 + β Δ is known at every β once log γ0 and Δ are, and its gradient likewise, so a change of temperature
costs no evaluation of the target.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from pseudo_extended.target import PathPoint, Target, zero_if_invalid
from pseudo_extended.target.path import tempered_terms


class TemperedPoint(NamedTuple):
    """A position with log γ0 and Δ there, and their gradients; with a leading axis for several positions."""

    position: Float[Array, "*rung d"]
    log_base: Float[Array, "*rung"]
    delta: Float[Array, "*rung"]
    grad_base: Float[Array, "*rung d"] | None
    """None for kernels that use no gradient."""
    grad_delta: Float[Array, "*rung d"] | None

    @property
    def log_target(self) -> Float[Array, "*rung"]:
        """The log density of the target, log γ, which is the end of the path."""
        return self.log_base + self.delta

    def log_density(self, beta: Float[Array, ""]) -> Float[Array, ""]:
        """The log density of one position at β, from what is known."""
        return zero_if_invalid(tempered_terms(PathPoint(self.log_base, self.delta, self.log_target), beta)[0])

    def gradient(self, beta: Float[Array, ""]) -> Float[Array, " d"] | None:
        """The gradient of `log_density` at β, from what is known; at β = 0 that of the base, whatever Δ does there."""
        if self.grad_base is None or self.grad_delta is None:
            return None
        return self.grad_base + jnp.where(beta == 0, 0.0, beta * self.grad_delta)


def tempered_point(target: Target, position: Float[Array, " d"], *, gradient: bool) -> TemperedPoint:
    """Evaluate the target and its base once; values that are no log density (nan, +inf) are densities of zero."""
    path, gradients = target.path_gradients(position) if gradient else (target.path_point(position), (None, None))
    return TemperedPoint(position, zero_if_invalid(path.log_base), zero_if_invalid(path.delta), *gradients)


def log_density_at(target: Target, beta: Float[Array, ""]) -> Callable[[Float[Array, " d"]], Float[Array, ""]]:
    """The log density at β as a function of the position."""
    return lambda u: zero_if_invalid(tempered_terms(target.path_point(u), beta)[0])
