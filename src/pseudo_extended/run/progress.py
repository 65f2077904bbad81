"""Progress of a run: a bar in a terminal or notebook, a line now and then in a log, or nothing."""

import sys
import time
from abc import ABC, abstractmethod
from html import escape
from importlib import import_module
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pseudo_extended import checks


class Status(NamedTuple):
    """The progress of a run, summed over its chains."""

    done: int
    total: int
    warming: bool
    divergences: int
    rate: float
    """Iterations a second."""
    may_grow: bool = False
    """Whether the total is the fewest that are possible, as a rule that ends the run has not been asked yet."""

    @property
    def seconds_left(self) -> float:
        """The seconds left at the present rate."""
        return (self.total - self.done) / self.rate if self.rate > 0 else float("inf")

    def describe(self) -> str:
        """One line.

        >>> Status(500, 2000, False, 3, 250.0).describe()
        'sampling 500/2000 (25%), 250 it/s, 3 divergences, 6 s left'
        >>> Status(500, 2000, True, 0, 250.0, may_grow=True).describe()
        'warm-up 500/2000 (25%), 250 it/s, 0 divergences, at least 6 s left'
        """
        least = "at least " if self.may_grow else ""
        phase = "warm-up" if self.warming else "sampling"
        percent = 100 * self.done // max(self.total, 1)
        rate = f"{self.rate:.0f} it/s" if self.rate >= 10 else f"{self.rate:.2g} it/s"
        return (
            f"{phase} {self.done}/{self.total} ({percent}%), {rate}, "
            f"{self.divergences} divergences, {least}{self.seconds_left:.0f} s left"
        )


class Reporter(ABC):
    """Shows a status; `close` is called once, also after an interruption."""

    @abstractmethod
    def say(self, text: str) -> None:
        """Something that is not a status, such as that it compiles."""

    @abstractmethod
    def note(self, text: str) -> None:
        """A whole sentence, for the user to read."""

    @abstractmethod
    def show(self, status: Status) -> None:
        """Show the newest status of the run."""

    @abstractmethod
    def close(self) -> None:
        """Nothing more will come."""


class Silent(Reporter):
    """A reporter that shows nothing."""

    def say(self, text: str) -> None:
        """Ignore what is going on."""

    def note(self, text: str) -> None:
        """Ignore a note to the user."""

    def show(self, status: Status) -> None:
        """Ignore the newest status."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class Lines(Reporter):
    """A plain line every ten seconds and at the end, for logs."""

    def __init__(self, seconds: float = 10.0):
        self.seconds = seconds
        self.last = time.monotonic()

    def say(self, text: str) -> None:
        """A line at once."""
        sys.stderr.write(f"pseudo-extended: {text}\n")
        sys.stderr.flush()

    def note(self, text: str) -> None:
        """A line at once."""
        self.say(text)

    def show(self, status: Status) -> None:
        """A line if the last is old enough, or the run is over."""
        if time.monotonic() - self.last >= self.seconds or status.done == status.total:
            self.last = time.monotonic()
            self.say(status.describe())

    def close(self) -> None:
        """Lines need no end."""


class Bar(Reporter):
    """A live bar with rate, divergences and time left."""

    def __init__(self, console: Console):
        self.progress = Progress(
            TextColumn("{task.description:<9}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[divergences]} divergences"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console,
        )
        self.task = self.progress.add_task("compiling", total=None, rate="", divergences=0)
        self.progress.start()

    def say(self, text: str) -> None:
        """Show what is going on as the bar's title."""
        self.progress.update(self.task, description=text)

    def note(self, text: str) -> None:
        """A line above the bar."""
        self.progress.console.print(f"pseudo-extended: {text}", highlight=False)

    def show(self, status: Status) -> None:
        """Move the bar to the newest status."""
        self.progress.update(
            self.task,
            description="warm-up" if status.warming else "sampling",
            completed=status.done,
            total=status.total,
            rate=f"{status.rate:,.0f} it/s" if status.rate >= 10 else f"{status.rate:.2g} it/s",
            divergences=status.divergences,
        )

    def close(self) -> None:
        """Leave the bar as it is."""
        self.progress.stop()


class Page(Reporter):
    """One line of a notebook's output that changes in place: no widgets are needed, and nothing piles up."""

    def __init__(self, seconds: float = 0.3):
        self.seconds = seconds
        self.last = -float("inf")
        self.display: Any = import_module("IPython.display")
        self.notes: list[str] = []
        self.text = "preparing"
        self.share = 0.0
        self.handle: Any = self.display.display(self._page(), display_id=True)

    def say(self, text: str) -> None:
        """Show what is going on as the line's text."""
        self.text = text
        self._update()

    def note(self, text: str) -> None:
        """A line above it, which stays."""
        self.notes.append(text)
        self._update()

    def show(self, status: Status) -> None:
        """Move the bar, a few times a second at most, and at the end."""
        self.text, self.share = status.describe(), status.done / max(status.total, 1)
        if time.monotonic() - self.last >= self.seconds or status.done == status.total:
            self._update()

    def close(self) -> None:
        """Leave the line as it is."""
        self._update()

    def _update(self) -> None:
        self.last = time.monotonic()
        if self.handle is not None:
            self.handle.update(self._page())

    def _page(self) -> Any:
        above = "".join(f"<div>{escape(note)}</div>" for note in self.notes)
        bar = f'<progress value="{self.share:.4f}" max="1" style="width:14em;vertical-align:middle"></progress>'
        return self.display.HTML(f'{above}<div>{bar} <span style="margin-left:6px">{escape(self.text)}</span></div>')


def in_notebook() -> bool:
    """Whether IPython runs as the kernel of a notebook; a plain IPython has a terminal."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def reporter(progress: bool) -> Reporter:
    """The reporter that suits where the output goes."""
    if not checks.choice("progress", progress, (True, False)):
        return Silent()
    if in_notebook():
        return Page()
    console = Console(stderr=True)
    return Bar(console) if console.is_terminal else Lines()
