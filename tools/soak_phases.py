"""What the runs of a victim are doing, in memory that whoever kills it can read."""

import functools
import mmap
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pseudo_extended.run import job, sample
from pseudo_extended.run.advance import LaneProgram
from pseudo_extended.run.stored import Stored
from pseudo_extended.store import Store, arrays, files, lock, manifest

FILES = {"c.": "chunk", "lane-": "snapshot", "seals": "seals", "zarr.json": "zarr.json", "manifest": "manifest"}
"""Kinds of files, by the beginnings of their names."""
PHASES = (
    *("checking", "opening", "preparing", "restoring", "compiling", "warm-up", "draws", "finishing", "summary"),
    *(f"writing a file: {kind}" for kind in (*FILES.values(), "other")),
    *("fsync", "rename"),
)


def kind_of(path: Path, *_: Any, **__: Any) -> str:
    """The phase in which a file is written."""
    return "writing a file: " + next((kind for start, kind in FILES.items() if path.name.startswith(start)), "other")


PLACES: tuple[tuple[Any, str, str | Callable[..., str]], ...] = (
    (sample, "check_densities", "checking"),
    (Store, "lock", "opening"),
    (job, "prepare", "preparing"),
    (job, "_workers", "compiling"),
    (job, "build_result", "summary"),
    (Stored, "restore", "restoring"),
    (Stored, "finish", "finishing"),
    (LaneProgram, "advance", lambda program, lane, segment: "warm-up" if segment.warming else "draws"),
    *((module, "replace_file", kind_of) for module in (files, arrays, lock, manifest)),
    (os, "fsync", "fsync"),
    (Path, "replace", "rename"),
)
"""Where each phase begins and ends: a class or module, a name in it, and the phase."""


class Phases:
    """Counts for each phase how often a victim has entered it, and how many of its threads are in it now."""

    def __init__(self, num_runs: int) -> None:
        memory = mmap.mmap(-1, 8 * 2 * (len(PHASES) + num_runs))  # shared with every fork
        counts = np.frombuffer(memory, np.int64)
        phases, runs = np.split(counts, [2 * len(PHASES)])
        self._inside, self._entered = phases.reshape(2, len(PHASES))
        self.under_way, self.ended = runs.reshape(2, num_runs)
        """Whether each run is under way, and how often it came to its end."""
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Before the next victim."""
        self._inside[:] = self._entered[:] = self.under_way[:] = self.ended[:] = 0

    @property
    def current(self) -> dict[str, int]:
        """How many threads of the victim are in each phase at this moment, or were when it died."""
        return {phase: int(count) for phase, count in zip(PHASES, self._inside, strict=True) if count > 0}

    @property
    def entered(self) -> dict[str, int]:
        """How often each phase was entered."""
        return dict(zip(PHASES, self._entered.tolist(), strict=True))

    def watch(self) -> None:
        """In the victim: report from now on."""
        for place, name, phase in PLACES:
            setattr(place, name, self._reporting(getattr(place, name), phase))
        for name in ("create", "open"):
            setattr(Store, name, staticmethod(self._reporting(getattr(Store, name), "opening")))

    def _reporting(self, function: Callable[..., Any], phase: str | Callable[..., str]) -> Any:
        @functools.wraps(function)
        def reporting(*arguments: Any, **options: Any) -> Any:
            name = phase if isinstance(phase, str) else phase(*arguments, **options)
            with self._in(PHASES.index(name)):
                return function(*arguments, **options)

        return reporting

    @contextmanager
    def _in(self, number: int) -> Iterator[None]:
        with self._lock:
            self._inside[number] += 1
            self._entered[number] += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside[number] -= 1
