"""How well normals at the modes describe a target, before anything is annealed."""

import numpy as np
from scipy.special import softmax

from pseudo_extended.pilot.hidden_symmetries import Heights
from pseudo_extended.pilot.modes import Modes
from pseudo_extended.pilot.screening import unexplained

NUM_DRAWS = 64
NEAR = 10.0
"""Spread of the log density around that of the normals, up to which matrices at the modes are worth their products.

The path from them is about as long as that, and pseudo-samples do not travel a longer one in many dimensions.
"""


def is_near_normal(modes: Modes, heights: Heights, rng: np.random.Generator) -> bool:
    """Whether the log density at draws of Laplace's approximation is about what the approximation says.

    `modes` have full covariances. It takes `NUM_DRAWS` evaluations.

    >>> rng, here = np.random.default_rng(0), Modes(np.zeros((1, 2)), np.zeros(1), np.eye(2)[None], np.ones(1, int))
    >>> is_near_normal(here, lambda x: -0.5 * np.sum(x**2, axis=1), rng)
    True
    >>> is_near_normal(here, lambda x: -50 * np.sum(x**4, axis=1), rng)
    False
    """
    chosen = rng.choice(len(modes.x), size=NUM_DRAWS, p=softmax(modes.log_mass))
    factors = np.linalg.cholesky(modes.covariance)
    points = modes.x[chosen] + np.einsum("pij,pj->pi", factors[chosen], rng.normal(size=(NUM_DRAWS, modes.x.shape[1])))
    excess = unexplained(modes, points, heights(points))
    return bool(np.all(np.isfinite(excess)) and np.std(excess) < NEAR)
