"""What the adaptive method chooses by itself, from the dimension of the target and the length of the path."""

import numpy as np

from pseudo_extended.kernels import HMC
from pseudo_extended.pilot.choice import HOPELESS_PATH

MAX_CELLS = 16
"""The number of cells of a path that nothing is known of, or that is long."""
NORMAL_PATH = 1.0
"""From a normal at the mode of a normal it is 0.7 long."""
LONG_PATH = 2.5
"""Beyond it the pseudo-sample that carries the target does most of the work, and short moves are not enough."""
FEW_DIMENSIONS = 16
"""Up to which a dense metric costs next to nothing."""
LEAST_OF_ALL = 0.25
"""A step has the moves of all with this probability at least, where the target's own have most of the evaluations."""


def kernel_for(dim: int | None) -> HMC:
    """Return the local moves for a target of `dim` dimensions, or of a number not known yet.

    In few dimensions the dense metric of each temperature makes the density round, steps are long, and two of them
    cross it. In many it takes four: with two, double wells in 32 dimensions had a sixth of the effective sample size.

    >>> kernel_for(2).num_steps, kernel_for(100).num_steps
    (2, 4)
    """
    return HMC(num_steps=2 if dim is not None and dim <= FEW_DIMENSIONS else 4)


def cells_for(length: float) -> int:
    """Return the number of cells in which log g is linear, on a path of this thermodynamic length.

    log Z bends by about an eighth of the square of a cell's length, so cells of half a unit leave nothing to be gained.
    Each costs an exponential for every pseudo-sample in every draw. Powers of two, so that runs share their programs.

    >>> cells_for(0.6), cells_for(3.0), cells_for(20.0)
    (4, 8, 16)
    """
    enough = (num_cells for num_cells in (MAX_CELLS // 4, MAX_CELLS // 2) if length <= 0.5 * num_cells)
    return next(enough, MAX_CELLS)


def warmup_for(length: float) -> int:
    """Return the iterations of warm-up for a path of this thermodynamic length.

    The pilot has placed the temperatures and tuned the moves; what is left is to settle, and to spread out along the
    path, which takes the longer the longer it is.

    >>> warmup_for(0.7), warmup_for(6.0), warmup_for(50.0)
    (150, 400, 1000)
    """
    return int(np.clip(50 * np.ceil((100 + 50 * length) / 50), 100, 1000))


def share_of_target(length: float, first_length: float, dim: int, *, has_many_modes: bool) -> float:
    """The share of all evaluations that the moves of the target's own pseudo-sample are to have.

    If the path from a normal at the one mode is that of a normal, refreshments do it, and none are made. If it is not,
    but not long either, they have a quarter in many dimensions, for what the pilot's points have missed; so where there
    are several modes, as then it is the way along the path that takes the time. On a long path to a single mode the
    others are of use only where NUTS does badly; in few dimensions they cost little and that is often, so each has
    half, on a short path too, and neither can lose more than that against the other.

    >>> share_of_target(0.7, 0.7, 100, has_many_modes=False), share_of_target(8.0, 9.0, 100, has_many_modes=False)
    (0.0, 0.8)
    """
    if first_length <= (LONG_PATH if has_many_modes else NORMAL_PATH):
        return 0.0
    if dim <= FEW_DIMENSIONS:
        return 0.25 if has_many_modes else 0.5
    if length <= LONG_PATH:
        return 0.25
    return 2 / 3 if has_many_modes else 0.8


def least_of_all(share: float, dim: int) -> float:
    """The probability of the moves of all in a step, at least, if the target's own have this share of evaluations.

    Only the last point of a step is kept, so where the target is to make several moves for each of the others, a step
    has one of them and not always the others. Where the others do the work, or the odds are even, they move always.

    >>> least_of_all(0.25, 10), least_of_all(0.5, 10), least_of_all(0.25, 100)
    (1.0, 0.25, 0.25)
    """
    return 1.0 if share <= 0.25 and dim <= FEW_DIMENSIONS else LEAST_OF_ALL


def is_left_to_nuts(length: float, dim: int, *, has_many_modes: bool) -> bool:
    """Whether the target is best sampled by NUTS alone, N = 1.

    On a path that they do not travel, pseudo-samples would stay near the target, where each has to be moved, and give
    nothing for it. With one mode there is nothing to be lost.

    >>> is_left_to_nuts(30.0, 500, has_many_modes=False), is_left_to_nuts(30.0, 500, has_many_modes=True)
    (True, False)
    """
    return length > HOPELESS_PATH and dim > FEW_DIMENSIONS and not has_many_modes


def particles_for(length: float, dim: int, *, has_many_modes: bool = True) -> int:
    """Return how many pseudo-samples a path of this thermodynamic length is worth.

    A pseudo-sample needs a number of steps from base to target that grows with the length, so a longer path wants more
    of them on the way for the target to be handed over as often. Each costs its gradients, so beyond that more are no
    gain; and each is kept in the output, so in very many dimensions there are fewer. In few dimensions most of the
    time of a step is overhead that does not grow with their number, and twelve cost little more than six. With one
    mode and a long path in many, the one that carries the target does most of the work, with moves of its own.

    >>> particles_for(1.0, 2), particles_for(1.0, 32), particles_for(8.0, 32), particles_for(30.0, 100)
    (12, 6, 11, 16)
    """
    if length > LONG_PATH and dim > FEW_DIMENSIONS and not has_many_modes:
        return 4
    least = 12 if dim <= FEW_DIMENSIONS else 6
    wanted = int(np.clip(5 + np.ceil(0.7 * length), least, 16))
    return max(min(wanted, 8000 // dim), 6)
