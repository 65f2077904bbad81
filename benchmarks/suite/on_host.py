"""A problem's likelihood as NumPy functions that count their calls, for samplers that know no JAX."""

import jax
import numpy as np
from jaxtyping import Float

from suite.problem import Problem


class OnHost:
    """The likelihood, at one point or many, and the transform of the prior from the unit cube."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.count = 0
        self._many = jax.jit(jax.vmap(problem.log_ratio))
        self._one = jax.jit(problem.log_ratio)
        self._transform = jax.jit(jax.vmap(problem.prior.from_cube))

    def one(self, x: Float[np.ndarray, " d"]) -> float:
        """The log likelihood at one point."""
        self.count += 1
        return _proper(float(self._one(np.asarray(x, float))))

    def many(self, x: Float[np.ndarray, "point d"]) -> Float[np.ndarray, " point"]:
        """The log likelihood at many points; they are padded to a power of two, so that few programs are compiled."""
        x = np.atleast_2d(np.asarray(x, float))
        self.count += len(x)
        values = np.array(self._many(_padded(x)), float)[: len(x)]
        return np.where(np.isnan(values), -1e300, np.clip(values, -1e300, None))

    def transform(self, cube: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        """The point of the prior at these probabilities."""
        return self.transform_many(np.asarray(cube, float)[None])[0]

    def transform_many(self, cube: Float[np.ndarray, "point d"]) -> Float[np.ndarray, "point d"]:
        """Points of the prior."""
        cube = np.clip(np.asarray(cube, float), 1e-15, 1 - 1e-15)
        return np.array(self._transform(_padded(cube)))[: len(cube)]


def _padded(x: np.ndarray) -> np.ndarray:
    length = 1 << max(len(x) - 1, 0).bit_length()
    return np.concatenate([x, np.repeat(x[-1:], length - len(x), axis=0)])


def _proper(value: float) -> float:
    return -1e300 if np.isnan(value) else max(value, -1e300)
