"""Processor time of the last part of a call that tells how long, on the wall, that part was.

On a shared machine the wall clock measures the neighbours too. `pe.sample` reports seconds for compiling and for
running; a thread notes wall and processor time now and then, and so knows the processor time of the run alone.
"""

import threading
import time
from types import TracebackType

import numpy as np

INTERVAL = 0.01


class ProcessorClock:
    """Notes (wall, processor) times of this process while its block runs.

    >>> with ProcessorClock() as clock:
    ...     number = sum(range(10**6))
    >>> 0 <= clock.of_last(1e9)
    True
    """

    def __init__(self) -> None:
        self._notes: list[tuple[float, float]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "ProcessorClock":
        self._note()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._note()
        self._stop.set()
        self._thread.join()

    def of_last(self, wall_seconds: float) -> float:
        """Processor seconds, of all threads, in the last `wall_seconds` of the block."""
        wall, processor = np.array(sorted(self._notes)).T
        return float(processor[-1] - np.interp(wall[-1] - wall_seconds, wall, processor))

    def _note(self) -> None:
        self._notes.append((time.perf_counter(), time.process_time()))

    def _watch(self) -> None:
        while not self._stop.wait(INTERVAL):
            self._note()
