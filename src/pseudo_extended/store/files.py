"""Files that survive a power cut: written aside, flushed to the disk, then renamed over what was there.

zarr-python's own writes are atomic, but never flushed, and it knows no file that vouches for its contents. Hence these
few lines of our own.
"""

import hashlib
import io
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

MAGIC = b"pseudo-extended 1\n"


class BrokenFileError(Exception):
    """A file is missing or is not what was written; the argument says which and how."""


def replace_file(path: Path, *parts: bytes | memoryview, durable: bool = True) -> None:
    """Put `parts` at `path`: a reader sees what was there before or all of it, also after a power cut if `durable`."""
    aside = path.with_name(f"{path.name}.partial")
    with aside.open("wb") as file:
        for part in parts:
            file.write(part)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    aside.replace(path)


def flush_file(path: Path) -> None:
    """Make the contents of a file last that was written without."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_directory(path: Path) -> None:
    """Make the renames in a directory last."""
    if hasattr(os, "O_DIRECTORY"):  # not on Windows, which has no such thing to flush
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_sealed(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Named arrays and their SHA-256 as one file; nothing in it is ever unpickled."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **dict(arrays))
    payload = buffer.getvalue()
    replace_file(path, MAGIC, hashlib.sha256(payload).digest(), payload)
    flush_directory(path.parent)


def read_sealed(path: Path) -> dict[str, np.ndarray]:
    """What `write_sealed` wrote, or a `BrokenFileError`."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise BrokenFileError(f"{path} is missing") from None
    start = len(MAGIC) + 32
    payload = data[start:]
    if data[: len(MAGIC)] != MAGIC or hashlib.sha256(payload).digest() != data[len(MAGIC) : start]:
        raise BrokenFileError(f"{path} is damaged: its SHA-256 does not match its contents")
    with np.load(io.BytesIO(payload), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}
