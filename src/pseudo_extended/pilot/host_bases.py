"""Bases on the host: densities, gradients and draws of many points at once, for the loops of the pilot.

The bases that a pilot learns are written out in NumPy, as compiling them would take longer than the whole pass. Those
of the user, and priors, are compiled.
"""

from abc import ABC, abstractmethod

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import logsumexp

from pseudo_extended.compiled import Job, compile_once
from pseudo_extended.pilot.density import Density, Values
from pseudo_extended.target import Target
from pseudo_extended.target.bases import NormalMixture, NormalShells

Points = Float[np.ndarray, "point d"]


class HostBase(ABC):
    """A base, or the constant one, where the path begins."""

    can_sample: bool = True

    @abstractmethod
    def __call__(self, points: Points) -> Values:
        """log γ0 and its gradient."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, number: int) -> Points:
        """Draw points independently from the base."""


def host_base(target: Target) -> HostBase:
    """The base of a target."""
    if target.base is None:
        return Flat()
    if isinstance(target.base, NormalMixture):
        return Mixture(target.base)
    if isinstance(target.base, NormalShells):
        return Shells(target.base)
    return Compiled(target)


class Flat(HostBase):
    """No base: powers of the target."""

    can_sample = False

    def __call__(self, points: Points) -> Values:
        """Return zeros: there is no base."""
        return np.zeros(len(points)), np.zeros_like(points)

    def draw(self, rng: np.random.Generator, number: int) -> Points:
        """Raise an error: there is nothing to draw from."""
        raise ValueError("there is no base to draw from.")


class Mixture(HostBase):
    """A mixture of normals."""

    def __init__(self, base: NormalMixture):
        self.base = base

    def __call__(self, points: Points) -> Values:
        """Evaluate the mixture, with gradients by the shares of its components."""
        base, size = self.base, len(points)
        away = points - base.centre
        whitened = away @ base.whiteners if base.is_dense else away[:, None] * base.whiteners
        white = whitened.reshape(size, *base.means.shape) - base.offsets
        parts = base.log_heights - 0.5 * np.einsum("pki,pki->pk", white, white)
        value = np.asarray(logsumexp(parts, axis=1))
        pull = np.exp(parts - value[:, None])[:, :, None] * white
        if base.is_dense:
            return value, -pull.reshape(size, -1) @ base.whiteners.T
        return value, -np.sum(pull * base.whiteners, axis=1)

    def draw(self, rng: np.random.Generator, number: int) -> Points:
        """A component, and a normal."""
        base = self.base
        which = rng.choice(base.num_components, size=number, p=np.exp(base.log_weights))
        return base.means[which] + _stretched(base.scales[which], rng.normal(size=(number, base.means.shape[1])))


class Shells(HostBase):
    """A normal with wider ones around it."""

    def __init__(self, base: NormalShells):
        self.base = base

    def __call__(self, points: Points) -> Values:
        """Evaluate the base, with gradients by the shares of its copies."""
        base = self.base
        away, dense = points - base.mean, base.whitener.ndim == 2
        white = away @ base.whitener.T if dense else away * base.whitener
        precision = np.exp(-2 * base.log_factors)
        parts = base.log_heights - 0.5 * np.sum(white**2, axis=1, keepdims=True) * precision
        value = np.asarray(logsumexp(parts, axis=1))
        pull = (np.exp(parts - value[:, None]) @ precision)[:, None] * white
        return value, -pull @ base.whitener if dense else -pull * base.whitener

    def draw(self, rng: np.random.Generator, number: int) -> Points:
        """A copy, and a normal."""
        base = self.base
        which = rng.choice(len(base.log_shares), size=number, p=np.exp(base.log_shares))
        noise = rng.normal(size=(number, base.mean.size)) * np.exp(base.log_factors[which])[:, None]
        return base.mean + _stretched(np.broadcast_to(base.scale, (number, *base.scale.shape)), noise)


class Compiled(HostBase):
    """Any other base: a program for its density, and one for its draws."""

    def __init__(self, target: Target):
        assert target.base is not None
        self.target, self.can_sample = target, target.base.can_sample
        self.density = Density(_OfBase(target), gradient=target.is_differentiable)
        if self.can_sample:  # compiled here, where Ctrl-C is heard
            self.density.compile()

    def __call__(self, points: Points) -> Values:
        """Evaluate the base by its compiled program."""
        return self.density(points)

    def draw(self, rng: np.random.Generator, number: int) -> Points:
        """Draw by the user's sampler, with keys of JAX."""
        key = jax.random.key(int(rng.integers(2**63)), impl="threefry2x32")

        def draws(key: Array) -> Array:
            return jax.vmap(self.target.draw_base)(jax.random.split(key, number))

        [draw] = compile_once(Job(draws, (key,), quick=True, name="draws from the base"))
        return np.asarray(draw(key))


class _OfBase:
    """The log density of a target's base, in the place of a target."""

    def __init__(self, target: Target):
        self.target, self.dim = target, target.dim

    def log_target(self, u: Float[Array, " d"]) -> Float[Array, ""]:
        """Return log γ0 alone, without the target."""
        position, log_det = self.target.constrain_with_log_det(u)
        assert self.target.base is not None
        return jnp.asarray(self.target.base.log_density(u, position, log_det), float).reshape(())


def _stretched(scale: np.ndarray, noise: Points) -> Points:
    return np.einsum("pij,pj->pi", scale, noise) if scale.ndim == 3 else scale * noise
