"""Densities on the path from base to target at a given inverse temperature."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from pseudo_extended.target.target import PathPoint


def tempered_terms(
    path: PathPoint, beta: Float[Array, "*particle"]
) -> tuple[Float[Array, "*particle"], Float[Array, "*particle"]]:
    """log γ_β and log(γ / γ_β) = (1 - β) Δ of each pseudo-sample.

    At β = 0 the path is its base, also where the target vanishes and Δ = -inf: 0 · (-inf) is 0 here.
    """
    scaled = jnp.where(beta == 0, 0.0, beta * jnp.where(beta == 0, 0.0, path.delta))
    return path.log_base + scaled, (1 - beta) * path.delta
