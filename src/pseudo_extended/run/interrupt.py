"""Ctrl-C and SIGTERM as something that the loop asks about, and not an exception between any two lines of it.

A draw that is counted but not yet written, because an exception came in between, would be a wrong draw in a store.
"""

import signal
import threading
from types import FrameType
from typing import Any


class Interruptions:
    """While it is entered, counts Ctrl-C; the third of them is raised at once, whatever the loop does.

    When the draws are made, one more is counted and no more, so that it does not lose what took hours.

    SIGTERM, with which batch systems announce that they will kill, counts once, however often it is sent.
    """

    def __init__(self) -> None:
        self.count = 0
        self.most = 2
        """Of Ctrl-C that are only counted."""
        self.terminated = False
        """Whether SIGTERM came."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interruptions":
        # Only the main thread gets signals, and a handler of the user's own is left alone.
        if threading.current_thread() is threading.main_thread():
            for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
                if signal.getsignal(number) is default:
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def draws_are_made(self) -> None:
        """Say that there is little left to wait for: from now on a second Ctrl-C is raised."""
        self.most = self.count + 1

    def __exit__(self, *_: object) -> None:
        while self._before:
            signal.signal(*self._before.popitem())

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        if number == signal.SIGTERM:
            self.count, self.terminated = max(self.count, 1), True
            return
        self.count += 1
        if self.count > self.most:
            raise KeyboardInterrupt
