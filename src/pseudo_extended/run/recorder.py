"""Recorders: the draws of a run go into memory or into a store."""

import threading
import time
from abc import ABC, abstractmethod
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from pseudo_extended.memory import free_memory
from pseudo_extended.run.lanes import Lane
from pseudo_extended.run.program import Record
from pseudo_extended.run.room import MEMORY_SHARE

SECONDS_BETWEEN_LOOKS = 1.0
"""At the memory that is free: other processes take some too."""
RESERVE = 0.1
"""Of the memory that is free when a run begins, which is left to other processes."""


class Collected(NamedTuple):
    """Draws of all chains, as NumPy arrays with leading axes (chain, draw)."""

    x: Float[np.ndarray, "chain draw particle d"]
    log_weight: Float[np.ndarray, "chain draw particle"]
    statistics: dict[str, np.ndarray]
    log_importance: Float[np.ndarray, "chain draw"] | None
    thinned: int
    """How many draws each of these stands for."""


class Recorder(ABC):
    """Takes draws as they come; `lock` is held while it changes, so that another thread may look."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.sentences: list[str] = []
        """What a user should know of what was found."""
        self.warmup_evaluations = 0
        """Of the density, in the warm-up of all chains that this process has seen."""

    @property
    @abstractmethod
    def num_draws(self) -> int:
        """The number of draws that every chain has."""

    @property
    def is_full(self) -> bool:
        """Whether there is no room for more."""
        return False

    def most(self, lane: Lane) -> int:
        """How many draws the lane may make before the recorder wants to see its state."""
        del lane
        return 2**62

    @abstractmethod
    def add(self, lane: Lane, record: Record | None) -> None:
        """A lane has advanced, with these draws or in warm-up."""

    @abstractmethod
    def commit(self, lanes: list[Lane], *, force: bool = False) -> None:
        """A moment at which to write down what there is, if it is time or must be."""

    @abstractmethod
    def collect(self, most: int | None = None) -> Collected:
        """The draws that every chain has, or at most so many."""

    @abstractmethod
    def finish(self, lanes: list[Lane], most: int | None, stopped: str | None) -> None:
        """The run is over, for now."""


class Memory(Recorder):
    """A recorder that keeps all draws in memory."""

    def __init__(self, num_lanes: int, num_chains: int):
        super().__init__()
        self.records: list[list[Record]] = [[] for _ in range(num_lanes)]
        self.counts = [0] * num_lanes
        self.num_chains = num_chains
        free = free_memory()
        self.bytes_left, self.bytes_reserved, self.bytes_kept = MEMORY_SHARE * free, RESERVE * free, 0
        self._looked = time.monotonic()

    @property
    def num_draws(self) -> int:
        """The number of draws that every chain has."""
        return min(self.counts)

    @property
    def is_full(self) -> bool:
        """Whether the machine would soon run out of memory: to join the draws takes as much again."""
        if self.num_draws and time.monotonic() - self._looked > SECONDS_BETWEEN_LOOKS:
            self._looked = time.monotonic()
            if free_memory() < self.bytes_kept + self.bytes_reserved:
                self.bytes_left = -1.0
        return self.bytes_left < 0

    def add(self, lane: Lane, record: Record | None) -> None:
        """Add the draws to the list."""
        if record is not None:
            with self.lock:
                self.records[lane.index].append(record)
                self.counts[lane.index] += record.x.shape[1]
                size = sum(leaf.nbytes for leaf in jax.tree.leaves(record))
                self.bytes_left -= size
                self.bytes_kept += size

    def commit(self, lanes: list[Lane], *, force: bool = False) -> None:
        """Do nothing: there is nothing to write."""

    def finish(self, lanes: list[Lane], most: int | None, stopped: str | None) -> None:
        """Do nothing: there is nothing to write."""

    def collect(self, most: int | None = None) -> Collected:
        """Return the draws that every chain has, or the first so many."""
        with self.lock:
            for records in self.records:  # joined for good: a second look joins only what is new
                records[:] = [jax.tree.map(lambda *chunks: np.concatenate(chunks, axis=1), *records)]
            joined = [records[0] for records in self.records]
            num_draws = self.num_draws if most is None else min(self.num_draws, most)
        record = jax.tree.map(lambda *parts: np.concatenate([part[:, :num_draws] for part in parts]), *joined)
        return Collected(*jax.tree.map(lambda leaf: leaf[: self.num_chains], record), thinned=1)
