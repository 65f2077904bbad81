"""What an instrument is: the density q of the pseudo-samples that are not the target's."""

from abc import abstractmethod
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pseudo_extended.instruments.temperatures import Temperatures
from pseudo_extended.target import PathPoint, Target
from pseudo_extended.target.path import tempered_terms as tempered_terms


class Terms(NamedTuple):
    """The terms of the extended target: log π^N = log_auxiliary + log Σ_i exp(log_weight_i) - log N + Σ_j log_q_j."""

    log_q: Float[Array, " particle"]
    """log q(x_j, β_j) of each pseudo-sample, up to a constant."""
    log_weight: Float[Array, " particle"]
    """log of γ(x_i)π(β_i) / q(x_i, β_i)."""
    log_auxiliary: Float[Array, ""]
    """Log density and Jacobian of the auxiliary variables, where they do not belong to one pseudo-sample."""


class AbstractInstrument(eqx.Module):
    """A choice of q(x_1:N), with the auxiliary variables that it needs (the temperatures, on the whole real line)."""

    def check(self, target: Target, num_particles: int) -> None:
        """Raise a one-sentence error for a target on which the extended target would be improper."""
        del target, num_particles

    @abstractmethod
    def num_auxiliary(self, num_particles: int) -> int:
        """How many auxiliary variables N pseudo-samples need."""

    @abstractmethod
    def start(self, key: Key[Array, ""], num_particles: int) -> Float[Array, " auxiliary"]:
        """Return starting values of the auxiliary variables."""

    @abstractmethod
    def terms(
        self, target: Target, x: Float[Array, "particle d"], path: PathPoint, auxiliary: Float[Array, " auxiliary"]
    ) -> Terms:
        """The terms of log π^N, from the pseudo-samples, the target's `path` values at them, and the temperatures."""

    def betas(self, num_particles: int, auxiliary: Float[Array, " auxiliary"]) -> Float[Array, " particle"]:
        """The inverse temperature of each pseudo-sample; nan where it has none, as by default."""
        del auxiliary
        return jnp.full(num_particles, jnp.nan)

    def temperatures(self) -> Temperatures | None:
        """Return the range or the rungs of β, for a method that draws the temperatures by itself.

        None, as by default, says that they cannot be drawn so.
        """
        return None


class AbstractStaticInstrument(AbstractInstrument):
    """An instrument without auxiliary variables: nothing moves but the pseudo-samples."""

    def num_auxiliary(self, num_particles: int) -> int:
        """The number of auxiliary variables, which is zero."""
        del num_particles
        return 0

    def start(self, key: Key[Array, ""], num_particles: int) -> Float[Array, " auxiliary"]:
        """Return an empty vector: there are no auxiliary variables."""
        del key, num_particles
        return jnp.zeros(0)


def refuse_improper(what: str, smallest_beta: float, target: Target) -> None:
    """Refuse β = 0 on a path that has no base: there γ^0 = 1 has no finite mass."""
    if smallest_beta == 0 and target.base is None:
        raise ValueError(
            f"{what} must be positive for a target without a base; got 0. Without a base the path ends in γ^0 = 1, "
            "whose mass is infinite, so the extended target would be improper and the hot pseudo-samples would drift "
            f"away: choose {what} > 0, or give the target a base (base=pe.Normal(), or log_prior and log_likelihood)."
        )
