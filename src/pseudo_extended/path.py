"""The path from base to target, with the weight g that decides where along it the pseudo-samples spend their time.

t in [0, 1] runs along the path; β(t) and log g(t) are piecewise linear on the same nodes, equally spaced in t. So the
density of t given a point x is piecewise log-linear,

    p(t | x) ∝ exp{β(t) Δ(x) + log g(t)},        Δ = log γ - log γ0,

and can be drawn from and integrated exactly. Putting g on t, and not on β, leaves no Jacobian in it.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class Path(NamedTuple):
    """β and log g at the nodes; the last node is the target, β = 1."""

    beta: Float[Array, " node"]
    log_g: Float[Array, " node"]

    @property
    def num_cells(self) -> int:
        """Intervals between the nodes."""
        return self.beta.shape[0] - 1


class Cells(NamedTuple):
    """The conditional of t given one point, cell by cell."""

    log_mass: Float[Array, "*batch"]
    """log ∫ exp{β(t) Δ + log g(t)} dt: the log density of the instrument with t integrated out, less log γ0."""
    share: Float[Array, "*batch cell"]
    """The probability of each cell."""
    slope: Float[Array, "*batch cell"]
    """The change of the log density of t across each cell."""


def on_path(nodes: Float[Array, " node"], t: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """A piecewise linear function of t, such as β(t), from its values at the nodes."""
    num_cells = nodes.shape[0] - 1
    cell = jnp.clip(jnp.floor(t * num_cells).astype(int), 0, num_cells - 1)
    part = t * num_cells - cell
    return nodes[cell] * (1 - part) + nodes[cell + 1] * part


def cells_given(path: Path, delta: Float[Array, "*batch"]) -> Cells:
    """The conditional of t given points with these Δ.

    One exponential for each node and no logarithm: the mass of a cell is (e^b - e^a)/(b - a), with a and b the log
    densities at its ends.
    """
    height = path.beta * delta[..., None] + path.log_g
    top = jnp.max(height, axis=-1, keepdims=True)
    value = jnp.exp(height - top)
    slope = height[..., 1:] - height[..., :-1]
    flat = jnp.abs(slope) < 1e-3
    # For a flat cell the difference cancels: the trapezoid times tanh(s/2)/(s/2), to the fourth order, does not.
    trapezoid = 0.5 * (value[..., 1:] + value[..., :-1]) * (1 - slope**2 / 12)
    mass = jnp.where(flat, trapezoid, (value[..., 1:] - value[..., :-1]) / jnp.where(flat, 1.0, slope))
    total = jnp.sum(mass, axis=-1)
    log_mass = top[..., 0] + jnp.log(total / path.num_cells)
    return Cells(log_mass, mass / total[..., None], slope)


def draw_t(uniform: Float[Array, "*batch"], cells: Cells) -> Float[Array, "*batch"]:
    """t by inversion of its distribution function, one uniform number each."""
    cumulative = jnp.cumsum(cells.share, axis=-1)
    last = cells.share.shape[-1] - 1
    cell = jnp.minimum(jnp.sum(cumulative <= uniform[..., None], axis=-1), last)[..., None]
    share, slope, upto = (
        jnp.take_along_axis(part, cell, axis=-1)[..., 0] for part in (cells.share, cells.slope, cumulative)
    )
    rest = jnp.clip((uniform - upto + share) / jnp.where(share > 0, share, 1.0), 0.0, 1.0)
    place = _inverse_exponential(rest, slope)
    return (cell[..., 0] + place) / (last + 1)


def _inverse_exponential(u: Float[Array, "*batch"], slope: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """The u-quantile of the density ∝ exp(slope · p) on [0, 1], for slopes of any size and sign."""
    steep = jnp.abs(slope)
    steep = jnp.where(steep < 1e-5, 1e-5, steep)  # as good as flat: off by 1e-6 at most
    # By symmetry for a falling density; a rising one is the mirror image.
    falling = -jnp.log1p(jnp.where(slope > 0, 1 - u, u) * jnp.expm1(-steep)) / steep
    falling = jnp.clip(falling, 0.0, 1.0)
    return jnp.where(jnp.abs(slope) < 1e-5, u, jnp.where(slope > 0, 1 - falling, falling))


def even_lengths(
    beta: Float[np.ndarray, " level"], length: Float[np.ndarray, " level"], num_cells: int
) -> Float[np.ndarray, " {num_cells}+1"]:
    """Nodes equally far apart in thermodynamic length, given the length of the path up to some levels of β."""
    return np.interp(np.linspace(0.0, 1.0, num_cells + 1) * length[-1], length, beta)
