"""Fixed temperatures: one for all pseudo-samples, or a ladder with one for each."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from pseudo_extended import checks
from pseudo_extended.instruments.abstract import AbstractStaticInstrument, Terms, refuse_improper, tempered_terms
from pseudo_extended.instruments.temperatures import Temperatures
from pseudo_extended.target import PathPoint, Target


class Fixed(AbstractStaticInstrument):
    """q(x) ∝ γ_β(x) with one fixed β for every pseudo-sample.

    >>> Fixed(0.3).num_auxiliary(5)
    0
    """

    beta: Float[np.ndarray, ""]

    def __init__(self, beta: float):
        self.beta = np.asarray(checks.real("beta of Fixed", beta, low=0, high=1))

    def check(self, target: Target, num_particles: int) -> None:
        """β = 0 needs a base."""
        del num_particles
        refuse_improper("beta of Fixed", float(self.beta), target)

    def betas(self, num_particles: int, auxiliary: Float[Array, " auxiliary"]) -> Float[Array, " particle"]:
        """The one β, N times."""
        del auxiliary
        return jnp.full(num_particles, self.beta)

    def temperatures(self) -> Temperatures:
        """Return the one rung, which all pseudo-samples share."""
        return Temperatures(self.beta, self.beta, self.beta[None], np.zeros(1))

    def terms(
        self, target: Target, x: Float[Array, "particle d"], path: PathPoint, auxiliary: Float[Array, " auxiliary"]
    ) -> Terms:
        """log q = log γ_β, log weight = (1 - β)Δ."""
        del target
        return Terms(*tempered_terms(path, self.betas(x.shape[0], auxiliary)), jnp.zeros(()))


class Ladder(AbstractStaticInstrument):
    """q_i(x) ∝ γ_{β_i}(x) exp(log_g_i): a fixed ladder, one rung for each pseudo-sample.

    The answer is exact for any `log_g`; the share of draws in which pseudo-sample i carries the target is
    proportional to exp(-log_g_i)/Z(β_i), so log_g_i ≈ -log Z(β_i) shares the work evenly.

    >>> Ladder([0.1, 0.3, 1.0]).rungs
    array([0.1, 0.3, 1. ])
    """

    rungs: Float[np.ndarray, " particle"]
    log_g: Float[np.ndarray, " particle"]

    def __init__(self, betas: ArrayLike, log_g: ArrayLike | None = None):
        rungs = checks.float_array("betas of Ladder", betas)
        if rungs.ndim != 1 or rungs.size == 0 or np.any(rungs < 0) or np.any(rungs > 1) or np.any(np.diff(rungs) <= 0):
            raise ValueError(f"betas of Ladder must increase strictly within [0, 1]; got {checks.describe(betas)}.")
        self.rungs = rungs
        self.log_g = np.zeros(rungs.shape) if log_g is None else checks.float_array("log_g of Ladder", log_g)
        if self.log_g.shape != rungs.shape:
            raise ValueError(
                f"log_g of Ladder must have one entry for each of {rungs.size} betas; got {checks.describe(log_g)}."
            )

    def check(self, target: Target, num_particles: int) -> None:
        """Require as many rungs as pseudo-samples, and a base for a rung at β = 0."""
        if self.rungs.size != num_particles:
            raise ValueError(
                f"betas of Ladder must have one entry for each of the {num_particles} pseudo-samples; "
                f"got {self.rungs.size}."
            )
        refuse_improper("the smallest of betas of Ladder", float(self.rungs[0]), target)

    def betas(self, num_particles: int, auxiliary: Float[Array, " auxiliary"]) -> Float[Array, " particle"]:
        """The rungs of the ladder, one for each pseudo-sample."""
        del num_particles, auxiliary
        return jnp.asarray(self.rungs)

    def temperatures(self) -> Temperatures:
        """Return the rungs, one for each pseudo-sample."""
        return Temperatures(self.rungs[0], self.rungs[-1], self.rungs, self.log_g)

    def terms(
        self, target: Target, x: Float[Array, "particle d"], path: PathPoint, auxiliary: Float[Array, " auxiliary"]
    ) -> Terms:
        """log q_i = log γ_{β_i} + log g_i, log weight_i = (1 - β_i)Δ - log g_i."""
        del target
        log_q, log_weight = tempered_terms(path, self.betas(x.shape[0], auxiliary))
        return Terms(log_q + self.log_g, log_weight - self.log_g, jnp.zeros(()))
