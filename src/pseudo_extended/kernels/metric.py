"""The metric of a tempered move."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

Factor = Float[Array, "*batch d"] | Float[Array, "*batch d d"]
"""Standard deviations, or lower-triangular factors of covariance matrices."""


class LowRank(NamedTuple):
    """The factor D (1 + U (S - 1) Uᵀ) of many dimensions: scales, and a few orthonormal directions stretched beside."""

    scale: Float[Array, " d"]
    vectors: Float[Array, "d rank"]
    stretch: Float[Array, " rank"]


SharedFactor = Float[Array, " d"] | Float[Array, "d d"] | LowRank
"""A linear map: scales, a matrix, or scales and a few directions."""


def times(factor: SharedFactor, z: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
    """Return F z, for vectors in rows."""
    if isinstance(factor, LowRank):
        return factor.scale * _stretched(factor, z)
    return z @ factor.T if factor.ndim == 2 else factor * z


def transpose_times(factor: SharedFactor, gradient: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
    """Return Fᵀ g, for vectors in rows."""
    if isinstance(factor, LowRank):
        return _stretched(factor, factor.scale * gradient)
    return gradient @ factor if factor.ndim == 2 else factor * gradient


def _stretched(factor: LowRank, z: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
    return z + ((z @ factor.vectors) * (factor.stretch - 1)) @ factor.vectors.T


class Metric(NamedTuple):
    """An inverse mass matrix F Fᵀ of one point, with F = shared · factor.

    A matrix for each temperature would have to be fetched for each point in every step. In many dimensions one matrix
    for all temperatures, which makes the target round, and a vector for each cost one product of matrices instead.
    """

    factor: Float[Array, " d"] | Float[Array, "d d"]
    """The part of F that belongs to the point."""
    inverse_mass: Float[Array, " d"] | Float[Array, "d d"]
    """The same part as variances or as a covariance matrix, as kernels take it."""
    shared: SharedFactor | None = None
    """The part of F that all points have in common; None for the identity."""

    @classmethod
    def from_inverse_mass(cls, inverse_mass: Float[Array, " d"] | Float[Array, "d d"]) -> "Metric":
        """The metric with the given variances or covariance matrix."""
        factor = jnp.sqrt(inverse_mass) if inverse_mass.ndim == 1 else jnp.linalg.cholesky(inverse_mass)
        return cls(factor, inverse_mass)

    @classmethod
    def from_factor(
        cls, factor: Float[Array, " d"] | Float[Array, "d d"], shared: SharedFactor | None = None
    ) -> "Metric":
        """The metric with the given standard deviations or lower-triangular factor."""
        return cls(factor, factor**2 if factor.ndim == 1 else factor @ factor.T, shared)

    def velocity(self, momentum: Float[Array, " d"]) -> Float[Array, " d"]:
        """F times a momentum that is standard normal."""
        vector = self.factor * momentum if self.factor.ndim == 1 else self.factor @ momentum
        return vector if self.shared is None else times(self.shared, vector)

    def force(self, gradient: Float[Array, " d"]) -> Float[Array, " d"]:
        """Fᵀ times the gradient of the log density."""
        vector = gradient if self.shared is None else transpose_times(self.shared, gradient)
        return self.factor * vector if self.factor.ndim == 1 else vector @ self.factor
