"""A Gaussian process by Cholesky factors, and a differential equation by a fixed number of Runge-Kutta steps."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from posteriors.posterior import Moments, Posterior


def gaussian_process(num_points: int = 40) -> Posterior:
    """Log amplitude, log length and log noise of a Gaussian process with an exponentiated quadratic kernel; d = 3."""
    rng = np.random.default_rng(26)
    place = np.sort(rng.uniform(0, 10, size=num_points))
    squared = (place[:, None] - place) ** 2
    covariance = np.exp(-0.5 * squared / 1.5**2) + 0.3**2 * np.eye(num_points)
    outcome = np.linalg.cholesky(covariance) @ rng.normal(size=num_points)

    def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
        amplitude, length, noise = jnp.exp(2 * x)
        covariance = amplitude * jnp.exp(-0.5 * squared / length) + (noise + 1e-8) * jnp.eye(num_points)
        factor = jnp.linalg.cholesky(covariance)
        whitened = solve_triangular(factor, outcome, lower=True)
        log_prior = -0.5 * jnp.sum(((x - jnp.array([0.0, 0.0, -1.0])) / jnp.array([1.0, 1.0, 1.0])) ** 2)
        return log_prior - 0.5 * jnp.sum(whitened**2) - jnp.sum(jnp.log(jnp.diagonal(factor)))

    return Posterior(log_density, np.zeros(3), moments=_moments_of_process(squared, outcome))


def _moments_of_process(squared: np.ndarray, outcome: np.ndarray) -> Moments:
    """By quadrature on a grid: for each length, the covariance has one set of eigenvectors."""
    amplitudes, noises = np.linspace(-1.5, 3.5, 72)[:, None], np.linspace(-2.3, 0.0, 62)
    parts = []
    for length in np.linspace(-1.0, 2.5, 71):
        values, vectors = np.linalg.eigh(np.exp(-0.5 * squared / np.exp(2 * length)))
        variance = np.exp(2 * amplitudes)[..., None] * values + np.exp(2 * noises)[:, None] + 1e-8
        log_prior = -0.5 * (amplitudes**2 + length**2 + (noises + 1) ** 2)
        log_mass = log_prior - 0.5 * np.sum((vectors.T @ outcome) ** 2 / variance + np.log(variance), axis=-1)
        parts.append((length, log_mass))
    highest = max(np.max(log_mass) for _, log_mass in parts)
    total, mean, square = 0.0, np.zeros(3), np.zeros(3)
    for length, log_mass in parts:
        weight = np.exp(log_mass - highest)
        total += np.sum(weight)
        for power, sums in ((1, mean), (2, square)):
            each = amplitudes**power, np.full((1, 1), length**power), noises**power
            sums += [np.sum(weight * one) for one in each]
    return Moments.exact(mean / total, square / total)


def lotka_volterra(num_years: int = 20, steps_a_year: int = 10) -> Posterior:
    """Hares and lynxes (as in Carpenter's case study of 2018), all eight parameters in logs, simulated counts."""
    rng = np.random.default_rng(27)
    truth = np.log([0.55, 0.028, 0.80, 0.024, 34.0, 6.0])

    def trajectory(log_parameters: Float[Array, "6"]) -> Float[Array, "year 2"]:
        alpha, beta, gamma, delta = jnp.exp(log_parameters[:4])
        size = 1 / steps_a_year

        def slope(log_z: Array) -> Array:  # of the logs, which keeps the counts positive
            hares, lynxes = jnp.exp(log_z)
            return jnp.stack([alpha - beta * lynxes, delta * hares - gamma])

        def step(log_z: Array, _: None) -> tuple[Array, None]:
            one = slope(log_z)
            two = slope(log_z + 0.5 * size * one)
            three = slope(log_z + 0.5 * size * two)
            four = slope(log_z + size * three)
            return log_z + size / 6 * (one + 2 * two + 2 * three + four), None

        def year(log_z: Array, _: None) -> tuple[Array, Array]:
            log_z, _ = jax.lax.scan(step, log_z, None, length=steps_a_year)
            return log_z, log_z

        _, log_z = jax.lax.scan(year, log_parameters[4:], None, length=num_years)
        return jnp.concatenate([log_parameters[None, 4:], log_z])

    with jax.enable_x64(True):  # the same data whatever the precision of the sampler
        outcome = np.asarray(trajectory(jnp.asarray(truth))) + 0.25 * rng.normal(size=(num_years + 1, 2))
    centre = np.log([1.0, 0.05, 1.0, 0.05, 10.0, 10.0, 0.37, 0.37])
    spread = np.array([0.5, 1.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0])

    def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
        log_noise = x[6:]
        residual = (outcome - trajectory(x[:6])) * jnp.exp(-log_noise)
        log_likelihood = -0.5 * jnp.sum(residual**2) - (num_years + 1) * jnp.sum(log_noise)
        return log_likelihood - 0.5 * jnp.sum(((x - centre) / spread) ** 2)

    return Posterior(log_density, centre)


FACTORIES: dict[str, Callable[[], Posterior]] = {
    "gaussian-process": gaussian_process,
    "lotka-volterra": lotka_volterra,
}
