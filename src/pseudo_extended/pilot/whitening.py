"""One matrix that makes the target about round: what correlations need beyond a scale for each coordinate."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float
from scipy.special import softmax

from pseudo_extended.pilot.modes import Modes

WHITENED_UP_TO = 512
"""Dimensions in which a matrix for all temperatures is worth its products; below 17 each temperature has its own."""


NUM_PASSES = 4


class Whitening(NamedTuple):
    """A factor and its inverse: x = F z, and z is about round."""

    factor: Float[Array, "d d"] | Float[np.ndarray, "d d"]
    inverse: Float[Array, "d d"] | Float[np.ndarray, "d d"]

    @classmethod
    def of_covariance(cls, covariance: Float[np.ndarray, "d d"]) -> "Whitening":
        """Its Cholesky factor, made in units of the standard deviations, whatever their scales."""
        unit = np.sqrt(np.diagonal(covariance))
        correlation = covariance / np.outer(unit, unit) + 1e-10 * np.eye(len(unit))
        factor = unit[:, None] * np.linalg.cholesky(correlation)
        return cls(factor, np.linalg.inv(factor))

    @classmethod
    def nothing(cls, dim: int) -> "Whitening":
        """The coordinates as they are."""
        return cls(np.eye(dim), np.eye(dim))


def from_modes(modes: Modes) -> Whitening:
    """The mean of the covariances at the modes, by their masses."""
    mass = softmax(modes.log_mass)
    return Whitening.of_covariance(np.einsum("k,kij->ij", mass, modes.covariance))


def from_points(x: Float[np.ndarray, "point d"], score: Float[np.ndarray, "point d"]) -> Whitening:
    """The geometric mean of the covariance of points and the inverse of that of their scores.

    For a normal the two are the same. Between them is the metric with the smallest Fisher divergence, the one that
    nutpie learns (Seyboldt, Carlson and Carpenter 2025). Both are shrunk towards their diagonals. That would shrink
    strong correlations away, so it is done again in the coordinates that the first passes have made about round.
    """
    whitening = Whitening.nothing(x.shape[1])
    for _ in range(NUM_PASSES):
        inner = Whitening.of_covariance(_middle(x @ whitening.inverse.T, score @ whitening.factor))
        whitening = Whitening(whitening.factor @ inner.factor, inner.inverse @ whitening.inverse)
    return whitening


def _middle(x: Float[np.ndarray, "point d"], score: Float[np.ndarray, "point d"]) -> Float[np.ndarray, "d d"]:
    size, dim = x.shape
    spread, slope = np.std(x, axis=0) + 1e-150, np.sqrt(np.mean(score**2, axis=0)) + 1e-150
    unit = np.sqrt(spread / slope)
    share = dim / (dim + size)
    of_points = _shrunk((x - x.mean(axis=0)) / unit, share)
    of_scores = _shrunk(score * unit, share)
    root, back = _roots(of_scores)
    middle, _ = _roots(root @ of_points @ root)
    return np.outer(unit, unit) * (back @ middle @ back)


def _shrunk(rows: Float[np.ndarray, "point d"], share: float) -> Float[np.ndarray, "d d"]:
    second = rows.T @ rows / len(rows)
    return (1 - share) * second + share * np.diag(np.diagonal(second))


def _roots(matrix: Float[np.ndarray, "d d"]) -> tuple[Float[np.ndarray, "d d"], Float[np.ndarray, "d d"]]:
    """The square root of a positive definite matrix, and its inverse."""
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    root = np.sqrt(np.maximum(values, 1e-12 * values[-1]))
    return (vectors * root) @ vectors.T, (vectors / root) @ vectors.T
