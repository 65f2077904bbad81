"""Random-walk Metropolis: no gradient of the target is used."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pseudo_extended.kernels.abstract import (
    AbstractKernel,
    KernelInfo,
    KernelParameters,
    KernelState,
    LogDensity,
    initial_state,
)
from pseudo_extended.kernels.hamiltonian import acceptance


class RandomWalk(AbstractKernel):
    """Random-walk Metropolis with a normal proposal shaped by the metric.

    BlackJAX's own random walk does not report the density that it proposed, nor carry a gradient for the other
    kernels of a cycle, so the proposal is made here and only the test is BlackJAX's.

    >>> float(RandomWalk().target_acceptance[0])
    0.234
    """

    target_acceptance: Float[np.ndarray, " 1"]

    def __init__(self, *, target_acceptance: float = 0.234):
        self.target_acceptance = acceptance("RandomWalk", target_acceptance)

    @property
    def uses_gradient(self) -> bool:
        """False: the kernel uses values of the density only."""
        return False

    def step(
        self, key: Key[Array, ""], log_density: LogDensity, state: KernelState, parameters: KernelParameters
    ) -> tuple[KernelState, KernelInfo]:
        """Propose a normal step, accept or stay."""
        key_noise, key_accept = jax.random.split(key)
        noise = jax.random.normal(key_noise, state.position.shape, state.position.dtype)
        if parameters.inverse_mass.ndim == 2:
            noise = jnp.linalg.cholesky(parameters.inverse_mass) @ noise
        else:
            noise = jnp.sqrt(parameters.inverse_mass) * noise
        position = state.position + parameters.step_size[0] * noise
        proposal = initial_state(log_density, position, gradient=state.gradient is not None)
        log_ratio: Any = proposal.log_density - state.log_density
        from blackjax.mcmc.proposal import static_binomial_sampling

        new, (_, acceptance_rate, _) = static_binomial_sampling(key_accept, log_ratio, state, proposal)
        return new, KernelInfo(
            acceptance_rate=acceptance_rate[None],
            diverging=jnp.asarray(False),
            non_finite=~jnp.isfinite(proposal.log_density),
            num_evaluations=jnp.asarray(1),
        )
