"""Lanes: one chain, or a few vectorised ones, on the way."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from pseudo_extended.methods import Chain


@dataclass(eq=False)
class Lane:
    """A lane and how far it has come; only the loop changes it."""

    index: int
    numbers: np.ndarray
    """Of its chains."""
    x: Float[np.ndarray, "... particle d"]
    """Where they start."""
    chain: Chain | None = None
    done: int = 0
    """Iterations of warm-up and draws."""
    pace: int = 1
    """Iterations of the next task, if nothing speaks against it."""


def make_lanes(x: Float[np.ndarray, "chain particle d"], width: int) -> list[Lane]:
    """Chains in groups of `width`; a last group that is not full gets copies of the last chain, dropped later."""
    if width == 1:  # without an axis for the one chain
        return [Lane(c, np.asarray(c), points) for c, points in enumerate(x)]
    numbers = np.arange(-(-len(x) // width) * width)
    padded = x[np.minimum(numbers, len(x) - 1)]
    places = [slice(i, i + width) for i in range(0, len(numbers), width)]
    return [Lane(i, numbers[place], padded[place]) for i, place in enumerate(places)]
