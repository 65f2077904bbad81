"""Logistic regression with the regularised horseshoe (Piironen and Vehtari 2017), on cancer data (section 4.3).

    y_i ~ Bernoulli(1/(1 + exp(-f_i))),  f = x₀ + Zx,  x_j = z_j τ λ̃_j,  z_j ~ N(0, 1),  x₀ ~ N(0, 10²),
    λ̃_j² = c²λ_j²/(c² + τ²λ_j²),  λ_j ~ C⁺(0, 1),  τ ~ C⁺(0, τ₀),  c² ~ slab_scale² · InvGamma(ν/2, ν/2).

All parameters are sampled, and every pseudo-sample has a copy of each. The prior is the base: only the likelihood is
tempered.
"""

from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.io
from jaxtyping import Array, Float, Key, PyTree

from pseudo_extended import checks
from pseudo_extended.problems.files import data_file
from pseudo_extended.target import Target

CITATION = "Piironen and Vehtari (2017), Electronic Journal of Statistics 11; Nemeth et al. (2019), section 4.3"
EXPECTED_ACTIVE = {"colon": 3.0, "leukemia": 55.0, "prostate": 200.0}
"""p0 of each data set, as in the paper's code."""
PSEUDO_SIGMA = 2.0
"""The standard deviation of a logistic observation, as Piironen and Vehtari approximate it."""
LOG_2PI = float(np.log(2 * np.pi))


class HorseshoePrior(eqx.Module):
    """The prior of all parameters, normalised, in their own space."""

    num_covariates: int = eqx.field(static=True)
    global_scale: float
    """τ₀."""
    slab_scale: float = 2.0
    slab_df: float = 3.0
    intercept_scale: float = 10.0

    def __call__(self, position: dict[str, Array]) -> Float[Array, ""]:
        """log p(x₀, z, λ, τ, c²/slab_scale²)."""
        half = 0.5 * self.slab_df
        slab = position["slab"]
        log_slab = half * jnp.log(half) - jax.lax.lgamma(half * jnp.ones_like(slab))
        log_slab += -(half + 1) * jnp.log(slab) - half / slab
        intercept = position["intercept"] / self.intercept_scale
        log_intercept = -0.5 * intercept**2 - 0.5 * LOG_2PI - jnp.log(self.intercept_scale)
        log_z = jnp.sum(-0.5 * position["z"] ** 2 - 0.5 * LOG_2PI)
        scales = _log_half_cauchy(position["global"] / self.global_scale) - jnp.log(self.global_scale)
        return log_slab + log_intercept + log_z + scales + jnp.sum(_log_half_cauchy(position["local"]))

    def sample(self, key: Key[Array, ""]) -> dict[str, Array]:
        """Make an independent draw of the prior."""
        keys = jax.random.split(key, 5)
        half = 0.5 * self.slab_df
        return {
            "intercept": self.intercept_scale * jax.random.normal(keys[0], (), float),
            "z": jax.random.normal(keys[1], (self.num_covariates,), float),
            "local": jnp.abs(jax.random.cauchy(keys[2], (self.num_covariates,), float)),
            "global": self.global_scale * jnp.abs(jax.random.cauchy(keys[3], (), float)),
            "slab": half / jax.random.gamma(keys[4], half, (), float),
        }

    def coefficients(self, position: dict[str, Array]) -> Float[Array, " covariate"]:
        """Return the regression coefficients x of a position."""
        slab = self.slab_scale**2 * position["slab"]
        square = position["local"] ** 2
        return position["z"] * position["global"] * jnp.sqrt(slab * square / (slab + position["global"] ** 2 * square))


class LogisticLikelihood(eqx.Module):
    """log p(y | parameters)."""

    prior: HorseshoePrior
    covariates: Float[np.ndarray, "observation covariate"]
    labels: Float[np.ndarray, " observation"]

    def __call__(self, position: dict[str, Array]) -> Float[Array, ""]:
        """The sum over observations."""
        return jnp.sum(self.pointwise(position))

    def pointwise(self, position: dict[str, Array]) -> Float[Array, " observation"]:
        """log p(y_i | parameters)."""
        # x Zᵀ and not Z x: for several pseudo-samples at a time, XLA takes twice as long for the second.
        f = position["intercept"] + self.prior.coefficients(position) @ jnp.asarray(self.covariates).T
        return jax.nn.log_sigmoid((2 * self.labels - 1) * f)


class HorseshoeProblem(NamedTuple):
    """A posterior given training data, and held-out data to judge it by; there is no exact answer."""

    target: Target
    """What to pass to `pe.sample`."""
    density: LogisticLikelihood
    """The likelihood of the training data."""
    held_out: LogisticLikelihood
    """The likelihood of the observations that were kept for testing."""
    citation: str
    """Where the problem comes from."""

    def coefficients(self, position: PyTree) -> Float[Array, " covariate"]:
        """The regression coefficients of a position."""
        return self.density.prior.coefficients(position)


def horseshoe_regression(
    covariates: Float[np.ndarray, "observation covariate"],
    labels: Float[np.ndarray, " observation"],
    *,
    expected_active: float,
    seed: int = 0,
    held_out: float = 0.2,
    slab_scale: float = 2.0,
    slab_df: float = 3.0,
    intercept_scale: float = 10.0,
) -> HorseshoeProblem:
    """The posterior of a logistic regression on a random part of the data.

    `labels` are 0 or 1. `expected_active` is p0, the number of covariates thought to count, which sets the global scale
    τ₀ = p0/(d - p0) · 2/√n. `held_out` of the observations, chosen at random by `seed`, are kept for testing.

    >>> rng = np.random.default_rng(0)
    >>> problem = horseshoe_regression(rng.normal(size=(20, 3)), rng.integers(0, 2, 20), expected_active=1)
    >>> problem.target.dim, len(problem.density.labels), len(problem.held_out.labels)
    (9, 16, 4)
    """
    covariates, labels = checks.float_array("covariates", covariates), checks.float_array("labels", labels)
    if covariates.ndim != 2 or labels.shape != covariates.shape[:1]:
        raise ValueError(
            f"covariates must be a matrix with a row for each label; got shapes {covariates.shape} and {labels.shape}."
        )
    if set(np.unique(labels)) != {0, 1}:
        raise ValueError(f"labels must be 0 and 1, some of each; got {np.unique(labels)}.")
    num_rows, num_covariates = covariates.shape
    active = checks.real("expected_active", expected_active, low=0, high=num_covariates, closed="()")
    held_out = checks.real("held_out", held_out, low=0, high=1, closed="()")
    num_training = int(np.floor(round((1 - held_out) * num_rows, 9)))  # 0.1 of 10 rows is one, and not 0.999…
    if not 0 < num_training < num_rows:
        raise ValueError(f"held_out must leave data on both sides; got {held_out} of {num_rows} observations.")
    order = np.random.default_rng(checks.integer("seed", seed, minimum=0)).permutation(num_rows)
    training, testing = np.sort(order[:num_training]), np.sort(order[num_training:])
    prior = HorseshoePrior(
        num_covariates,
        active / (num_covariates - active) * PSEUDO_SIGMA / np.sqrt(num_training),
        checks.real("slab_scale", slab_scale, low=0, closed="()"),
        checks.real("slab_df", slab_df, low=0, closed="()"),
        checks.real("intercept_scale", intercept_scale, low=0, closed="()"),
    )
    density = LogisticLikelihood(prior, covariates[training], labels[training])
    zeros = np.zeros(num_covariates)
    target = Target(
        example={"intercept": np.zeros(()), "z": zeros, "local": zeros + 1, "global": np.ones(()), "slab": np.ones(())},
        log_prior=prior,
        log_likelihood=density,
        sample_prior=prior.sample,
        bounds={"local": (0, None), "global": (0, None), "slab": (0, None)},
    )
    return HorseshoeProblem(target, density, LogisticLikelihood(prior, covariates[testing], labels[testing]), CITATION)


def cancer(name: str, directory: str | Path | None = None, *, seed: int = 0) -> HorseshoeProblem:
    """The posterior on one of the paper's micro-array data sets: "colon", "leukemia" or "prostate".

    The data are read from `directory`, from where PSEUDO_EXTENDED_DATA says, or downloaded. `seed` chooses which 20 %
    are held out. Covariates are divided by 2 and p0 is 3, 55 and 200, as in the paper's code; unlike there the labels
    of prostate, which are 1 and 2, become two classes and not one.
    """
    checks.choice("name", name, EXPECTED_ACTIVE)
    data = scipy.io.loadmat(data_file(f"{name}.mat", directory))
    labels = np.asarray(data["Y"], dtype=float).ravel()
    is_positive = labels == labels.max()
    return horseshoe_regression(
        np.asarray(data["X"], dtype=float) / 2,
        is_positive.astype(float),
        expected_active=EXPECTED_ACTIVE[name],
        seed=seed,
    )


def _log_half_cauchy(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return jnp.log(2 / jnp.pi) - jnp.log1p(x**2)
