"""The extended target π^N and its weights: eqs. 2, 3, 6 and 7 of Nemeth, Lindsten, Filippone and Hensman (2019).

    log π^N(x_1:N, β_1:N) = log Σ_i exp(log_weight_i) - log N + Σ_j log_q_j + log_auxiliary

with log_weight_i = log γ(x_i)π(β_i) - log q(x_i, β_i). For any f, the mean under π^N of Σ_i w_i f(x_i), with the
weights normalised within the draw, is the mean of f under the target (theorem 2.1). N = 1 is the target itself.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Key

from pseudo_extended.instruments import AbstractInstrument, Terms
from pseudo_extended.target import Target, zero_if_invalid


class Particles(NamedTuple):
    """A point of the extended space: N pseudo-samples and the auxiliary variables of the instrument."""

    x: Float[Array, "particle d"]
    auxiliary: Float[Array, " auxiliary"]


class ExtendedTarget(eqx.Module):
    """π^N on a flat vector, the pseudo-samples one after the other and then the auxiliary variables.

    >>> import numpy as np, pseudo_extended as pe
    >>> target = pe.Target(lambda x: -0.5 * jnp.sum(x**2), np.zeros(2))
    >>> ExtendedTarget(target, pe.Tempered(beta_min=0.1), num_particles=3).dim
    9
    """

    target: Target
    instrument: AbstractInstrument
    num_particles: int = eqx.field(static=True)

    @property
    def dim(self) -> int:
        """Length of the flat vector."""
        return self.num_particles * self.target.dim + self.instrument.num_auxiliary(self.num_particles)

    def split(self, flat: Float[Array, " extended"]) -> Particles:
        """The pseudo-samples and auxiliary variables in the flat vector."""
        size = self.num_particles * self.target.dim
        x, auxiliary = jax.lax.split(flat, [size, flat.shape[0] - size])  # see Target.constrain_with_log_det
        return Particles(x.reshape(self.num_particles, self.target.dim), auxiliary)

    def join(self, particles: Particles) -> Float[Array, " extended"]:
        """The flat vector of pseudo-samples and auxiliary variables."""
        return jnp.concatenate([particles.x.ravel(), particles.auxiliary])

    def start(self, key: Key[Array, ""], x: Float[Array, "particle d"]) -> Float[Array, " extended"]:
        """The flat vector for given pseudo-samples, with the instrument's own start for the rest."""
        return self.join(Particles(x, self.instrument.start(key, self.num_particles)))

    def terms(self, flat: Float[Array, " extended"]) -> Terms:
        """log q and log weight of each pseudo-sample."""
        particles = self.split(flat)
        path = jax.vmap(self.target.path_point)(particles.x)
        return self.instrument.terms(self.target, particles.x, path, particles.auxiliary)

    def log_density(self, flat: Float[Array, " extended"]) -> Float[Array, ""]:
        """log π^N up to a constant; a value that is no log density (nan, +inf) is a point of density zero."""
        log_q, log_weight, log_auxiliary = self.terms(flat)
        log_mean_weight = logsumexp(log_weight) - jnp.log(self.num_particles)
        return zero_if_invalid(log_mean_weight + jnp.sum(log_q) + log_auxiliary)

    def betas(self, flat: Float[Array, " extended"]) -> Float[Array, " particle"]:
        """The inverse temperature of each pseudo-sample."""
        return self.instrument.betas(self.num_particles, self.split(flat).auxiliary)
