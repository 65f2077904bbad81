"""One process at a time: the operating system's own lock, which a killed process cannot leave behind."""

import contextlib
import os
import socket
import stat
import weakref
from pathlib import Path

from pseudo_extended.store.files import SAFELY, BrokenFileError, read_file, replace_file

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_held: "weakref.WeakSet[Lock]" = weakref.WeakSet()


class StoreInUseError(RuntimeError):
    """Another run writes to the store."""


class Lock:
    """Held from `acquire` to `release`, or to the death of the process; a child that it forks does not hold it.

    The file itself stays empty, so that it does not matter what else it is linked to; who holds it is in the file
    `owner` beside it.
    """

    def __init__(self, path: Path, what: str, meanwhile: str = ""):
        self.path, self.what, self.meanwhile = path, what, meanwhile
        self.owner = path.with_name("owner")
        self._handle: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock."""
        return self._handle is not None

    def acquire(self) -> None:
        """Refuse, in a sentence, if somebody else has it."""
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0) | SAFELY, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise BrokenFileError(f"{self.path} is no plain file")
            _lock(handle)
        except (BlockingIOError, PermissionError):
            os.close(handle)
            raise StoreInUseError(
                f"{self.what} is being written by {self._who()}: wait for it, or stop it{self.meanwhile}."
            ) from None
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        _held.add(self)
        replace_file(self.owner, f"process {os.getpid()} on {socket.gethostname()}".encode(), durable=False)

    def release(self) -> None:
        """Let go; the file stays, because removing it would race with whoever opens it next."""
        if self._handle is not None:
            with contextlib.suppress(OSError):  # the directory may be gone
                self.owner.unlink(missing_ok=True)
            self.drop()

    def drop(self) -> None:
        """Close the file, and nothing else: as long as its parent has it open, a child's closing frees no lock."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        _held.discard(self)

    def _who(self) -> str:
        with contextlib.suppress(BrokenFileError, OSError):
            text = read_file(self.owner, most=300).decode(errors="replace")
            return "".join(letter for letter in text if letter.isprintable()) or "another process"
        return "another process"


def _drop_all() -> None:
    for lock in list(_held):
        lock.drop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_all)


def _lock(handle: int) -> None:
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # pyright: ignore[reportAttributeAccessIssue]
