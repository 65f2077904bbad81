"""Progress of an experiment: a bar with the time left in a terminal, a line a minute in a log."""

import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pseudo_extended_reproduction.cells import Cell

SECONDS_BETWEEN_LINES = 60.0


class Board:
    """Runs that ended, and how far the others are; a run can take half an hour."""

    def __init__(self, total: int, console: Console):
        self._total, self._console, self._finished = total, console, 0
        self._began = self._said = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"), console=console, disable=not console.is_terminal,
        )  # fmt: skip
        self._task = self._bar.add_task("starting", total=total, left="")

    def __enter__(self) -> "Board":
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        self._bar.stop()

    def finish(self, cell: Cell) -> None:
        """One more run has ended."""
        self._finished += 1
        if self._finished == self._total:
            self._said = 0.0  # the last line is written in any case
        self.show({cell: 0.0})

    def show(self, under_way: Mapping[Cell, float]) -> None:
        """How much of each run under way is done."""
        done, now = self._finished + sum(under_way.values()), time.monotonic()
        left = ""
        if 0 < done < self._total:
            left = f"about {duration((now - self._began) / done * (self._total - done))} left"
        runs = ", ".join(
            f"{cell.problem} {cell.method} run {cell.run}{f' {part:.0%}' if part else ''}"
            for cell, part in under_way.items()
        )
        self._bar.update(self._task, completed=done, description=runs or "starting", left=left)
        if not self._console.is_terminal and now - self._said > SECONDS_BETWEEN_LINES:
            self._said = now
            took = duration(now - self._began)
            line = f"{self._finished}/{self._total} runs, {took}{left and ', ' + left}; {runs}"
            self._console.print(line, soft_wrap=True)  # or a log would have lines of 80 letters


def duration(seconds: float) -> str:
    """Seconds, in the unit that reads best.

    >>> duration(42.3), duration(4000)
    ('42 s', '1 h 07 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
