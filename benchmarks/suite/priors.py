"""Priors with independent coordinates, seen from a cube, from an unconstrained space, and by their density."""

from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array, Float


@dataclass(frozen=True)
class Box:
    """Uniform between `low` and `high`."""

    low: Float[np.ndarray, " d"]
    high: Float[np.ndarray, " d"]

    @classmethod
    def cube(cls, dim: int, low: float, high: float) -> "Box":
        """The same bounds for every coordinate."""
        return cls(np.full(dim, float(low)), np.full(dim, float(high)))

    @cached_property
    def log_height(self) -> float:
        """The log density inside."""
        return -float(np.sum(np.log(self.high - self.low)))

    def from_cube(self, cube: Float[Array, " d"]) -> Float[Array, " d"]:
        """The point at these probabilities."""
        return jnp.asarray(self.low + (self.high - self.low) * cube)

    def log_density(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """Constant inside, minus infinity outside."""
        inside = jnp.all((x >= self.low) & (x <= self.high))
        return jnp.where(inside, self.log_height, -jnp.inf)

    def from_latent(self, u: Float[Array, " d"]) -> Float[Array, " d"]:
        """A point of the box from an unconstrained vector, by the logistic function."""
        return jnp.asarray(self.low) + (self.high - self.low) * jax.nn.sigmoid(u)

    def log_density_latent(self, u: Float[Array, " d"]) -> Float[Array, ""]:
        """The density of the unconstrained vector: logistic."""
        return jnp.sum(jax.nn.log_sigmoid(u) + jax.nn.log_sigmoid(-u))


@dataclass(frozen=True)
class Gaussian:
    """Normal with means and standard deviations."""

    mean: Float[np.ndarray, " d"]
    sd: Float[np.ndarray, " d"]

    def from_cube(self, cube: Float[Array, " d"]) -> Float[Array, " d"]:
        """The point at these probabilities."""
        return jnp.asarray(self.mean) + self.sd * ndtri(cube)

    def log_density(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """The log density."""
        z = (x - self.mean) / self.sd
        return jnp.sum(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - np.log(self.sd))

    def from_latent(self, u: Float[Array, " d"]) -> Float[Array, " d"]:
        """A point from a standard normal vector."""
        return jnp.asarray(self.mean) + self.sd * u

    def log_density_latent(self, u: Float[Array, " d"]) -> Float[Array, ""]:
        """The density of the unconstrained vector: standard normal."""
        return jnp.sum(-0.5 * u**2 - 0.5 * np.log(2 * np.pi))


Prior = Box | Gaussian
