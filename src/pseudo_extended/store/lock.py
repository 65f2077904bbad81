"""One process at a time: the operating system's own lock, which a killed process cannot leave behind."""

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

    def __init__(self, path: Path, what: str, meanwhile: str = ""):
        self.path, self.what, self.meanwhile = path, what, meanwhile
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
                f"{self.what} is being written by {owner}: wait for it, or stop it{self.meanwhile}."
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
