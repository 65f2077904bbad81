"""The draws as zarr arrays (format 3): one file for each array, lane and chunk of draws.

The files are written here and not by zarr-python, because all arrays must grow at one instant (a reader never sees two
lengths of one axis), whole chunks must reach the disk before a snapshot counts on them, and a chunk that is missing or
damaged must be an error, where zarr-python reads a missing chunk as its fill value. Everybody else opens the store with
zarr or xarray; the tests do.
"""

import json
import struct
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pseudo_extended.optional import require
from pseudo_extended.store.files import BrokenFileError, flush_directory, replace_file


def require_store(module: str) -> Any:
    """Import a library that only stores need, or raise one sentence that says how to install it."""
    return require(module, "'pseudo-extended[store]'", "store=")


class Column(NamedTuple):
    """An array with axes (chain, draw, …)."""

    group: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    dims: tuple[str, ...]

    @property
    def path(self) -> str:
        """Within the store."""
        return f"{self.group}/{self.name}"


class Layout(NamedTuple):
    """How the arrays are cut up; fixed for the life of a store."""

    num_chains: int
    width: int
    """Chains of a lane, which share a chunk."""
    chunk: int
    """Draws of a chunk."""
    columns: tuple[Column, ...]

    @property
    def num_lanes(self) -> int:
        """Lanes, the last of which may be padded."""
        return -(-self.num_chains // self.width)

    def to_json(self) -> dict[str, Any]:
        """For the manifest."""
        return self._asdict() | {"columns": [column._asdict() for column in self.columns]}

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Layout":
        """From the manifest."""
        columns = tuple(
            Column(c["group"], c["name"], c["dtype"], tuple(c["shape"]), tuple(c["dims"])) for c in data["columns"]
        )
        return Layout(data["num_chains"], data["width"], data["chunk"], columns)

    def bytes_a_draw(self, group: str) -> int:
        """Of one chain, in the columns of a group."""
        return sum(
            np.dtype(c.dtype).itemsize * int(np.prod(c.shape, dtype=int)) for c in self.columns if c.group == group
        )


class Arrays:
    """The files of a layout below `root`."""

    def __init__(self, root: Path, layout: Layout, attributes: dict[str, Any]):
        self.root = root
        self.layout = layout
        self.attributes = attributes
        self._labels: dict[str, Any] = {}

    def create(self) -> None:
        """Directories for all columns."""
        for column in self.layout.columns:
            (self.root / column.path).mkdir(parents=True, exist_ok=True)
        for directory in {self.root, *((self.root / column.path).parent for column in self.layout.columns)}:
            flush_directory(directory)

    def write(self, column: Column, lane: int, index: int, values: np.ndarray, *, durable: bool) -> Path:
        """One chunk, and where it is; `durable` flushes the file, and `flush` makes its name last."""
        values = np.ascontiguousarray(values, dtype=np.dtype(column.dtype).newbyteorder("<"))
        data = values.reshape(-1).view(np.uint8)  # not copied: fresh memory costs more than the checksum
        data.flags.writeable = False
        path = self._file(column, lane, index)
        replace_file(path, data.data, _checksum(data), durable=durable)
        return path

    def flush(self) -> None:
        """Make the names of all chunks last."""
        for column in self.layout.columns:
            flush_directory(self.root / column.path)

    def read(self, column: Column, lane: int, index: int) -> np.ndarray:
        """One chunk, (width, chunk, …), or a `BrokenFileError` that says what is wrong with it."""
        path = self._file(column, lane, index)
        shape = (self.layout.width, self.layout.chunk, *column.shape)
        dtype = np.dtype(column.dtype).newbyteorder("<")
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise BrokenFileError(f"{path} is missing") from None
        expected = dtype.itemsize * int(np.prod(shape, dtype=int)) + 4
        if len(data) != expected:
            raise BrokenFileError(f"{path} has {len(data)} bytes and should have {expected}")
        values = np.frombuffer(data, np.uint8, count=expected - 4)  # not copied: there are many megabytes of them
        if _checksum(values) != data[-4:]:
            raise BrokenFileError(f"{path} is damaged: its checksum does not match its contents")
        return values.view(dtype).reshape(shape).astype(np.dtype(column.dtype), copy=False)

    def first_broken(self, lane: int, num_chunks: int) -> tuple[int, str] | None:
        """The first chunk of a lane that is not as it was written, and how; None if all are well."""
        for index in range(num_chunks):
            for column in self.layout.columns:
                try:
                    self.read(column, lane, index)
                except BrokenFileError as error:
                    return index, str(error)
        return None

    def read_draws(self, column: Column, num_draws: int, thin: int = 1, first: int = 0) -> np.ndarray:
        """Draws first, first + thin, … below `num_draws` of every chain, shape (chain, draw, …)."""
        width, chunk = self.layout.width, self.layout.chunk
        picked = np.arange(first, num_draws, thin)
        out = np.empty((self.layout.num_lanes * width, len(picked), *column.shape), np.dtype(column.dtype))
        for lane in range(self.layout.num_lanes):
            for index in range(first // chunk, -(-num_draws // chunk)):
                begin, end = np.searchsorted(picked, (index * chunk, (index + 1) * chunk))
                if end > begin:
                    values = self.read(column, lane, index)
                    out[lane * width : (lane + 1) * width, begin:end] = values[:, picked[begin:end] - index * chunk]
        return out[: self.layout.num_chains]

    def publish(self, num_draws: int, *, durable: bool) -> None:
        """Say how many draws there are: readers see them from now on, in all arrays at once.

        The metadata of all arrays are in the one file of the root group, and again in each group's and array's own for
        readers who open only that; the root's is written last, and is what xarray reads.
        """
        arrays = {column.path: _array_metadata(column, self.layout, num_draws) for column in self.layout.columns}
        for path, metadata in arrays.items():
            replace_file(self.root / path / "zarr.json", _json(metadata), durable=durable)
        arrays |= self._labels
        attributes = self.attributes | {"num_draws": num_draws}
        groups = {}
        for group in self._groups():
            inside = {path.removeprefix(f"{group}/"): arrays[path] for path in arrays if path.startswith(f"{group}/")}
            groups[group] = _group_metadata(attributes, inside)
            replace_file(self.root / group / "zarr.json", _json(groups[group]), durable=durable)
        replace_file(self.root / "zarr.json", _json(_group_metadata(attributes, groups | arrays)))
        flush_directory(self.root)

    def label(self, coords: Mapping[str, Sequence[Any]]) -> None:
        """Coordinates for the axes that have labels, in every group that has the axis."""
        columns = {column.path for column in self.layout.columns}
        wanted = {(column.group, dim) for column in self.layout.columns for dim in column.dims if dim in coords}
        for group, dim in sorted(wanted):
            if f"{group}/{dim}" not in columns:
                self._write_labels(group, dim, np.asarray(coords[dim]))
                self._labels[f"{group}/{dim}"] = json.loads((self.root / group / dim / "zarr.json").read_bytes())

    def _write_labels(self, group: str, dim: str, values: np.ndarray) -> None:
        if values.dtype.kind not in "iufb":
            values = values.astype(str)
        with warnings.catch_warnings():  # about text, whose place in zarr's format 3 is not settled yet
            warnings.simplefilter("ignore")
            array = require_store("zarr").create_array(
                self.root,
                name=f"{group}/{dim}",
                shape=values.shape,
                chunks=values.shape,
                dtype=str if values.dtype.kind == "U" else values.dtype,
                dimension_names=[dim],
                overwrite=True,
            )
            array[:] = values.astype(object) if values.dtype.kind == "U" else values

    def _groups(self) -> list[str]:
        return list(dict.fromkeys(column.group for column in self.layout.columns))

    def _file(self, column: Column, lane: int, index: int) -> Path:
        # With dots in place of slashes all chunks of an array lie in one directory: one flush makes them last.
        return self.root / column.path / ".".join(["c", str(lane), str(index), *("0" for _ in column.shape)])


def _checksum(data: bytes | np.ndarray) -> bytes:
    """As zarr's codec crc32c appends it."""
    return struct.pack("<I", require_store("google_crc32c").value(data))


def _json(data: dict[str, Any]) -> bytes:
    return json.dumps(data, allow_nan=False).encode()


def _array_metadata(column: Column, layout: Layout, num_draws: int) -> dict[str, Any]:
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


def _group_metadata(attributes: dict[str, Any], members: dict[str, Any]) -> dict[str, Any]:
    """A group with the metadata of all that is in it, as zarr's consolidate_metadata writes it."""
    inside = {name: _without_members(member) for name, member in members.items()}
    return {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": attributes,
        "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": inside},
    }


def _without_members(member: dict[str, Any]) -> dict[str, Any]:
    if member["node_type"] == "array":
        return member
    empty = {"kind": "inline", "must_understand": False, "metadata": {}}
    return member | {"consolidated_metadata": empty}
