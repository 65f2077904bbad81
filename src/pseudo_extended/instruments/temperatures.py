"""What an instrument says about its temperatures to a method that draws them by itself."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int


class Temperatures(NamedTuple):
    """The inverse temperatures of an instrument: free in a range, or fixed at some rungs."""

    beta_min: Any
    """The hottest β of the pseudo-samples that do not carry the target."""
    beta_max: Any
    """The coldest."""
    rungs: Float[np.ndarray, " rung"] = np.zeros(0)
    """Fixed temperatures, one for each pseudo-sample, or one for all of them; none where they are free."""
    log_g: Any = None
    """log g at the rungs; for free temperatures, a function that the user prescribes, or None."""

    @property
    def are_free(self) -> bool:
        """Whether the temperatures move."""
        return self.rungs.size == 0

    def rung_of(self, num_particles: int) -> Int[np.ndarray, " particle"]:
        """The rung of each pseudo-sample, for fixed temperatures."""
        return np.arange(num_particles) if self.rungs.size > 1 else np.zeros(num_particles, int)
