"""Seals: which chunk belongs where.

A chunk's file has a CRC-32C of its bytes, so damage is seen by whoever reads it; but a chunk of another lane, column or
run is whole as well. A seal therefore lists the CRC of every chunk by its place, in a file that names the run and has a
SHA-256 of its own: `engine/seals` for readers, and each snapshot for the chunks that it counts on.

Of the last draws of a lane, which fill no chunk yet, a seal has the CRC of these draws alone: the chunk may have got
more since, and then it still begins with them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pseudo_extended.store.files import BrokenFileError, read_sealed, write_sealed
from pseudo_extended.store.layout import Layout

SEALS = "seals"
"""The name of the file for readers."""


class LaneSeal(NamedTuple):
    """The seals of the chunks of one lane."""

    num_draws: int
    """Of each chain of the lane."""
    whole: np.ndarray
    """(chunk, column): the CRC of every whole chunk."""
    tail: np.ndarray
    """(column,): the CRC of the draws after them; empty if there are none."""


class Seals(NamedTuple):
    """The seals of all chunks of a run at one moment."""

    num_draws: int
    """That readers see; every lane has at least as many."""
    lanes: tuple[LaneSeal, ...]
    labels: dict[str, str]
    """SHA-256 of the files of the labels along axes, by path."""


def write_seals(engine: Path, run: str, seals: Seals, *, durable: bool) -> None:
    """Into the directory of what only the run itself needs."""
    arrays = {"run": np.asarray(run), "num_draws": np.asarray(seals.num_draws)}
    arrays["lanes"] = np.asarray([lane.num_draws for lane in seals.lanes], np.int64)
    for i, lane in enumerate(seals.lanes):
        arrays |= {f"whole-{i}": lane.whole, f"tail-{i}": lane.tail}
    arrays["label_paths"] = np.asarray([*seals.labels], dtype=str)
    arrays["label_digests"] = np.asarray([*seals.labels.values()], dtype=str)
    write_sealed(engine / SEALS, arrays, durable=durable)


def read_seals(engine: Path, run: str, layout: Layout) -> Seals:
    """What was written last, or a `BrokenFileError`."""
    path = engine / SEALS
    arrays = read_sealed(path)
    if text(arrays, "run") != run:
        raise BrokenFileError(f"{path} belongs to another run")
    try:
        return _checked(arrays, layout)
    except (KeyError, ValueError, TypeError) as error:
        raise BrokenFileError(f"{path} does not fit its run: {error}") from None


def text(arrays: Mapping[str, np.ndarray], name: str) -> str | None:
    """One word among arrays."""
    array = arrays.get(name)
    return str(array) if array is not None and array.shape == () and array.dtype.kind == "U" else None


def number(arrays: Mapping[str, np.ndarray], name: str) -> int | None:
    """One number that is not negative, among arrays."""
    array = arrays.get(name)
    is_one = array is not None and array.shape == () and array.dtype.kind in "iu" and int(array) >= 0
    return int(array) if is_one and array is not None else None


def checksums(arrays: Mapping[str, np.ndarray], name: str, shape: Sequence[int]) -> np.ndarray:
    """CRCs of a shape; `ValueError` if they are something else."""
    array = arrays[name]
    if array.dtype != np.uint32 or array.shape != tuple(shape):
        raise ValueError(f"{name} has shape {array.shape} and should have {tuple(shape)}")
    return array


def _checked(arrays: Mapping[str, np.ndarray], layout: Layout) -> Seals:
    num_draws, counts = number(arrays, "num_draws"), arrays["lanes"]
    if num_draws is None or counts.dtype != np.int64 or counts.shape != (layout.num_lanes,):
        raise ValueError("it has another number of lanes")
    if counts.size and num_draws > int(counts.min()):
        raise ValueError("a lane has fewer draws than readers see")
    lanes, num_columns = [], len(layout.columns)
    for i, count in enumerate(map(int, counts)):
        num_chunks, rest = divmod(count, layout.chunk)
        whole = checksums(arrays, f"whole-{i}", (num_chunks, num_columns))
        lanes.append(LaneSeal(count, whole, checksums(arrays, f"tail-{i}", (num_columns if rest else 0,))))
    paths, digests = arrays["label_paths"], arrays["label_digests"]
    if paths.dtype.kind != "U" or digests.dtype.kind != "U" or paths.ndim != 1 or paths.shape != digests.shape:
        raise ValueError("it has labels that are none")
    return Seals(num_draws, tuple(lanes), dict(zip(paths.tolist(), digests.tolist(), strict=True)))
