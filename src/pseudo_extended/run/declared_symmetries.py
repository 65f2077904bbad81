"""Declared symmetries against the density itself, before they are used."""

from typing import Any

import jax
import numpy as np

from pseudo_extended.methods import AbstractMethod, AdaptivePseudoExtended
from pseudo_extended.target import Target

NUM_POINTS = 32
"""At which the density is looked at, from close to zero to some units away on the unconstrained scale."""
TOLERANCE = 1e-6
"""Of the log density, relative to its size."""


def check_symmetries(target: Target, method: AbstractMethod) -> list[str]:
    """Refuse a declared symmetry that the density does not have; doubts where it cannot be told, or is not used."""
    if not target.symmetries:
        return []
    rng = np.random.default_rng(0)
    points = rng.normal(size=(NUM_POINTS, target.dim)) * np.linspace(0.1, 3.0, NUM_POINTS)[:, None]
    keys = jax.random.split(jax.random.key(0, impl="threefry2x32"), NUM_POINTS)
    log_density = jax.jit(jax.vmap(target.log_target))
    before, doubts = np.asarray(log_density(points)), []
    for action in target.symmetries:
        images = np.asarray(jax.vmap(lambda key, u, action=action: action.draw(key, target.dim)(u))(keys, points))
        after = np.asarray(log_density(images))
        if worst := _disagreement(before, after):
            raise ValueError(
                f"symmetries must leave the density as it is; {action.describe()} changed the log density "
                f"from {worst[0]:.6g} to {worst[1]:.6g}: name all parameters that change together, with equal bounds."
            )
        if not np.any(np.isfinite(before)):
            doubts.append(f"whether the density has the declared {action.describe()} could not be checked.")
    if not isinstance(method, AdaptivePseudoExtended):
        doubts.append(f"the declared symmetries are not used by {type(method).__name__}.")
    return doubts


def _disagreement(before: Any, after: Any) -> tuple[float, float] | None:
    """The log density at a point and at its image, where they differ the most; None if they agree everywhere."""
    inside, also = np.isfinite(before), np.isfinite(after)
    with np.errstate(invalid="ignore"):
        apart = np.where(inside & also, np.abs(after - before) / (1 + np.abs(before)), 0.0)
    apart = np.where(inside != also, np.inf, apart)
    i = int(np.argmax(apart))
    return (float(before[i]), float(after[i])) if apart[i] > TOLERANCE else None
