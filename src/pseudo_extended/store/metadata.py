"""What zarr and xarray read of a store: the zarr.json files, as zarr's format 3 has them."""

import json
from typing import Any

import numpy as np

from pseudo_extended.store.layout import Column, Layout


def to_bytes(metadata: dict[str, Any]) -> bytes:
    """The contents of a zarr.json."""
    return json.dumps(metadata, allow_nan=False).encode()


def array_metadata(column: Column, layout: Layout, num_draws: int) -> dict[str, Any]:
    """Return the metadata of one column."""
    dtype = np.dtype(column.dtype)
    fill: Any = "NaN" if dtype.kind == "f" else False if dtype.kind == "b" else 0
    endian = {} if dtype.itemsize == 1 else {"configuration": {"endian": "little"}}
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [layout.num_chains, num_draws, *column.shape],
        "data_type": dtype.name,
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": [layout.width, layout.chunk, *(max(n, 1) for n in column.shape)]},
        },
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": fill,
        "codecs": [{"name": "bytes", **endian}, {"name": "crc32c"}],
        "attributes": {},
        "dimension_names": ["chain", "draw", *column.dims],
        "storage_transformers": [],
    }


def group_metadata(attributes: dict[str, Any], members: dict[str, Any]) -> dict[str, Any]:
    """A group with the metadata of all that is in it, as zarr's consolidate_metadata writes it."""
    inside = {name: _without_members(member) for name, member in members.items()}
    return {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": attributes,
        "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": inside},
    }


def all_metadata(
    layout: Layout, attributes: dict[str, Any], labels: dict[str, Any], num_draws: int
) -> dict[str, dict[str, Any]]:
    """Return the metadata of every array, every group and the root, by path, in the order of writing.

    The metadata of all arrays are in the one file of the root group, and again in each group's and array's own for
    readers who open only that; the root's comes last, and is what xarray reads.
    """
    own = {column.path: array_metadata(column, layout, num_draws) for column in layout.columns}
    arrays, attributes, groups = own | labels, attributes | {"num_draws": num_draws}, {}
    for group in dict.fromkeys(column.group for column in layout.columns):
        inside = {path.removeprefix(f"{group}/"): arrays[path] for path in arrays if path.startswith(f"{group}/")}
        groups[group] = group_metadata(attributes, inside)
    return own | groups | {"": group_metadata(attributes, groups | arrays)}


def _without_members(member: dict[str, Any]) -> dict[str, Any]:
    if member["node_type"] == "array":
        return member
    empty = {"kind": "inline", "must_understand": False, "metadata": {}}
    return member | {"consolidated_metadata": empty}
