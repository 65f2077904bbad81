"""Toys of the nested samplers: eggbox, shells and LogGamma."""

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float
from scipy import integrate, stats
from scipy.special import gammaln

from suite.priors import Box
from suite.problem import Problem, masses, moments

EGGBOX_MASSES = 18


def eggbox() -> Problem:
    """(2 + cos(x/2) cos(y/2))⁵ in (0, 10π)²: eighteen peaks, of which those at the rim are cut."""

    def log_likelihood(x: Float[Array, " d"]) -> Float[Array, ""]:
        return (2 + jnp.cos(x[0] / 2) * jnp.cos(x[1] / 2)) ** 5

    peaks = 2 * np.pi * np.array([(k, m) for k in range(6) for m in range(6) if (k + m) % 2 == 0])

    def nearest(x: Float[Array, " d"]) -> Float[Array, " peak"]:
        closest = jnp.argmin(jnp.sum((x - peaks) ** 2, axis=1))
        return jnp.where(jnp.arange(len(peaks)) == closest, 1.0, 0.0)

    # All cells are alike: a half of one at a side, and a quarter at a corner.
    share = np.prod(np.where((peaks == 0) | (peaks == peaks.max()), 0.5, 1.0), axis=1)
    log_evidence = _log_eggbox()
    middle, second, fourth = _eggbox_moments()
    return Problem(
        "Feroz, Hobson, Bridges (2009), MNRAS 398 (MultiNest)",
        Box.cube(2, 0.0, 10 * np.pi),
        {
            "mass": masses(nearest, share / share.sum()),
            "mean": moments(lambda x: x, np.full(2, middle), np.full(2, second)),
            "square": moments(lambda x: x**2, np.full(2, second), np.full(2, fourth)),
        },
        log_likelihood=log_likelihood,
        log_evidence=log_evidence,
    )


def _eggbox_grid(num_nodes: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    """Midpoints on one side, and the log marginal density of x there up to a constant, by the rectangle rule."""
    ticks = (np.arange(num_nodes) + 0.5) / num_nodes * 10 * np.pi
    exponent = (2 + np.cos(ticks / 2)[:, None] * np.cos(ticks / 2)) ** 5
    top = exponent.max()
    return ticks, np.log(np.exp(exponent - top).mean(axis=1)) + top


def _log_eggbox() -> float:
    """log of the mean of the likelihood: the rectangle rule converges fast for a smooth periodic function."""
    _, marginal = _eggbox_grid()
    return float(np.log(np.mean(np.exp(marginal - marginal.max()))) + marginal.max())


def _eggbox_moments() -> tuple[float, float, float]:
    ticks, marginal = _eggbox_grid()
    weights = np.exp(marginal - marginal.max())
    weights /= weights.sum()
    return float(weights @ ticks), float(weights @ ticks**2), float(weights @ ticks**4)


def shells(dim: int, radius: float = 2.0, width: float = 0.1, centre: float = 3.5) -> Problem:
    """Two thin spherical shells in a box of ±6; evidence and radial moments by quadrature."""
    log_norm = -0.5 * np.log(2 * np.pi) - np.log(width)

    def log_likelihood(x: Float[Array, " d"]) -> Float[Array, ""]:
        rest = jnp.sum(x[1:] ** 2)
        # A tiny constant keeps the gradient finite at the centre of a shell.
        distance = jnp.sqrt(jnp.stack([(x[0] - centre) ** 2, (x[0] + centre) ** 2]) + rest + 1e-300)
        return logsumexp(-0.5 * ((distance - radius) / width) ** 2) + log_norm

    def radial(power: int) -> float:
        """∫ r^(d - 1 + power) N(r; radius, width) dr."""
        return integrate.quad(
            lambda r: r ** (dim - 1 + power) * stats.norm.pdf(r, radius, width), radius - 1, radius + 1.5,
            epsabs=0, epsrel=1e-11, points=[radius],
        )[0]  # fmt: skip

    log_surface = np.log(2) + 0.5 * dim * np.log(np.pi) - gammaln(0.5 * dim)
    log_evidence = float(np.log(2) + log_surface + np.log(radial(0)) - dim * np.log(12))
    square = radial(2) / radial(0)  # of the distance from the centre of a shell
    fourth = radial(4) / radial(0)

    def sides(x: Float[Array, " d"]) -> Float[Array, " two"]:
        right = jnp.where(x[0] > 0, 1.0, 0.0)
        return jnp.stack([right, 1 - right])

    each, each_fourth = square / dim, 3 * fourth / (dim * (dim + 2))
    first_square = centre**2 + each
    first_fourth = centre**4 + 6 * centre**2 * each + each_fourth
    squares = np.r_[first_square, np.full(dim - 1, each)]
    return Problem(
        "Feroz, Hobson, Bridges (2009), MNRAS 398 (MultiNest)",
        Box.cube(dim, -6.0, 6.0),
        {
            "mass": masses(sides, [0.5, 0.5]),
            "mean": moments(lambda x: x, np.zeros(dim), squares),
            "square": moments(lambda x: x**2, squares, np.r_[first_fourth, np.full(dim - 1, each_fourth)]),
        },
        log_likelihood=log_likelihood,
        log_evidence=log_evidence,
        start=np.r_[0.0, np.full(dim - 1, 1.0)],
    )


def log_gamma(dim: int, width: float = 1 / 30) -> Problem:
    """A product of normals and log-gamma laws with heavy tails, four modes of equal mass; log Z = 0 up to the rim."""
    half = (dim + 2) // 2

    def log_lg(x: Float[Array, "..."], centre: float) -> Float[Array, "..."]:
        z = (x - centre) / width
        return z - jnp.exp(z) - np.log(width)

    def log_normal(x: Float[Array, "..."], centre: float) -> Float[Array, "..."]:
        return -0.5 * ((x - centre) / width) ** 2 - np.log(width * np.sqrt(2 * np.pi))

    def log_likelihood(x: Float[Array, " d"]) -> Float[Array, ""]:
        first = jnp.logaddexp(log_lg(x[0], 1 / 3), log_lg(x[0], 2 / 3)) - np.log(2)
        second = jnp.logaddexp(log_normal(x[1], 1 / 3), log_normal(x[1], 2 / 3)) - np.log(2)
        return first + second + jnp.sum(log_lg(x[2:half], 2 / 3)) + jnp.sum(log_normal(x[half:], 2 / 3))

    def quarters(x: Float[Array, " d"]) -> Float[Array, " four"]:
        number = jnp.where(x[0] > 0.5, 2, 0) + jnp.where(x[1] > 0.5, 1, 0)
        return jnp.where(jnp.arange(4) == number, 1.0, 0.0)

    laws = [stats.loggamma(1, centre, width) for centre in (1 / 3, 2 / 3)]
    normals = [stats.norm(centre, width) for centre in (1 / 3, 2 / 3)]
    inside = np.log(np.mean([law.cdf(1) - law.cdf(0) for law in laws]))
    inside += np.log(np.mean([law.cdf(1) - law.cdf(0) for law in normals]))
    inside += max(half - 2, 0) * np.log(laws[1].cdf(1) - laws[1].cdf(0))
    inside += (dim - half) * np.log(normals[1].cdf(1) - normals[1].cdf(0))
    above = np.mean([law.sf(0.5) for law in laws])
    upper = np.mean([law.sf(0.5) for law in normals])
    mass = np.outer([1 - above, above], [1 - upper, upper]).ravel()
    mean = np.r_[np.mean([law.mean() for law in laws]), 0.5, np.full(max(half - 2, 0), laws[1].mean()),
                 np.full(dim - half, 2 / 3)]  # fmt: skip
    second = np.r_[np.mean([law.var() + law.mean() ** 2 for law in laws]),
                   np.mean([law.var() + law.mean() ** 2 for law in normals]),
                   np.full(max(half - 2, 0), laws[1].var() + laws[1].mean() ** 2),
                   np.full(dim - half, width**2 + 4 / 9)]  # fmt: skip
    return Problem(
        "Beaujean, Caldwell (2013), arXiv 1304.7808; Lange (2023), MNRAS 525 (nautilus)",
        Box.cube(dim, 0.0, 1.0),
        {"mass": masses(quarters, mass), "mean": moments(lambda x: x, mean, second)},
        log_likelihood=log_likelihood,
        log_evidence=float(inside),
    )


FACTORIES: dict[str, Callable[[], Problem]] = {
    "eggbox": eggbox,
    **{f"shells-{dim}": partial(shells, dim) for dim in (2, 5, 10, 20, 30)},
    **{f"log-gamma-{dim}": partial(log_gamma, dim) for dim in (2, 10, 20)},
}
