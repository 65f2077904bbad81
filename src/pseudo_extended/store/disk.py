"""A thread that writes files and makes them last, so that sampling need not wait for the disk."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class Disk:
    """Does what it is given one after the other, so that each may count on what was given before.

    After the first failure it does nothing more: a snapshot must not say that chunks are there which the disk refused.
    What failed is raised where the next thing is given or waited for.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        """That it was at work."""
        self._thread = ThreadPoolExecutor(1)
        self._pending: list[Future[None]] = []
        self._failure: Exception | None = None

    @property
    def is_busy(self) -> bool:
        """Whether anything is still to be done."""
        self._pending = [each for each in self._pending if not each.done()]
        return bool(self._pending)

    def give(self, work: Callable[[], object]) -> None:
        """Hand over `work` for later."""
        self._raise_failure()
        self._pending.append(self._thread.submit(self._do, work))

    def mark(self) -> "Future[float]":
        """`seconds`, when all is done that was given before."""
        return self._thread.submit(lambda: self.seconds)

    def make_room(self, most: int) -> None:
        """Wait until at most so many things are still to be done: what they hold is in memory."""
        while self.is_busy and len(self._pending) > most:
            self._pending[0].result()

    def wait(self) -> None:
        """Until all is done."""
        for each in self._pending:
            each.result()
        self._pending = []
        self._raise_failure()

    def _do(self, work: Callable[[], object]) -> None:
        if self._failure is None:
            began = time.monotonic()
            try:
                work()
            except Exception as error:  # whatever it is: it belongs to whoever gave the work
                self._failure = error
            self.seconds += time.monotonic() - began

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
