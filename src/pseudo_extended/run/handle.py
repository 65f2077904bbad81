"""A run in the background."""

import atexit
import concurrent.futures.thread  # noqa: F401, so that its hook is there before ours
import threading
import time
import weakref
from typing import Any

from pseudo_extended.results.result import Result
from pseudo_extended.run.control import Control
from pseudo_extended.run.job import carry_out
from pseudo_extended.run.preparing import Job
from pseudo_extended.run.progress import Status

SECONDS_TO_END = 20.0
"""How long the interpreter waits at its end for chunks under way; a program that is being compiled hears nothing."""
_RUNS: weakref.WeakSet["Run"] = weakref.WeakSet()


def _end_all() -> None:
    """Abort what still goes on when a script ends: XLA's threads must not outlive the interpreter, which would die."""
    alive = [run for run in _RUNS if not run.is_done]
    for run in alive:
        run._control.abort()
    until = time.monotonic() + SECONDS_TO_END
    for run in alive:
        run._join(max(until - time.monotonic(), 0.0))


# Executors refuse work from the moment that `concurrent.futures` hears of the end, and what goes to a store needs one.
# Only this hook of Python's own comes before, as it was registered later; it has no public name.
getattr(threading, "_register_atexit", atexit.register)(_end_all)


class Run:
    """A handle to a run that `pe.start` began, on a thread of its own."""

    def __init__(self, job: Job):
        self._control = Control()
        self._result: Result | None = None
        self._error: BaseException | None = None
        # A daemon, so that a script that ends without waiting ends: see `_end_all`.
        self._thread = threading.Thread(target=self._carry_out, args=(job,), daemon=True, name="pseudo-extended run")
        _RUNS.add(self)
        self._thread.start()

    @property
    def status(self) -> Status | None:
        """The progress of the run; None before the first iteration."""
        return self._control.status

    @property
    def num_draws(self) -> int:
        """The number of draws that every chain has so far."""
        return self._control.num_draws

    @property
    def is_done(self) -> bool:
        """Whether there is nothing to wait for."""
        return not self._thread.is_alive()

    @property
    def is_paused(self) -> bool:
        """Whether it waits for `unpause`."""
        return self._control.paused

    def inspect(self) -> Result:
        """The draws that every chain has so far; the run goes on meanwhile."""
        if self.is_done:
            return self.wait()
        inspect = self._control.inspect
        if inspect is None or not self.num_draws:
            raise RuntimeError("inspect needs a draw of every chain; the run is still in preparation or warm-up.")
        return inspect()

    def pause(self) -> None:
        """Let the chunks under way finish, and begin no more; a store has everything by then."""
        self._control.pause()

    def unpause(self) -> None:
        """Let a paused run go on."""
        self._control.unpause()

    def abort(self) -> Result:
        """Stop after the chunks under way; the draws that every chain has are kept, and returned."""
        self._control.abort()
        return self.wait()

    def wait(self, timeout: float | None = None) -> Result:
        """The result, when it is there; `TimeoutError` after `timeout` seconds, while the run goes on.

        Ctrl-C while waiting stops the run like Ctrl-C in `sample`.
        """
        try:
            self._join(timeout)
        except KeyboardInterrupt:
            self._control.abort()
            self._join(None)
        if self._thread.is_alive():
            raise TimeoutError(f"the run was not done after {timeout:g} s; it goes on.")
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def _join(self, timeout: float | None) -> None:
        self._thread.join(timeout)

    def _carry_out(self, job: Job) -> None:
        try:
            self._result = carry_out(job, self._control)
        except BaseException as error:  # raised again where somebody waits for it
            self._error = error

    def __repr__(self) -> str:
        state: Any = "done" if self.is_done else "paused" if self.is_paused else "running"
        where = self.status.describe() if self.status is not None else "preparing"
        return f"Run: {state}, {where}"
