"""One process a store: the operating system's own lock, which a killed process cannot leave behind."""

import os
import socket
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class StoreInUseError(RuntimeError):
    """Another run writes to the store."""


class Lock:
    """Held from `acquire` to `release`, or to the death of the process."""

    def __init__(self, path: Path):
        self.path = path
        self._file: Any = None

    def acquire(self) -> None:
        """Refuse, in a sentence, if somebody else has it."""
        file = self.path.open("a+")
        try:
            _lock(file)
        except OSError:
            file.seek(0)
            owner = file.read().strip() or "another process"
            file.close()
            raise StoreInUseError(
                f"store {str(self.path.parent.parent)!r} is being written by {owner}: wait for it, or stop it; "
                "pe.load reads the draws meanwhile."
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}")
        file.flush()
        self._file = file

    def release(self) -> None:
        """Let go; the file stays, because removing it would race with whoever opens it next."""
        if self._file is not None:
            self._file.truncate(0)
            self._file.close()
            self._file = None


def _lock(file: Any) -> None:
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # pyright: ignore[reportAttributeAccessIssue]
