"""What the adaptive method tunes: the path with its g, and step sizes and metrics along it."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from pseudo_extended.instruments import AbstractInstrument, Fixed, Ladder, Tempered
from pseudo_extended.kernels import HMC
from pseudo_extended.kernels.path_moves import Local
from pseudo_extended.pilot.annealing import Annealed, path_from, tuning_at, tuning_from
from pseudo_extended.target.bases import NormalMixture
from pseudo_extended.tempering.mode_rows import with_rows
from pseudo_extended.tempering.path import Path, on_path

NUM_CELLS = 16
"""Of a path that nothing is known of, or that is long."""
NUM_KNOTS = 9
LONG_PATH = 2.5
"""Beyond it the pseudo-sample that carries the target does most of the work, and short moves are not enough."""
FEW_DIMENSIONS = 16
"""Up to which a dense metric costs next to nothing."""


class IndexParameters(NamedTuple):
    """What the pilot begins and warm-up goes on to tune; frozen when the draws begin."""

    path: Path
    log_step: Float[Array, " step"]
    """One for each knot and, where the target's own pseudo-sample makes moves of another kernel, one for those."""
    scale: Local
    """The metric at each knot; knots are equally far apart in t, like the nodes of the path."""
    target_scale: Float[Array, " d"] | None = None
    """The metric of the moves that the target's own pseudo-sample makes beside, if it makes any."""

    @property
    def num_knots(self) -> int:
        """Places on the path with step sizes of their own."""
        return self.scale.shape[0]

    def knot(self, t: Float[Array, " particle"]) -> Int[Array, " particle"]:
        """The knot nearest to each place on the path."""
        return jnp.round(t * (self.num_knots - 1)).astype(int)

    def step_size(self, t: Float[Array, " particle"]) -> Float[Array, " particle"]:
        """The step size of the local moves at each place on the path."""
        return jnp.exp(on_path(self.log_step[: self.num_knots], t))


def beta_range(instrument: AbstractInstrument) -> tuple[float, float]:
    """The hottest and the coldest β of the pseudo-samples that do not carry the target."""
    if isinstance(instrument, Tempered):
        return instrument.beta_min, instrument.beta_max
    betas = np.asarray(fixed_path(instrument).beta)
    return float(betas[0]), float(betas[-2])


def fixed_path(instrument: AbstractInstrument) -> Path:
    """Fixed temperatures as nodes of a path, with the target behind them."""
    if isinstance(instrument, Ladder):
        return Path(jnp.append(instrument.rungs, 1.0), jnp.append(instrument.log_g, 0.0))
    assert isinstance(instrument, Fixed)
    return Path(jnp.append(instrument.beta, 1.0), jnp.zeros(2))


def rungs(instrument: AbstractInstrument, num_particles: int) -> Int[np.ndarray, " particle"]:
    """The node of the path at which each pseudo-sample stays, for fixed temperatures."""
    return np.arange(num_particles) if isinstance(instrument, Ladder) else np.zeros(num_particles, int)


def tuned(instrument: AbstractInstrument, annealed: Annealed) -> tuple[Path, Float[Array, " knot"], Local]:
    """Path, step sizes and metrics as the pilot found them."""
    if isinstance(instrument, Tempered):
        num_cells = cells_for(float(annealed.length[-1]))
        return path_from(annealed, num_cells, instrument.beta_max), *tuning_from(
            annealed, NUM_KNOTS, instrument.beta_max
        )
    path = fixed_path(instrument)
    return path, *tuning_at(annealed, np.asarray(path.beta))


def with_rows_for(parameters: IndexParameters, base: NormalMixture | None) -> IndexParameters:
    """A row of g for each mode of the base, if there are two at least and the temperatures are free.

    All rows begin as the pilot's one, and warm-up tells them apart.
    """
    num_modes = 0 if base is None else base.num_modes
    return parameters._replace(path=with_rows(parameters.path, num_modes)) if num_modes > 1 else parameters


def untuned(instrument: AbstractInstrument, dim: int, *, dense: bool) -> IndexParameters:
    """Before any pilot: nodes at all orders of magnitude, unit metric."""
    if isinstance(instrument, Tempered):
        low, high = instrument.beta_min, instrument.beta_max
        nodes = low + (high - low) * jnp.append(0.0, jnp.logspace(-8, 0, NUM_CELLS))
        path, num_knots = Path(nodes, jnp.zeros(NUM_CELLS + 1)), NUM_KNOTS
    else:
        path = fixed_path(instrument)
        num_knots = path.num_cells + 1
    unit = jnp.eye(dim) if dense else jnp.ones(dim)
    log_step = jnp.full(num_knots, jnp.log(0.5) - 0.25 * jnp.log(dim))
    return IndexParameters(path, log_step, jnp.broadcast_to(unit, (num_knots, *unit.shape)))


def kernel_for(dim: int | None) -> HMC:
    """Local moves for a target of `dim` dimensions, or of a number not known yet.

    In few dimensions the dense metric of each temperature makes the density round, steps are long, and two of them
    cross it. In many it takes four: with two, double wells in 32 dimensions had a sixth of the effective sample size.

    >>> kernel_for(2).num_steps, kernel_for(100).num_steps
    (2, 4)
    """
    return HMC(num_steps=2 if dim is not None and dim <= FEW_DIMENSIONS else 4)


def cells_for(length: float) -> int:
    """In how many cells log g is linear, on a path of this thermodynamic length.

    log Z bends by about an eighth of the square of a cell's length, so cells of half a unit leave nothing to be gained.
    Each costs an exponential for every pseudo-sample in every draw. Powers of two, so that runs share their programs.

    >>> cells_for(0.6), cells_for(3.0), cells_for(20.0)
    (4, 8, 16)
    """
    enough = (num_cells for num_cells in (NUM_CELLS // 4, NUM_CELLS // 2) if length <= 0.5 * num_cells)
    return next(enough, NUM_CELLS)


def warmup_for(length: float) -> int:
    """Iterations of warm-up for a path of this thermodynamic length.

    The pilot has placed the temperatures and tuned the moves; what is left is to settle, and to spread out along the
    path, which takes the longer the longer it is.

    >>> warmup_for(0.7), warmup_for(6.0), warmup_for(50.0)
    (150, 400, 1000)
    """
    return int(np.clip(50 * np.ceil((100 + 50 * length) / 50), 100, 1000))


def needs_target_moves(length: float, dim: int) -> bool:
    """Whether the pseudo-sample that carries the target is to make moves of its own.

    On a long path in many dimensions it does most of the work, and short moves do not cross the target. In few
    dimensions it is the way along the path that takes the time, and short moves of all are worth more.

    >>> needs_target_moves(1.0, 100), needs_target_moves(8.0, 100), needs_target_moves(8.0, 10)
    (False, True, False)
    """
    return length > LONG_PATH and dim > FEW_DIMENSIONS


def particles_for(length: float, dim: int, *, has_many_modes: bool = True) -> int:
    """How many pseudo-samples a path of this thermodynamic length is worth.

    A pseudo-sample needs a number of steps from base to target that grows with the length, so a longer path wants more
    of them on the way for the target to be handed over as often. Each costs its gradients, so beyond that more are no
    gain; and each is kept in the output, so in very many dimensions there are fewer. In few dimensions most of the
    time of a step is overhead that does not grow with their number, and twelve cost little more than six. With one
    mode and a long path in many, the one that carries the target does most of the work, with moves of its own.

    >>> particles_for(1.0, 2), particles_for(1.0, 32), particles_for(8.0, 32), particles_for(30.0, 100)
    (12, 6, 11, 16)
    """
    if not has_many_modes and needs_target_moves(length, dim):
        return 4
    least = 12 if dim <= FEW_DIMENSIONS else 6
    wanted = int(np.clip(5 + np.ceil(0.7 * length), least, 16))
    return max(min(wanted, 8000 // dim), 6)
