"""The metric of a tempered move."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

Factor = Float[Array, "*batch d"] | Float[Array, "*batch d d"]
"""Standard deviations, or lower-triangular factors of covariance matrices."""


class Metric(NamedTuple):
    """An inverse mass matrix F Fᵀ of one point, with F = shared · factor.

    A matrix for each temperature would have to be fetched for each point in every step. In many dimensions one matrix
    for all temperatures, which makes the target round, and a vector for each cost one product of matrices instead.
    """

    factor: Float[Array, " d"] | Float[Array, "d d"]
    """The part of F that belongs to the point."""
    inverse_mass: Float[Array, " d"] | Float[Array, "d d"]
    """The same part as variances or as a covariance matrix, as kernels take it."""
    shared: Float[Array, "d d"] | None = None
    """The part of F that all points have in common; None for the identity."""

    @classmethod
    def from_inverse_mass(cls, inverse_mass: Float[Array, " d"] | Float[Array, "d d"]) -> "Metric":
        """The metric with the given variances or covariance matrix."""
        factor = jnp.sqrt(inverse_mass) if inverse_mass.ndim == 1 else jnp.linalg.cholesky(inverse_mass)
        return cls(factor, inverse_mass)

    @classmethod
    def from_factor(
        cls, factor: Float[Array, " d"] | Float[Array, "d d"], shared: Float[Array, "d d"] | None = None
    ) -> "Metric":
        """The metric with the given standard deviations or lower-triangular factor."""
        return cls(factor, factor**2 if factor.ndim == 1 else factor @ factor.T, shared)

    def velocity(self, momentum: Float[Array, " d"]) -> Float[Array, " d"]:
        """F times a momentum that is standard normal."""
        vector = self.factor * momentum if self.factor.ndim == 1 else self.factor @ momentum
        return vector if self.shared is None else vector @ self.shared.T

    def force(self, gradient: Float[Array, " d"]) -> Float[Array, " d"]:
        """Fᵀ times the gradient of the log density."""
        vector = gradient if self.shared is None else gradient @ self.shared
        return self.factor * vector if self.factor.ndim == 1 else vector @ self.factor
