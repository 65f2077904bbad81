"""The exoplanet challenge without a planet, by quadrature, and with one, by a grid over the period.

Given period, eccentricity and mean anomaly the velocities are linear in the offset and in K cos ω and K sin ω. The
offset is integrated in closed form (its prior is a thousand times wider than its posterior), amplitude and ω by
quadrature of the exact quadratic form, the jitter by quadrature; period, eccentricity and mean anomaly by randomised
low-discrepancy points, first on the whole range of frequencies, then where the mass was found. The last round is
unbiased, and its error comes from independent randomisations.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.polynomial.legendre import leggauss
from scipy.special import logsumexp as log_sum_exp
from scipy.stats import qmc

from suite.exoplanets import noise, velocities
from suite.kepler import eccentricity_from, shapes

LOG_RANGE = np.log(1e4 / 1.25)
NUM_JITTERS, NUM_ANGLES, NUM_AMPLITUDES = 64, 48, 40
"""With 64 jitters the quadrature is exact to 1e-5 on all sets; with 12 it was off by 0.2 to 0.5."""
SURVEY_JITTERS = 12
"""Enough to see where the mass is."""
MAX_JITTER = 12.0
"""Beyond it the likelihood has fallen by more than exp(−30) on all sets; the tests compare with a wider range."""
POINTS_PER_CELL, CELLS_PER_SPAN = 48, 4
ROUNDS, POINTS = 8, 8192
BATCH = 256


def jitter_nodes(count: int = NUM_JITTERS, largest: float = MAX_JITTER) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and log weights under the prior of jitter, 1/(1 + σ) up to 99."""
    places, weights = leggauss(count)
    top = np.log1p(largest)
    return np.expm1(top * (places + 1) / 2), np.log(weights / 2 * top / np.log(100.0))


def no_planet(data_set: int, count: int = 200, largest: float = 99.0) -> dict[str, Any]:
    """Quadrature over the jitter, the offset integrated in closed form."""
    table = velocities(data_set)
    rotated = noise(table)
    y, ones = table[:, 1] @ rotated.vectors, np.ones(len(table)) @ rotated.vectors
    jitters, log_weights = jitter_nodes(count, largest)
    variance = rotated.variances + jitters[:, None] ** 2
    precision = np.sum(ones**2 / variance, axis=1)
    mean = np.sum(ones * y / variance, axis=1) / precision
    square = np.sum((y - mean[:, None] * ones) ** 2 / variance, axis=1)
    log_likelihood = -0.5 * (square + np.sum(np.log(2 * np.pi * variance), axis=1))
    log_offset = 0.5 * np.log(2 * np.pi / precision) - np.log(2000.0)
    log_evidence = float(_sum(log_likelihood + log_offset + log_weights))
    return {"log_evidence": round(log_evidence, 6), "log_evidence_error": 1e-6}


def _sum(logs: np.ndarray, axis: int | None = None) -> Any:
    """log Σ exp, as SciPy has it, without its types."""
    return log_sum_exp(logs, axis=axis)


class Marginal:
    """log of the likelihood given log period, eccentricity and mean anomaly, everything else integrated."""

    def __init__(self, data_set: int, num_jitters: int = NUM_JITTERS):
        table = velocities(data_set)
        rotated = noise(table)
        self.time, self.vectors = table[:, 0], rotated.vectors
        self.span = float(np.ptp(self.time))
        jitters, self.log_weights = jitter_nodes(num_jitters)
        self.variance = rotated.variances + jitters[:, None] ** 2
        self.y, self.ones = table[:, 1] @ rotated.vectors, np.ones(len(table)) @ rotated.vectors
        self._many = jax.jit(jax.vmap(self._one))

    def __call__(self, log_period: np.ndarray, cube: Float[np.ndarray, "point two"]) -> Float[np.ndarray, " point"]:
        """At many points; the cube has the shares of eccentricity and mean anomaly."""
        points = np.column_stack([log_period, cube])
        short = -len(points) % BATCH
        padded = np.concatenate([points, np.repeat(points[-1:], short, axis=0)]).reshape(-1, BATCH, 3)
        return np.concatenate([np.asarray(self._many(part)) for part in padded])[: len(points)]

    def _one(self, point: Float[Array, " three"]) -> Float[Array, ""]:
        basis = shapes(
            self.time, jnp.exp(point[0]), eccentricity_from(point[1]), 2 * np.pi * point[2]
        ) @ jnp.asarray(self.vectors)  # fmt: skip
        return jax.nn.logsumexp(jax.vmap(lambda v: self._given_jitter(basis, v))(self.variance) + self.log_weights)

    def _given_jitter(self, basis: Float[Array, "two time"], variance: Float[Array, " time"]) -> Float[Array, ""]:
        ones = self.ones / jnp.sqrt(variance)
        norm = jnp.sum(ones**2)
        whole = jnp.vstack([basis, self.y]) / jnp.sqrt(variance)
        whole = whole - (whole @ ones / norm)[:, None] * ones  # the offset integrated
        gram = whole @ whole.T
        log_base = -0.5 * (gram[2, 2] + jnp.sum(jnp.log(2 * np.pi * variance)))
        log_offset = 0.5 * jnp.log(2 * np.pi / norm) - np.log(2000.0)
        return log_base + log_offset + log_amplitudes(gram[:2, :2], gram[:2, 2])


def log_amplitudes(
    gram: Float[Array, "two two"], product: Float[Array, " two"], angles: int = NUM_ANGLES, nodes: int = NUM_AMPLITUDES
) -> Float[Array, ""]:
    """log of ∫ exp{v·b − ½ vᵀGv} over v = K (cos ω, sin ω), ω uniform, log(1 + K) uniform up to log 1000.

    The circle by the rectangle rule; along a ray by Gauss's rule in log(1 + K), over nine standard deviations around
    the peak of the exponent, or of what lies inside the range.
    """
    omega = 2 * np.pi * (np.arange(angles) + 0.5) / angles
    ray = jnp.stack([jnp.cos(omega), jnp.sin(omega)])
    curvature = jnp.sum(ray * (gram @ ray), axis=0)
    slope = product @ ray
    sd = 1 / jnp.sqrt(curvature)
    # Where the slope is negative the integrand falls from K = 0, faster than with no slope.
    peak = jnp.maximum(slope / curvature, 0.0)
    low, high = jnp.log1p(jnp.maximum(peak - 9 * sd, 0.0)), jnp.log1p(jnp.minimum(peak + 9 * sd, 999.0))
    places, weights = leggauss(nodes)
    at = low + (high - low) * (jnp.asarray(places)[:, None] + 1) / 2
    amplitude = jnp.expm1(at)
    exponent = slope * amplitude - 0.5 * curvature * amplitude**2
    log_weights = jnp.log(jnp.asarray(weights)[:, None] / 2 * (high - low) / np.log(1000.0))
    return jax.nn.logsumexp(exponent + log_weights) - np.log(angles)


def one_planet(data_set: int) -> dict[str, Any]:
    """log Z, the best period, and the probability that the period is within 1 % of it."""
    marginal = Marginal(data_set)
    log_periods, log_mass, widths = _survey(Marginal(data_set, SURVEY_JITTERS))
    law = _tempered(log_mass, widths)
    estimates, near, best = [], [], float(log_periods[int(np.argmax(law))])
    refined: tuple[np.ndarray, np.ndarray] | None = None
    for number in range(ROUNDS + 1):
        cubes = qmc.Sobol(3, rng=np.random.default_rng([3, data_set, number])).random(POINTS)
        cell = np.searchsorted(np.cumsum(law), cubes[:, 0] * law.sum() * (1 - 1e-12))
        cell = np.minimum(cell, len(law) - 1)
        left = np.concatenate([[0.0], np.cumsum(law)])[cell]
        place = (cubes[:, 0] * law.sum() - left) / law[cell]
        at = log_periods[cell] + (place - 0.5) * widths[cell]
        shares = cubes[:, 1:]
        log_density = np.log(law[cell] / law.sum() / widths[cell])
        log_weight = marginal(at, shares) - np.log(LOG_RANGE) - log_density
        if number == 0:  # refines the law, and counts for nothing
            refined = (at, log_weight + log_density)
            log_periods, law, widths = _refine(log_periods, law, widths, refined)
            best = float(at[int(np.argmax(log_weight + log_density))])
            continue
        estimates.append(_sum(log_weight) - np.log(POINTS))
        inside = np.abs(at - best) < 0.01
        near.append(float(np.exp(_sum(log_weight[inside]) - _sum(log_weight))) if inside.any() else 0.0)
    values = np.exp(np.array(estimates) - max(estimates))
    log_evidence = float(np.log(values.mean()) + max(estimates))
    error = float(values.std(ddof=1) / np.sqrt(ROUNDS) / values.mean())
    return {
        "log_evidence": round(log_evidence, 5),
        "log_evidence_error": float(f"{error:.2g}"),
        "log_period": round(best, 6),
        "share": round(float(np.mean(near)), 5),
        "share_error": float(f"{np.std(near, ddof=1) / np.sqrt(ROUNDS):.2g}"),
    }


def _survey(marginal: Marginal) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells of log period, the log of the mass that a few points find in each, and their widths."""
    step = 1 / (CELLS_PER_SPAN * marginal.span)
    frequencies = np.arange(step, 1 / 1.25, step)
    # Slow orbits: cells in log period, for the frequency has no room there.
    edges = np.concatenate([np.log(1.25) * np.ones(1), -np.log(frequencies[::-1])])
    slow = np.linspace(edges[-1], np.log(1e4), 12)[1:]
    edges = np.concatenate([edges, slow[slow > edges[-1]]])
    edges = np.unique(np.clip(edges, np.log(1.25), np.log(1e4)))
    centres, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    cubes = qmc.Sobol(3, rng=np.random.default_rng(1)).random(64)[:POINTS_PER_CELL]
    shifts = np.random.default_rng(2).uniform(size=(len(centres), 1, 3))
    points = np.mod(cubes + shifts, 1.0)
    at = (centres[:, None] + (points[:, :, 0] - 0.5) * widths[:, None]).ravel()
    values = marginal(at, points[:, :, 1:].reshape(-1, 2)).reshape(len(centres), -1)
    return centres, _sum(values, axis=1) - np.log(POINTS_PER_CELL) + np.log(widths), widths


def _tempered(log_mass: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """A law of cells: half by the mass found, somewhat flattened because few points found it, and some by width."""
    flat = np.exp(0.5 * (log_mass - log_mass.max()))
    exact = np.exp(log_mass - log_mass.max())
    return 0.45 * flat / flat.sum() + 0.45 * exact / exact.sum() + 0.1 * widths / widths.sum()


def _refine(
    centres: np.ndarray, law: np.ndarray, widths: np.ndarray, found: tuple[np.ndarray, np.ndarray], parts: int = 8
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells an eighth as wide, with the mass that the points of the first round found in them, and the old law."""
    places = (np.arange(parts) + 0.5) / parts - 0.5
    fine = (centres[:, None] + places * widths[:, None]).ravel()
    narrow = np.repeat(widths / parts, parts)
    old = np.repeat(law / law.sum() / parts, parts)
    at, log_height = found
    order = np.argsort(fine)
    fine, narrow, old = fine[order], narrow[order], old[order]
    cell = np.clip(np.searchsorted(fine - narrow / 2, at) - 1, 0, len(fine) - 1)
    mass, count = np.zeros(len(fine)), np.bincount(cell, minlength=len(fine))
    np.add.at(mass, cell, np.exp(log_height - log_height.max()))
    mean = np.where(count > 0, mass / np.maximum(count, 1), 0.0) * narrow
    smooth = np.convolve(mean, np.array([0.25, 0.5, 0.25]), mode="same")
    new = smooth / max(smooth.sum(), 1e-300)
    return fine, 0.7 * new + 0.3 * old, narrow
