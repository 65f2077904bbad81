"""The index step: which pseudo-sample carries the target, and all temperatures, drawn given the points."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from pseudo_extended.instruments import Temperatures
from pseudo_extended.kernels import TemperedPoint
from pseudo_extended.methods.adaptive.state import AdaptiveInfo, AdaptiveState
from pseudo_extended.tempering.path import Path, cells_given, draw_t


def draw_index(
    key: Key[Array, ""],
    temperatures: Temperatures,
    path: Path,
    points: TemperedPoint,
    info: AdaptiveInfo,
    label: Int[Array, " particle"] | None = None,
) -> AdaptiveState:
    """Draw k given x, with the temperatures integrated out where they are free, and then t given x."""
    num_particles = points.delta.shape[0]
    uniform = jax.random.uniform(key, (num_particles + 1,), dtype=float)
    if temperatures.are_free:
        cells = cells_given(path.seen_from(label), points.delta)
        log_weight: Float[Array, " particle"] = points.delta - cells.log_mass
        t = draw_t(uniform[1:], cells)
    else:
        node = temperatures.rung_of(num_particles)
        t = jnp.asarray(node / path.num_cells)
        log_weight = (1 - path.beta[node]) * points.delta - path.log_g[node]
    cumulative = jnp.cumsum(jnp.exp(log_weight - jnp.max(log_weight)))
    index = jnp.minimum(jnp.sum(cumulative <= uniform[0] * cumulative[-1]), num_particles - 1)
    return AdaptiveState(points, t, index, log_weight, info, label)
