"""What can be said to a run on its way, from a callback or another thread, and what it says of itself."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pseudo_extended.results.result import Result
from pseudo_extended.run.progress import Status


class Control:
    """Pause, go on, stop; `inspect` gives the draws there are."""

    def __init__(self) -> None:
        self._going = threading.Event()
        self._going.set()
        self._aborted = False
        self.status: Status | None = None
        """The newest; None before the first iteration."""
        self.num_draws = 0
        """That every chain has."""
        self.inspect: Callable[[], Result] | None = None
        """Set when there are lanes to look at."""

    def pause(self) -> None:
        """No new chunk begins."""
        self._going.clear()

    def unpause(self) -> None:
        """Let a paused run go on."""
        self._going.set()

    def abort(self) -> None:
        """Stop after the chunks under way, and keep their draws."""
        self._aborted = True
        self._going.set()

    @property
    def paused(self) -> bool:
        """Whether it is to wait."""
        return not self._going.is_set()

    @property
    def aborted(self) -> bool:
        """Whether it is to stop."""
        return self._aborted

    def wait(self, seconds: float) -> None:
        """Until it may go on, or so long."""
        self._going.wait(seconds)


@dataclass(frozen=True)
class Running:
    """A run on its way, as a callback sees it. What costs something is computed when it is asked for."""

    status: Status
    """Iterations so far and in all, rate, divergences, time left; `describe()` puts it into a line."""
    num_draws: int
    """That every chain has."""
    seconds: float
    """Since the first iteration."""
    inspect: Callable[[], Result]
    """The draws so far as a `Result`."""

    @cached_property
    def result(self) -> Result:
        """The draws so far."""
        if not self.num_draws:
            raise ValueError("result needs a draw of every chain; the run is still in warm-up.")
        return self.inspect()

    @property
    def r_hat(self) -> float:
        """The worst of all coordinates; nan in warm-up."""
        return float(np.max(self._summary["r_hat"])) if self.num_draws >= 8 else float("nan")

    @property
    def ess(self) -> float:
        """The least of all coordinates; nan in warm-up."""
        return float(np.min(self._summary["ess"])) if self.num_draws >= 8 else float("nan")

    @cached_property
    def _summary(self) -> dict[str, np.ndarray]:
        table = self.result.summary()
        return {name: table[name].to_numpy() for name in ("r_hat", "ess")}


Callback = Callable[[Running], object]
"""Called after every chunk; a return value that is true ends the run, which keeps its draws."""
