"""The densities of the equi-energy sampler: energies truncated from below, at rising temperatures, and their rings."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from pseudo_extended import checks


class EnergyLadder(eqx.Module):
    """π_i(x) ∝ exp{-max(h(x), H_i)/T_i} for i = 0, …, K, and rings D_j = {x: h(x) in [H_j, H_j+1)}.

    Arrays below have one entry for each chain: the energy h of a point of chain i is entry i.
    """

    energies: Float[np.ndarray, " chain"]
    temperatures: Float[np.ndarray, " chain"]

    def __init__(self, energies: Any, temperatures: Any):
        self.temperatures = _increasing("temperatures", temperatures)
        if self.temperatures[0] != 1:
            raise ValueError(
                f"temperatures of EquiEnergy must increase from 1, the target's own; got {self.temperatures.tolist()}."
            )
        self.energies = _increasing("energies", energies)
        if self.energies.shape != self.temperatures.shape:
            raise ValueError(
                f"energies of EquiEnergy must have one entry for each of the {len(self.temperatures)} temperatures; "
                f"got {len(self.energies)}."
            )

    @property
    def num_chains(self) -> int:
        """K + 1, and as many rings."""
        return len(self.temperatures)

    def ring(self, energy: Float[Array, " chain"]) -> Int[Array, " chain"]:
        """j with h in [H_j, H_j+1); what lies below H_0 is in ring 0 as well."""
        return jnp.searchsorted(jnp.asarray(self.energies[1:]), energy, side="right", method="compare_all")

    def log_density(self, energy: Float[Array, " chain"]) -> Float[Array, " chain"]:
        """log π_i; the cold chain, i = 0, is not truncated."""
        floor = jnp.asarray(self.energies).at[0].set(-jnp.inf)
        return -jnp.maximum(energy, floor) / self.temperatures

    def log_density_above(self, energy: Float[Array, " chain"]) -> Float[Array, " chain"]:
        """log π_i+1 at the points of chain i; zero for the hottest, which has none above it."""
        return jnp.append(-jnp.maximum(energy[:-1], self.energies[1:]) / self.temperatures[1:], 0.0)

    def walk_log_ratio(
        self, proposed: Float[Array, " chain"], current: Float[Array, " chain"]
    ) -> Float[Array, " chain"]:
        """log [π_i(y)/π_i(x)], for a symmetric proposal."""
        return self.log_density(proposed) - self.log_density(current)

    def jump_log_ratio(
        self, proposed: Float[Array, " chain"], current: Float[Array, " chain"]
    ) -> Float[Array, " chain"]:
        """log {π_i(y)π_i+1(x) / [π_i(x)π_i+1(y)]}, for a proposal y from π_i+1 within the ring of x."""
        above = self.log_density_above(proposed) - self.log_density_above(current)
        return self.walk_log_ratio(proposed, current) - above


def _increasing(name: str, given: Any) -> Float[np.ndarray, " chain"]:
    numbers = checks.float_array(f"{name} of EquiEnergy", given)
    if numbers.ndim != 1 or numbers.size < 2 or not np.all(np.diff(numbers) > 0):
        raise ValueError(
            f"{name} of EquiEnergy must be two or more numbers in increasing order; got {checks.describe(given)}."
        )
    return numbers
