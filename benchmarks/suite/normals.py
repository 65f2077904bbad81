"""Mixtures of normals, and densities whose modes are products: exact masses, moments and evidence."""

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float
from scipy import integrate

import pseudo_extended as pe
from suite.priors import Box
from suite.problem import Problem, masses, moments


def _sides(x: Float[Array, " d"]) -> Float[Array, " two"]:
    """On which side of the hyperplane through the origin x lies: two indicators."""
    right = jnp.where(jnp.sum(x) > 0, 1.0, 0.0)
    return jnp.stack([right, 1 - right])


def _two_normals(
    dim: int, weights: np.ndarray, centres: np.ndarray, variances: np.ndarray, citation: str, width: float
) -> Problem:
    """Two spherical normals on the diagonal, the first on the positive side."""

    def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
        square = jnp.sum((x - centres[:, None]) ** 2, axis=1)
        return logsumexp(np.log(weights) - 0.5 * square / variances - 0.5 * dim * np.log(2 * np.pi * variances))

    mean, second = weights @ centres, weights @ (centres**2 + variances)
    fourth = weights @ (centres**4 + 6 * centres**2 * variances + 3 * variances**2)
    return Problem(
        citation,
        Box.cube(dim, -width, width),
        {
            "mass": masses(_sides, weights),
            "mean": moments(lambda x: x, np.full(dim, mean), np.full(dim, second)),
            "square": moments(lambda x: x**2, np.full(dim, second), np.full(dim, fourth)),
        },
        log_density=log_density,
        log_evidence=0.0,
    )


def unequal_widths(dim: int) -> Problem:
    """½ N(1, s I) + ½ N(−1, s/2 I) with s = √(d/100): power tempering favours one by a factor of 2^(d/2)."""
    scale = np.sqrt(dim / 100)
    citation = "Woodard, Schmidler, Huber (2009), EJP 14; Pompe, Holmes, Łatuszyński (2020), Ann. Statist. 48 (JAMS)"
    variances = np.array([scale, scale / 2])
    return _two_normals(dim, np.full(2, 0.5), np.array([1.0, -1.0]), variances, citation, 10.0)


def two_thirds(dim: int) -> Problem:
    """⅔ N(−⅔·1, 0.05 I) + ⅓ N(4/3·1, 0.05 I), as in SLIPS: the mean is zero."""
    citation = "Grenioux, Noble, Gabrié, Durmus (2024), ICML (SLIPS); Noble et al. (2025), ICLR (LRDS)"
    weights, centres = np.array([1 / 3, 2 / 3]), np.array([4 / 3, -2 / 3])
    return _two_normals(dim, weights, centres, np.full(2, 0.05), citation, 5.0)


def many_well(dim: int, num_wells: int = 5, centre: float = 4.0) -> Problem:
    """exp{−Σ_{i≤5} (x_i² − 4)² − ½ Σ_{i>5} x_i²}: 32 modes of equal mass; log Z by quadrature of one well."""

    def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
        return -jnp.sum((x[:num_wells] ** 2 - centre) ** 2) - 0.5 * jnp.sum(x[num_wells:] ** 2)

    def patterns(x: Float[Array, " d"]) -> Float[Array, " pattern"]:
        number = jnp.sum(jnp.where(x[:num_wells] > 0, 1, 0) * 2 ** jnp.arange(num_wells))
        return jnp.where(jnp.arange(2**num_wells) == number, 1.0, 0.0)

    def power(n: int) -> float:
        return integrate.quad(lambda x: x**n * np.exp(-((x**2 - centre) ** 2)), -5, 5, epsabs=1e-13, epsrel=1e-12)[0]

    mass, second, fourth = power(0), power(2), power(4)
    rest = dim - num_wells
    square = np.r_[np.full(num_wells, second / mass), np.ones(rest)]
    square_square = np.r_[np.full(num_wells, fourth / mass), np.full(rest, 3.0)]
    return Problem(
        "Midgley et al. (2023), ICLR (FAB); Berner, Richter, Ullrich (2024), TMLR; TR-SOC (2025)",
        Box.cube(dim, -6.0, 6.0),
        {
            "mass": masses(patterns, np.full(2**num_wells, 2.0**-num_wells)),
            "mean": moments(lambda x: x, np.zeros(dim), square),
            "square": moments(lambda x: x**2, square, square_square),
        },
        log_density=log_density,
        log_evidence=float(num_wells * np.log(mass) + 0.5 * rest * np.log(2 * np.pi)),
    )


def spike_in_slab(dim: int = 10) -> Problem:
    """exp(−x²/2) + 9·10¹⁰ exp(−x²/0.02), uniform prior in ±5: a spike with nine tenths of the mass."""
    log_heights, sds = np.log([1.0, 9e10]), np.array([1.0, 0.1])

    def log_likelihood(x: Float[Array, " d"]) -> Float[Array, ""]:
        return logsumexp(log_heights - 0.5 * jnp.sum(x**2) / sds**2)

    prior = Box.cube(dim, -5.0, 5.0)
    inside = _normal_inside(5.0 / sds)
    log_masses = log_heights + dim * (0.5 * np.log(2 * np.pi) + np.log(sds) + np.log(inside))
    log_evidence = float(np.logaddexp(*log_masses)) + prior.log_height
    share = np.exp(log_masses - np.logaddexp(*log_masses))
    # Within radius 1 of the origin: all of the spike but 10⁻¹⁶, and the part of the slab that the χ² law says.
    from scipy.stats import chi2

    near = share[1] * chi2.cdf(100.0, dim) + share[0] * chi2.cdf(1.0, dim) / inside[0] ** dim
    variances = np.array([_truncated_variance(5.0), sds[1] ** 2])
    fourths = np.array([_truncated_fourth(5.0), 3 * sds[1] ** 4])
    second, fourth = float(share @ variances), float(share @ fourths)

    def spike(x: Float[Array, " d"]) -> Float[Array, " two"]:
        inner = jnp.where(jnp.sum(x**2) < 1.0, 1.0, 0.0)
        return jnp.stack([inner, 1 - inner])

    return Problem(
        "BlackJAX's sampling book, chapter on nested sampling; Skilling (2006), Bayesian Analysis 1",
        prior,
        {
            "mass": masses(spike, [near, 1 - near]),
            "mean": moments(lambda x: x, np.zeros(dim), np.full(dim, second)),
            "square": moments(lambda x: x**2, np.full(dim, second), np.full(dim, fourth)),
        },
        log_likelihood=log_likelihood,
        log_evidence=log_evidence,
        start=np.full(dim, 3.0),  # the middle of the box is the spike
    )


def _normal_inside(bound: np.ndarray) -> np.ndarray:
    from scipy.special import erf

    return erf(bound / np.sqrt(2))


def _truncated_variance(bound: float) -> float:
    height = np.exp(-0.5 * bound**2) / np.sqrt(2 * np.pi)
    return float(1 - 2 * bound * height / _normal_inside(np.array(bound)))


def _truncated_fourth(bound: float) -> float:
    height = np.exp(-0.5 * bound**2) / np.sqrt(2 * np.pi)
    return float(3 * _truncated_variance(bound) - 2 * bound**3 * height / _normal_inside(np.array(bound)))


def twenty_modes(scenario: str) -> Problem:
    """The mixture of twenty normals in the plane, equal and sharp (a) or unequal (b); masses by quadrature."""
    known = pe.problems.twenty_modes(scenario)
    density = known.density
    means, weights, variances = density.means, density.weights, density.variances

    def nearest(x: Float[Array, " d"]) -> Float[Array, " mode"]:
        closest = jnp.argmin(jnp.sum((x - means) ** 2, axis=1))
        return jnp.where(jnp.arange(len(means)) == closest, 1.0, 0.0)

    # By quadrature, a grid for each component: 16 sds wide, 300 × 300 points.
    mass = np.zeros(len(means))
    ticks = (np.arange(300) + 0.5) / 300 * 16 - 8
    bell = np.exp(-0.5 * ticks**2) * (ticks[1] - ticks[0]) / np.sqrt(2 * np.pi)
    cell = np.outer(bell, bell).ravel()
    offsets = np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)
    for mean, weight, variance in zip(means, weights, variances, strict=True):
        points = mean + np.sqrt(variance) * offsets
        closest = np.argmin(((points[:, None] - means) ** 2).sum(-1), axis=1)
        mass += weight * np.bincount(closest, cell, len(means))
    deviation = variances[:, None]
    fourth = weights @ (means**4 + 6 * means**2 * deviation + 3 * deviation**2)
    return Problem(
        known.citation,
        Box.cube(2, -10.0, 20.0),
        {
            "mass": masses(nearest, mass),
            "mean": moments(lambda x: x, known.mean, known.second_moment),
            "square": moments(lambda x: x**2, known.second_moment, fourth),
        },
        log_density=density,
        log_evidence=0.0,
    )


def three_normals(dim: int) -> Problem:
    """Three normals with masses ½, 0.3 and 0.2, correlated and up to ten times as wide in one direction, in NumPy too.

    Their places are drawn at random within ±8: a likelihood that someone wrote without gradients.
    """
    rng = np.random.default_rng([101, dim])
    weights = np.array([0.5, 0.3, 0.2])
    means = rng.uniform(-8, 8, (3, dim))
    sds = 10 ** rng.uniform(-0.7, 0.3, (3, dim))
    turns = np.stack([np.linalg.qr(rng.normal(size=(dim, dim)))[0] for _ in range(3)])
    whiteners = turns / sds[:, None, :]
    covariances = np.einsum("kij,kj,klj->kil", turns, sds**2, turns)
    log_heights = np.log(weights) - np.sum(np.log(sds), axis=1) - 0.5 * dim * np.log(2 * np.pi)

    def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
        away = jnp.einsum("ki,kij->kj", x - means, whiteners)
        return logsumexp(log_heights - 0.5 * jnp.sum(away**2, axis=1))

    def in_numpy(x: np.ndarray) -> np.ndarray:
        away = np.einsum("pki,kij->pkj", x[:, None, :] - means, whiteners)
        return np.logaddexp.reduce(log_heights - 0.5 * np.sum(away**2, axis=2), axis=1)

    def nearest(x: Float[Array, " d"]) -> Float[Array, " mode"]:
        away = jnp.einsum("ki,kij->kj", x - means, whiteners)
        return jnp.where(jnp.arange(3) == jnp.argmin(jnp.sum(away**2, axis=1)), 1.0, 0.0)

    variances = np.diagonal(covariances, axis1=1, axis2=2)
    mean, second = weights @ means, weights @ (means**2 + variances)
    # The normals overlap by less than a thousandth: what is nearest is the component that a point came from.
    draws = np.random.default_rng(0).normal(size=(20_000, dim))
    mass = np.zeros(3)
    for weight, centre, turn, sd in zip(weights, means, turns, sds, strict=True):
        away = np.einsum("pki,kij->pkj", (centre + draws * sd @ turn.T)[:, None] - means, whiteners)
        mass += weight * np.bincount(np.argmin(np.sum(away**2, axis=2), axis=1), minlength=3) / len(draws)
    return Problem(
        "ours: issue 21 of this library, item 7",
        Box.cube(dim, -20.0, 20.0),
        {
            "mass": masses(nearest, mass, np.full(3, 1e-3)),
            "mean": moments(lambda x: x, mean, second),
        },
        log_density=log_density,
        log_evidence=0.0,
        in_numpy=in_numpy,
    )


FACTORIES: dict[str, Callable[[], Problem]] = {
    **{f"unequal-{dim}": partial(unequal_widths, dim) for dim in (10, 50, 100, 200)},
    **{f"two-thirds-{dim}": partial(two_thirds, dim) for dim in (8, 16, 32, 64, 128)},
    **{f"many-well-{dim}": partial(many_well, dim) for dim in (10, 50, 100, 200)},
    **{f"three-normals-{dim}": partial(three_normals, dim) for dim in (3, 5, 8, 12)},
    "spike-in-slab": spike_in_slab,
    **{f"twenty-{scenario}": partial(twenty_modes, scenario) for scenario in "ab"},
}
