"""Cells of a benchmark: each in a process of its own, with limits of time and memory, recorded as a line of JSON.

A cell is a dict of plain values (problem, method, seed, …), which is also its key in the file of records: a benchmark
that was stopped goes on with the cells that are missing. A script that uses this module calls `answer` first thing in
its `main`, which runs one cell if the process was started for one.
"""

import hashlib
import json
import lzma
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pseudo_extended

FLAG = "--one-cell"
POLL_SECONDS = 0.2
LIMIT = "took more than"

Cell = dict[str, Any]


@dataclass(frozen=True)
class Limits:
    """What one cell may take."""

    seconds: float
    """Of wall time; or of processor time, if `processor`."""
    gibibytes: float = 6.0
    processor: bool = False
    """Whether `seconds` are those of the processor; ten times as many of wall time end a cell then, too."""


def library_version() -> str:
    """Eight hexadecimal digits of a checksum of the library's source, whether it is committed or not."""
    digest = hashlib.sha256()
    folder = Path(pseudo_extended.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:8]


def answer(measure: Callable[[Cell], dict[str, Any]]) -> None:
    """Run one cell, write what `measure` says about it, and end, if this process was started for that."""
    if len(sys.argv) != 4 or sys.argv[1] != FLAG:
        return
    outcome = measure(json.loads(sys.argv[2]))
    Path(sys.argv[3]).write_text(json.dumps(outcome))
    sys.exit(0)


def run_cell(cell: Cell, limits: Limits) -> dict[str, Any]:
    """What `measure` says about the cell in a new process, with its costs, or `failed` and why."""
    with tempfile.TemporaryDirectory() as folder:
        outcome, log = Path(folder) / "outcome.json", Path(folder) / "log.txt"
        command = [sys.executable, sys.argv[0], FLAG, json.dumps(cell), str(outcome)]
        began = time.monotonic()
        with log.open("w") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            failed, usage = _wait(process, limits, began)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        costs = {
            "process_wall": round(time.monotonic() - began, 2),
            "process_cpu": round(usage.ru_utime + usage.ru_stime, 2),
            "process_gib": round(usage.ru_maxrss / 2**20, 2),
        }
        if failed is None and outcome.is_file():
            return json.loads(outcome.read_text()) | costs
        last = [line for line in log.read_text(errors="replace").splitlines() if line.strip()][-1:]
        return {"failed": failed or "".join(last)[:300] or "no outcome"} | costs


def _wait(process: subprocess.Popen[bytes], limits: Limits, began: float) -> tuple[str | None, Any]:
    """Until the process ends or passes a limit: which limit that was, and what the process used."""
    failed = None
    while True:
        ended, _, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            return failed, usage
        if failed is None:
            wall = time.monotonic() - began
            if limits.processor and _processor_seconds(process.pid) > limits.seconds:
                failed = f"{LIMIT} {limits.seconds:.0f} s of processor time"
            elif wall > limits.seconds * (10 if limits.processor else 1):
                failed = f"{LIMIT} {limits.seconds * (10 if limits.processor else 1):.0f} s"
            elif _resident_gibibytes(process.pid) > limits.gibibytes:
                failed = f"{LIMIT} {limits.gibibytes:g} GiB"
            if failed is not None:
                os.killpg(process.pid, signal.SIGKILL)
        time.sleep(POLL_SECONDS)


def _resident_gibibytes(pid: int) -> float:
    """Memory of a process; zero where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**30


def _processor_seconds(pid: int) -> float:
    """Processor time of a process; zero where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _lines(path: Path) -> list[str]:
    """The lines of a file, compressed or not; none if there is no file."""
    if not path.is_file():
        return []
    return (lzma.decompress(path.read_bytes()).decode() if path.suffix == ".xz" else path.read_text()).splitlines()


def recorded(path: Path) -> list[dict[str, Any]]:
    """All records of a file of JSON lines, those of its compressed part first."""
    lines = [*_lines(path.with_name(f"{path.name}.xz")), *_lines(path)]
    return [json.loads(line) for line in lines if line.endswith("}")]  # a process that was killed may leave half a line


class Records:
    """A file of JSON lines, each with a `cell` and its outcome; the last line of a cell counts.

    What is kept in the repository is compressed, in a file of the same name with .xz, which is read before it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = Records(Path(folder) / "records.jsonl")
    ...     records.add({"problem": "a", "seed": 0}, {"error": 0.5})
    ...     Records(records.path).get({"seed": 0, "problem": "a"})
    {'error': 0.5}
    """

    def __init__(self, path: Path):
        self.path = path
        self._known: dict[str, dict[str, Any]] = {}
        for record in recorded(path):
            self._known[_key(record["cell"])] = record["outcome"]

    def get(self, cell: Cell) -> dict[str, Any] | None:
        """The outcome of a cell, if it has one."""
        return self._known.get(_key(cell))

    def add(self, cell: Cell, outcome: dict[str, Any]) -> None:
        """Keep an outcome."""
        self._known[_key(cell)] = outcome
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps({"cell": cell, "outcome": outcome, "day": time.strftime("%Y-%m-%d")}) + "\n")

    def pack(self) -> None:
        """Put every record into the compressed file that the repository keeps."""
        shipped = self.path.with_name(f"{self.path.name}.xz")
        shipped.write_bytes(lzma.compress("\n".join([*_lines(shipped), *_lines(self.path), ""]).encode(), preset=9))
        self.path.unlink(missing_ok=True)

    def complete(
        self, cells: list[Cell], limits: Limits, *, again: bool = False, line: Callable[[Cell, dict[str, Any]], str]
    ) -> None:
        """Run the cells without an outcome and those that ended in an error (or all, `again`); a line about each."""
        for cell in cells:
            if again or not _is_final(self.get(cell)):
                self.add(cell, run_cell(cell, limits))
            outcome = self.get(cell)
            assert outcome is not None
            about = f"failed: {outcome['failed']}" if "failed" in outcome else line(cell, outcome)
            print(*(str(value) for value in cell.values()), about, flush=True)


def _is_final(outcome: dict[str, Any] | None) -> bool:
    """Whether there is nothing to gain from running a cell again: it has succeeded, or passed a limit."""
    return outcome is not None and outcome.get("failed", LIMIT).startswith(LIMIT)


def _key(cell: Cell) -> str:
    return json.dumps(cell, sort_keys=True)


def markdown(headings: list[str], rows: list[list[str]]) -> str:
    """A table.

    >>> print(markdown(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [headings, *rows]
    text = [f"| {' | '.join(cells)} |" for cells in lines]
    return "\n".join([text[0], "|" + "---|" * len(headings), *text[1:]])
