"""Kernels made of kernels: one after the other, or one of them at random; both keep the invariance of their parts."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from numpy.typing import ArrayLike

from pseudo_extended import checks
from pseudo_extended.kernels.abstract import AbstractKernel, KernelInfo, KernelParameters, KernelState, LogDensity


class Cycle(AbstractKernel):
    """Each kernel in turn, in one step.

    >>> from pseudo_extended.kernels import NUTS, RandomWalk
    >>> Cycle([NUTS(), RandomWalk()]).target_acceptance
    array([0.8  , 0.234])
    """

    kernels: tuple[AbstractKernel, ...]
    target_acceptance: Float[np.ndarray, " step_size"]

    def __init__(self, kernels: Sequence[AbstractKernel]):
        self.kernels = _parts("Cycle", kernels)
        self.target_acceptance = np.concatenate([kernel.target_acceptance for kernel in self.kernels])

    @property
    def uses_gradient(self) -> bool:
        """Whether any part uses the gradient."""
        return any(kernel.uses_gradient for kernel in self.kernels)

    def step(
        self, key: Key[Array, ""], log_density: LogDensity, state: KernelState, parameters: KernelParameters
    ) -> tuple[KernelState, KernelInfo]:
        """Move once with each of the kernels, in order."""
        infos = []
        for i, (kernel, share) in enumerate(zip(self.kernels, _shares(self.kernels, parameters), strict=True)):
            state, info = kernel.step(jax.random.fold_in(key, i), log_density, state, share)
            infos.append(info)
        rates, diverging, non_finite, evaluations = zip(*infos, strict=True)
        return state, KernelInfo(
            acceptance_rate=jnp.concatenate(rates),
            diverging=jnp.any(jnp.stack(diverging)),
            non_finite=jnp.any(jnp.stack(non_finite)),
            num_evaluations=jnp.sum(jnp.stack(evaluations)),
        )


class Mixture(AbstractKernel):
    """One of the kernels in each step, drawn with fixed probabilities.

    >>> from pseudo_extended.kernels import HMC, NUTS
    >>> Mixture([NUTS(), HMC(1)], probabilities=[0.1, 0.9]).probabilities
    array([0.1, 0.9])
    """

    kernels: tuple[AbstractKernel, ...]
    probabilities: Float[np.ndarray, " part"]
    target_acceptance: Float[np.ndarray, " step_size"]

    def __init__(self, kernels: Sequence[AbstractKernel], probabilities: ArrayLike | None = None):
        self.kernels = _parts("Mixture", kernels)
        self.probabilities = _probabilities(probabilities, len(self.kernels))
        self.target_acceptance = np.concatenate([kernel.target_acceptance for kernel in self.kernels])

    @property
    def uses_gradient(self) -> bool:
        """Whether any part uses the gradient."""
        return any(kernel.uses_gradient for kernel in self.kernels)

    def step(
        self, key: Key[Array, ""], log_density: LogDensity, state: KernelState, parameters: KernelParameters
    ) -> tuple[KernelState, KernelInfo]:
        """Move once with one of the kernels; the acceptance rates of the others are nan."""
        key_choice, key_step = jax.random.split(key)
        chosen = jax.random.choice(key_choice, len(self.kernels), p=jnp.asarray(self.probabilities))
        shares = _shares(self.kernels, parameters)
        sizes = [kernel.target_acceptance.size for kernel in self.kernels]

        def branch(i: int) -> Any:
            def run(state: KernelState) -> tuple[KernelState, KernelInfo]:
                new, info = self.kernels[i].step(key_step, log_density, state, shares[i])
                rates = [info.acceptance_rate if j == i else jnp.full(size, jnp.nan) for j, size in enumerate(sizes)]
                return new, info._replace(acceptance_rate=jnp.concatenate(rates))

            return run

        return jax.lax.switch(chosen, [branch(i) for i in range(len(self.kernels))], state)


def _parts(owner: str, kernels: Any) -> tuple[AbstractKernel, ...]:
    if not isinstance(kernels, Sequence) or not kernels:
        raise TypeError(f"kernels of {owner} must be a list of kernels; got {checks.describe(kernels)}.")
    for i, kernel in enumerate(kernels):
        checks.instance(f"kernels[{i}] of {owner}", kernel, AbstractKernel, "a kernel such as pe.NUTS()")
    return tuple(kernels)


def _probabilities(given: Any, num_parts: int) -> Float[np.ndarray, " part"]:
    if given is None:
        return np.full(num_parts, 1 / num_parts)
    probabilities = checks.float_array("probabilities of Mixture", given)
    positive = probabilities.shape == (num_parts,) and bool(np.all(probabilities > 0))
    if not positive or abs(probabilities.sum() - 1) > 1e-9:
        raise ValueError(
            f"probabilities of Mixture must be {num_parts} positive numbers that sum to 1; "
            f"got {checks.describe(given)}."
        )
    return probabilities


def _shares(kernels: tuple[AbstractKernel, ...], parameters: KernelParameters) -> list[KernelParameters]:
    """Each part's own step sizes, in the metric they share."""
    ends = np.cumsum([kernel.target_acceptance.size for kernel in kernels])
    return [KernelParameters(part, parameters.inverse_mass) for part in jnp.split(parameters.step_size, ends[:-1])]
