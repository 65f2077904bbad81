"""Ladders of inverse temperatures: checks that all tempering methods share, and the usual spacings."""

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from pseudo_extended import checks
from pseudo_extended.instruments.abstract import refuse_improper
from pseudo_extended.memory import check_fits
from pseudo_extended.target import Target

BYTES_PER_RUNG = 64
"""Of a schedule while it is made, and of what a chain knows about each of its steps."""


def linear(num_steps: int) -> Float[np.ndarray, " rung"]:
    """Return a schedule from 0 to 1 in equal steps.

    >>> linear(4)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    return np.linspace(0.0, 1.0, num_steps + 1)


def sigmoidal(num_steps: int) -> Float[np.ndarray, " rung"]:
    """Return a schedule with shorter steps near both ends, σ(4(2k/K - 1)), rescaled (Graham and Storkey 2017).

    >>> sigmoidal(4).round(3)
    array([0.   , 0.105, 0.5  , 0.895, 1.   ])
    """
    rungs = expit(4 * (2 * linear(num_steps) - 1))
    rungs = (rungs - rungs[0]) / (rungs[-1] - rungs[0])
    rungs[-1] = 1.0
    return rungs


def checked_betas(owner: str, betas: Any) -> Float[np.ndarray, " rung"]:
    """`betas` as an array, if it is a ladder: two numbers or more that increase strictly within [0, 1] and end in 1."""
    rungs = checks.float_array(f"betas of {owner}", betas)
    if not _increases(rungs, 2) or rungs[0] < 0 or rungs[-1] != 1:
        raise ValueError(
            f"betas of {owner} must be two numbers or more that increase strictly within [0, 1], and end in 1; "
            f"got {checks.describe(betas)}."
        )
    return rungs


def checked_schedule(owner: str, schedule: Any, num_steps: Any) -> Float[np.ndarray, " rung"]:
    """Betas from 0 to 1: `num_steps` of them after the first, linear or sigmoidal, or the user's own."""
    if isinstance(schedule, str):
        make = {"linear": linear, "sigmoidal": sigmoidal}[
            checks.choice(f"schedule of {owner}", schedule, ("linear", "sigmoidal"))
        ]
        name = f"num_steps of {owner}"
        count = checks.integer(name, num_steps if num_steps is not None else 100, minimum=2)
        check_fits(name, count, BYTES_PER_RUNG * count)
        return make(count)
    rungs = checks.float_array(f"schedule of {owner}", schedule)
    if not _increases(rungs, 3) or rungs[0] != 0 or rungs[-1] != 1:
        raise ValueError(
            f"schedule of {owner} must be 'linear', 'sigmoidal', or three numbers or more that increase strictly from "
            f"0 to 1; got {checks.describe(schedule)}."
        )
    if num_steps is not None:
        raise ValueError(
            f"num_steps of {owner} goes with a schedule by name; got {checks.describe(num_steps)} with an array."
        )
    return rungs


def _increases(rungs: Float[np.ndarray, "..."], least: int) -> bool:
    return rungs.ndim == 1 and rungs.size >= least and bool(np.all(np.diff(rungs) > 0))


def check_ladder(owner: str, betas: Float[np.ndarray, " rung"], target: Target) -> None:
    """A rung at β = 0 needs a base."""
    refuse_improper(f"the smallest of betas of {owner}", float(betas[0]), target)
