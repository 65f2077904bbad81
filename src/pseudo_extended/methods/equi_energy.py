"""The equi-energy sampler of Kou, Zhou and Wong (2006), Annals of Statistics 34, 1581-1619."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from pseudo_extended import checks
from pseudo_extended.methods.abstract import AbstractMethod, Chain, Statistic, StepInfo, WeightedPoints
from pseudo_extended.methods.energy_ladder import EnergyLadder
from pseudo_extended.methods.energy_rings import EnergyRings, draw_points, empty_rings, file_points
from pseudo_extended.randomness import normals_and_uniforms
from pseudo_extended.target import Target
from pseudo_extended.warmup import Stage


class EquiEnergyState(NamedTuple):
    """All chains, from the cold one to the hottest, and what they have filed."""

    x: Float[Array, "chain d"]
    energy: Float[Array, " chain"]
    """h(x) = -log γ(x)."""
    rings: EnergyRings
    """Of the chains above the cold one."""
    num_steps: Int[Array, ""]
    """Steps so far; decides which chains run and which file their points."""
    lowest_energy: Float[Array, ""]
    """Of all points where a chain has been."""
    jumped: Bool[Array, ""]
    """Whether the cold chain's last move was an equi-energy jump."""


class EquiEnergyInfo(NamedTuple):
    """One step of all chains."""

    acceptance_rate: Float[Array, " chain"]
    running: Bool[Array, " chain"]
    non_finite: Bool[Array, ""]


class EquiEnergy(AbstractMethod):
    """The equi-energy sampler: chains at truncated energies, which jump within rings of equal energy.

    With h = -log γ, chain i samples π_i(x) ∝ exp{-max(h(x), H_i)/T_i} by random-walk steps, and with probability
    `jump_probability` proposes instead a point that the chain above filed in the ring [H_j, H_j+1) of its own energy,
    accepted with min{1, π_i(y)π_i+1(x) / [π_i(x)π_i+1(y)]}. The hottest chain starts first; each files its points after
    `burn_in` steps, and the next one down starts `head_start` steps later. The cold chain's points are the output.

    Args:
        energies: H_0 < … < H_K. H_0 must not be above inf h, so it goes with the normalisation of γ; good rings have
            (H_i+1 - H_i)/T_i between 1 and 5.
        temperatures: 1 = T_0 < … < T_K.
        step_size: Standard deviation of the random walk: one number, which √T_i multiplies, or one for each chain.
        jump_probability: Of a jump instead of a step; 5 to 30 % is the paper's advice.
        burn_in: Steps before a chain files its points.
        head_start: Steps in which a chain files before the next one down starts.
        ring_capacity: Points that a ring holds; memory is K (K + 1) capacity · d doubles a chain, which
            are copied once a chunk.

    Three things are not as in the paper. Rings are reservoirs of `ring_capacity` points, not the whole history. The
    cold chain samples γ itself: the paper's max(h, H_0) is the same if H_0 ≤ inf h, and wrong otherwise, which
    `result.warnings` reports. And where a ring has no point yet, the random-walk step that replaces the jump may not
    leave the ring: if it might, the choice of the move would depend on the point, and a frozen set of rings would bias
    the chain (with it, the chain with its rings frozen leaves π_i alone whenever the points in them are draws of
    π_i+1). All chains start at the one point given.

    >>> import pseudo_extended as pe
    >>> method = pe.EquiEnergy(energies=[0.2, 2, 6], temperatures=[1, 3, 9], burn_in=500, head_start=1000)
    >>> method.min_warmup
    3500
    """

    ladder: EnergyLadder
    step_size: Float[np.ndarray, " chain"]
    jump_probability: float = eqx.field(static=True)
    burn_in: int = eqx.field(static=True)
    head_start: int = eqx.field(static=True)
    ring_capacity: int = eqx.field(static=True)

    def __init__(
        self,
        energies: Any,
        temperatures: Any,
        *,
        step_size: Any = 0.25,
        jump_probability: float = 0.1,
        burn_in: int = 1000,
        head_start: int = 5000,
        ring_capacity: int = 5000,
    ):
        self.ladder = EnergyLadder(energies, temperatures)
        self.step_size = _step_sizes(step_size, self.ladder.temperatures)
        self.jump_probability = checks.real(
            "jump_probability of EquiEnergy", jump_probability, low=0, high=1, closed="[)"
        )
        self.burn_in = checks.integer("burn_in of EquiEnergy", burn_in, minimum=0)
        self.head_start = checks.integer("head_start of EquiEnergy", head_start, minimum=1)
        self.ring_capacity = checks.integer("ring_capacity of EquiEnergy", ring_capacity, minimum=1, maximum=10**9)
        self.width = 4  # a step is cheap and the same for all chains

    @classmethod
    def kou_2006(cls, *, burn_in: int = 50_000, head_start: int = 50_000) -> "EquiEnergy":
        """The settings published for the 20-mode mixture, with *normalised* weights: min h is 0.2264 and 0.2154 there.

        `burn_in` and `head_start` are not known for sure.

        >>> import pseudo_extended as pe
        >>> pe.EquiEnergy.kou_2006().ladder.energies
        array([ 0.2,  2. ,  6.3, 20. , 63.2])
        """
        return cls(
            energies=(0.2, 2.0, 6.3, 20.0, 63.2),
            temperatures=(1.0, 2.8, 7.7, 21.6, 60.0),
            step_size=0.25,
            jump_probability=0.1,
            burn_in=burn_in,
            head_start=head_start,
            ring_capacity=20_000,
        )

    @property
    def num_chains(self) -> int:
        """K + 1: the cold chain and those above it."""
        return self.ladder.num_chains

    @property
    def min_warmup(self) -> int:
        """Steps until the cold chain has started and burnt in; pass it as `warmup`."""
        return (self.num_chains - 1) * (self.burn_in + self.head_start) + self.burn_in

    @property
    def needs_gradient(self) -> bool:
        """False: steps are random walks and jumps."""
        return False

    def init(self, key: Key[Array, ""], target: Target, x: Float[Array, "particle d"]) -> Chain:
        """All chains at the one given point, with empty rings."""
        del key
        energy = -target.log_target(x[0])
        rings = empty_rings(self.num_chains - 1, self.num_chains, self.ring_capacity, x.shape[1])
        state = EquiEnergyState(
            x=jnp.tile(x[0], (self.num_chains, 1)),
            energy=jnp.full(self.num_chains, energy),
            rings=rings,
            num_steps=jnp.asarray(0),
            lowest_energy=energy,
            jumped=jnp.asarray(False),
        )
        return Chain(state, (), ())

    def step(self, key: Key[Array, ""], target: Target, chain: Chain) -> tuple[EquiEnergyState, EquiEnergyInfo]:
        """One move of every chain that has started; those above the cold one then file where they are."""
        state: EquiEnergyState = chain.state
        noise, uniform = normals_and_uniforms(key, state.x.shape[1], 4, batch=(self.num_chains,))
        for_kind, for_draw, for_accept, for_file = uniform.T
        steps_of_chain = self._steps_of_chain(state.num_steps)
        running = steps_of_chain >= 0

        ring = self.ladder.ring(state.energy)
        walked = state.x + jnp.asarray(self.step_size)[:, None] * noise
        drawn, has_points = draw_points(for_draw[1:], state.rings, ring[:-1])
        wants_jump = for_kind[:-1] < self.jump_probability
        jumps = jnp.append(wants_jump & has_points, False)
        stays_in_ring = jnp.append(wants_jump & ~has_points, False)

        proposal = jnp.where(jumps[:, None], jnp.concatenate([drawn, drawn[-1:]]), walked)
        energy = -jax.vmap(target.log_target)(proposal)
        log_ratio = jnp.where(
            jumps,
            self.ladder.jump_log_ratio(energy, state.energy),
            self.ladder.walk_log_ratio(energy, state.energy),
        )
        allowed = may_move(stays_in_ring, ring, self.ladder.ring(energy))
        acceptance_rate = jnp.where(allowed, jnp.exp(jnp.minimum(log_ratio, 0.0)), 0.0)
        accepts = running & (for_accept < acceptance_rate)
        x = jnp.where(accepts[:, None], proposal, state.x)
        energy_now = jnp.where(accepts, energy, state.energy)

        files = steps_of_chain[1:] >= self.burn_in
        rings = file_points(for_file[1:], state.rings, x[1:], self.ladder.ring(energy_now)[1:], files)
        lowest = jnp.minimum(state.lowest_energy, jnp.min(energy_now))
        new = EquiEnergyState(x, energy_now, rings, state.num_steps + 1, lowest, (accepts & jumps)[0])
        non_finite = jnp.any(running & ~jnp.isfinite(energy))
        return new, EquiEnergyInfo(acceptance_rate, running, non_finite)

    def adapt(self, target: Target, chain: Chain, stage: Stage, info: EquiEnergyInfo) -> Chain:
        """Nothing is tuned; the rings fill by the sampler's own clock."""
        del target, stage, info
        return chain

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The statistics of `points`."""
        return (
            Statistic("lp"),
            Statistic("ring"),
            Statistic("jumped"),
            Statistic("started"),
            Statistic("below_first_energy"),
        )

    def points(self, target: Target, state: EquiEnergyState) -> WeightedPoints:
        """The cold chain's point, with weight one."""
        del target
        statistics = {
            "lp": -state.energy[0],
            "ring": self.ladder.ring(state.energy)[0],
            "jumped": state.jumped,
            "started": self._steps_of_chain(state.num_steps)[0] > 0,
            "below_first_energy": state.lowest_energy < self.ladder.energies[0],
        }
        return WeightedPoints(state.x[:1], jnp.zeros(1), statistics)

    def report(self, info: EquiEnergyInfo) -> StepInfo:
        """The cold chain's acceptance, and the evaluations of all chains, which move (or wait) together."""
        num_evaluations = jnp.asarray(self.num_chains)
        return StepInfo(info.acceptance_rate[0], jnp.asarray(False), info.non_finite, num_evaluations)

    def describe(self) -> str:
        """Name the method and its main settings, for tables and reports."""
        return f"equi-energy sampler, {self.num_chains} chains"

    def _steps_of_chain(self, num_steps: Int[Array, ""]) -> Int[Array, " chain"]:
        """How many steps each chain has made; negative before its start."""
        starts = np.arange(self.num_chains)[::-1] * (self.burn_in + self.head_start)
        return num_steps - jnp.asarray(starts)


def may_move(
    stays_in_ring: Bool[Array, " chain"], ring: Int[Array, " chain"], proposed: Int[Array, " chain"]
) -> Bool[Array, " chain"]:
    """A step in place of a jump, for want of points, must end in the ring where it began."""
    return ~stays_in_ring | (ring == proposed)


def _step_sizes(given: Any, temperatures: Float[np.ndarray, " chain"]) -> Float[np.ndarray, " chain"]:
    sizes = checks.float_array("step_size of EquiEnergy", given)
    if sizes.shape not in ((), temperatures.shape) or not np.all(sizes > 0):
        raise ValueError(
            f"step_size of EquiEnergy must be a positive number, or {len(temperatures)} of them, one for each chain; "
            f"got {checks.describe(given)}."
        )
    return sizes * np.sqrt(temperatures) if sizes.ndim == 0 else sizes
