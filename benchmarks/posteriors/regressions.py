"""Regressions: logistic with correlated covariates, and a linear one with the regularised horseshoe."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from posteriors.posterior import Posterior


def log_half_cauchy(log_value: Float[Array, "..."], scale: float = 1.0) -> Float[Array, "..."]:
    """A half-Cauchy density of exp(`log_value`), with the Jacobian, up to a constant."""
    return log_value - jnp.log1p((jnp.exp(log_value) / scale) ** 2)


def logistic(num_rows: int = 500, dim: int = 50) -> Posterior:
    """Logistic regression whose covariates are an AR(1) series along the columns, ρ = 0.9; unit normal priors."""
    rng = np.random.default_rng(21)
    columns = [rng.normal(size=num_rows)]
    for _ in range(dim - 1):
        columns.append(0.9 * columns[-1] + np.sqrt(1 - 0.9**2) * rng.normal(size=num_rows))
    covariates = np.stack(columns, axis=1)
    truth = rng.normal(size=dim) * 0.5
    sign = np.where(rng.uniform(size=num_rows) < 1 / (1 + np.exp(-covariates @ truth)), 1.0, -1.0)
    signed = covariates * sign[:, None]

    def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
        return jnp.sum(jax.nn.log_sigmoid(jnp.asarray(signed) @ x)) - 0.5 * jnp.sum(x**2)

    return Posterior(log_density, np.zeros(dim))


def horseshoe(num_rows: int = 100, num_covariates: int = 20) -> Posterior:
    """Linear regression with the regularised horseshoe (Piironen and Vehtari 2017), non-centred; d = 44."""
    rng = np.random.default_rng(22)
    p = num_covariates
    covariates = rng.normal(size=(num_rows, p))
    truth = np.concatenate([[2.0, -1.5, 1.0, 0.4], np.zeros(p - 4)])
    outcome = 0.5 + covariates @ truth + rng.normal(size=num_rows)
    tau_scale = 4 / ((p - 4) * np.sqrt(num_rows))

    def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
        raw, log_lambda = x[:p], x[p : 2 * p]
        log_tau, log_slab, intercept, log_sigma = x[2 * p :]
        local, slab = jnp.exp(2 * log_lambda), jnp.exp(log_slab)  # squares
        tau = jnp.exp(2 * log_tau)
        coefficient = raw * jnp.sqrt(tau * local * slab / (slab + tau * local))
        residual = (outcome - intercept - jnp.asarray(covariates) @ coefficient) * jnp.exp(-log_sigma)
        log_prior = (
            -0.5 * jnp.sum(raw**2)
            + jnp.sum(log_half_cauchy(log_lambda))
            + log_half_cauchy(log_tau, tau_scale)
            - 2 * log_slab  # inverse gamma with shape 2 and rate 8, of the squared scale of the slab
            - 8 / slab
            - 0.5 * (intercept / 5) ** 2
            - 0.5 * jnp.exp(2 * log_sigma) / 2**2
            + log_sigma
        )
        return log_prior - 0.5 * jnp.sum(residual**2) - num_rows * log_sigma

    return Posterior(log_density, np.zeros(2 * p + 4))


FACTORIES: dict[str, Callable[[], Posterior]] = {"logistic-50": logistic, "horseshoe": horseshoe}
