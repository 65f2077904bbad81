"""Latent variables: item response with two parameters an item, and stochastic volatility."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from posteriors.posterior import Posterior


def item_response(num_persons: int = 100, num_items: int = 25) -> Posterior:
    """Two-parameter logistic item response: abilities, log discriminations and difficulties; d = 150."""
    rng = np.random.default_rng(24)
    ability, difficulty = rng.normal(size=num_persons), rng.normal(size=num_items)
    discrimination = np.exp(0.3 * rng.normal(size=num_items))
    probability = 1 / (1 + np.exp(-discrimination * (ability[:, None] - difficulty)))
    sign = np.where(rng.uniform(size=probability.shape) < probability, 1.0, -1.0)

    def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
        ability = x[:num_persons]
        log_discrimination, difficulty = x[num_persons:].reshape(2, num_items)
        logit = jnp.exp(log_discrimination) * (ability[:, None] - difficulty)
        log_prior = -0.5 * (
            jnp.sum(ability**2) + jnp.sum((log_discrimination / 0.5) ** 2) + jnp.sum((difficulty / 2) ** 2)
        )
        return jnp.sum(jax.nn.log_sigmoid(sign * logit)) + log_prior

    return Posterior(log_density, np.zeros(num_persons + 2 * num_items))


def stochastic_volatility(num_days: int = 497) -> Posterior:
    """Returns whose log variance is an AR(1) series, standardised (Kim, Shephard, Chib 1998); d = 500."""
    rng = np.random.default_rng(25)
    level, persistence, scale = -1.0, 0.95, 0.25
    log_variance = np.empty(num_days)
    log_variance[0] = level + scale / np.sqrt(1 - persistence**2) * rng.normal()
    for t in range(1, num_days):
        log_variance[t] = level + persistence * (log_variance[t - 1] - level) + scale * rng.normal()
    returns = np.exp(0.5 * log_variance) * rng.normal(size=num_days)

    def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
        level, logit, log_scale, noise = x[0], x[1], x[2], x[3:]
        persistence, scale = jnp.tanh(logit), jnp.exp(log_scale)

        def step(deviation: Array, each: Array) -> tuple[Array, Array]:
            deviation = persistence * deviation + scale * each
            return deviation, deviation

        first = scale * noise[0] * jnp.cosh(logit)  # 1/√(1 - tanh²)
        _, rest = jax.lax.scan(step, first, noise[1:])
        log_variance = level + jnp.concatenate([first[None], rest])
        log_likelihood = -0.5 * jnp.sum(log_variance + returns**2 * jnp.exp(-log_variance))
        # Uniform on (-1, 1) would leave the log scale of the first deviation free; (1 + φ)/2 ~ Beta(20, 1.5) is usual.
        log_persistence = 20.0 * jax.nn.log_sigmoid(2 * logit) + 1.5 * jax.nn.log_sigmoid(-2 * logit)
        log_prior = -0.5 * (level / 5) ** 2 + log_persistence - 0.5 * ((log_scale + 1.5) / 0.7) ** 2
        return log_likelihood + log_prior - 0.5 * jnp.sum(noise**2)

    return Posterior(log_density, np.zeros(3 + num_days))


FACTORIES: dict[str, Callable[[], Posterior]] = {
    "item-response": item_response,
    "volatility": stochastic_volatility,
}
