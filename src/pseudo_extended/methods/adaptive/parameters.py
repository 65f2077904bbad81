"""What the adaptive method tunes: the path with its g, and step sizes and metrics along it."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from pseudo_extended.instruments import Temperatures
from pseudo_extended.kernels.metric import Factor
from pseudo_extended.methods.adaptive.choices import MAX_CELLS, cells_for
from pseudo_extended.methods.adaptive.target_moves import TargetParameters
from pseudo_extended.pilot.annealing import Annealed, path_from, tuning_at, tuning_from
from pseudo_extended.target.bases import NormalMixture
from pseudo_extended.tempering.mode_rows import with_rows
from pseudo_extended.tempering.path import Path, on_path

NUM_KNOTS = 9
"""The number of places on a path with a step size and a metric of their own."""


class AdaptiveParameters(NamedTuple):
    """What the pilot begins and warm-up goes on to tune; frozen when the draws begin."""

    path: Path
    log_step: Float[Array, " step"]
    """One for each knot."""
    scale: Factor
    """The metric at each knot; knots are equally far apart in t, like the nodes of the path."""
    target: TargetParameters | None = None
    """Those of the moves that the target's own pseudo-sample makes beside, if it makes any."""

    @property
    def num_knots(self) -> int:
        """Places on the path with step sizes of their own."""
        return self.scale.shape[0]

    def knot(self, t: Float[Array, " particle"]) -> Int[Array, " particle"]:
        """The knot nearest to each place on the path."""
        return jnp.round(t * (self.num_knots - 1)).astype(int)

    def step_size(self, t: Float[Array, " particle"]) -> Float[Array, " particle"]:
        """The step size of the local moves at each place on the path."""
        return jnp.exp(on_path(self.log_step, t))


def fixed_path(temperatures: Temperatures) -> Path:
    """Return fixed temperatures as nodes of a path, with the target behind them."""
    return Path(jnp.append(temperatures.rungs, 1.0), jnp.append(temperatures.log_g, 0.0))


def tuned(temperatures: Temperatures, annealed: Annealed) -> tuple[Path, Float[Array, " knot"], Factor]:
    """Return the path, step sizes and metrics as the pilot found them."""
    if temperatures.are_free:
        num_cells, beta_max = cells_for(float(annealed.length[-1])), temperatures.beta_max
        return path_from(annealed, num_cells, beta_max), *tuning_from(annealed, NUM_KNOTS, beta_max)
    path = fixed_path(temperatures)
    return path, *tuning_at(annealed, np.asarray(path.beta))


def with_rows_for(parameters: AdaptiveParameters, base: NormalMixture | None) -> AdaptiveParameters:
    """A row of g for each mode of the base, if there are two at least and the temperatures are free.

    All rows begin as the pilot's one, and warm-up tells them apart.
    """
    num_modes = 0 if base is None else base.num_modes
    return parameters._replace(path=with_rows(parameters.path, num_modes)) if num_modes > 1 else parameters


def untuned(temperatures: Temperatures, dim: int, *, dense: bool) -> AdaptiveParameters:
    """Return parameters before any pilot: nodes at all orders of magnitude, and a unit metric."""
    if temperatures.are_free:
        low, high = temperatures.beta_min, temperatures.beta_max
        nodes = low + (high - low) * jnp.append(0.0, jnp.logspace(-8, 0, MAX_CELLS))
        path, num_knots = Path(nodes, jnp.zeros(MAX_CELLS + 1)), NUM_KNOTS
    else:
        path = fixed_path(temperatures)
        num_knots = path.num_cells + 1
    unit = jnp.eye(dim) if dense else jnp.ones(dim)
    log_step = jnp.full(num_knots, jnp.log(0.5) - 0.25 * jnp.log(dim))
    return AdaptiveParameters(path, log_step, jnp.broadcast_to(unit, (num_knots, *unit.shape)))
