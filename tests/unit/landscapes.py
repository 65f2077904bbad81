"""Exact draws from densities with a known number of modes, as results of a run that never was."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import pseudo_extended as pe


class Case(NamedTuple):
    """A log density, a function of a generator and a number that draws from it, and its modes."""

    log_density: Callable[[Any], Any]
    draw: Callable[[np.random.Generator, int], np.ndarray]
    num_modes: int


def exact_result(log_density, x, chains=4, **fields):
    """A result that holds the given points, each a draw of its own."""
    draws = len(x) // chains
    x = x[: draws * chains].reshape(chains, draws, 1, -1)
    zero = np.zeros((chains, draws))
    statistics = {"acceptance_rate": zero + 1, "diverging": zero > 0, "non_finite": zero > 0}
    target = log_density if isinstance(log_density, pe.Target) else pe.Target(log_density, np.zeros(x.shape[-1]))
    given = {
        "log_weights": np.zeros(x.shape[:3]),
        "statistics": statistics,
        "method": "exact draws",
        "seed": 0,
        "seconds": {},
        "stopped": None,
        "doubts": (),
    }
    return pe.Result(target=target, unconstrained=x, **(given | fields))


def mixture(means, scales, masses):
    means, scales, masses = (np.array(each, float) for each in (means, scales, masses))
    dim = means.shape[1]

    def log_density(x):
        z = jnp.sum((x - means) ** 2, axis=1) / scales**2
        return jax.nn.logsumexp(jnp.log(masses) - dim * jnp.log(scales) - 0.5 * z) - 0.5 * dim * jnp.log(2 * jnp.pi)

    def draw(rng, size):
        k = rng.choice(len(masses), size, p=masses)
        return means[k] + scales[k][:, None] * rng.normal(size=(size, dim))

    return Case(log_density, draw, len(masses))


def along(value, dim):
    """A vector with one entry that is not zero."""
    return np.r_[value, np.zeros(dim - 1)]


def shell(dim, radius=2.0, width=0.1):
    def log_density(x):
        length = jnp.linalg.norm(x)
        return -0.5 * ((length - radius) / width) ** 2 - (dim - 1) * jnp.log(length)

    def draw(rng, size):
        u = rng.normal(size=(size, dim))
        return u / np.linalg.norm(u, axis=1, keepdims=True) * (radius + width * rng.normal(size=(size, 1)))

    return Case(log_density, draw, 1)


def two_shells(radius=2.0, width=0.1, away=3.5):
    def log_density(x):
        def one(centre):
            length = jnp.hypot(x[0] - centre, x[1])
            return -0.5 * ((length - radius) / width) ** 2 - jnp.log(length)

        return jnp.logaddexp(one(-away), one(away))

    def draw(rng, size):
        x = shell(2, radius, width).draw(rng, size)
        x[:, 0] += rng.choice([-away, away], size)
        return x

    return Case(log_density, draw, 2)


def ring(dim, radius=5.0, width=0.2):
    """A ring in two of the dimensions, and a normal in the others."""

    def log_density(x):
        length = jnp.hypot(x[0], x[1])
        return -0.5 * ((length - radius) / width) ** 2 - jnp.log(length) - 0.5 * jnp.sum(x[2:] ** 2)

    def draw(rng, size):
        return np.concatenate([shell(2, radius, width).draw(rng, size), rng.normal(size=(size, dim - 2))], axis=1)

    return Case(log_density, draw, 1)


def banana(dim, bend):
    def log_density(x):
        return -0.5 * (x[0] / 3) ** 2 - 0.5 * (x[1] - bend * (x[0] ** 2 - 9)) ** 2 - 0.5 * jnp.sum(x[2:] ** 2)

    def draw(rng, size):
        x = rng.normal(size=(size, dim))
        x[:, 0] *= 3
        x[:, 1] += bend * (x[:, 0] ** 2 - 9)
        return x

    return Case(log_density, draw, 1)


def heavy_tails(dim, freedom):
    def log_density(x):
        return -0.5 * (freedom + dim) * jnp.log1p(jnp.sum(x**2) / freedom)

    def draw(rng, size):
        return rng.normal(size=(size, dim)) / np.sqrt(rng.chisquare(freedom, size=(size, 1)) / freedom)

    return Case(log_density, draw, 1)


def plateau(dim, half=5.0):
    def log_density(x):
        return -50 * jnp.sum(jax.nn.relu(jnp.abs(x) - half))

    return Case(log_density, lambda rng, size: rng.uniform(-half, half, size=(size, dim)), 1)


def funnel(dim):
    def log_density(x):
        return -0.5 * (x[0] / 3) ** 2 - 0.5 * (dim - 1) * x[0] - 0.5 * jnp.exp(-x[0]) * jnp.sum(x[1:] ** 2)

    def draw(rng, size):
        v = 3 * rng.normal(size=(size, 1))
        return np.concatenate([v, np.exp(v / 2) * rng.normal(size=(size, dim - 1))], axis=1)

    return Case(log_density, draw, 1)


GRID = [[3 * i, 3 * j] for i in range(5) for j in range(5)]
CASES = {
    "two normals": mixture([[4, 4], [-4, -4]], [1, 1], [0.7, 0.3]),
    "two normals, d = 50": mixture([along(4, 50), along(-4, 50)], [1, 1], [0.7, 0.3]),
    "unequal scales, d = 20": mixture([np.ones(20), -np.ones(20)], [0.5, 1], [0.5, 0.5]),
    "unequal scales, d = 50": mixture([np.ones(50), -np.ones(50)], [0.25, 1], [0.5, 0.5]),
    "a spike inside, d = 10": mixture([along(3, 10), np.zeros(10)], [0.1, 1], [0.1, 0.9]),
    "25 normals": mixture(GRID, np.full(25, 0.3), np.full(25, 0.04)),
    "a mode of 2 %": mixture([[0, 0], [8, 0]], [1, 1], [0.98, 0.02]),
    "two shells": two_shells(),
    "one normal, d = 50": mixture(np.zeros((1, 50)), [1], [1]),
    "overlapping normals": mixture([[1.2, 0], [-1.2, 0]], [1, 1], [0.5, 0.5])._replace(num_modes=1),
    "a ring": shell(2),
    "a ring, d = 10": ring(10),
    "a ring, d = 50": ring(50),
    "a shell, d = 10": shell(10),
    "a banana": banana(2, 0.3),
    "a bent ridge, d = 10": banana(10, 1.0),
    "a banana, d = 50": banana(50, 0.3),
    "Cauchy's tails": heavy_tails(2, 1),
    "heavy tails, d = 20": heavy_tails(20, 2),
    "a plateau": plateau(2),
    "a plateau, d = 10": plateau(10),
    "a funnel": funnel(2),
    "a funnel, d = 10": funnel(10),
}


def needle_and_images(blocks, dim, tilt=0.0):
    """A needle and its images under permutations of the blocks in a broad normal of a thousandth of their mass.

    With `tilt`, an image is lower by that much and more, so that the density is not quite symmetric.
    """
    blocks = np.array(blocks)
    rng = np.random.default_rng(5)
    place, scale = rng.uniform(-4, 4, dim), 0.05
    orders = []
    for permutation in itertools.permutations(range(len(blocks))):
        order = np.arange(dim)
        order[blocks] = blocks[list(permutation)]
        orders.append(order)
    places = place[np.array(orders)]
    heights = -tilt * np.arange(len(places))

    def log_density(x):
        wide = -0.5 * jnp.sum(x**2) / 16 - dim * np.log(4.0) - np.log(1e3)
        needles = heights - 0.5 * jnp.sum((x - places) ** 2, axis=1) / scale**2 - dim * np.log(scale)
        return jnp.logaddexp(wide, jax.nn.logsumexp(needles))

    return log_density, places
