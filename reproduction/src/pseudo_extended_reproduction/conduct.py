"""Carrying out cells: on some threads of this machine, or on a cluster; what is done is in the ledger at once."""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from itertools import zip_longest
from typing import Any

from rich.console import Console

from pseudo_extended import checks
from pseudo_extended.problems.files import VARIABLE
from pseudo_extended_reproduction.board import Board
from pseudo_extended_reproduction.cells import Cell, Outcome, run_cell
from pseudo_extended_reproduction.ledger import Ledger


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
        with Board(len(todo), console) as board:
            ended = _on_cluster(todo, cluster) if cluster is not None else _on_threads(todo, jobs, board)
            for cell, outcome in ended:
                ledger.add(cell, outcome)
                board.finish(cell)
    finally:
        lock.release()


class _Watch:
    """Sees how far runs are, from their own threads, and tells them to stop."""

    def __init__(self) -> None:
        self.done: dict[Cell, float] = {}
        self.is_stopped = False

    def __call__(self, cell: Cell, part: float) -> bool:
        self.done[cell] = part
        return self.is_stopped


def _on_threads(cells: list[Cell], jobs: int, board: Board) -> Iterator[tuple[Cell, Outcome]]:
    """As many methods at a time as there are threads: runs of one share its compiled programs, but wait for them."""
    watch, pool = _Watch(), ThreadPoolExecutor(jobs)
    running: dict[Future[Outcome], Cell] = {
        pool.submit(run_cell, cell, watch): cell for cell in interleaved(cells, jobs)
    }
    try:
        while running:
            done, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)  # a wait for ever would not see Ctrl-C
            for future in sorted(done, key=lambda future: future.exception() is not None):  # keep what can be kept
                yield running.pop(future), future.result()
            if not done:
                board.show({cell: watch.done[cell] for cell in running.values() if cell in watch.done})
    finally:
        watch.is_stopped = True
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
