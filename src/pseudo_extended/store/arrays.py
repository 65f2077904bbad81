"""The draws as zarr arrays (format 3): one file for each array, lane and chunk of draws.

The files are written here and not by zarr-python, because all arrays must grow at one instant (a reader never sees two
lengths of one axis), whole chunks must reach the disk before a snapshot counts on them, and a chunk that is missing or
damaged must be an error, where zarr-python reads a missing chunk as its fill value. Everybody else opens the store with
zarr or xarray; the tests do.
"""

import hashlib
import json
import struct
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pseudo_extended.optional import require
from pseudo_extended.store.files import BrokenFileError, flush_directory, read_file, replace_file, writing
from pseudo_extended.store.layout import Column, Layout
from pseudo_extended.store.metadata import all_metadata, to_bytes
from pseudo_extended.store.seals import Seals


def require_store(module: str) -> Any:
    """Import a library that only stores need, or raise one sentence that says how to install it."""
    return require(module, "'pseudo-extended[store]'", "a store")


class Arrays:
    """The files of a layout below `root`."""

    def __init__(self, root: Path, layout: Layout, attributes: dict[str, Any]):
        self.root = root
        self.layout = layout
        self.attributes = attributes
        self.labels: dict[str, Any] = {}
        """Metadata of the labels along axes, by path."""
        self.label_digests: dict[str, str] = {}
        """SHA-256 of their files, by path."""

    def create(self) -> None:
        """Directories for all columns."""
        with writing(self.root):
            for column in self.layout.columns:
                (self.root / column.path).mkdir(parents=True, exist_ok=True)
        for directory in {self.root, *((self.root / column.path).parent for column in self.layout.columns)}:
            flush_directory(directory)

    def write(self, column: Column, lane: int, index: int, values: np.ndarray, *, durable: bool) -> tuple[Path, int]:
        """One chunk: where it is, and its CRC. `durable` flushes the file, and `flush` makes its name last."""
        values = np.ascontiguousarray(values, dtype=np.dtype(column.dtype).newbyteorder("<"))
        data = values.reshape(-1).view(np.uint8)  # not copied: fresh memory costs more than the checksum
        data.flags.writeable = False
        path, crc = self.file(column, lane, index), require_store("google_crc32c").value(data)
        replace_file(path, data.data, struct.pack("<I", crc), durable=durable)  # as zarr's codec crc32c appends it
        return path, crc

    def flush(self) -> None:
        """Make the names of all chunks last."""
        for column in self.layout.columns:
            flush_directory(self.root / column.path)

    def read(self, column: Column, lane: int, index: int, seals: Seals | None = None) -> np.ndarray:
        """One chunk, (width, chunk, …), or a `BrokenFileError` that says what is wrong with it.

        With `seals` it must also be the chunk that was written at this place.
        """
        path = self.file(column, lane, index)
        values, crc = self._read(path, column)
        if seals is not None:
            seal, number = seals.lanes[lane], self.layout.columns.index(column)
            num_whole, rest = divmod(seal.num_draws, self.layout.chunk)
            if index < num_whole:
                is_right = crc == seal.whole[index, number]
            else:
                is_right = index == num_whole and crc_of_first(values, rest) == seal.tail[number]
            if not is_right:
                raise BrokenFileError(f"{path} is whole, but is not the chunk that was written at its place")
        return values.astype(np.dtype(column.dtype), copy=False)

    def checksums(self, lane: int, num_chunks: int) -> tuple[list[list[int]], str | None]:
        """The CRCs of all columns, of each chunk up to the first that is damaged; and how that one is."""
        found: list[list[int]] = []
        for index in range(num_chunks):
            try:
                found.append([self._read(self.file(each, lane, index), each)[1] for each in self.layout.columns])
            except BrokenFileError as error:
                return found, str(error)
        return found, None

    def read_draws(
        self, column: Column, num_draws: int, thin: int = 1, first: int = 0, seals: Seals | None = None
    ) -> np.ndarray:
        """Draws first, first + thin, … below `num_draws` of every chain, shape (chain, draw, …)."""
        width, chunk = self.layout.width, self.layout.chunk
        self._check_sizes(column, range(first // chunk, -(-num_draws // chunk)))
        picked = np.arange(first, num_draws, thin)
        out = np.empty((self.layout.num_lanes * width, len(picked), *column.shape), np.dtype(column.dtype))
        for lane in range(self.layout.num_lanes):
            for index in range(first // chunk, -(-num_draws // chunk)):
                begin, end = np.searchsorted(picked, (index * chunk, (index + 1) * chunk))
                if end > begin:
                    values = self.read(column, lane, index, seals)
                    out[lane * width : (lane + 1) * width, begin:end] = values[:, picked[begin:end] - index * chunk]
        return out[: self.layout.num_chains]

    def metadata(self, num_draws: int) -> dict[str, dict[str, Any]]:
        """Return the metadata of everything, by path, the root's last."""
        return all_metadata(self.layout, self.attributes, self.labels, num_draws)

    def publish(self, num_draws: int, *, durable: bool) -> None:
        """Say how many draws there are: readers see them from now on, in all arrays at once."""
        for path, metadata in self.metadata(num_draws).items():
            replace_file(self.root / path / "zarr.json", to_bytes(metadata), durable=durable or not path)
        flush_directory(self.root)

    def label(self, coords: Mapping[str, Sequence[Any]]) -> None:
        """Coordinates for the axes that have labels, in every group that has the axis."""
        columns = {column.path for column in self.layout.columns}
        wanted = {(column.group, dim) for column in self.layout.columns for dim in column.dims if dim in coords}
        for group, dim in sorted(wanted):
            if f"{group}/{dim}" not in columns:
                with writing(self.root / group / dim):
                    self._write_labels(group, dim, np.asarray(coords[dim]))
                for file in sorted(path for path in (self.root / group / dim).rglob("*") if path.is_file()):
                    self.adopt_label(file.relative_to(self.root).as_posix())

    def adopt_label(self, path: str) -> None:
        """A file of a label, as it is."""
        contents = read_file(self.root / path)
        self.label_digests[path] = hashlib.sha256(contents).hexdigest()
        if path.endswith("/zarr.json"):
            self.labels[path.removesuffix("/zarr.json")] = json.loads(contents)

    def _has_labels(self, group: str, dim: str, values: np.ndarray) -> bool:
        try:
            return np.array_equal(
                require_store("zarr").open_array(self.root, path=f"{group}/{dim}", mode="r")[:], values
            )
        except Exception:  # whatever it says of what is no array, or is a broken one
            return False

    def file(self, column: Column, lane: int, index: int) -> Path:
        """Return the file of a chunk."""
        # With dots in place of slashes all chunks of an array lie in one directory: one flush makes them last.
        return self.root / column.path / ".".join(["c", str(lane), str(index), *("0" for _ in column.shape)])

    def _read(self, path: Path, column: Column) -> tuple[np.ndarray, int]:
        """The values of a chunk, little-endian, and their CRC."""
        size = self._num_bytes(column)
        data = read_file(path, size)
        values = np.frombuffer(data, np.uint8, count=size - 4)  # not copied: there are many megabytes of them
        crc = require_store("google_crc32c").value(values)
        if struct.pack("<I", crc) != data[-4:]:
            raise BrokenFileError(f"{path} is damaged: its checksum does not match its contents")
        shape = (self.layout.width, self.layout.chunk, *column.shape)
        return values.view(np.dtype(column.dtype).newbyteorder("<")).reshape(shape), crc

    def _num_bytes(self, column: Column) -> int:
        """Return the size of each file of a column."""
        return self.layout.width * self.layout.chunk * column.bytes_per_draw + 4

    def _check_sizes(self, column: Column, indices: range) -> None:
        """Before memory is reserved for what the files are said to hold."""
        size = self._num_bytes(column)
        for lane in range(self.layout.num_lanes):
            for index in indices:
                path = self.file(column, lane, index)
                try:
                    found = path.stat().st_size
                except OSError:
                    raise BrokenFileError(f"{path} is missing") from None
                if found != size:
                    raise BrokenFileError(f"{path} has {found} bytes and should have {size}")

    def _write_labels(self, group: str, dim: str, values: np.ndarray) -> None:
        if values.dtype.kind not in "iufb":
            words = values.astype(str).tolist()
            values = np.asarray([word.encode(errors="backslashreplace").decode() for word in words], dtype=str)
        with warnings.catch_warnings():  # about text, whose place in zarr's format 3 is not settled yet
            warnings.simplefilter("ignore")
            if self._has_labels(group, dim, values):
                return  # zarr-python writes a file after the other: a reader need not see that again
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


def crc_of_first(values: np.ndarray, num_draws: int) -> int:
    """Return the CRC of the first draws of a chunk, one chain after the other."""
    checksums = require_store("google_crc32c")
    crc = checksums.value(b"")
    for chain in values:
        data = np.ascontiguousarray(chain[:num_draws]).reshape(-1).view(np.uint8)
        data.flags.writeable = False
        crc = checksums.extend(crc, data)
    return crc
