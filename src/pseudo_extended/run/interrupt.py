"""Ctrl-C as something that the loop asks about, and not an exception between any two lines of it.

A draw that is counted but not yet written, because an exception came in between, would be a wrong draw in a store.
"""

import signal
import threading
from types import FrameType


class Interruptions:
    """While it is entered, counts Ctrl-C; the third of them is raised at once, whatever the loop does."""

    def __init__(self) -> None:
        self.count = 0
        self._installed = False

    def __enter__(self) -> "Interruptions":
        # Only the main thread gets signals, and a handler of the user's own is left alone.
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._handle)
            self._installed = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._installed = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.count += 1
        if self.count > 2:
            raise KeyboardInterrupt
