"""The path from base to target, with the weight g that decides where along it the pseudo-samples spend their time.

t in [0, 1] runs along the path; β(t) and log g(t) are piecewise linear on the same nodes, equally spaced in t. So the
density of t given a point x is piecewise log-linear,

    p(t | x) ∝ exp{β(t) Δ(x) + log g(t)},        Δ = log γ - log γ0,

and can be drawn from and integrated exactly. Putting g on t, and not on β, leaves no Jacobian in it.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


class Path(NamedTuple):
    """β and log g at the nodes; the last node is the target, β = 1."""

    beta: Float[Array, " node"]
    log_g: Float[Array, "node ..."]
    """One for all points, or one for each label of a point: see `tempering.mode_rows`."""

    @property
    def num_cells(self) -> int:
        """Intervals between the nodes."""
        return self.beta.shape[0] - 1

    @property
    def has_rows(self) -> bool:
        """Whether g depends on the label of a point."""
        return self.log_g.ndim == 2

    def seen_from(self, label: Int[Array, "*batch"] | None) -> "Path":
        """The path as points with these labels see it: for each of them its own log g."""
        return self if label is None else self._replace(log_g=self.log_g[:, label])


class Cells(NamedTuple):
    """The conditional of t given points, cell by cell; nodes and cells come before the points."""

    log_mass: Float[Array, "*batch"]
    """log ∫ exp{β(t) Δ + log g(t)} dt: the log density of the instrument with t integrated out, less log γ0."""
    height: Float[Array, "node ..."]
    """The log density of t at the nodes, less its maximum."""
    slope: Float[Array, "cell ..."]
    """Its change across each cell."""
    mass: Float[Array, "cell ..."]
    """Of each cell, in proportion."""

    @property
    def share(self) -> Float[Array, "cell ..."]:
        """The probability of each cell."""
        return self.mass / jnp.sum(self.mass, axis=0)


def on_path(nodes: Float[Array, " node"], t: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """A piecewise linear function of t, such as β(t), from its values at the nodes."""
    return jnp.sum(hats(nodes.shape[0] - 1, t) * nodes, axis=-1)


def hats(num_cells: int, t: Float[Array, "*batch"]) -> Float[Array, "*batch node"]:
    """What each node contributes to a piecewise linear function at t: sums of a few products, and no gathers."""
    return jnp.maximum(1 - jnp.abs(t[..., None] * num_cells - jnp.arange(num_cells + 1)), 0.0)


def cells_given(path: Path, delta: Float[Array, "*batch"]) -> Cells:
    """The conditional of t given points with these Δ; log g is one for all of them, or has a column for each.

    One exponential for each node and no logarithm: the mass of a cell is (e^b - e^a)/(b - a), with a and b the log
    densities at its ends.
    """
    beta, log_g = (nodes.reshape(nodes.shape[0], *(nodes.shape[1:] or (1,) * delta.ndim)) for nodes in path)
    height = beta * delta + log_g
    top = jnp.max(height, axis=0)
    height = height - top
    value = jnp.exp(height)
    slope = height[1:] - height[:-1]
    flat = jnp.abs(slope) < 1e-3
    # For a flat cell the difference cancels: the trapezoid times tanh(s/2)/(s/2), to the fourth order, does not.
    trapezoid = 0.5 * (value[1:] + value[:-1]) * (1 - slope**2 / 12)
    mass = jnp.where(flat, trapezoid, (value[1:] - value[:-1]) / jnp.where(flat, 1.0, slope))
    log_mass = top + jnp.log(jnp.sum(mass, axis=0) / path.num_cells)
    return Cells(log_mass, height, slope, mass)


def draw_t(uniform: Float[Array, "*batch"], cells: Cells) -> Float[Array, "*batch"]:
    """t by inversion of its distribution function, one uniform number each.

    The mass from the start a of a cell to the place p in it is (e^(a + sp) - e^a)/s. Written for XLA, for which a draw
    of a few points is a matter of how many kernels it takes: the search written out and one logarithm, all of it under
    one division, are one kernel, and a third faster than a cumulative sum, gathers, and the usual log1p and expm1.
    """
    left = uniform * jnp.sum(cells.mass, axis=0)
    cell, rest, start, slope = jnp.zeros_like(left), left, cells.height[0], cells.slope[0]
    num_cells = cells.mass.shape[0]
    for k in range(1, num_cells):
        left = left - cells.mass[k - 1]
        beyond = left >= 0
        cell, rest = jnp.where(beyond, float(k), cell), jnp.where(beyond, left, rest)
        start, slope = jnp.where(beyond, cells.height[k], start), jnp.where(beyond, cells.slope[k], slope)
    slope = jnp.where(jnp.abs(slope) < 1e-6, 1e-6, slope)  # as good as flat: off by 1e-6 at most
    # Rounding may leave something for a last cell whose density underflows.
    rise = jnp.log(jnp.maximum(jnp.exp(start) + slope * rest, 1e-300)) - start
    rise = jnp.clip(rise, jnp.minimum(slope, 0.0), jnp.maximum(slope, 0.0))
    return (cell * slope + rise) / (num_cells * slope)


def even_lengths(
    beta: Float[np.ndarray, " level"], length: Float[np.ndarray, " level"], num_cells: int
) -> Float[np.ndarray, " {num_cells}+1"]:
    """Nodes equally far apart in thermodynamic length, given the length of the path up to some levels of β."""
    return np.interp(np.linspace(0.0, 1.0, num_cells + 1) * length[-1], length, beta)
