"""The paper's instrument: each pseudo-sample has a temperature of its own, and it moves (eqs. 6 and 7)."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pseudo_extended import checks
from pseudo_extended.instruments.abstract import AbstractInstrument, Terms, refuse_improper, tempered_terms
from pseudo_extended.instruments.temperatures import Temperatures
from pseudo_extended.target import PathPoint, Target

LogDensityOfBeta = Callable[[Float[Array, " particle"]], Float[Array, " particle"]]


class Tempered(AbstractInstrument):
    """q(x, β) ∝ γ_β(x) g(β) with β free in (beta_min, beta_max).

    `log_prior` is log π(β) and `log_g` is log g(β): elementwise functions of β, up to a constant each, finite inside
    the range; uniform when not given. Without a base on the target, beta_min must be positive: the mass of γ^β grows
    without bound as β → 0. For heavy tails it must be larger still (a Student t with ν degrees of freedom in d
    dimensions needs β > d/(ν + d)).

    >>> Tempered(beta_min=0.1).num_auxiliary(5)
    5
    """

    beta_min: float
    beta_max: float
    log_prior: LogDensityOfBeta | None
    log_g: LogDensityOfBeta | None

    def __init__(
        self,
        beta_min: float = 1e-3,
        beta_max: float = 1.0,
        *,
        log_prior: LogDensityOfBeta | None = None,
        log_g: LogDensityOfBeta | None = None,
    ):
        self.beta_min, self.beta_max = beta_range("Tempered", beta_min, beta_max)
        self.log_prior = None if log_prior is None else checks.function("log_prior of Tempered", log_prior)
        self.log_g = None if log_g is None else checks.function("log_g of Tempered", log_g)

    def check(self, target: Target, num_particles: int) -> None:
        """β = 0 needs a base; π(β) and g(β) must be finite functions of an array."""
        refuse_improper("beta_min of Tempered", self.beta_min, target)
        beta = jax.device_put(np.linspace(self.beta_min, self.beta_max, num_particles + 2)[1:-1])
        for name, function in (("log_prior", self.log_prior), ("log_g", self.log_g)):
            if function is None:
                continue
            value = function(beta)
            if not isinstance(value, (jax.Array, np.ndarray, np.generic, float)):
                raise TypeError(f"{name} of Tempered must return an array; got {checks.describe(value)}.")
            value = jnp.asarray(value)
            if value.shape != beta.shape or not jnp.issubdtype(value.dtype, jnp.floating):
                raise ValueError(
                    f"{name} of Tempered must map an array of betas, shape {beta.shape}, to floats of that shape; "
                    f"got shape {value.shape}, {value.dtype}."
                )
            if not bool(jnp.all(jnp.isfinite(value))):
                raise ValueError(f"{name} of Tempered must be finite inside (beta_min, beta_max); got {value}.")

    def num_auxiliary(self, num_particles: int) -> int:
        """The number of temperatures, one for each pseudo-sample."""
        return num_particles

    def start(self, key: Key[Array, ""], num_particles: int) -> Float[Array, " auxiliary"]:
        """Temperatures spread over the middle of the logit scale."""
        return jax.random.uniform(key, (num_particles,), float, -2.0, 2.0)

    def betas(self, num_particles: int, auxiliary: Float[Array, " auxiliary"]) -> Float[Array, " particle"]:
        """β = beta_min + (beta_max - beta_min) σ(u)."""
        del num_particles
        return self.beta_min + (self.beta_max - self.beta_min) * jax.nn.sigmoid(auxiliary)

    def temperatures(self) -> Temperatures:
        """Return the range of β, with the g or the prior of β that the user prescribes."""
        return Temperatures(self.beta_min, self.beta_max, log_g=self.log_g or self.log_prior)

    def terms(
        self, target: Target, x: Float[Array, "particle d"], path: PathPoint, auxiliary: Float[Array, " auxiliary"]
    ) -> Terms:
        """log q = log γ_β + log g(β), log weight = (1 - β)Δ + log π(β) - log g(β), and the Jacobian of β(u).

        The constant log(beta_max - beta_min) of the Jacobian is left out, like every other constant.
        """
        del target
        beta = self.betas(x.shape[0], auxiliary)
        log_q, log_weight = tempered_terms(path, beta)
        if self.log_g is not None:
            log_g = self.log_g(beta)
            log_q, log_weight = log_q + log_g, log_weight - log_g
        if self.log_prior is not None:
            log_weight = log_weight + self.log_prior(beta)
        log_jacobian = jnp.sum(jax.nn.log_sigmoid(auxiliary) + jax.nn.log_sigmoid(-auxiliary))
        return Terms(log_q, log_weight, log_jacobian)


def beta_range(owner: str, beta_min: Any, beta_max: Any) -> tuple[float, float]:
    """The two ends of a range of β, checked."""
    low = checks.real(f"beta_min of {owner}", beta_min, low=0, high=1, closed="[)")
    high = checks.real(f"beta_max of {owner}", beta_max, low=0, high=1, closed="(]")
    if not low < high:
        raise ValueError(f"beta_min of {owner} must be below beta_max; got {low:g} and {high:g}.")
    return low, high
