"""ArviZ objects, for both of its lines: InferenceData (0.23) and xarray.DataTree (1.x)."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np


def build_arviz(
    posterior: Mapping[str, np.ndarray],
    sample_stats: Mapping[str, np.ndarray],
    dims: Mapping[str, Sequence[str]],
    coords: Mapping[str, Sequence[Any]],
    attributes: Mapping[str, str],
) -> Any:
    """An ArviZ object with a posterior and a sample_stats group."""
    arviz: Any = import_module("arviz")  # one to two seconds that only this call should cost
    groups = {"posterior": dict(posterior), "sample_stats": dict(sample_stats)}
    # Lists: a tuple as coordinates means (dims, data) to xarray.
    labels = {
        "dims": {name: list(axes) for name, axes in dims.items()},
        "coords": {dim: list(values) for dim, values in coords.items()},
    }
    is_first_line = arviz.__version__.startswith("0.")
    data = arviz.from_dict(**groups, **labels) if is_first_line else arviz.from_dict(groups, **labels)
    for group in groups:
        data[group].attrs.update(attributes)
    return data
