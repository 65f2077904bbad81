"""What a user sees of a model's position: constrained parameters and what the model computes from them, labelled."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from pseudo_extended import checks
from pseudo_extended.precision import in_double_precision
from pseudo_extended.target import labels
from pseudo_extended.target.host import said

BATCH = 65536
"""Points that are mapped at once: equal work for the device, and bounded memory."""


@dataclass(frozen=True, eq=False)
class Facts:
    """What a model's own library knows, for the output and for the user's eyes."""

    origin: str
    """The library and its version."""
    observed_data: Mapping[str, np.ndarray] = field(default_factory=dict)
    constant_data: Mapping[str, np.ndarray] = field(default_factory=dict)
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The axes of the data, by name."""
    coords: Mapping[str, Any] = field(default_factory=dict)
    """Labels along axes, those of the data among them."""
    pointwise: Callable[[PyTree], dict[str, Array]] | None = None
    """The log likelihood of every observation, as a JAX function of a position."""
    pointwise_names: tuple[str, ...] = ()
    """Or the names of what the view shows that are such log likelihoods, as `log_lik` by custom of Stan."""
    start: Any = None
    """A position to start at, or a function of a random key, where the base cannot be sampled."""
    notes: tuple[str, ...] = ()
    """How the model was taken apart."""
    doubts: tuple[str, ...] = ()


class View(eqx.Module):
    """A map from a target's position to what the user calls the model's parameters.

    `function` is a JAX function of one position, or, if `on_host`, a NumPy function of many flat ones. `unconstrain`
    is the way back, for starts: from a dict of the free parameters in the model's own space to a position.
    """

    function: Callable[..., Mapping[str, Any]]
    parameters: tuple[labels.Parameter, ...] = eqx.field(static=True)
    free: tuple[str, ...] = eqx.field(static=True)
    """Names of the parameters that a start must give."""
    coords: labels.Coords = eqx.field(static=True)
    unconstrain: Callable[[Mapping[str, np.ndarray]], PyTree] = eqx.field(static=True)
    facts: Facts = eqx.field(static=True)
    on_host: bool = eqx.field(static=True, default=False)

    @in_double_precision
    def show(
        self, flat: Float[np.ndarray, "point d"], constrain: Callable[[Array], PyTree]
    ) -> "OrderedDict[str, np.ndarray]":
        """The parameters at many points of the unconstrained space, in the model's order (JAX sorts a plain dict)."""
        shown = self.function(flat) if self.on_host else map_in_batches(lambda u: self.function(constrain(u)), flat)
        arrays = ((name, np.asarray(shown[name], np.float64)) for name in (part.name for part in self.parameters))
        return OrderedDict(arrays)

    @in_double_precision
    def read_start(self, init: Any) -> Any:
        """The user's `init`, in the model's own space, as positions of the target: one, a batch or a function."""
        if callable(init):
            return lambda key: self._read(init(key))
        if not isinstance(init, Mapping):
            raise TypeError(
                f"init of a model must be a dict with its parameters {', '.join(self.free)} (with a leading axis for "
                f"a batch), a function of a random key that returns one, or None; got {checks.describe(init)}."
            )
        shapes = {parameter.name: parameter.shape for parameter in self.parameters}
        given = {name: checks.float_array(f"init for parameter {name!r}", value) for name, value in init.items()}
        extra = {value.ndim - len(shapes[name]) for name, value in given.items() if name in shapes}
        if extra != {1}:
            return self._read(given)
        sizes = {len(value) for value in given.values()}
        if len(sizes) != 1:
            raise ValueError(f"init as a batch must have one length for every parameter; got {sorted(sizes)}.")
        positions = [self._read({name: value[i] for name, value in given.items()}) for i in range(sizes.pop())]
        return jax.tree.map(lambda *leaves: np.stack(leaves), *positions)

    def _read(self, start: Any) -> PyTree:
        if not isinstance(start, Mapping) or set(start) != set(self.free):
            got = sorted(map(str, start)) if isinstance(start, Mapping) else checks.describe(start)
            raise ValueError(f"init of a model must give exactly its parameters {list(self.free)}; got {got}.")
        shapes = {parameter.name: parameter.shape for parameter in self.parameters}
        values = {}
        for name in self.free:
            values[name] = checks.float_array(f"init for parameter {name!r}", start[name])
            if values[name].shape != shapes[name]:
                raise ValueError(
                    f"init for parameter {name!r} must have shape {shapes[name]}; got {values[name].shape}."
                )
        try:
            position = jax.tree.map(np.asarray, self.unconstrain(values))
        except Exception as error:
            raise ValueError(f"init must be a point that the model can have; it says {said(error)}.") from error
        if not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(position)):
            raise ValueError(f"init must lie inside the support of the model; it does not: {checks.describe(start)}.")
        return position


def map_in_batches(function: Callable[[Array], PyTree], points: PyTree) -> PyTree:
    """`function` of every point, on the device, as NumPy arrays; two shapes at most, so two compilations."""
    mapped = jax.jit(jax.vmap(function))
    size = len(jax.tree.leaves(points)[0])

    def part(first: int) -> PyTree:
        return jax.tree.map(lambda leaf: jnp.asarray(leaf[first : first + BATCH]), points)

    parts = [jax.tree.map(np.asarray, mapped(part(first))) for first in range(0, size, BATCH)]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
