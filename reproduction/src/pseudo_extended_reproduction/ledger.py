"""The ledger: one line a run in a file of JSON lines, and the draws that pictures need beside it."""

import json
import lzma
import os
from pathlib import Path
from typing import Any

import numpy as np

from pseudo_extended.store.lock import Lock
from pseudo_extended_reproduction.cells import Cell, Outcome

KEY = Cell._fields


class Ledger:
    """The runs recorded in a directory: those in `records.jsonl`, and before them a compressed `records.jsonl.xz`.

    A line that was cut off when its process was killed is not counted.
    """

    def __init__(self, directory: str | Path):
        self.directory = Path(directory)
        self.path = self.directory / "records.jsonl"
        shipped = self.directory / "records.jsonl.xz"
        self._records: dict[Cell, dict[str, Any]] = {}
        self._keeping: dict[Cell, Cell] = {}
        lines = lzma.decompress(shipped.read_bytes()).decode().splitlines() if shipped.is_file() else []
        if self.path.is_file():
            lines += self.path.read_text().splitlines()
        for line in lines:
            record = _parse(line)
            if record is not None:
                self._enter(Cell(*(record[name] for name in KEY)), record)

    def _enter(self, cell: Cell, record: dict[str, Any]) -> None:
        self._records[cell] = record
        self._keeping[cell._replace(keep=0)] = cell

    def _known(self, cell: Cell) -> Cell:
        """The same run may have been asked for with draws to keep."""
        return cell if cell.keep or cell in self._records else self._keeping.get(cell, cell)

    def __contains__(self, cell: Cell) -> bool:
        return self._known(cell) in self._records and (not cell.keep or self._kept_path(cell).is_file())

    def __len__(self) -> int:
        return len(self._records)

    def record(self, cell: Cell) -> dict[str, Any]:
        """Of a cell that was run."""
        return self._records[self._known(cell)]

    def kept(self, cells: list[Cell]) -> dict[Cell, np.ndarray]:
        """The draws that were kept of those cells, which were run and keep any."""
        found = [cell for cell in cells if cell.keep and cell in self]
        return {cell: np.load(self._kept_path(cell), allow_pickle=False)["draws"] for cell in found}

    def done(self, cells: list[Cell]) -> list[dict[str, Any]]:
        """The records of those cells that were run."""
        return [self.record(cell) for cell in cells if cell in self]

    def lock(self) -> Lock:
        """For the one process that may write."""
        self.directory.mkdir(parents=True, exist_ok=True)
        return Lock(self.directory / ".lock", f"the ledger in {str(self.directory)!r}")

    def add(self, cell: Cell, outcome: Outcome) -> None:
        """On disk when this returns."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if outcome.kept is not None:
            path = self._kept_path(cell)
            path.parent.mkdir(exist_ok=True)
            part = path.with_name("part.npz")
            np.savez_compressed(part, draws=outcome.kept)
            part.replace(path)
        line = json.dumps(outcome.record, ensure_ascii=False) + "\n"
        with self.path.open("a+b") as file:
            if file.tell() and not _ends_in_newline(self.path):
                line = "\n" + line
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
        self._enter(cell, outcome.record)

    def _kept_path(self, cell: Cell) -> Path:
        return self.directory / "draws" / f"{cell.problem}_{cell.method}_{cell.run}_{cell.draws}_{cell.keep}.npz"


def _parse(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and set(KEY) <= record.keys() else None


def _ends_in_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
