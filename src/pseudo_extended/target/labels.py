"""Names, dims and coords of a target's parameters: what the output is labelled with, checked before any run."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from jaxtyping import Bool

from pseudo_extended import checks

RESERVED = ("chain", "draw", "particle")
"""Axes that every output has."""

Coords = tuple[tuple[str, tuple[Any, ...]], ...]


class Parameter(NamedTuple):
    """One leaf of the user's position: its name, shape and labels in the output."""

    name: str
    shape: tuple[int, ...]
    dims: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many coordinates of the flat vector it takes."""
        return int(np.prod(self.shape, dtype=int))


def coordinates(parameters: Sequence[Parameter], coords: Coords = ()) -> list[str]:
    """A name for every coordinate of the flat vector, by the labels of its axes where they have some.

    >>> coordinates([Parameter("mu", (), ()), Parameter("theta", (2,), ("school",))], (("school", ("A", "B")),))
    ['mu', 'theta[A]', 'theta[B]']
    """
    known, names = dict(coords), []
    for parameter in parameters:
        axes = [known.get(dim, range(size)) for dim, size in zip(parameter.dims, parameter.shape, strict=True)]
        for index in np.ndindex(parameter.shape):
            inside = ", ".join(str(axis[i]) for axis, i in zip(axes, index, strict=True))
            names.append(f"{parameter.name}[{inside}]" if index else parameter.name)
    return names


def some_coordinates(parameters: Sequence[Parameter], chosen: Bool[np.ndarray, " d"], most: int = 6) -> str:
    """The chosen ones for a sentence: the first few, and how many more.

    >>> some_coordinates([Parameter("x", (9,), ("i",))], np.ones(9, bool), most=2)
    'x[0], x[1], 7 more'
    """
    names = [name for name, is_chosen in zip(coordinates(parameters), chosen, strict=True) if is_chosen]
    return ", ".join(names if len(names) <= most else [*names[:most], f"{len(names) - most} more"])


def path_name(path: Any) -> str:
    """The name of a leaf by its path: keys and indices, joined by dots.

    >>> [path_name(path) for path, _ in jax.tree_util.tree_flatten_with_path({"a": (1, 2), "b": {"c": 3}})[0]]
    ['a.0', 'a.1', 'b.c']
    """
    return jax.tree_util.keystr(path, simple=True, separator=".")


def parameter_names(names: Any, paths: Sequence[Any]) -> list[str]:
    """A name for each leaf: those given, or made from the paths; a plain array is `x`."""
    if names is None:
        found = [path_name(path) or "x" for path in paths]
        given = [f"x{name}" if name[:1].isdigit() else name for name in found]
    elif isinstance(names, (str, Sequence)):
        given = [names] if isinstance(names, str) else list(names)
    else:
        raise TypeError(f"names must be a string or a list of strings; got {checks.describe(names)}.")
    if len(given) != len(paths) or not all(isinstance(name, str) and name for name in given):
        raise ValueError(
            f"names must be {len(paths)} non-empty string(s), one for each parameter; got {checks.describe(names)}."
        )
    if len(set(given)) != len(given):
        raise ValueError(f"names of parameters must differ from each other; got {checks.describe(given)}.")
    for name in given:
        if name in RESERVED:
            raise ValueError(f"names of parameters must not be {', '.join(RESERVED)}; got {name!r}.")
    return given


def made_up_axes(name: str, num_axes: int) -> tuple[str, ...]:
    """Names for the axes of an array that the user has not named.

    >>> made_up_axes("energy", 2)
    ('energy_dim_0', 'energy_dim_1')
    """
    return tuple(f"{name}_dim_{i}" for i in range(num_axes))


def label(shapes: Mapping[str, tuple[int, ...]], dims: Any) -> tuple[Parameter, ...]:
    """The parameters with the names of their axes."""
    checks.instance("dims", dims, Mapping, "a mapping from parameter names to lists of dimension names")
    known_names("dims", dims, shapes)
    parameters = []
    for name, shape in shapes.items():
        axes = dims.get(name, made_up_axes(name, len(shape)))
        if isinstance(axes, str) or not isinstance(axes, Sequence) or not all(isinstance(axis, str) for axis in axes):
            raise TypeError(f"dims of {name!r} must be a list of strings; got {checks.describe(axes)}.")
        if len(axes) != len(shape):
            raise ValueError(f"dims of {name!r} must name its {len(shape)} axes; got {list(axes)}.")
        for axis in axes:
            if axis in RESERVED or axis in shapes or list(axes).count(axis) > 1:
                raise ValueError(
                    f"dims of {name!r} must differ from each other, from parameter names and from "
                    f"{', '.join(RESERVED)}; got {axis!r}."
                )
        parameters.append(Parameter(name, shape, tuple(axes)))
    return tuple(parameters)


def label_coords(parameters: Sequence[Parameter], coords: Any) -> Coords:
    """The labels along each dimension, checked against its length."""
    checks.instance("coords", coords, Mapping, "a mapping from dimension names to lists of labels")
    sizes: dict[str, int] = {}
    for parameter in parameters:
        for axis, size in zip(parameter.dims, parameter.shape, strict=True):
            if sizes.setdefault(axis, size) != size:
                raise ValueError(f"dimension {axis!r} of dims must have one length; got {sizes[axis]} and {size}.")
    known_names("coords", coords, sizes)
    for axis, labels in coords.items():
        if not isinstance(labels, (Sequence, np.ndarray)) or isinstance(labels, str) or not getattr(labels, "ndim", 1):
            raise TypeError(
                f"coords of {axis!r} must be {sizes[axis]} labels in a list; got {checks.describe(labels)}."
            )
        if len(labels) != sizes[axis]:
            raise ValueError(f"coords of {axis!r} must have {sizes[axis]} labels; got {len(labels)}.")
        for value in labels:
            if not isinstance(value, (str, int, float, date, np.generic)):
                raise TypeError(
                    f"coords of {axis!r} must be strings, numbers or dates; got {checks.describe(value)} among them."
                )
    return tuple((axis, tuple(_plain(value) for value in labels)) for axis, labels in coords.items())


def known_names(what: str, given: Mapping[str, Any], allowed: Mapping[str, Any]) -> None:
    """Refuse a name that nothing here has."""
    for name in given:
        if name not in allowed:
            raise ValueError(f"{what} must use names out of {list(allowed)}; got {name!r}.")


def _plain(value: Any) -> Any:
    """A hashable label; NumPy's numbers as Python's, its dates as pandas', which keep nanoseconds."""
    if isinstance(value, np.datetime64):
        return pd.Timestamp(value)
    if isinstance(value, np.timedelta64):
        return pd.Timedelta(value)
    return value.item() if isinstance(value, np.generic) else value
