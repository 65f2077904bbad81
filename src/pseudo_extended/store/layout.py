"""The layout of a store: its arrays, and how they are cut into chunks."""

from typing import NamedTuple

import numpy as np

from pseudo_extended.store.names import is_file_name

GROUPS = ("weighted_points", "sample_stats", "posterior")
MAX_CHUNK = 32768
"""Draws of a chunk."""


class Column(NamedTuple):
    """An array with axes (chain, draw, …)."""

    group: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    dims: tuple[str, ...]

    @property
    def path(self) -> str:
        """The path of the column within the store."""
        return f"{self.group}/{self.name}"

    @property
    def bytes_per_draw(self) -> int:
        """The bytes of a draw of one chain."""
        size = np.dtype(self.dtype).itemsize
        for each in self.shape:  # Python's own integers, which do not overflow
            size *= each
        return size


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

    def bytes_per_draw(self, *groups: str) -> int:
        """Return the bytes of a draw of one chain, in the columns of some groups."""
        return sum(column.bytes_per_draw for column in self.columns if column.group in groups)

    def check(self) -> None:
        """`ValueError` if this cannot be how a store of ours is cut up: it may be somebody else's."""
        if self.num_chains < 1 or self.width < 1 or not 1 <= self.chunk <= MAX_CHUNK:
            raise ValueError(f"layout has {self.num_chains} chains, {self.width} at a time, in chunks of {self.chunk}")
        for column in self.columns:
            if column.group not in GROUPS or not is_file_name(column.name):
                raise ValueError(f"layout has an array {column.path[:80]!r}, which no store has")
            if column.dtype not in ("float64", "float32", "bool") and not column.dtype.startswith(("int", "uint")):
                raise ValueError(f"layout has an array of {column.dtype[:40]!r}, which is no kind of number")
            try:
                np.dtype(column.dtype)
            except TypeError:
                raise ValueError(f"layout has an array of {column.dtype[:40]!r}, which is no kind of number") from None
            if len(column.shape) > 32 or len(column.dims) != len(column.shape) or min(column.shape, default=0) < 0:
                raise ValueError(f"layout has an array {column.path!r} of shape {str(column.shape)[:80]}")
