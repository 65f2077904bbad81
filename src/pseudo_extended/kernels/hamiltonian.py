"""Hamiltonian kernels through BlackJAX: HMC (algorithm 1 of the paper), NUTS (as the paper ran it) and MALA."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from pseudo_extended import checks
from pseudo_extended.kernels.abstract import (
    AbstractKernel,
    KernelInfo,
    KernelParameters,
    KernelState,
    LogDensity,
    Trajectory,
)
from pseudo_extended.kernels.leapfrog import jittered, move_by_leapfrog
from pseudo_extended.kernels.metric import Metric
from pseudo_extended.kernels.tempered import TemperedPoint
from pseudo_extended.target import Target


class HMC(AbstractKernel):
    """Hamiltonian Monte Carlo with a fixed number of leapfrog steps, and trajectories of random length.

    Args:
        num_steps: Leapfrog steps of a trajectory.
        jitter: How much the length of a trajectory varies: its step size is uniform between 1 - jitter and 1 + jitter
            times the tuned one. Trajectories of one length can return to where they began, again and again, as they do
            for a normal density when their length is a multiple of its period. 0 is algorithm 1 of the paper.
        target_acceptance: The mean acceptance rate that warm-up tunes the step size to.

    >>> HMC(num_steps=10).num_steps
    10
    """

    num_steps: int = eqx.field(static=True)
    jitter: float = eqx.field(static=True)
    target_acceptance: Float[np.ndarray, " 1"]

    def __init__(self, num_steps: int = 10, *, jitter: float = 0.4, target_acceptance: float = 0.8):
        self.num_steps = checks.integer("num_steps of HMC", num_steps, minimum=1)
        self.jitter = checks.real("jitter of HMC", jitter, low=0, high=1, closed="[)")
        self.target_acceptance = acceptance("HMC", target_acceptance)

    @property
    def uses_gradient(self) -> bool:
        """True: the kernel follows the gradient."""
        return True

    def step(
        self, key: Key[Array, ""], log_density: LogDensity, state: KernelState, parameters: KernelParameters
    ) -> tuple[KernelState, KernelInfo]:
        """Draw a momentum and a length, integrate, accept or stay."""
        if self.jitter:
            key, key_length = jax.random.split(key)
            uniform = jax.random.uniform(key_length, dtype=float)
            parameters = parameters._replace(step_size=jittered(parameters.step_size, self.jitter, uniform))
        return _hmc_step(key, log_density, state, parameters, self.num_steps)

    def move_tempered(
        self,
        key: Key[Array, ""],
        target: Target,
        beta: Float[Array, ""],
        point: TemperedPoint,
        step_size: Float[Array, " 1"],
        metric: Metric,
    ) -> tuple[TemperedPoint, KernelInfo]:
        """Move a tempered point by leapfrog steps that carry log γ0 and Δ apart, without a further evaluation."""
        return move_by_leapfrog(key, target, beta, point, step_size[0], metric, self.trajectory)

    @property
    def trajectory(self) -> Trajectory:
        """The number of leapfrog steps, and the jitter."""
        return Trajectory(self.num_steps, self.jitter)

    @property
    def num_moves_to_settle(self) -> int:
        """Few: each is a trajectory."""
        return 3


class MALA(AbstractKernel):
    """The Metropolis-adjusted Langevin algorithm.

    It is HMC with one leapfrog step (Neal 2011, section 5.2): the same proposal, x + h²/2 ∇log π + h ξ in the metric,
    and the same test. So it goes through BlackJAX's HMC, whose metric BlackJAX's MALA does not have.

    >>> float(MALA().target_acceptance[0])
    0.574
    """

    target_acceptance: Float[np.ndarray, " 1"]

    def __init__(self, *, target_acceptance: float = 0.574):
        self.target_acceptance = acceptance("MALA", target_acceptance)

    @property
    def uses_gradient(self) -> bool:
        """True: the kernel follows the gradient."""
        return True

    def step(
        self, key: Key[Array, ""], log_density: LogDensity, state: KernelState, parameters: KernelParameters
    ) -> tuple[KernelState, KernelInfo]:
        """Drift along the gradient, add noise, accept or stay."""
        return _hmc_step(key, log_density, state, parameters, 1)

    def move_tempered(
        self,
        key: Key[Array, ""],
        target: Target,
        beta: Float[Array, ""],
        point: TemperedPoint,
        step_size: Float[Array, " 1"],
        metric: Metric,
    ) -> tuple[TemperedPoint, KernelInfo]:
        """Move a tempered point by one leapfrog step that carries log γ0 and Δ apart, without a further evaluation."""
        return move_by_leapfrog(key, target, beta, point, step_size[0], metric, self.trajectory)

    @property
    def trajectory(self) -> Trajectory:
        """A single leapfrog step, without jitter."""
        return Trajectory(1, 0.0)


class NUTS(AbstractKernel):
    """The no-U-turn sampler, with multinomial sampling along the trajectory.

    >>> NUTS(max_depth=8).max_depth
    8
    """

    max_depth: int = eqx.field(static=True)
    target_acceptance: Float[np.ndarray, " 1"]

    def __init__(self, max_depth: int = 10, *, target_acceptance: float = 0.8):
        self.max_depth = checks.integer("max_depth of NUTS", max_depth, minimum=1, maximum=30)
        self.target_acceptance = acceptance("NUTS", target_acceptance)

    @property
    def uses_gradient(self) -> bool:
        """True: the kernel follows the gradient."""
        return True

    def step(
        self, key: Key[Array, ""], log_density: LogDensity, state: KernelState, parameters: KernelParameters
    ) -> tuple[KernelState, KernelInfo]:
        """Draw a momentum, double the trajectory until it turns, draw a point of it."""
        from blackjax import nuts  # importing it takes as long as everything else together

        new, info = nuts.build_kernel()(
            rng_key=key,
            state=_blackjax_state(state),
            logdensity_fn=log_density,
            step_size=parameters.step_size[0],
            inverse_mass_matrix=parameters.inverse_mass,
            max_num_doublings=self.max_depth,
        )
        # A trajectory stops where the density is not finite, so such a point is one of its two ends.
        ends = (info.trajectory_leftmost_state, info.trajectory_rightmost_state)
        return KernelState(*new), KernelInfo(
            acceptance_rate=jnp.nan_to_num(info.acceptance_rate, nan=0.0)[None],
            diverging=info.is_divergent,
            non_finite=_non_finite(ends[0]) | _non_finite(ends[1]),
            num_evaluations=jnp.asarray(info.num_integration_steps),
        )

    def in_lockstep(self) -> HMC:
        """Return HMC with trajectories of medium length: the deepest tree would keep all others waiting."""
        return HMC(8, target_acceptance=float(self.target_acceptance[0]))


def acceptance(kernel: str, rate: Any) -> Float[np.ndarray, " 1"]:
    """The acceptance rate that warm-up aims at, checked."""
    return np.array([checks.real(f"target_acceptance of {kernel}", rate, low=0, high=1, closed="()")])


def _hmc_step(
    key: Key[Array, ""], log_density: LogDensity, state: KernelState, parameters: KernelParameters, num_steps: int
) -> tuple[KernelState, KernelInfo]:
    from blackjax import hmc  # importing it takes as long as everything else together

    new, info = hmc.build_kernel()(
        rng_key=key,
        state=_blackjax_state(state),
        logdensity_fn=log_density,
        step_size=parameters.step_size[0],
        inverse_mass_matrix=parameters.inverse_mass,
        num_integration_steps=num_steps,
    )
    return KernelState(*new), KernelInfo(
        acceptance_rate=jnp.asarray(info.acceptance_rate)[None],
        diverging=jnp.asarray(info.is_divergent),
        non_finite=_non_finite(info.proposal),
        num_evaluations=jnp.asarray(num_steps),
    )


def _blackjax_state(state: Any) -> Any:
    from blackjax.mcmc.hmc import HMCState

    return HMCState(*state)  # the same three fields, typed as floats there


def _non_finite(state: Any) -> Bool[Array, ""]:
    return ~(jnp.isfinite(state.logdensity) & jnp.all(jnp.isfinite(state.logdensity_grad)))
