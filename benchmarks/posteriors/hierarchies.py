"""Hierarchies: eight schools, centred and not, and a regression with ninety groups in the manner of the radon data."""

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from posteriors.posterior import Posterior
from posteriors.regressions import log_half_cauchy

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def eight_schools(*, centred: bool) -> Posterior:
    """Rubin's eight schools (1981): mean, log τ and eight effects, or their standardised deviations."""

    def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
        mean, log_tau, effects = x[0], x[1], x[2:]
        tau = jnp.exp(log_tau)
        if centred:
            log_effects = -0.5 * jnp.sum(((effects - mean) / tau) ** 2) - 8 * log_tau
        else:
            log_effects = -0.5 * jnp.sum(effects**2)
            effects = mean + tau * effects
        log_likelihood = -0.5 * jnp.sum(((EFFECTS - effects) / ERRORS) ** 2)
        return log_likelihood + log_effects - 0.5 * (mean / 5) ** 2 + log_half_cauchy(log_tau, 5.0)

    return Posterior(log_density, np.zeros(10))


def radon(*, slopes: bool, num_groups: int = 90) -> Posterior:
    """Houses in counties: intercepts by county around a line in a county's uranium, centred (d = 95).

    With `slopes`, the effect of the floor varies by county too, and both are standardised (d = 186).
    """
    rng = np.random.default_rng(23)
    group = np.repeat(np.arange(num_groups), rng.geometric(0.1, size=num_groups).clip(1, 60))
    uranium, floor = rng.normal(size=num_groups), (rng.uniform(size=len(group)) < 0.2).astype(float)
    intercept = 1.5 + 0.7 * uranium + 0.3 * rng.normal(size=num_groups)
    slope = -0.7 + 0.3 * rng.normal(size=num_groups)
    outcome = intercept[group] + slope[group] * floor + 0.75 * rng.normal(size=len(group))

    def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
        mean, effect, slope, log_scale, log_noise = x[:5]
        centre, log_prior = mean + effect * uranium, -0.5 * (mean**2 + effect**2 + slope**2) / 5**2
        log_prior += sum(log - 0.5 * jnp.exp(2 * log) for log in (log_scale, log_noise))
        if slopes:
            log_slope_scale = x[5]
            by_group = x[6:].reshape(2, num_groups)
            log_prior += log_slope_scale - 0.5 * jnp.exp(2 * log_slope_scale) - 0.5 * jnp.sum(by_group**2)
            intercepts = centre + jnp.exp(log_scale) * by_group[0]
            line = intercepts[group] + (slope + jnp.exp(log_slope_scale) * by_group[1])[group] * floor
        else:
            intercepts = x[5:]
            log_prior += -0.5 * jnp.sum(((intercepts - centre) * jnp.exp(-log_scale)) ** 2) - num_groups * log_scale
            line = intercepts[group] + slope * floor
        return log_prior - 0.5 * jnp.sum(((outcome - line) * jnp.exp(-log_noise)) ** 2) - len(group) * log_noise

    return Posterior(log_density, np.zeros(6 + 2 * num_groups if slopes else 5 + num_groups))


FACTORIES: dict[str, Callable[[], Posterior]] = {
    "schools-centred": partial(eight_schools, centred=True),
    "schools": partial(eight_schools, centred=False),
    "radon-95": partial(radon, slopes=False),
    "radon-186": partial(radon, slopes=True),
}
