"""Compiled programs on disk, so that a machine compiles each of them once.

An entry is machine code, or the recipe of a program with its name, and is unpickled when it is read: it must come from
nobody but the user. So the directory and every file in it belong to the user alone, links are not followed, and an
entry is checksummed before anything is made of it. Whatever is wrong with an entry or with the directory, the program
is compiled, as if nothing had been there.
"""

import hashlib
import os
import pickle
import platform
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jaxlib
import numpy as np
from jax.experimental.serialize_executable import deserialize_and_load, serialize
from jax.stages import Lowered

MAX_BYTES = 2**28
"""Of all entries together; those that were used longest ago go first."""
VARIABLE = "PSEUDO_EXTENDED_CACHE"
"""In the environment: a directory to use, or `off`."""
_MAGIC = b"pseudo-extended program 1\n"
_SUFFIX = ".program"
_RECIPE = ".program-recipe"


class Kept(NamedTuple):
    """What there is on disk."""

    directory: Path | None
    """None if nothing is kept."""
    num_programs: int
    num_bytes: int


def compiled_or_kept(name: str, program: Lowered, compile_it: Callable[[], Any], recipe: str | None = None) -> Any:
    """The program from disk, or compiled and put there; `name` says everything that it depends on but this machine.

    A recipe, if there is one, is put beside it, so that the program is found by it as well.
    """
    directory = private_directory()
    if directory is None:
        return compile_it()
    if recipe is not None:
        with suppress(Exception):  # classes that cannot be pickled
            note = pickle.dumps((name, _skeleton(program.in_tree), _skeleton(program.out_tree)))
            _write(_path(directory, recipe, _RECIPE), note)
    path = _path(directory, name, _SUFFIX)
    kept = _read(path)
    if kept is not None:
        with suppress(Exception):  # an entry that this JAX cannot read, for whatever reason
            return deserialize_and_load(kept, program.in_tree, program.out_tree)
    compiled = compile_it()
    with suppress(Exception):  # a program that cannot be written, or a disk that is full
        _write(path, serialize(compiled)[0])
        _prune(directory)
    return compiled


def kept_by_recipe(recipe: str) -> tuple[str, Any] | None:
    """The name of a program that was made by this recipe, and the program, if both are on disk."""
    directory = private_directory()
    note = None if directory is None else _read(_path(directory, recipe, _RECIPE))
    if directory is None or note is None:
        return None
    with suppress(Exception):
        name, *skeletons = pickle.loads(note)
        kept = _read(_path(directory, name, _SUFFIX))
        if kept is not None:
            _find_lapack()
            return name, deserialize_and_load(kept, *map(jax.tree.structure, skeletons))
    return None


@cache
def _find_lapack() -> None:
    """Have jaxlib look for LAPACK's functions, which it does when it first lowers a call of one, and never in a load.

    A program that calls them would end the process otherwise.
    """
    jax.jit(jax.numpy.linalg.cholesky).lower(np.eye(2))


def _path(directory: Path, name: str, suffix: str) -> Path:
    return directory / (hashlib.sha256((name + this_machine()).encode()).hexdigest() + suffix)


def _skeleton(structure: Any) -> Any:
    """Something of this structure that can be pickled, which structures of JAX cannot."""
    return jax.tree.unflatten(structure, range(structure.num_leaves))


def kept_programs() -> Kept:
    """How much is kept, and where."""
    directory = private_directory()
    sizes = [] if directory is None else [path.stat().st_size for path in directory.glob(f"*{_SUFFIX}")]
    return Kept(directory, len(sizes), sum(sizes))


def forget_kept_programs() -> int:
    """Delete all entries; how many there were."""
    directory = private_directory()
    paths = [] if directory is None else list(directory.glob(f"*{_SUFFIX}*"))
    for path in paths:
        path.unlink(missing_ok=True)
    return len(paths)


def private_directory() -> Path | None:
    """The directory, made if need be; None if it is off, or is not the user's alone."""
    chosen = os.environ.get(VARIABLE)
    if chosen is not None and chosen.lower() in ("", "0", "off", "no", "false"):
        return None
    directory = _default_directory() if chosen is None else Path(chosen)
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = directory.lstat()
    except (OSError, RuntimeError):
        return None
    return directory if stat.S_ISDIR(found.st_mode) and _is_private(found) else None


@cache
def this_machine() -> str:
    """What machine code depends on besides the program: versions, processor, flags and number of cores."""
    features = platform.processor()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
        features += " ".join(line for line in lines if line.split("\t")[0] in ("flags", "Features", "model name"))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    flags = [os.environ.get(name, "") for name in ("XLA_FLAGS", "NPROC", "LIBTPU_INIT_ARGS")]
    versions = jax.__version__, jaxlib.version.__version__, sys.version
    return repr((versions, platform.platform(), platform.machine(), features, cores, flags))


def _default_directory() -> Path:
    if sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "pseudo-extended"


def _is_private(found: os.stat_result) -> bool:
    """Whether a directory is this user's and nobody else may read or write it; Windows keeps users apart itself."""
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o077)


def _read(path: Path) -> bytes | None:
    """What was written there, if it is whole and the user's own."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or not _is_private(found):
                return None
            content = file.read(MAX_BYTES)
        os.utime(path)
    except OSError:
        return None
    magic, digest, payload = content[: len(_MAGIC)], content[len(_MAGIC) :][:32], content[len(_MAGIC) + 32 :]
    return payload if magic == _MAGIC and hashlib.sha256(payload).digest() == digest else None


def _write(path: Path, payload: bytes) -> None:
    """All of it or nothing, whoever else writes or reads."""
    draft = path.with_suffix(f"{path.suffix}.{os.getpid()}.{hashlib.sha256(os.urandom(16)).hexdigest()[:8]}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
            file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _prune(directory: Path) -> None:
    found = [(path, path.stat()) for path in directory.glob(f"*{_SUFFIX}*")]
    total = sum(file.st_size for _, file in found)
    for path, file in sorted(found, key=lambda each: each[1].st_mtime):
        if total <= MAX_BYTES:
            return
        path.unlink(missing_ok=True)
        total -= file.st_size
