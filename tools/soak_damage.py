"""Damages to a store, and whoever reads it afterwards."""

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np

import pseudo_extended as pe
from pseudo_extended.store import Store, draws_shown
from soak_run import DRAWS, Truth, assert_same, log_density, write_often

KINDS = (
    *("bits", "bits", "cut", "longer", "zeros", "gone", "exchanged", "exchanged", "another run", "another run"),
    *("column", "engine", "link", "number", "field"),
)
UNTOUCHED = ("lock", "owner")


class Copy:
    """A copy of a store that is damaged, read, and put back as it was."""

    def __init__(self, source: Path, place: Path):
        self.source = source
        self.root = Path(shutil.copytree(source, place))
        self.elsewhere = place.with_suffix(".elsewhere")
        """A file outside, that links lead to."""
        self.contents = {path: path.read_bytes() for path in sorted(self.root.rglob("*")) if path.is_file()}
        self.files = [path for path in self.contents if path.name not in UNTOUCHED]

    def changed(self) -> list[Path]:
        """Files that are not what they were, and those that were not there."""
        return [path for path in {*self.contents, *self._there()} if _read(path) != self.contents.get(path)]

    def state(self) -> dict[Path, tuple[int, int]]:
        """By file, what tells that nobody has written to it."""
        return {path: (path.lstat().st_mtime_ns, path.lstat().st_ino) for path in self._there()}

    def restore(self, paths: list[Path]) -> None:
        """Put files back."""
        for path in paths:
            path.unlink(missing_ok=True)
            if path in self.contents:
                path.write_bytes(self.contents[path])
        self.elsewhere.unlink(missing_ok=True)

    def restore_all(self) -> None:
        """Put everything back."""
        shutil.rmtree(self.root)
        for path, data in self.contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        self.elsewhere.unlink(missing_ok=True)

    def _there(self) -> list[Path]:
        return [Path(base, name) for base, _, names in os.walk(self.root) for name in names if name not in UNTOUCHED]


def damage(copy: Copy, others: list[Path], rng: random.Random) -> str:
    """One damage at a random place; its kind."""
    there = [path for path in copy.files if path.is_file() and not path.is_symlink()]
    path, kind = rng.choice(there), rng.choice(KINDS)
    before = path.read_bytes()
    other = rng.choice(others)
    if kind == "bits" and before:
        data = bytearray(before)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
    elif kind == "cut":
        path.write_bytes(before[: rng.randrange(max(len(before), 1))])
    elif kind == "longer":
        path.write_bytes(before + rng.randbytes(rng.randint(1, 40)))
    elif kind == "zeros":
        path.write_bytes(bytes(len(before)))
    elif kind == "gone":
        path.unlink()
    elif kind == "exchanged":
        alike = [each for each in there if each.stat().st_size == len(before) and each.suffix == path.suffix]
        twin = rng.choice([each for each in alike if each.parent == path.parent] or alike)
        path.write_bytes(twin.read_bytes())
        twin.write_bytes(before)
    elif kind == "another run":
        _take(copy, other, [path])
    elif kind == "column":
        _take(copy, other, [each for each in there if each.parent == path.parent])
    elif kind == "engine":
        group = rng.choice([each for each in there if each.parent.name == "engine"] or [path])
        _take(copy, other, [each for each in there if each.name[:4] == group.name[:4] and each.parent == group.parent])
    elif kind == "link":
        copy.elsewhere.write_bytes(before[::-1])
        path.unlink()
        path.symlink_to(copy.elsewhere)
    elif kind == "number":
        _edit(copy.root / "zarr.json", rng)
    elif kind == "field":
        _edit(rng.choice([each for each in there if each.name == "zarr.json"] or [copy.root / "zarr.json"]), rng)
    return kind


def check_readers(copy: Copy, truths: dict[int, tuple[Truth, Truth]], resumes: bool) -> str:
    """Hold all that can be read of a damaged store against the truth; what came of it."""
    before, said = copy.state(), "harmless"
    outside = _read(copy.elsewhere)
    try:
        faults = pe.verify(copy.root)
        for fault in faults:
            one_sentence(fault)
        opened = Store.open(copy.root)
        whole, chunks = truths[opened.manifest.plan.seed]  # with the engine of another run, it is that run
        if faults:
            said = "found"
        elif opened.manifest.prepared is not None and (copy.root / "zarr.json").exists():
            _check_arrays(opened, chunks)  # as nothing is wrong, everything that xarray sees must be right
        assert_same(pe.load(copy.root, log_density), whole)
    except pe.StoreError as error:
        one_sentence(str(error))
        said = "found"
    assert copy.state() == before, "whoever reads a store has written to it"
    if resumes:
        said = _resume(copy, truths)
    assert _read(copy.elsewhere) == outside, "written through a link"
    return said


def one_sentence(said: str) -> None:
    """Whether it was told as it should be."""
    assert said.endswith("."), said
    assert "\n" not in said, said


def _resume(copy: Copy, truths: dict[int, tuple[Truth, Truth]]) -> str:
    write_often()
    try:
        result = pe.resume(copy.root, log_density, progress=False)
    except pe.StoreError as error:
        one_sentence(str(error))
        return "refused"
    assert result.num_draws == DRAWS
    assert_same(result, truths[result.seed][0])
    faults = [fault for fault in pe.verify(copy.root) if "start.npz" not in fault]  # which is not written again
    assert not faults, f"after resuming: {faults}"
    return "mended"


def _check_arrays(opened: Store, chunks: Truth) -> None:
    num_draws = draws_shown(opened).num_draws
    for column in opened.arrays.layout.columns:
        values = opened.arrays.read_draws(column, num_draws)
        np.testing.assert_array_equal(values, chunks[column.path][:, :num_draws], err_msg=column.path)


def _take(copy: Copy, other: Path, paths: list[Path]) -> None:
    """Put files of another store, or of another time, in their places."""
    for path in paths:
        source = other / path.relative_to(copy.root)
        if source.is_file():
            path.write_bytes(source.read_bytes())


def _edit(path: Path, rng: random.Random) -> None:
    """Another number in metadata."""
    try:
        content = json.loads(path.read_bytes())
        numbers = list(_numbers(content))
        holder, key = rng.choice(numbers)
    except (OSError, ValueError, IndexError):  # damaged before
        return
    holder[key] = rng.choice([-5, 0, 1, DRAWS - 1, DRAWS + 40, 10**9, "many", None, [1]])
    path.write_text(json.dumps(content))


def _numbers(content: Any) -> list[tuple[Any, str | int]]:
    """Where in JSON the numbers are."""
    items: Any = (
        content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    )
    found = []
    for key, value in items:
        found += [(content, key)] if isinstance(value, int) else _numbers(value)
    return found


def _read(path: Path) -> bytes | str | None:
    if path.is_symlink():
        return f"link to {path.readlink()}"
    return path.read_bytes() if path.is_file() else None
