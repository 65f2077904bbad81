"""Mixtures of normals with exact moments and exact draws: the paper's illustration and its 20-mode mixture."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from pseudo_extended import checks
from pseudo_extended.target import Target

# Liang and Wong (2001), as used by Kou, Zhou and Wong (2006).
TWENTY_MEANS = np.array(
    [
        (2.18, 5.76), (8.67, 9.59), (4.24, 8.48), (8.41, 1.68), (3.93, 8.82),
        (3.25, 3.47), (1.70, 0.50), (4.59, 5.60), (6.91, 5.81), (6.87, 5.40),
        (5.41, 2.65), (2.70, 7.88), (4.98, 3.70), (1.14, 2.39), (8.33, 9.50),
        (4.93, 1.50), (1.83, 0.09), (2.26, 0.31), (5.54, 6.86), (1.69, 8.11),
    ]
)  # fmt: skip


class NormalMixture(eqx.Module):
    """Log density of a mixture of spherical normals, normalised."""

    weights: Float[np.ndarray, " component"]
    means: Float[np.ndarray, "component d"]
    variances: Float[np.ndarray, " component"]

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """Evaluate the log density of the mixture, log π(x)."""
        log_scale = jnp.log(self.weights) - 0.5 * x.shape[0] * jnp.log(2 * jnp.pi * self.variances)
        return logsumexp(log_scale - 0.5 * jnp.sum((x - self.means) ** 2, axis=-1) / self.variances)

    def draw(self, rng: np.random.Generator, size: int) -> Float[np.ndarray, "size d"]:
        """Make independent draws of the mixture."""
        component = rng.choice(len(self.weights), size=size, p=self.weights)
        noise = rng.normal(size=(size, self.means.shape[1]))
        return self.means[component] + np.sqrt(self.variances[component])[:, None] * noise


class Problem(NamedTuple):
    """A target with its ground truth."""

    target: Target
    """What to pass to `pe.sample`."""
    mean: Float[np.ndarray, " d"]
    """E[X]."""
    second_moment: Float[np.ndarray, " d"]
    """E[X²], elementwise."""
    density: NormalMixture
    """The target as a mixture, with an exact sampler."""
    citation: str
    """Where the problem comes from."""
    log_evidence: float = 0.0
    """log Z; the densities are normalised."""


def _problem(weights: np.ndarray, means: np.ndarray, variances: np.ndarray, citation: str) -> Problem:
    density = NormalMixture(weights / weights.sum(), means, variances)
    mean = density.weights @ means
    second = density.weights @ (means**2 + variances[:, None])
    return Problem(Target(density, np.zeros(means.shape[1])), mean, second, density, citation)


def illustration() -> Problem:
    """The paper's figures 1 and 3: N(-1, 0.1) + N(1, 0.02), on the line; the numbers are variances.

    >>> illustration().mean
    array([0.])
    """
    return _problem(np.ones(2), np.array([[-1.0], [1.0]]), np.array([0.1, 0.02]), "Nemeth et al. (2019), section B.1")


def twenty_modes(scenario: str = "a") -> Problem:
    """Twenty normals in the plane: equal and sharp ("a"), or unequal and wider far from (5, 5) ("b").

    The weights of scenario (b) are normalised here; as printed in the paper they sum to 7.476.

    >>> twenty_modes("a").mean, twenty_modes("b").mean.round(4)
    (array([4.478, 4.905]), array([4.6876, 5.0302]))
    """
    checks.choice("scenario", scenario, ("a", "b"))
    distance = np.linalg.norm(TWENTY_MEANS - 5, axis=1)
    weights, variances = (np.ones(20), np.full(20, 0.01)) if scenario == "a" else (1 / distance, distance / 20)
    citation = "Kou, Zhou and Wong (2006), Annals of Statistics 34; Nemeth et al. (2019), section 4.1"
    return _problem(weights, TWENTY_MEANS, variances, citation)
