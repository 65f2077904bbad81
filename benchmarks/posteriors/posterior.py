"""What a problem of the comparison with NUTS consists of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Array, Float


@dataclass(frozen=True)
class Moments:
    """Means of the quantities and of their squares, with the errors of both; zero where they are exact."""

    mean: Float[np.ndarray, " quantity"]
    square: Float[np.ndarray, " quantity"]
    mean_error: Float[np.ndarray, " quantity"]
    square_error: Float[np.ndarray, " quantity"]

    @classmethod
    def exact(cls, mean: Any, square: Any) -> "Moments":
        """Moments that are known without error."""
        mean, square = np.atleast_1d(np.asarray(mean, float)), np.atleast_1d(np.asarray(square, float))
        return cls(mean, square, np.zeros_like(mean), np.zeros_like(square))


@dataclass(frozen=True)
class Posterior:
    """A log density of an unconstrained vector, where to start, and what is asked about it."""

    log_density: Callable[[Float[Array, " d"]], Float[Array, ""]]
    start: Float[np.ndarray, " d"]
    """Chains start within 1 of it in every coordinate."""
    quantities: Callable[[Float[Array, " d"]], Float[Array, " quantity"]] = lambda x: x
    """What is estimated: the coordinates, unless those are not identified or have no second moment."""
    moments: Moments | None = None
    """Exact ones, or None for those of a reference run."""

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return len(self.start)
