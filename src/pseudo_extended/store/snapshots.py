"""Snapshots of a lane: all that it needs to go on, in a file that vouches for itself.

Two slots are written in turn, so that one is whole at any moment. Besides them some are kept for good: when the draws
begin, and after 1, 2, 4, 8, … whole chunks. From these a run goes on if a chunk turns out to be broken, so at most half
of the draws before it are made again.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from pseudo_extended.store.files import ASIDE, BrokenFileError, read_sealed, write_sealed
from pseudo_extended.store.seals import number, text


class Snapshot(NamedTuple):
    """A lane after `done` iterations of warm-up and draws."""

    done: int
    leaves: dict[str, np.ndarray]
    """The arrays of the chain, by their path in its pytree."""
    tail: dict[str, np.ndarray]
    """Draws since the last whole chunk, by column."""
    whole: np.ndarray | None = None
    """(chunk, column): the CRCs of the whole chunks that it counts on; None if format 2 has written it."""


class Snapshots:
    """The snapshots of one run, in a directory."""

    def __init__(self, directory: Path, run: str):
        self.directory = directory
        self.run = run
        self._next_slot: dict[int, int] = {}

    def save(self, lane: int, snapshot: Snapshot) -> None:
        """Into the slot that holds the older one."""
        slot = self._next_slot.get(lane, 0)
        self._write(self.directory / f"lane-{lane}.{'ab'[slot]}", lane, snapshot)
        self._next_slot[lane] = 1 - slot

    def keep(self, lane: int, num_chunks: int, snapshot: Snapshot) -> None:
        """Keep a snapshot for good."""
        self._write(self.directory / f"lane-{lane}.chunk-{num_chunks}", lane, snapshot)

    def load(self, lane: int) -> tuple[list[Snapshot], list[str]]:
        """All that are whole, the furthest first, and sentences about those that are not."""
        found, broken = [], []
        slots: dict[int, int] = {}
        for path in self._paths(lane):
            try:
                snapshot = self._read(path, lane)
            except BrokenFileError as error:
                broken.append(str(error))
                continue
            found.append(snapshot)
            if path.suffix in (".a", ".b"):
                slots["ab".index(path.suffix[1])] = snapshot.done
        # The older one, or the one that is broken, is written next.
        self._next_slot[lane] = min((0, 1), key=lambda slot: slots.get(slot, -1))
        return sorted(found, key=lambda snapshot: -snapshot.done), broken

    def drop_beyond(self, lane: int, done: int) -> None:
        """Forget states that are further than where the lane goes on, as what they counted on is broken and made anew.

        Files that hold no state of this lane go too: a store that was resumed has nothing left that `verify` finds.
        """
        for path in self._paths(lane):
            try:
                is_beyond = self._read(path, lane).done > done
            except BrokenFileError:
                is_beyond = True
            if is_beyond:
                path.unlink()

    def _read(self, path: Path, lane: int) -> Snapshot:
        arrays = read_sealed(path)
        done, whole = number(arrays, "done"), arrays.get("whole")
        if text(arrays, "run") != self.run or number(arrays, "lane") != lane or done is None:
            raise BrokenFileError(f"{path} belongs to another run or lane")
        if whole is not None and (whole.dtype != np.uint32 or whole.ndim != 2):
            raise BrokenFileError(f"{path} has seals that are none")
        return Snapshot(done, _below("chain:", arrays), _below("tail:", arrays), whole)

    def _paths(self, lane: int) -> list[Path]:
        return sorted(path for path in self.directory.glob(f"lane-{lane}.*") if path.suffix != ASIDE)

    def _write(self, path: Path, lane: int, snapshot: Snapshot) -> None:
        arrays = {f"chain:{name}": leaf for name, leaf in snapshot.leaves.items()}
        arrays |= {f"tail:{name}": values for name, values in snapshot.tail.items()}
        arrays |= {} if snapshot.whole is None else {"whole": snapshot.whole}
        write_sealed(path, arrays | {k: np.asarray(v) for k, v in self._identity(lane, snapshot.done).items()})

    def _identity(self, lane: int, done: int) -> dict[str, str | int]:
        return {"run": self.run, "lane": lane, "done": done}


def _below(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
