"""ArviZ objects, for both of its lines: InferenceData (0.23) and xarray.DataTree (1.x)."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import xarray as xr

Group = tuple[Mapping[str, np.ndarray], Mapping[str, Sequence[str]]]
"""Arrays with leading axes (chain, draw), and the names of their other axes."""


def build_arviz(groups: Mapping[str, Group], coords: Mapping[str, Sequence[Any]], attributes: Mapping[str, str]) -> Any:
    """An ArviZ object with the given groups.

    The datasets are made here: ArviZ's `from_dict` differs between the lines, and gives a parameter the axes of a
    statistic that has its name.
    """
    datasets = {name: _dataset(*group, coords, attributes) for name, group in groups.items()}
    arviz: Any = import_module("arviz")  # one to two seconds that only this call should cost
    if arviz.__version__.startswith("0."):
        return arviz.InferenceData(**datasets)
    return xr.DataTree.from_dict(datasets)


def _dataset(
    arrays: Mapping[str, np.ndarray],
    dims: Mapping[str, Sequence[str]],
    coords: Mapping[str, Sequence[Any]],
    attributes: Mapping[str, str],
) -> xr.Dataset:
    variables = {name: (("chain", "draw", *dims[name]), values) for name, values in arrays.items()}
    sizes = {axis: size for axes, values in variables.values() for axis, size in zip(axes, values.shape, strict=True)}
    used = {axis: list(coords.get(axis, range(size))) for axis, size in sizes.items()}
    return xr.Dataset(variables, coords=used, attrs=dict(attributes))
