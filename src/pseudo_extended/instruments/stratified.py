"""Temperatures that avoid each other: the discussion's negatively correlated β."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pseudo_extended import checks
from pseudo_extended.instruments.abstract import AbstractInstrument, Terms, refuse_improper, tempered_terms
from pseudo_extended.instruments.tempered import beta_range
from pseudo_extended.target import PathPoint, Target


class Stratified(AbstractInstrument):
    """q(x_1:N, β_1:N) ∝ h(β_1:N) Π γ_{β_j}(x_j), where h is a Gaussian copula with negative correlation.

    The temperatures are β_i = beta_min + (beta_max - beta_min) Φ(s_i), with s normal, variances 1 and every
    correlation `correlation` in [-1/(N-1), 0]. The default, the paper's -1/(N-1), is the strongest possible: there
    the covariance is singular, Σ s_i = 0 exactly, and N temperatures have N - 1 degrees of freedom. So the auxiliary
    variables are not s but the white noise v with s = A v, A Aᵀ the covariance; A has N - 1 columns in that case.

    h is exchangeable, hence each pseudo-sample carries the target equally often and the weights are exp{(1-β_i)Δ_i}.

    >>> Stratified(beta_min=0.1).num_auxiliary(5), Stratified(0.1, correlation=-0.1).num_auxiliary(5)
    (4, 5)
    """

    beta_min: float
    beta_max: float
    correlation: float | None

    def __init__(self, beta_min: float = 1e-3, beta_max: float = 1.0, *, correlation: float | None = None):
        self.beta_min, self.beta_max = beta_range("Stratified", beta_min, beta_max)
        self.correlation = None
        if correlation is not None:
            self.correlation = checks.real("correlation of Stratified", correlation, low=-1, high=0)

    def check(self, target: Target, num_particles: int) -> None:
        """β = 0 needs a base; at least two temperatures; a correlation that N of them can have."""
        refuse_improper("beta_min of Stratified", self.beta_min, target)
        if num_particles < 2:
            raise ValueError(f"Stratified needs at least 2 pseudo-samples to keep apart; got {num_particles}.")
        lowest = -1 / (num_particles - 1)
        if self.correlation is not None and self.correlation < lowest - 1e-12:
            raise ValueError(
                f"correlation of Stratified must be at least -1/(N-1) = {lowest:g} for N = {num_particles} "
                f"pseudo-samples; got {self.correlation:g}."
            )

    def num_auxiliary(self, num_particles: int) -> int:
        """N, or N - 1 in the singular case."""
        return self._factor(num_particles).shape[1]

    def start(self, key: Key[Array, ""], num_particles: int) -> Float[Array, " auxiliary"]:
        """A draw from h."""
        return jax.random.normal(key, (self.num_auxiliary(num_particles),), float)

    def betas(self, num_particles: int, auxiliary: Float[Array, " auxiliary"]) -> Float[Array, " particle"]:
        """β = beta_min + (beta_max - beta_min) Φ(A v)."""
        uniform = jax.scipy.stats.norm.cdf(self._factor(num_particles) @ auxiliary)
        return self.beta_min + (self.beta_max - self.beta_min) * uniform

    def terms(
        self, target: Target, x: Float[Array, "particle d"], path: PathPoint, auxiliary: Float[Array, " auxiliary"]
    ) -> Terms:
        """log γ_β and (1 - β)Δ; h is the standard normal density of the white noise."""
        del target
        log_q, log_weight = tempered_terms(path, self.betas(x.shape[0], auxiliary))
        return Terms(log_q, log_weight, -0.5 * jnp.sum(auxiliary**2))

    def _factor(self, num_particles: int) -> Float[np.ndarray, "particle auxiliary"]:
        """A with A Aᵀ = (1 - ρ) I + ρ 1 1ᵀ: the symmetric root, without its null direction if it has one."""
        n = num_particles
        rho = -1 / (n - 1) if self.correlation is None else self.correlation
        along_ones = max(1 + (n - 1) * rho, 0.0)
        mean = np.full((n, n), 1 / n)
        if along_ones > 1e-9:
            return np.sqrt(1 - rho) * (np.eye(n) - mean) + np.sqrt(along_ones) * mean
        # Helmert's columns: an orthonormal basis of the vectors that sum to zero.
        columns = [np.r_[np.full(k, 1.0), -float(k), np.zeros(n - k - 1)] / np.sqrt(k * (k + 1)) for k in range(1, n)]
        return np.sqrt(1 - rho) * np.stack(columns, axis=1)
