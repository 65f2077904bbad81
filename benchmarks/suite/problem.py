"""What a problem of the suite consists of: a density, a prior for samplers that need one, and known answers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from posteriors import Posterior
from suite.priors import Box, Prior

Density = Callable[[Float[Array, " d"]], Float[Array, ""]]
Function = Callable[[Float[Array, " d"]], Float[Array, " quantity"]]


@dataclass(frozen=True)
class Asked:
    """Expectations whose true values are known: the masses of modes, or moments.

    The error of a mass is its absolute error; that of a moment is counted in standard deviations `sd` of the function.
    """

    function: Function
    truth: Float[np.ndarray, " quantity"]
    sd: Float[np.ndarray, " quantity"] | None = None
    """None for masses."""
    error: Float[np.ndarray, " quantity"] | None = None
    """The standard error of the truth, in its own units; None if it is exact."""

    @property
    def is_mass(self) -> bool:
        """Whether these are probabilities of modes."""
        return self.sd is None


def masses(function: Function, truth: np.ndarray | list[float], error: np.ndarray | None = None) -> Asked:
    """Probabilities of modes."""
    return Asked(function, np.asarray(truth, float), None, error)


def moments(function: Function, truth: np.ndarray, second: np.ndarray, error: np.ndarray | None = None) -> Asked:
    """Means of functions, with their second moments, from which the sds follow."""
    truth = np.asarray(truth, float)
    return Asked(function, truth, np.sqrt(np.asarray(second, float) - truth**2), error)


@dataclass(frozen=True)
class Problem:
    """A density γ on the user's own scale, and what is known about it.

    With `is_model`, γ is the product of prior and likelihood, and every sampler is given both. Without, γ is a plain
    density on Rᵈ: the default and the chains are given that alone, while samplers that start from a prior are given
    `prior`, which is broad and no part of γ, and γ / prior as the likelihood. log Z is log ∫γ in either case.
    """

    citation: str
    prior: Prior
    asked: dict[str, Asked]
    log_density: Density | None = None
    """log γ, of a plain density."""
    log_likelihood: Density | None = None
    """log likelihood, of a model."""
    log_evidence: float | None = None
    log_evidence_error: float = 0.0
    """The standard error of `log_evidence`; zero where it is exact."""
    start: Float[np.ndarray, " d"] | None = None
    """Chains start around it: zero, or the middle of the prior, unless given."""
    periodic: tuple[int, ...] = ()
    """Coordinates that close a circle over the width of the box."""
    names: tuple[str, ...] = field(default=())
    in_numpy: Callable[[np.ndarray], np.ndarray] | None = None
    """log γ of many points in NumPy, for samplers without gradients; only some problems have it."""

    def __post_init__(self) -> None:
        if (self.log_density is None) == (self.log_likelihood is None):
            raise ValueError("one of log_density and log_likelihood must be given; got none or both.")

    @property
    def is_model(self) -> bool:
        """Whether the prior is a part of γ."""
        return self.log_likelihood is not None

    @cached_property
    def dim(self) -> int:
        """The number of coordinates."""
        return len(self.prior.low if isinstance(self.prior, Box) else self.prior.mean)

    def log_gamma(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """log γ."""
        if self.log_density is not None:
            return self.log_density(x)
        assert self.log_likelihood is not None
        return self.log_likelihood(x) + self.prior.log_density(x)

    def log_ratio(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """log γ / prior: the likelihood, for samplers that start from the prior."""
        if self.log_likelihood is not None:
            return self.log_likelihood(x)
        assert self.log_density is not None
        height = self.prior.log_height if isinstance(self.prior, Box) else self.prior.log_density(x)
        return self.log_density(x) - height

    def log_latent(self, u: Float[Array, " d"]) -> Float[Array, ""]:
        """The log density of the unconstrained vector that `from_latent` takes."""
        if not self.is_model:
            return self.log_gamma(u)
        return self.log_ratio(self.prior.from_latent(u)) + self.prior.log_density_latent(u)

    def from_latent(self, u: Float[Array, " d"]) -> Float[Array, " d"]:
        """The user's position of an unconstrained vector."""
        return self.prior.from_latent(u) if self.is_model else u

    def quantities(self, x: Float[Array, " d"]) -> Float[Array, " quantity"]:
        """Everything that is asked, one after the other."""
        return jnp.concatenate([asked.function(x) for asked in self.asked.values()])

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Where each group of quantities is in `quantities`."""
        ends = np.cumsum([len(asked.truth) for asked in self.asked.values()])
        return {
            name: slice(int(end) - len(asked.truth), int(end))
            for (name, asked), end in zip(self.asked.items(), ends, strict=True)
        }

    @property
    def first(self) -> Float[np.ndarray, " d"]:
        """Where chains start, on the user's own scale."""
        if self.start is not None:
            return self.start
        if not self.is_model:
            return np.zeros(self.dim)
        return np.asarray((self.prior.low + self.prior.high) / 2 if isinstance(self.prior, Box) else self.prior.mean)

    def posterior(self) -> Posterior:
        """The problem as the benchmarks of chains know it, on the unconstrained space."""
        start = np.zeros(self.dim) if self.is_model else self.first
        return Posterior(self.log_latent, start, lambda u: self.quantities(self.from_latent(u)))
