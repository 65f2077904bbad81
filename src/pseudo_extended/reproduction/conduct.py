"""Carrying out cells: on some threads of this machine, or on a cluster; what is done is in the ledger at once."""

import os
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pseudo_extended import checks
from pseudo_extended.problems.files import VARIABLE
from pseudo_extended.reproduction.cells import Cell, Outcome, run_cell
from pseudo_extended.reproduction.ledger import Ledger

SECONDS_BETWEEN_LINES = 60.0


def conduct(cells: Iterable[Cell], ledger: Ledger, *, jobs: int = 1, cluster: Any = None, console: Console) -> None:
    """Run what the ledger does not have yet. Numbers depend neither on `jobs` nor on the cluster.

    After Ctrl-C the cells under way are dropped, those that ended are in the ledger, and KeyboardInterrupt goes on up.
    """
    jobs = checks.integer("jobs", jobs, minimum=1)
    todo = [cell for cell in dict.fromkeys(cells) if cell not in ledger]
    if not todo:
        return
    lock = ledger.lock()
    lock.acquire()
    try:
        with _progress(len(todo), console) as tell:
            for cell, outcome in _on_cluster(todo, cluster) if cluster is not None else _on_threads(todo, jobs):
                ledger.add(cell, outcome)
                tell(cell, outcome)
    finally:
        lock.release()


def _on_threads(cells: list[Cell], jobs: int) -> Iterator[tuple[Cell, Outcome]]:
    """As many methods at a time as there are threads: runs of one share its compiled programs, but wait for them."""
    stop = threading.Event()
    pool = ThreadPoolExecutor(jobs)
    running: dict[Future[Outcome], Cell] = {
        pool.submit(run_cell, cell, stop.is_set): cell for cell in interleaved(cells, jobs)
    }
    try:
        while running:
            done, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)  # a wait for ever would not see Ctrl-C
            for future in sorted(done, key=lambda future: future.exception() is not None):  # keep what can be kept
                yield running.pop(future), future.result()
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def interleaved(cells: list[Cell], jobs: int) -> list[Cell]:
    """In the order of their methods, `jobs` methods at a time, of which each run is followed by one of the next method.

    >>> cells = [Cell("problem", method, run, 10) for method in "abc" for run in range(2)]
    >>> [f"{cell.method}{cell.run}" for cell in interleaved(cells, jobs=2)]
    ['a0', 'b0', 'a1', 'b1', 'c0', 'c1']
    """
    rows: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        rows.setdefault((cell.problem, cell.method), []).append(cell)
    each = list(rows.values())
    turns = [turn for first in range(0, len(each), jobs) for turn in zip_longest(*each[first : first + jobs])]
    return [cell for turn in turns for cell in turn if cell is not None]


def _on_cluster(cells: list[Cell], client: Any) -> Iterator[tuple[Cell, Outcome]]:
    from distributed import as_completed

    run = partial(run_cell, data=os.environ.get(VARIABLE))
    futures = dict(zip(client.map(run, cells, pure=False), cells, strict=True))
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        client.cancel(list(futures))


@contextmanager
def _progress(total: int, console: Console) -> Iterator[Any]:
    """A bar with the time left in a terminal; in a log a line a minute."""
    began, said, finished = time.monotonic(), 0.0, 0

    def describe(cell: Cell) -> str:
        return f"{cell.problem} {cell.method} run {cell.run}"

    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"), console=console, disable=not console.is_terminal,
    )  # fmt: skip
    task = bar.add_task("starting", total=total, left="")

    def tell(cell: Cell, outcome: Outcome) -> None:
        nonlocal said, finished
        del outcome
        finished += 1
        now = time.monotonic()
        left = _duration((now - began) / finished * (total - finished)) + " left"
        bar.update(task, advance=1, description=describe(cell), left=left)
        if not console.is_terminal and (now - said > SECONDS_BETWEEN_LINES or finished == total):
            said = now
            console.print(f"{finished}/{total} runs, {_duration(now - began)}, about {left}; last: {describe(cell)}")

    with bar:
        yield tell


def _duration(seconds: float) -> str:
    """Seconds, in the unit that reads best.

    >>> _duration(42.3), _duration(4000)
    ('42 s', '1 h 07 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
