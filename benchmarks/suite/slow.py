"""Six small problems as NumPy functions whose value and gradient together take a millisecond.

The function keeps the processor busy, half the time in the value and half in the gradient, as a likelihood in Python
would. JAX calls it through callbacks, one point after the other; this library's door for NumPy functions is used for
the default.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import logsumexp

import suite
from suite.priors import Box
from suite.problem import Problem

HALF = 0.0005
"""Seconds of a value, and of a gradient on top of it."""
NAMES = ("twenty-b", "shells-5", "unequal-10", "boltzmann-18", "ar1-20", "two-thirds-32")
"""The six problems of `time_to_answer.py`."""

Vector = Float[np.ndarray, " d"]


@dataclass(frozen=True)
class Host:
    """log γ and its gradient in NumPy."""

    value: Callable[[Vector], float]
    gradient: Callable[[Vector], Vector]

    def slow(self, seconds: float = HALF) -> "Host":
        """The same, each taking at least so many seconds of the processor."""
        return Host(_busy(self.value, seconds), _busy(self.gradient, seconds))


def _busy(function: Callable[[Vector], Any], seconds: float) -> Callable[[Vector], Any]:
    def slow(x: Vector) -> Any:
        end = time.thread_time() + seconds
        answer = function(x)
        while time.thread_time() < end:
            pass
        return answer

    return slow


def host(name: str) -> Host:
    """log γ of one of the six problems."""
    problem = suite.load(name)
    if name == "twenty-b":
        density = problem.log_density
        return _mixture(density.weights, density.means, density.variances)  # pyright: ignore
    if name.startswith(("unequal", "two-thirds")):
        dim = problem.dim
        scale = np.sqrt(dim / 100)
        if name.startswith("unequal"):
            return _mixture(np.full(2, 0.5), np.outer([1.0, -1.0], np.ones(dim)), np.array([scale, scale / 2]))
        return _mixture(np.array([1, 2]) / 3, np.outer([4 / 3, -2 / 3], np.ones(dim)), np.full(2, 0.05))
    if name == "boltzmann-18":
        return _machine(problem.log_density.coupling, problem.log_density.bias)  # pyright: ignore
    if name == "ar1-20":
        precision = -np.asarray(jax.hessian(problem.log_gamma)(jnp.zeros(problem.dim)))
        return Host(lambda x: float(-0.5 * x @ precision @ x), lambda x: -precision @ x)
    if name == "shells-5":
        assert isinstance(problem.prior, Box)
        return _shells(problem.prior.log_height)
    raise ValueError(f"name must be one of {', '.join(NAMES)}; got {name}.")


def _total(logs: np.ndarray) -> float:
    return float(np.asarray(logsumexp(logs)))


def _mixture(weights: np.ndarray, means: np.ndarray, variances: np.ndarray) -> Host:
    log_scale = np.log(weights) - 0.5 * means.shape[1] * np.log(2 * np.pi * variances)

    def parts(x: Vector) -> np.ndarray:
        return log_scale - 0.5 * np.sum((x - means) ** 2, axis=1) / variances

    def gradient(x: Vector) -> Vector:
        share = np.exp(parts(x) - logsumexp(parts(x)))
        return (share / variances) @ (means - x)

    return Host(lambda x: _total(parts(x)), gradient)


def _machine(coupling: np.ndarray, bias: np.ndarray) -> Host:
    def value(x: Vector) -> float:
        y = np.abs(coupling @ x + bias)
        return float(-0.5 * x @ x + np.sum(y + np.log1p(np.exp(-2 * y)) - np.log(2)))

    return Host(value, lambda x: -x + np.tanh(coupling @ x + bias) @ coupling)


def _shells(log_height: float, radius: float = 2.0, width: float = 0.1, centre: float = 3.5) -> Host:
    def places(x: Vector) -> np.ndarray:
        return x - np.array([[1.0], [-1.0]]) * np.eye(1, len(x)) * centre

    def parts(distance: np.ndarray) -> np.ndarray:
        return -0.5 * ((distance - radius) / width) ** 2 - 0.5 * np.log(2 * np.pi) - np.log(width)

    def value(x: Vector) -> float:
        return _total(parts(np.linalg.norm(places(x), axis=1))) + log_height

    def gradient(x: Vector) -> Vector:
        distance = np.linalg.norm(places(x), axis=1)
        share = np.exp(parts(distance) - logsumexp(parts(distance)))
        return (share * (radius - distance) / width**2 / distance) @ places(x)

    return Host(value, gradient)


def in_jax(function: Host) -> Callable[[Float[Array, " d"]], Float[Array, ""]]:
    """log γ as a JAX function that calls back, with its gradient."""

    @jax.custom_vjp
    def density(x: Float[Array, " d"]) -> Float[Array, ""]:
        kind = jax.ShapeDtypeStruct((), x.dtype)
        return jax.pure_callback(lambda x: np.asarray(function.value(np.asarray(x)), x.dtype), kind, x,
                                 vmap_method="sequential")  # fmt: skip

    def forward(x: Float[Array, " d"]) -> tuple[Array, Array]:
        kind = (jax.ShapeDtypeStruct((), x.dtype), jax.ShapeDtypeStruct(x.shape, x.dtype))

        def both(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            x = np.asarray(x)
            return np.asarray(function.value(x), x.dtype), np.asarray(function.gradient(x), x.dtype)

        return jax.pure_callback(both, kind, x, vmap_method="sequential")

    density.defvjp(forward, lambda slope, along: (along * slope,))
    return density


def slowed(name: str) -> Problem:
    """One of the six problems, its density a slow callback."""
    problem, density = suite.load(name), in_jax(host(name).slow())
    if not problem.is_model:
        return replace(problem, log_density=density)
    assert isinstance(problem.prior, Box)
    height = problem.prior.log_height
    return replace(problem, log_likelihood=lambda x: density(x) - height)
