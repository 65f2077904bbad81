"""Base densities γ0: where the path to the target starts, and normal or user-given instruments q.

A base is a density on the *unconstrained* space. `Base` (a user's function, the prior of a model) is written in the
user's own space, so it takes the Jacobian of the bounds with it; `Normal` lives on the unconstrained space itself.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PyTree, Shaped

from pseudo_extended import checks
from pseudo_extended.randomness import normals_and_uniforms

LOG_2PI = float(np.log(2 * np.pi))
SMALL_PRODUCT = 8
"""Dimensions up to which a product of matrices is quicker element by element."""

Unconstrain = Callable[[PyTree], Float[Array, " d"]]


class AbstractBase(eqx.Module):
    """A proper density, known up to a constant, and perhaps a way to draw from it."""

    @abstractmethod
    def log_density(self, u: Float[Array, " d"], position: PyTree, log_det: Float[Array, ""]) -> Shaped[Array, "..."]:
        """The log density at `u`, whose image in the user's space is `position`, with log Jacobian `log_det`."""

    @property
    @abstractmethod
    def can_sample(self) -> bool:
        """Whether the base can be drawn from."""

    @abstractmethod
    def draw(self, key: Key[Array, ""], dim: int, unconstrain: Unconstrain) -> Float[Array, " d"]:
        """A draw on the unconstrained space; `unconstrain` maps the user's space there."""

    @abstractmethod
    def check(self, name: str, dim: int) -> None:
        """Refuse a base that does not fit `dim` dimensions; `name` is what the user calls it."""


class Normal(AbstractBase):
    """A normal density on the unconstrained space.

    `mean` is a vector, or one number for all coordinates; `scale` is a number, a vector of standard deviations or a
    lower-triangular Cholesky factor of the covariance.

    >>> import pseudo_extended as pe
    >>> target = pe.Target(lambda x: -jnp.sum((x**2 - 1)**2), np.zeros(3), base=pe.Normal(0.0, 2.0))
    >>> target.base.can_sample
    True
    """

    mean: Float[np.ndarray, "..."]
    scale: Float[np.ndarray, "..."]

    def __init__(self, mean: Any = 0.0, scale: Any = 1.0):
        self.mean = checks.float_array("mean of Normal", mean)
        self.scale = checks.float_array("scale of Normal", scale)
        if self.mean.ndim > 1:
            raise ValueError(f"mean of Normal must be a number or a vector; got {checks.describe(self.mean)}.")
        if self.scale.ndim > 2 or (self.scale.ndim == 2 and self.scale.shape[0] != self.scale.shape[1]):
            raise ValueError(
                f"scale of Normal must be a number, a vector or a square matrix; got {checks.describe(self.scale)}."
            )
        if self.scale.ndim == 2 and not np.array_equal(self.scale, np.tril(self.scale)):
            raise ValueError(
                "scale of Normal as a matrix must be lower triangular, as numpy.linalg.cholesky(covariance) is; "
                "got one with entries above the diagonal."
            )
        diagonal = np.diagonal(self.scale) if self.scale.ndim == 2 else self.scale
        if diagonal.size == 0 or not np.all(diagonal > 0):
            raise ValueError(f"scale of Normal must be positive; got {checks.describe(scale)}.")

    def log_density(self, u: Float[Array, " d"], position: PyTree, log_det: Float[Array, ""]) -> Float[Array, ""]:
        """The normalised log density."""
        del position, log_det
        if self.scale.ndim == 2:
            z = jax.scipy.linalg.solve_triangular(self.scale, u - self.mean, lower=True)
            log_scale = jnp.log(jnp.diagonal(self.scale))
        else:
            z = (u - self.mean) / self.scale
            log_scale = jnp.broadcast_to(jnp.log(self.scale), u.shape)
        return jnp.sum(-0.5 * z**2 - log_scale - 0.5 * LOG_2PI)

    @property
    def can_sample(self) -> bool:
        """True: the base can be drawn from."""
        return True

    def draw(self, key: Key[Array, ""], dim: int, unconstrain: Unconstrain) -> Float[Array, " d"]:
        """Draw a point exactly."""
        del unconstrain
        z = jax.random.normal(key, (dim,), dtype=float)
        scale = jnp.asarray(self.scale)
        return jnp.asarray(self.mean) + (scale @ z if scale.ndim == 2 else scale * z)

    def check(self, name: str, dim: int) -> None:
        """Mean and scale must have one entry, or one for each coordinate."""
        for part, array in (("mean", self.mean), ("scale", self.scale)):
            if array.ndim and array.shape[0] != dim:
                raise ValueError(f"{part} of {name} must have length {dim}, like the target; got {array.shape[0]}.")


class NormalMixture(AbstractBase):
    """A mixture of normal densities on the unconstrained space, such as the base that warm-up learns.

    `means` has a row for each component; `scales` is a vector of standard deviations for each component, or a
    lower-triangular Cholesky factor of its covariance; `weights` are positive, and equal unless given.

    >>> base = NormalMixture([[0.0, 0.0], [5.0, 5.0]], scales=np.ones((2, 2)), weights=[0.3, 0.7])
    >>> base.can_sample, base.num_components
    (True, 2)
    """

    log_weights: Float[np.ndarray, " component"]
    means: Float[np.ndarray, "component d"]
    scales: Float[np.ndarray, "component d"] | Float[np.ndarray, "component d d"]
    whiteners: Float[np.ndarray, "component d"] | Float[np.ndarray, "d all"]
    """What the density needs at every step: inverse scales; of matrices, all side by side, so that one product of
    matrices whitens a point for all components."""
    offsets: Float[np.ndarray, "component d"]
    """The whitened means, from the centre of all: far from zero, their digits would be lost."""
    centre: Float[np.ndarray, " d"]
    log_heights: Float[np.ndarray, " component"]
    """The log densities of the components at their own means, with their weights."""
    labels: Int[np.ndarray, " component"] | None
    """The mode to which each component belongs, or -1 for those of the broad part; None in a store that was written
    before there were labels."""

    def __init__(self, means: Any, scales: Any, weights: Any = None):
        self.means = checks.float_array("means of NormalMixture", means)
        if self.means.ndim != 2 or self.means.size == 0:
            raise ValueError(
                "means of NormalMixture must have a row for each component, shape (component, d); "
                f"got {checks.describe(means)}."
            )
        self.scales = checks.float_array("scales of NormalMixture", scales)
        num_components, dim = self.means.shape
        if self.scales.shape not in ((num_components, dim), (num_components, dim, dim)):
            raise ValueError(
                f"scales of NormalMixture must have shape {(num_components, dim)}, or {(num_components, dim, dim)} for "
                f"Cholesky factors; got {self.scales.shape}."
            )
        dense = self.scales.ndim == 3
        if dense and not np.array_equal(self.scales, np.tril(self.scales)):
            raise ValueError(
                "scales of NormalMixture as matrices must be lower triangular, as numpy.linalg.cholesky(covariance) "
                "is; got entries above the diagonal."
            )
        if not np.all((np.diagonal(self.scales, axis1=1, axis2=2) if dense else self.scales) > 0):
            raise ValueError(f"scales of NormalMixture must be positive; got {checks.describe(scales)}.")
        given = checks.float_array("weights of NormalMixture", np.ones(num_components) if weights is None else weights)
        if given.shape != (num_components,) or not np.all(given > 0):
            raise ValueError(
                f"weights of NormalMixture must be {num_components} positive numbers, one for each component; "
                f"got {checks.describe(weights)}."
            )
        self.log_weights = np.log(given / given.sum())
        self.centre = np.exp(self.log_weights) @ self.means
        if dense:
            inverse = np.linalg.inv(self.scales)
            self.whiteners = np.ascontiguousarray(np.moveaxis(inverse, 2, 0).reshape(dim, -1))
            self.offsets = np.einsum("kij,kj->ki", inverse, self.means - self.centre)
            log_scale = np.sum(np.log(np.diagonal(self.scales, axis1=1, axis2=2)), axis=1)
        else:
            self.whiteners = 1 / self.scales
            self.offsets = self.whiteners * (self.means - self.centre)
            log_scale = np.sum(np.log(self.scales), axis=1)
        self.log_heights = self.log_weights - log_scale - 0.5 * dim * LOG_2PI
        self.labels = _labels(self.means, self.scales)

    @property
    def is_dense(self) -> bool:
        """Whether the scales are matrices."""
        return self.scales.ndim == 3

    @property
    def num_components(self) -> int:
        """The number of normals of the mixture."""
        return self.means.shape[0]

    @property
    def num_modes(self) -> int:
        """How many of its means are those of one component, or of several that are equal."""
        return 0 if self.labels is None else int(np.max(self.labels)) + 1

    def log_density(self, u: Float[Array, " d"], position: PyTree, log_det: Float[Array, ""]) -> Float[Array, ""]:
        """The normalised log density."""
        del position, log_det
        return jax.nn.logsumexp(self._log_parts(u))

    def label(self, u: Float[Array, " d"]) -> Int[Array, ""]:
        """The label of the component that is most likely to have made `u`: a mode, or -1 for the broad part."""
        return jnp.asarray(self.labels)[jnp.argmax(self._log_parts(u))]

    @property
    def log_volume(self) -> Float[Array, " component"]:
        """The log determinant of each component's scale."""
        return jnp.asarray(self.log_weights - self.log_heights) - 0.5 * self.means.shape[1] * LOG_2PI

    def leap(self, u: Float[Array, " d"], start: Int[Array, ""], end: Int[Array, ""]) -> Float[Array, " d"]:
        """Map `u` from its place in one component to the same place in another; the inverse is the leap back."""
        noise, scale = self._whiten(u)[start], jnp.asarray(self.scales)[end]
        return jnp.asarray(self.means)[end] + (scale @ noise if scale.ndim == 2 else scale * noise)

    def _log_parts(self, u: Float[Array, " d"]) -> Float[Array, " component"]:
        """The log density of each component, with its weight."""
        return jnp.asarray(self.log_heights) - 0.5 * jnp.sum(self._whiten(u) ** 2, axis=-1)

    def _whiten(self, u: Float[Array, " d"]) -> Float[Array, "component d"]:
        """How far `u` is from the mean of each component, in its own scale."""
        away = u - self.centre
        if not self.is_dense:
            whitened = self.whiteners * away
        elif u.shape[0] > SMALL_PRODUCT:
            whitened = (away @ self.whiteners).reshape(self.means.shape)
        else:  # a call of the matrix product costs more than it saves
            factors = jnp.asarray(self.whiteners).reshape(-1, *self.means.shape)
            whitened = jnp.sum(factors * away[:, None, None], axis=0)
        return jnp.asarray(whitened - self.offsets)

    @property
    def can_sample(self) -> bool:
        """True: the base can be drawn from."""
        return True

    def draw(self, key: Key[Array, ""], dim: int, unconstrain: Unconstrain) -> Float[Array, " d"]:
        """Draw a point exactly."""
        del unconstrain
        noise, uniform = normals_and_uniforms(key, dim, 1)
        share = jnp.cumsum(jnp.exp(jnp.asarray(self.log_weights)))
        component = jnp.minimum(jnp.sum(share <= uniform[0] * share[-1]), share.shape[0] - 1)
        scale = jnp.asarray(self.scales)[component]
        return jnp.asarray(self.means)[component] + (scale @ noise if scale.ndim == 2 else scale * noise)

    def check(self, name: str, dim: int) -> None:
        """Require as many coordinates as the target has."""
        if self.means.shape[1] != dim:
            raise ValueError(f"means of {name} must have {dim} columns, like the target; got {self.means.shape[1]}.")


def _labels(means: Float[np.ndarray, "component d"], scales: np.ndarray) -> Int[np.ndarray, " component"]:
    """The mode of each component: equal components are one mode, and those with one mean and several scales are broad.

    A padded mixture repeats a component, and the broad part is a normal at several scales.

    >>> _labels(np.array([[0.0], [5.0], [5.0], [2.0], [2.0]]), np.array([[1.0], [1.0], [1.0], [4.0], [9.0]]))
    array([ 0,  1,  1, -1, -1])
    """
    _, first, place = np.unique(means, axis=0, return_index=True, return_inverse=True)
    place = place.reshape(-1)
    differs = np.any((scales != scales[first[place]]).reshape(len(means), -1), axis=1)
    is_mode = np.bincount(place, differs) == 0
    number = np.cumsum(is_mode) - 1
    return np.where(is_mode[place], number[place], -1)


class NormalShells(AbstractBase):
    """A normal with wider copies of itself around it, on the unconstrained space: about a Student t.

    All copies share their mean and their shape, so one product with a matrix serves all of them. `scale` is a vector of
    standard deviations or a lower-triangular Cholesky factor; `factors` are what it is multiplied by in each copy, and
    `shares` how much each copy counts.

    >>> base = NormalShells(np.zeros(2), np.ones(2), factors=[1.0, 3.0], shares=[0.9, 0.1])
    >>> base.can_sample
    True
    """

    mean: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"] | Float[np.ndarray, "d d"]
    whitener: Float[np.ndarray, " d"] | Float[np.ndarray, "d d"]
    """The inverse of the scale."""
    log_factors: Float[np.ndarray, " shell"]
    log_shares: Float[np.ndarray, " shell"]
    log_heights: Float[np.ndarray, " shell"]
    """The log densities of the copies at the mean, with their shares."""

    def __init__(self, mean: Any, scale: Any, factors: Any = (1.0,), shares: Any = (1.0,)):
        self.mean = checks.float_array("mean of NormalShells", mean)
        self.scale = checks.float_array("scale of NormalShells", scale)
        dim = self.mean.size
        if self.mean.ndim != 1 or self.scale.shape not in ((dim,), (dim, dim)):
            raise ValueError(
                "mean of NormalShells must be a vector, and scale a vector or a square matrix of the same length; "
                f"got {self.mean.shape} and {self.scale.shape}."
            )
        dense = self.scale.ndim == 2
        diagonal = np.diagonal(self.scale) if dense else self.scale
        if not np.all(diagonal > 0) or (dense and not np.array_equal(self.scale, np.tril(self.scale))):
            raise ValueError(
                "scale of NormalShells must be positive, and lower triangular if it is a matrix; "
                f"got {checks.describe(scale)}."
            )
        factor, share = (checks.float_array(f"{name} of NormalShells", value)
                         for name, value in (("factors", factors), ("shares", shares)))  # fmt: skip
        if factor.ndim != 1 or factor.shape != share.shape or not np.all(factor > 0) or not np.all(share > 0):
            raise ValueError(
                "factors and shares of NormalShells must be positive numbers, as many of one as of the other; "
                f"got {checks.describe(factors)} and {checks.describe(shares)}."
            )
        self.whitener = np.linalg.inv(self.scale) if dense else 1 / self.scale
        self.log_factors, self.log_shares = np.log(factor), np.log(share / share.sum())
        self.log_heights = self.log_shares - dim * self.log_factors - np.sum(np.log(diagonal)) - 0.5 * dim * LOG_2PI

    def log_density(self, u: Float[Array, " d"], position: PyTree, log_det: Float[Array, ""]) -> Float[Array, ""]:
        """The normalised log density."""
        del position, log_det
        away, whitener = u - self.mean, jnp.asarray(self.whitener)
        if whitener.ndim == 1:
            white = whitener * away
        elif u.shape[0] > SMALL_PRODUCT:
            white = whitener @ away
        else:  # a call of the matrix product costs more than it saves
            white = jnp.sum(whitener * away, axis=1)
        return jax.nn.logsumexp(self.log_heights - 0.5 * jnp.sum(white**2) * jnp.exp(-2 * self.log_factors))

    @property
    def can_sample(self) -> bool:
        """True: the base can be drawn from."""
        return True

    def draw(self, key: Key[Array, ""], dim: int, unconstrain: Unconstrain) -> Float[Array, " d"]:
        """Draw a point exactly."""
        del unconstrain
        noise, uniform = normals_and_uniforms(key, dim, 1)
        share = jnp.cumsum(jnp.exp(jnp.asarray(self.log_shares)))
        shell = jnp.minimum(jnp.sum(share <= uniform[0] * share[-1]), share.shape[0] - 1)
        noise = noise * jnp.exp(jnp.asarray(self.log_factors)[shell])
        scale = jnp.asarray(self.scale)
        return jnp.asarray(self.mean) + (scale @ noise if scale.ndim == 2 else scale * noise)

    def check(self, name: str, dim: int) -> None:
        """Require as many coordinates as the target has."""
        if self.mean.size != dim:
            raise ValueError(f"mean of {name} must have length {dim}, like the target; got {self.mean.size}.")


class Base(AbstractBase):
    """A user's own proper density, up to a constant, in the user's own space.

    `sampler` is a function of a JAX random key that returns one position; without it the base serves as one end of
    the path, but starts cannot be drawn from it.

    >>> base = Base(lambda x: -jnp.sum(jnp.abs(x)), lambda key: jax.random.laplace(key, (3,)))
    >>> base.can_sample
    True
    """

    function: Callable[[PyTree], Array]
    sampler: Callable[[Key[Array, ""]], PyTree] | None

    def __init__(self, log_density: Callable[[PyTree], Array], sampler: Callable[[Any], PyTree] | None = None):
        self.function = checks.function("log_density of Base", log_density)
        self.sampler = None if sampler is None else checks.function("sampler of Base", sampler)

    def log_density(self, u: Float[Array, " d"], position: PyTree, log_det: Float[Array, ""]) -> Shaped[Array, "..."]:
        """The user's log density plus the Jacobian, so that it is a density of `u`."""
        del u
        return self.function(position) + log_det

    @property
    def can_sample(self) -> bool:
        """Whether a sampler was given."""
        return self.sampler is not None

    def draw(self, key: Key[Array, ""], dim: int, unconstrain: Unconstrain) -> Float[Array, " d"]:
        """A draw by the user's sampler, mapped to the unconstrained space."""
        del dim
        if self.sampler is None:
            raise ValueError("a draw from the base needs a sampler; pass sampler= to Base or sample_prior= to Target.")
        return unconstrain(self.sampler(key))

    def check(self, name: str, dim: int) -> None:
        """Nothing to refuse before the function is called."""
        del name, dim
