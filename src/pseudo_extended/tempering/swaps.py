"""Swaps between neighbours on a ladder, and the ladder on which all of them succeed equally often."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


def swap_acceptance(betas: Float[Array, " rung"], delta: Float[Array, " rung"]) -> Float[Array, " pair"]:
    """The probability that each pair of neighbours swaps, if it is proposed."""
    return jnp.exp(jnp.minimum(0.0, jnp.diff(betas) * (delta[:-1] - delta[1:])))


def swap_order(swapped: Bool[Array, " pair"]) -> Int[Array, " rung"]:
    """Return the rung from which each rung's new point comes; swapped pairs do not overlap."""
    up, none = swapped.astype(int), jnp.zeros(1, int)
    return jnp.arange(swapped.size + 1) + jnp.concatenate([up, none]) - jnp.concatenate([none, up])


def equal_rejections(betas: Float[Array, " rung"], rejections: Float[Array, " pair"]) -> Float[Array, " rung"]:
    """The ladder whose pairs would be rejected equally often, with the same ends (Syed et al. 2022, algorithm 2).

    The sum of rejection rates up to β, the communication barrier, hardly depends on the ladder; it is interpolated
    linearly and cut into equal parts.
    """
    barrier = jnp.concatenate([jnp.zeros(1), jnp.cumsum(jnp.maximum(rejections, 1e-3))])
    inner = jnp.interp(jnp.linspace(0.0, 1.0, betas.size)[1:-1] * barrier[-1], barrier, betas)
    return jnp.concatenate([betas[:1], inner, betas[-1:]])
