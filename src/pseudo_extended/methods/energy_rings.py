"""Energy rings in bounded memory: what the higher chains of the equi-energy sampler leave for the lower ones.

The paper keeps every state of every chain. Here each ring is a *reservoir* (Vitter 1985, algorithm R): the n-th point
that is offered takes a random slot with probability capacity / n, so at any time the ring holds a uniform sample,
without replacement, of all points that were ever offered. A draw from it has the distribution of a draw from the whole
history, and the arrays never change their size, so that a run can be cut into chunks.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class EnergyRings(NamedTuple):
    """The rings of each chain that files points, from the lowest energies to the highest."""

    points: Float[Array, "chain ring slot d"]
    num_offered: Int[Array, "chain ring"]


def empty_rings(num_chains: int, num_rings: int, capacity: int, dim: int) -> EnergyRings:
    """Before anything was filed."""
    return EnergyRings(jnp.zeros((num_chains, num_rings, capacity, dim)), jnp.zeros((num_chains, num_rings), int))


def file_points(
    uniform: Float[Array, " chain"],
    rings: EnergyRings,
    points: Float[Array, "chain d"],
    ring: Int[Array, " chain"],
    files: Bool[Array, " chain"],
) -> EnergyRings:
    """Offer one point of every chain to the ring of its energy, by a uniform random number each.

    Chains whose `files` is false offer nothing.
    """
    num_chains, _, capacity, _ = rings.points.shape
    chain = jnp.arange(num_chains)
    num_before = rings.num_offered[chain, ring]
    slot = jnp.where(num_before < capacity, num_before, jnp.floor(uniform * (num_before + 1)).astype(int))
    # Out of range is dropped: a point that is not filed, and one that the reservoir passes over.
    slot = jnp.where(files, slot, capacity)
    return EnergyRings(
        rings.points.at[chain, ring, slot].set(points, mode="drop"),
        rings.num_offered.at[chain, ring].add(files.astype(int)),
    )


def draw_points(
    uniform: Float[Array, " chain"], rings: EnergyRings, ring: Int[Array, " chain"]
) -> tuple[Float[Array, "chain d"], Bool[Array, " chain"]]:
    """A point of one ring of every chain, picked by a uniform random number, and whether that ring had any."""
    num_chains, _, capacity, _ = rings.points.shape
    chain = jnp.arange(num_chains)
    num_points = jnp.minimum(rings.num_offered[chain, ring], capacity)
    slot = jnp.floor(uniform * num_points).astype(int)
    return rings.points[chain, ring, slot], num_points > 0
