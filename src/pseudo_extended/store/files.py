"""Files that survive a power cut: written aside, flushed to the disk, then renamed over what was there.

zarr-python's own writes are atomic, but never flushed, and it knows no file that vouches for its contents. Hence these
few lines of our own. They expect that somebody else has made the store: they write through no link, and read nothing
before its size is known.
"""

import contextlib
import errno
import hashlib
import io
import os
import secrets
import stat
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import numpy as np

from pseudo_extended.memory import free_memory

MAGIC = b"pseudo-extended 1\n"
SMALL = 2**20
"""Bytes of a file that is read without asking how much memory there is, which takes longer than to read it."""
ASIDE = ".partial"
"""The suffix of a file that is not written to its end; whoever locks a store removes those that a crash has left."""
SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


NOT_READABLE = (errno.ELOOP, errno.ENXIO, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EIO)
"""Errors that are of the file, and not of this process or the moment."""


class BrokenFileError(Exception):
    """A file is missing or is not what was written; the argument says which and how."""


class UnwritableError(OSError):
    """The operating system did not let a file of a store be written."""


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Tell errors of a store's files from those of the user's functions, which may read files too."""
    try:
        yield
    except OSError as error:
        raise UnwritableError(error.errno, error.strerror or str(error), str(path)) from error


def replace_file(path: Path, *parts: bytes | memoryview, durable: bool = True) -> None:
    """Put `parts` at `path`: a reader sees what was there before or all of it, also after a power cut if `durable`."""
    # A name that nobody can foresee, and that must be new, is no link to another file; a rename follows none.
    aside = path.with_name(f"{secrets.token_hex(8)}{ASIDE}")
    with writing(path), _removing(aside):
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFELY, 0o666), "wb") as file:
            for part in parts:
                file.write(part)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        aside.replace(path)


@contextlib.contextmanager
def _removing(aside: Path) -> Iterator[None]:
    """Leave nothing behind of a file that could not be written."""
    try:
        yield
    except OSError:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        raise


def flush_file(path: Path) -> None:
    """Make the contents of a file last that was written without."""
    with writing(path):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def flush_directory(path: Path) -> None:
    """Make the renames in a directory last."""
    if hasattr(os, "O_DIRECTORY"):  # not on Windows, which has no such thing to flush
        with writing(path):
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def read_file(path: Path, size: int | None = None, most: float | None = None) -> bytes:
    """The contents of a plain file of `size` bytes, or of at most `most`; `BrokenFileError` if it is none such."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        raise BrokenFileError(f"{path} is missing") from None
    except OSError as error:
        if error.errno not in NOT_READABLE:
            raise
        raise BrokenFileError(f"{path} cannot be read ({error.strerror})") from None
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):  # before there is a file of it, which a directory cannot be
        os.close(handle)
        raise BrokenFileError(f"{path} is no plain file")
    with os.fdopen(handle, "rb") as file:
        if size is not None and status.st_size != size:
            raise BrokenFileError(f"{path} has {status.st_size} bytes and should have {size}")
        limit = most if most is not None else max(SMALL, free_memory() / 2 if status.st_size > SMALL else 0)
        if status.st_size > limit:
            raise BrokenFileError(f"{path} has {status.st_size} bytes, more than can be read")
        return file.read(status.st_size)


def clean(root: Path) -> None:
    """Remove what writers that were killed have left; `BrokenFileError` if nothing can be written to it safely."""
    for directory, inside, files in os.walk(root):
        for name in (*inside, *files):
            path = Path(directory, name)
            if path.is_symlink():
                raise BrokenFileError(f"{path} is a link, and nothing is written where a link may lead elsewhere")
            if name in inside and (name == "zarr.json" or Path(directory) == root / "engine"):
                raise BrokenFileError(f"{path} is a directory, and a run has a file there")
            if name.endswith(ASIDE):
                path.unlink(missing_ok=True)


def write_sealed(path: Path, arrays: Mapping[str, np.ndarray], *, durable: bool = True) -> None:
    """Named arrays and their SHA-256 as one file; nothing in it is ever unpickled."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **dict(arrays))
    payload = buffer.getvalue()
    replace_file(path, MAGIC, hashlib.sha256(payload).digest(), payload, durable=durable)
    if durable:
        flush_directory(path.parent)


def read_sealed(path: Path) -> dict[str, np.ndarray]:
    """What `write_sealed` wrote, or a `BrokenFileError`."""
    data = read_file(path)
    start = len(MAGIC) + 32
    payload = memoryview(data)[start:]
    if data[: len(MAGIC)] != MAGIC or hashlib.sha256(payload).digest() != data[len(MAGIC) : start]:
        raise BrokenFileError(f"{path} is damaged: its SHA-256 does not match its contents")
    try:
        return _unpacked(io.BytesIO(payload))
    except (
        ValueError,
        TypeError,
        KeyError,
        EOFError,
        OSError,
        SyntaxError,
        zipfile.BadZipFile,
        RecursionError,
    ) as error:
        raise BrokenFileError(f"{path} holds something other than arrays: {error}") from None


def _unpacked(file: io.BytesIO) -> dict[str, np.ndarray]:
    """The arrays of an npz file, none of which may be larger than its part of the file."""
    arrays = {}
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
                raise ValueError(f"{member.filename} is compressed")
            with archive.open(member) as stream:
                shape, in_fortran_order, dtype = _header(stream)
                if dtype.hasobject or any(size < 0 for size in shape):
                    raise ValueError(f"{member.filename} is no array of numbers")
                count = 1
                for size in shape:  # Python's own integers, which do not overflow
                    count *= size
                values = stream.read()
                if len(values) != count * dtype.itemsize:
                    raise ValueError(f"{member.filename} has another size than it says")
                flat = np.frombuffer(values, dtype).copy() if values else np.zeros(count, dtype)
                array = flat.reshape(shape, order="F" if in_fortran_order else "C")
                arrays[member.filename.removesuffix(".npy")] = array
    return arrays


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"an array is in version {version} of NumPy's format")
    return read(stream)
