"""Boltzmann machines by enumeration: P(s) ∝ exp(½ sᵀMs + sᵀb) for s in {-1, 1}ⁿ, exactly, up to 2²⁸ states.

The units are split in two halves, s = (u, v), and the exponent is e(u) + e(v) + uᵀBv with B the block of M between
the halves: a matrix product over a block of states u and all states v, of a few megabytes, and never all of them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from pseudo_extended import checks

MAX_UNITS = 28
BLOCK = 2**19  # entries of a block: four megabytes, which stay in the cache


class Halves(NamedTuple):
    """The states of both halves, and factors whose product is the exponent of every pair."""

    left: Float[np.ndarray, "left p"]
    right: Float[np.ndarray, "right q"]
    left_factor: Float[np.ndarray, "left k"]
    right_factor: Float[np.ndarray, "right k"]

    def exponents(self, rows: np.ndarray | slice) -> Float[np.ndarray, "rows right"]:
        """½ sᵀMs + sᵀb for some states of the left half and all of the right."""
        return self.left_factor[rows] @ self.right_factor.T

    @property
    def rows(self) -> int:
        """States of the left half in a block."""
        return max(1, BLOCK // len(self.right))


class Enumeration(NamedTuple):
    """What all states together say."""

    log_normaliser: float
    """log Σ_s exp(½ sᵀMs + sᵀb)."""
    mean: Float[np.ndarray, " unit"]
    """E[S]."""
    second_moment: Float[np.ndarray, "unit unit"]
    """E[SSᵀ]."""
    left_probability: Float[np.ndarray, " left"]
    """The probability of every state of the left half, from which draws begin."""
    halves: Halves

    def draw(self, rng: np.random.Generator, size: int) -> Float[np.ndarray, "size unit"]:
        """Independent states: the left half from its marginal, the right half given the left."""
        index = np.sort(rng.choice(len(self.left_probability), size=size, p=self.left_probability))
        uniform, states = rng.uniform(size=size), np.empty((size, len(self.mean)))
        distinct, first = np.unique(index, return_index=True)
        ends = np.append(first[1:], size)
        for block in _blocks(len(distinct), self.halves.rows):
            exponents = self.halves.exponents(distinct[block])
            cumulative = np.cumsum(np.exp(exponents - exponents.max(axis=1, keepdims=True)), axis=1)
            for row, start, end in zip(cumulative, first[block], ends[block], strict=True):
                right = np.searchsorted(row, uniform[start:end] * row[-1], side="right")
                states[start:end] = np.hstack([self.halves.left[index[start:end]], self.halves.right[right]])
        return rng.permutation(states)


def enumerate_states(matrix: Float[np.ndarray, "unit unit"], bias: Float[np.ndarray, " unit"]) -> Enumeration:
    """log Z, E[S] and E[SSᵀ] of a Boltzmann machine; the diagonal of the matrix counts towards log Z.

    Some seconds for 28 units. A running maximum keeps the exponentials in range.

    >>> independent = enumerate_states(np.zeros((2, 2)), np.array([0.0, 1.0]))
    >>> independent.mean.round(4), round(independent.log_normaliser, 4)
    (array([0.    , 0.7616]), 1.8201)
    """
    units = checks.integer("the number of units", len(bias), minimum=1, maximum=MAX_UNITS)
    halves = _halves(matrix, bias)
    left, right = halves.left, halves.right
    log_left, top = np.empty(len(left)), -np.inf
    right_mass, cross = np.zeros(len(right)), np.zeros((left.shape[1], right.shape[1]))
    for block in _blocks(len(left), halves.rows):
        mass = halves.exponents(block)
        block_top = mass.max()
        if block_top > top:
            shrink, top = np.exp(top - block_top), block_top
            right_mass, cross = right_mass * shrink, cross * shrink
        mass -= top
        np.exp(mass, out=mass)
        with np.errstate(divide="ignore"):
            log_left[block] = np.log(mass.sum(axis=1)) + top
        right_mass += mass.sum(axis=0)
        cross += left[block].T @ (mass @ right)
    total = right_mass.sum()
    left_mass = np.exp(log_left - top)
    left_mass, right_mass, cross = left_mass / left_mass.sum(), right_mass / total, cross / total
    second = np.empty((units, units))
    cut = left.shape[1]
    second[:cut, :cut] = left.T @ (left_mass[:, None] * left)
    second[cut:, cut:] = right.T @ (right_mass[:, None] * right)
    second[:cut, cut:], second[cut:, :cut] = cross, cross.T
    mean = np.concatenate([left_mass @ left, right_mass @ right])
    return Enumeration(float(np.log(total) + top), mean, second, left_mass, halves)


def _halves(matrix: np.ndarray, bias: np.ndarray) -> Halves:
    cut = len(bias) // 2
    left, right = _signs(cut), _signs(len(bias) - cut)

    def energy(states: np.ndarray, part: slice) -> np.ndarray:
        return 0.5 * np.sum((states @ matrix[part, part]) * states, axis=1) + states @ bias[part]

    energy_left, energy_right = energy(left, slice(cut)), energy(right, slice(cut, None))
    coupled = left @ (0.5 * (matrix[:cut, cut:] + matrix[cut:, :cut].T))
    left_factor = np.column_stack([coupled, energy_left, np.ones(len(left))])
    right_factor = np.column_stack([right, np.ones(len(right)), energy_right])
    return Halves(left, right, left_factor, right_factor)


def _signs(units: int) -> Float[np.ndarray, "states units"]:
    """All states of {-1, 1}^units, a row each."""
    return 2.0 * ((np.arange(2**units)[:, None] >> np.arange(units)) & 1) - 1


def _blocks(size: int, rows: int) -> Iterator[slice]:
    return (slice(start, min(start + rows, size)) for start in range(0, size, rows))
