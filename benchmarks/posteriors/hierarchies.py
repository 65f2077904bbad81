"""Hierarchies: eight schools, centred and not, and a regression with ninety groups in the manner of the radon data."""

import itertools
from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import softmax

from posteriors.posterior import Moments, Posterior
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

    return Posterior(log_density, np.zeros(10), moments=_moments_of_schools(centred=centred))


def _moments_of_schools(*, centred: bool) -> Moments:
    """By quadrature over log τ, given which mean and effects are normal."""
    log_masses, means, squares = [], [], []
    for log_tau in np.linspace(-25.0, 8.0, 1101):
        tau = np.exp(log_tau)
        # Latent variables are the mean and the standardised deviations, with variances 25 and 1 in the prior.
        design, prior = np.column_stack([np.ones(8), tau * np.eye(8)]), np.diag([25.0, *np.ones(8)])
        marginal = design @ prior @ design.T + np.diag(ERRORS**2)
        gain = prior @ design.T @ np.linalg.inv(marginal)
        middle, covariance = gain @ EFFECTS, prior - gain @ design @ prior
        if centred:
            shown = np.vstack([np.eye(9)[0], design])
            middle, covariance = shown @ middle, shown @ covariance @ shown.T
        log_mass = -0.5 * (EFFECTS @ np.linalg.solve(marginal, EFFECTS) + np.linalg.slogdet(marginal)[1])
        log_masses.append(log_mass + log_tau - np.log1p((tau / 5) ** 2))
        means.append(np.insert(middle, 1, log_tau))
        squares.append(means[-1] ** 2 + np.insert(np.diag(covariance), 1, 0.0))
    share = softmax(log_masses)
    return Moments.exact(share @ means, share @ squares)


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

    if slopes:
        return Posterior(log_density, np.zeros(6 + 2 * num_groups))
    design = np.column_stack([np.ones(len(group)), uranium[group], floor, np.eye(num_groups)[group]])
    return Posterior(log_density, np.zeros(5 + num_groups), moments=_moments_of_lines(design, uranium, outcome))


def _moments_of_lines(design: np.ndarray, uranium: np.ndarray, outcome: np.ndarray) -> Moments:
    """By quadrature over the logs of both scales, given which all the rest is normal.

    Columns of `design` are those of the mean, of the effects of uranium and floor, and of the groups' deviations.
    """
    num_groups, products, shifted = len(uranium), design.T @ design, design.T @ outcome
    shown = np.eye(3 + num_groups)
    shown[3:, 0], shown[3:, 1] = 1.0, uranium
    log_masses, means, squares = [], [], []
    for log_scale, log_noise in itertools.product(np.linspace(-2.2, -0.4, 31), np.linspace(-0.42, -0.17, 21)):
        weight = np.exp(-2 * log_noise)
        prior = np.append(np.full(3, 1 / 5**2), np.full(num_groups, np.exp(-2 * log_scale)))
        covariance = np.linalg.inv(np.diag(prior) + products * weight)
        middle = covariance @ shifted * weight
        fit = 0.5 * weight * (shifted @ middle - outcome @ outcome) + 0.5 * np.linalg.slogdet(covariance)[1]
        own = sum(log - 0.5 * np.exp(2 * log) for log in (log_scale, log_noise))
        log_masses.append(fit + own - num_groups * log_scale - len(outcome) * log_noise)
        means.append(np.insert(shown @ middle, 3, [log_scale, log_noise]))
        spread = np.insert(np.sum((shown @ covariance) * shown, axis=1), 3, [0.0, 0.0])
        squares.append(means[-1] ** 2 + spread)
    share = softmax(log_masses)
    return Moments.exact(share @ means, share @ squares)


FACTORIES: dict[str, Callable[[], Posterior]] = {
    "schools-centred": partial(eight_schools, centred=True),
    "schools": partial(eight_schools, centred=False),
    "radon-95": partial(radon, slopes=False),
    "radon-186": partial(radon, slopes=True),
}
