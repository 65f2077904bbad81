"""What a test may take: time, and memory beyond what its process had before."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS, SECONDS_IF_SLOW = 600.0, 3600.0
"""On a machine that has other work: alone, the longest fast test takes a minute."""
BYTES = 3 * 2**30


class LimitError(AssertionError):
    """A test took more than it may."""


@contextmanager
def limited_time(seconds: float) -> Iterator[None]:
    """Raise in the body when the time is over; whatever was inherited, and whoever ignores Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_: object) -> None:
        raise LimitError(f"the test took more than {seconds:g} seconds")

    before, began = signal.signal(signal.SIGALRM, ring), time.monotonic()
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)  # of a limit around this one
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, max(left - time.monotonic() + began, 0.01) if left else 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def limited_memory(num_bytes: float) -> Iterator[None]:
    """Fail after the body if at its peak this process took so much more than before."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is now what there is
    except OSError:  # not Linux, or not allowed
        yield
        return
    before = _memory("VmRSS")
    yield
    if (more := _memory("VmHWM") - before) > num_bytes:
        raise LimitError(f"the test took {more / 2**30:.1f} GiB of memory, and may take {num_bytes / 2**30:.1f}")


def _memory(name: str) -> int:
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return 1024 * int(lines[name].split()[0])
