"""Posteriors with exact symmetries: signs of factors, labels of mixtures, rates that can change places, SLCP."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from pseudo_extended.problems.mrna import BOUNDS, fluorescence
from suite import references
from suite.data import data_path
from suite.priors import Box, Gaussian
from suite.problem import Problem, masses, moments


def factors(num_variables: int, num_factors: int, num_rows: int = 100) -> Problem:
    """A factor model, factors integrated out, loadings lower triangular with free signs: 2^K modes of equal mass."""
    rng = np.random.default_rng(61)
    rows, columns = np.tril_indices(num_variables, 0, num_factors)
    true = np.zeros((num_variables, num_factors))
    true[rows, columns] = rng.choice([-1, 1], len(rows)) * rng.uniform(0.6, 1.2, len(rows))
    noise = rng.uniform(0.4, 0.8, num_variables)
    data = rng.normal(size=(num_rows, num_factors)) @ true.T + noise * rng.normal(size=(num_rows, num_variables))
    scatter = data.T @ data

    def log_likelihood(x: Float[Array, " d"]) -> Float[Array, ""]:
        loadings = jnp.zeros((num_variables, num_factors)).at[rows, columns].set(x[: len(rows)])
        covariance = loadings @ loadings.T + jnp.diag(jnp.exp(2 * x[len(rows) :]))
        root = jnp.linalg.cholesky(covariance)
        half = solve_triangular(root, scatter, lower=True)
        trace = jnp.trace(solve_triangular(root, half.T, lower=True))
        log_determinant = 2 * jnp.sum(jnp.log(jnp.diag(root)))
        return -0.5 * (trace + num_rows * (log_determinant + num_variables * np.log(2 * np.pi)))

    diagonal = np.flatnonzero(rows == columns)

    def pattern(x: Float[Array, " d"]) -> Float[Array, " pattern"]:
        number = jnp.sum(jnp.where(x[diagonal] > 0, 1, 0) * 2 ** jnp.arange(num_factors))
        return jnp.where(jnp.arange(2**num_factors) == number, 1.0, 0.0)

    dim = len(rows) + num_variables
    return references.with_evidence(
        f"factors-{dim}",
        Problem(
            "Anderson, Rubin (1956); Lopes, West (2004), Statistica Sinica 14; data simulated",
            Gaussian(np.r_[np.zeros(len(rows)), np.full(num_variables, -0.5)], np.ones(dim)),
            {"mass": masses(pattern, np.full(2**num_factors, 2.0**-num_factors))},
            log_likelihood=log_likelihood,
        ),
    )


def labels(num_components: int, num_rows: int = 80) -> Problem:
    """A mixture of normals, K means, log sds and logits of weights: every labelling has the same mass."""
    rng = np.random.default_rng(67)
    centres = 3.0 * (np.arange(num_components) - (num_components - 1) / 2)
    y = centres[rng.integers(num_components, size=num_rows)] + 0.7 * rng.normal(size=num_rows)

    def log_likelihood(x: Float[Array, " d"]) -> Float[Array, ""]:
        mean, log_sd, logit = x.reshape(3, num_components)
        log_weight = jax.nn.log_softmax(logit)
        z = (y[:, None] - mean) * jnp.exp(-log_sd)
        return jnp.sum(logsumexp(log_weight - log_sd - 0.5 * z**2 - 0.5 * np.log(2 * np.pi), axis=1))

    orders = np.array(list(permutations(range(num_components)))) if num_components <= 4 else None

    def labelling(x: Float[Array, " d"]) -> Float[Array, " order"]:
        order = jnp.argsort(x[:num_components])
        if orders is not None:
            return jnp.where(jnp.all(orders == order, axis=1), 1.0, 0.0)
        return jnp.where(order[:, None] == jnp.arange(num_components), 1.0, 0.0).ravel()

    count = len(orders) if orders is not None else num_components
    sd = np.r_[np.full(num_components, 6.0), np.full(2 * num_components, 1.0)]
    return references.with_evidence(
        f"labels-{num_components}",
        Problem(
            "Jasra, Holmes, Stephens (2005), Statistical Science 20; data simulated",
            Gaussian(np.zeros(3 * num_components), sd),
            {"mass": masses(labelling, np.full(count if orders is not None else count**2, 1 / count))},
            log_likelihood=log_likelihood,
        ),
    )


def mrna() -> Problem:
    """The mRNA transfection posterior: two rates that can change places, and ridges."""
    time, measured = np.genfromtxt(data_path("mrna.csv"), delimiter=",").T

    def log_likelihood(x: Float[Array, " d"]) -> Float[Array, ""]:
        t0, k, b, d, sigma = 10.0**x
        z = (measured - fluorescence(jnp.asarray(time), t0, k, b, d)) / sigma
        return -0.5 * jnp.sum(z**2) - len(time) * (jnp.log(sigma) + 0.5 * np.log(2 * np.pi))

    def slower(x: Float[Array, " d"]) -> Float[Array, " two"]:
        first = jnp.where(x[2] < x[3], 1.0, 0.0)
        return jnp.stack([first, 1 - first])

    low, high = np.array(list(BOUNDS.values()), float).T
    return references.with_evidence(
        "mrna",
        Problem(
            "Ballnus et al. (2017), BMC Systems Biology 11; data of Leonhardt et al. (2014), Nanomedicine 10",
            Box(low, high),
            {"mass": masses(slower, [0.5, 0.5])},
            log_likelihood=log_likelihood,
        ),
    )


def slcp_data(num_points: int = 4) -> Float[np.ndarray, "point two"]:
    """Four points in the plane, simulated at the parameters that Papamakarios and others used."""
    theta = np.array([-0.7, -2.9, -1.0, -0.9, 0.6])
    root = np.linalg.cholesky(slcp_covariance(*theta[2:]))
    return theta[:2] + np.random.default_rng(71).normal(size=(num_points, 2)) @ root.T


def slcp_covariance(a: float, b: float, c: float) -> Float[np.ndarray, "two two"]:
    """The covariance of a point."""
    first, second, correlation = a**2, b**2, np.tanh(c)
    return np.array([[first**2, correlation * first * second], [correlation * first * second, second**2]])


def slcp() -> Problem:
    """Simple likelihood, complex posterior: four modes by the signs of two parameters, cut by the prior's box."""
    y = slcp_data()

    def log_likelihood(x: Float[Array, " d"]) -> Float[Array, ""]:
        first, second, correlation = x[2] ** 2, x[3] ** 2, jnp.tanh(x[4])
        u, v = (y[:, 0] - x[0]) / first, (y[:, 1] - x[1]) / second
        # 1 − tanh² without cancellation
        gap = 1 / jnp.cosh(x[4]) ** 2
        square = (u**2 - 2 * correlation * u * v + v**2) / gap
        log_root = jnp.log(first) + jnp.log(second) + 0.5 * jnp.log(gap)
        return -0.5 * jnp.sum(square) - len(y) * (log_root + np.log(2 * np.pi))

    def signs(x: Float[Array, " d"]) -> Float[Array, " four"]:
        number = jnp.where(x[2] > 0, 2, 0) + jnp.where(x[3] > 0, 1, 0)
        return jnp.where(jnp.arange(4) == number, 1.0, 0.0)

    problem = Problem(
        "Papamakarios, Sterratt, Murray (2019), AISTATS; Lueckmann et al. (2021), AISTATS (sbibm)",
        Box.cube(5, -3.0, 3.0),
        {"mass": masses(signs, np.full(4, 0.25))},
        log_likelihood=log_likelihood,
        # Not at zero, where the density has a pole.
        start=np.array([0.0, 0.0, 1.0, 1.0, 0.0]),
    )
    known = references.load("slcp")
    if known is not None and "mean" in known:
        mean, square = np.array(known["mean"]), np.array(known["square"])
        asked = problem.asked | {
            "mean": moments(lambda x: jnp.stack([x[0], x[1], x[2] ** 2, x[3] ** 2, x[4]]), mean, square)
        }
        problem = replace(problem, asked=asked)
    return references.with_evidence("slcp", problem)


FACTORIES: dict[str, Callable[[], Problem]] = {
    "slcp": slcp,
    "mrna": mrna,
    **{f"labels-{count}": partial(labels, count) for count in (3, 4, 5, 6)},
    "factors-23": partial(factors, 8, 2),
    "factors-45": partial(factors, 12, 3),
}
