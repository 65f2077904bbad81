"""Radial velocities of planets on Kepler's orbits, and the noise of the exoplanet evidence challenge."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

RAYLEIGH = 0.2
"""Of the prior of eccentricities, truncated at one."""
NEWTON_STEPS = 12


def anomaly(
    mean_anomaly: Float[Array, " time"], eccentricity: Float[Array, ""]
) -> tuple[Float[Array, " time"], Float[Array, " time"]]:
    """Cosine and sine of the true anomaly; Kepler's equation by Newton's method.

    The last two steps are differentiated, which makes first and second derivatives exact.

    >>> cosine, sine = anomaly(jnp.array([1.0]), jnp.array(0.3))
    >>> bool(jnp.abs(cosine**2 + sine**2 - 1)[0] < 1e-6)
    True
    """
    wrapped = jnp.mod(mean_anomaly + np.pi, 2 * np.pi) - np.pi

    def step(e_anomaly: Array, m: Array, e: Array) -> Array:
        return e_anomaly - (e_anomaly - e * jnp.sin(e_anomaly) - m) / (1 - e * jnp.cos(e_anomaly))

    fixed, e_fixed = lax.stop_gradient(wrapped), lax.stop_gradient(eccentricity)
    start = fixed + 0.85 * e_fixed * jnp.sign(jnp.sin(fixed))
    found = lax.fori_loop(0, NEWTON_STEPS, lambda _, x: step(x, fixed, e_fixed), start)
    found = lax.stop_gradient(found)
    for _ in range(2):
        found = step(found, wrapped, eccentricity)
    scale = 1 - eccentricity * jnp.cos(found)
    root = jnp.sqrt((1 - eccentricity) * (1 + eccentricity))
    return (jnp.cos(found) - eccentricity) / scale, root * jnp.sin(found) / scale


def shapes(
    time: Float[np.ndarray, " time"], period: Float[Array, ""], eccentricity: Float[Array, ""], phase: Float[Array, ""]
) -> Float[Array, "two time"]:
    """cos f + e and −sin f: a planet's velocity is K cos ω times the first plus K sin ω times the second."""
    cosine, sine = anomaly(jnp.asarray(time) * 2 * np.pi / period + phase, eccentricity)
    return jnp.stack([cosine + eccentricity, -sine])


def eccentricity_from(share: Float[Array, "..."]) -> Float[Array, "..."]:
    """The eccentricity below which lies this share of the truncated Rayleigh law."""
    whole = -np.expm1(-0.5 / RAYLEIGH**2)
    return RAYLEIGH * jnp.sqrt(-2 * jnp.log1p(-share * whole) + 1e-300)


def velocity(time: Float[np.ndarray, " time"], planet: Float[Array, " five"]) -> Float[Array, " time"]:
    """The velocity due to a planet: log period, log(1 + K), eccentricity, ω and the mean anomaly at time zero."""
    log_period, log_amplitude, eccentricity, omega, phase = planet
    first, second = shapes(time, jnp.exp(log_period), eccentricity, phase)
    return jnp.expm1(log_amplitude) * (jnp.cos(omega) * first + jnp.sin(omega) * second)


def red_noise(time: Float[np.ndarray, " time"]) -> Float[np.ndarray, "time time"]:
    """The quasi-periodic covariance of the challenge: 3 exp{−½ [sin²(πΔ/20)/0.5² + Δ²/50²]}."""
    gap = time[:, None] - time
    return 3 * np.exp(-0.5 * (np.sin(np.pi * gap / 20) ** 2 / 0.25 + gap**2 / 2500))


class Rotated:
    """Correlated noise plus jitter: one rotation makes the noise independent, whatever the jitter is."""

    def __init__(self, covariance: Float[np.ndarray, "time time"]):
        variances, self.vectors = np.linalg.eigh(covariance)
        self.variances = variances

    def log_likelihood(self, residual: Float[Array, " time"], jitter: Float[Array, ""]) -> Float[Array, ""]:
        """log N(residual; 0, covariance + jitter²)."""
        variance = self.variances + jitter**2
        z = residual @ jnp.asarray(self.vectors)
        return -0.5 * jnp.sum(z**2 / variance + jnp.log(2 * np.pi * variance))


jax.tree_util.register_static(Rotated)
