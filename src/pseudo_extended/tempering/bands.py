"""Bands of neighbouring temperatures, which share a step size and a metric.

A thousand temperatures are too many to tune one by one, and neighbours hardly differ.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

NUM_BANDS = 8


def level_bands(betas: Float[np.ndarray, " level"]) -> Int[np.ndarray, " level"]:
    """The band of each level: at most eight, of equal length in log β, because step sizes go with β^(-1/2).

    The first has a fiftieth of the levels at least, so that it is visited often enough to be tuned, and β = 0.

    >>> level_bands(np.array([0.25, 0.5, 1.0]))
    array([0, 1, 2])
    >>> np.bincount(level_bands(np.linspace(0, 1, 1001)))
    array([ 20,  15,  27,  45,  81, 140, 244, 429])
    """
    if betas.size <= NUM_BANDS:
        return np.arange(betas.size)
    first = max(1, betas.size // 50)
    log_beta = np.log(betas[first:])
    place = np.floor((NUM_BANDS - 1) * (1 - log_beta / log_beta[0])).astype(int)
    bands = np.concatenate([np.zeros(first, int), 1 + np.minimum(place, NUM_BANDS - 2)])
    return np.unique(bands, return_inverse=True)[1]


def band_betas(betas: Float[Array, " level"], bands: Int[Array, " level"], num_bands: int) -> Float[Array, " band"]:
    """The mean β of each band."""
    return jnp.bincount(bands, betas, length=num_bands) / jnp.bincount(bands, length=num_bands)
