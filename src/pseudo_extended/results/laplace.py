"""Laplace's approximation to the mass of modes: what a normal of the curvature at a peak would hold."""

from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from pseudo_extended.compiled import Job, compile_once
from pseudo_extended.precision import in_double_precision
from pseudo_extended.target import Target

MAX_DIMENSION = 200
"""Beyond it a matrix of curvatures for every mode costs too much."""
MAX_PLACES = 64
"""A program takes so many places, whatever their number: it is compiled once."""


class Laplace(NamedTuple):
    """Normal approximations at several peaks."""

    log_mass: Float[np.ndarray, " mode"]
    """log of the mass of each; nan where the density is not curved downwards in every direction."""
    covariance: Float[np.ndarray, "mode d d"]


@in_double_precision
def approximate(target: Target, peaks: Float[np.ndarray, "mode d"]) -> Laplace:
    """The normal that fits at each peak; of no use, and nan, for a density without a gradient or of many dimensions.

    >>> import jax.numpy as jnp
    >>> target = Target(lambda x: -0.5 * jnp.sum((x / 2) ** 2), np.zeros(3))
    >>> found = approximate(target, np.zeros((1, 3)))
    >>> bool(abs(found.log_mass[0] - 3 * np.log(2 * np.sqrt(2 * np.pi))) < 1e-9)
    True
    """
    dim = target.dim
    log_mass, covariance = np.full(len(peaks), np.nan), np.full((len(peaks), dim, dim), np.nan)
    if not target.is_differentiable or dim > MAX_DIMENSION or not len(peaks):
        return Laplace(log_mass, covariance)
    curves = partial(jax.lax.map, lambda x: (target.log_target(x), -jax.hessian(target.log_target)(x)))
    [curve] = compile_once(Job(curves, (np.zeros((MAX_PLACES, dim)),)))
    for first in range(0, len(peaks), MAX_PLACES):
        block = peaks[first : first + MAX_PLACES]
        filled = np.concatenate([block, np.repeat(block[-1:], MAX_PLACES - len(block), axis=0)])
        heights, curvatures = (np.asarray(part)[: len(block)] for part in curve(filled))
        for i, (height, curvature) in enumerate(zip(heights, curvatures, strict=True), start=first):
            if not np.all(np.isfinite(curvature)) or not np.isfinite(height):
                continue
            values, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T))
            if values[0] <= 1e-12 * values[-1]:
                continue
            log_mass[i] = height + 0.5 * dim * np.log(2 * np.pi) - 0.5 * np.sum(np.log(values))
            covariance[i] = (vectors / values) @ vectors.T
    return Laplace(log_mass, covariance)
