"""Draws on their way into a store: gathered to whole chunks, with snapshots from which to go on."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pseudo_extended.store.arrays import Arrays
from pseudo_extended.store.disk import Disk
from pseudo_extended.store.files import flush_file
from pseudo_extended.store.snapshots import Snapshot, Snapshots

Values = dict[str, np.ndarray]
"""Draws of a lane by the path of their column, with leading axes (chain of the lane, draw)."""


class Recovered(NamedTuple):
    """Where a lane goes on, if anywhere, and what was found broken on the way."""

    snapshot: Snapshot | None
    broken: list[str]


class DrawWriter:
    """Takes the draws of each lane in their order.

    Whole chunks, snapshots that count on them, and the number of draws that readers see are given to `disk`, in this
    order, so that whoever brings draws does not wait for files.
    """

    def __init__(
        self, arrays: Arrays, snapshots: Snapshots, num_warmup: int, derive: Callable[[int, int, Values], Values]
    ):
        self.arrays, self.snapshots, self.num_warmup = arrays, snapshots, num_warmup
        self.derive = derive
        """Columns that are computed from the others: (lane, number of the first draw, values) -> values."""
        layout = arrays.layout
        self.chunk = layout.chunk
        self.buffers: list[Values] = [{} for _ in range(layout.num_lanes)]
        self._spare: list[Values] = []
        """Buffers whose chunk is written: fresh memory costs as much as the copy into it."""
        self.num_draws: list[int] = [0] * layout.num_lanes
        self._shown: list[int] = [0] * layout.num_lanes
        """Draws of each lane with a tail that is in the files."""
        self.disk = Disk()

    def recover(self, lane: int) -> Recovered:
        """The furthest whole snapshot all of whose chunks are whole too; its draws are taken over."""
        candidates, broken = self.snapshots.load(lane)
        whole = max((self._draws(snapshot.done) // self.chunk for snapshot in candidates), default=0)
        bad = self.arrays.first_broken(lane, whole)
        if bad is not None:
            broken.append(bad[1])
        good = whole if bad is None else bad[0]
        for snapshot in candidates:
            num_draws = self._draws(snapshot.done)
            if num_draws // self.chunk <= good:
                if snapshot is not candidates[0]:
                    self.snapshots.drop_beyond(lane, snapshot.done)
                self.num_draws[lane] = num_draws
                self._fill(lane, 0, snapshot.tail)
                return Recovered(snapshot, broken)
        self.snapshots.drop_beyond(lane, -1)
        return Recovered(None, broken)

    def append(self, lane: int, values: Values) -> None:
        """The next draws of a lane; chunks that they complete are on their way to the disk."""
        count, taken = len(next(iter(values.values()))[0]), 0
        while taken < count:
            filled = self.num_draws[lane] % self.chunk
            size = min(self.chunk - filled, count - taken)
            self._fill(lane, filled, {name: each[:, taken : taken + size] for name, each in values.items()})
            if filled + size == self.chunk:
                index = self.num_draws[lane] // self.chunk
                self.disk.make_room(2 * len(self.buffers))
                self.disk.give(partial(self._write_whole, lane, index, self.buffers[lane]))
                self.buffers[lane] = {}  # only now: a disk that refused before says so here, and nothing is lost
            self.num_draws[lane] += size
            taken += size

    def until_mark(self, done: int) -> int:
        """How many draws a lane may make before its state is to be kept for good: at 1, 2, 4, 8, … whole chunks."""
        mark, num_draws = self.chunk, self._draws(done)
        while mark <= num_draws:
            mark *= 2
        return mark - num_draws

    def keep_mark(self, lane: int, done: int, leaves: Callable[[], dict[str, np.ndarray]]) -> None:
        """Keep the state for good, if the draws begin here or a number of chunks that is a power of two is done."""
        num_chunks, rest = divmod(self._draws(done), self.chunk)
        if done >= self.num_warmup and rest == 0 and num_chunks & (num_chunks - 1) == 0:
            self.disk.give(partial(self.snapshots.keep, lane, num_chunks, Snapshot(done, leaves(), {})))

    def save(self, lane: int, done: int, leaves: dict[str, np.ndarray]) -> None:
        """A snapshot from which the lane goes on."""
        filled = self.num_draws[lane] % self.chunk
        tail = {name: values[:, :filled].copy() for name, values in self.buffers[lane].items()} if filled else {}
        self.disk.give(partial(self.snapshots.save, lane, Snapshot(done, leaves, tail)))

    def show_tails(self, *, durable: bool = False) -> None:
        """The last draws, which are no whole chunk yet, for readers; snapshots have what the run itself needs."""
        for lane, num_draws in enumerate(self.num_draws):
            if num_draws % self.chunk and (durable or self._shown[lane] != num_draws):
                self._write(lane, num_draws // self.chunk, self.buffers[lane], durable=durable)
                self._shown[lane] = num_draws

    def publish(self, most: int | None = None, *, durable: bool = False) -> int:
        """Show readers the draws that every chain has, or at most so many; how many that are."""
        num_draws = min(self.num_draws)
        num_draws = num_draws if most is None else min(num_draws, most)
        self.show_tails(durable=durable)
        if durable:
            self.disk.give(self.arrays.flush)
        self.disk.give(partial(self.arrays.publish, num_draws, durable=durable))
        return num_draws

    def _fill(self, lane: int, filled: int, values: Values) -> None:
        buffer = self.buffers[lane]
        if not buffer and self._spare:
            buffer = self.buffers[lane] = self._spare.pop()
        for name, each in values.items():
            if name not in buffer:
                buffer[name] = np.zeros((each.shape[0], self.chunk, *each.shape[2:]), each.dtype)
            buffer[name][:, filled : filled + each.shape[1]] = each

    def _write_whole(self, lane: int, index: int, values: Values) -> None:
        """A chunk that will not change any more, so that it lasts."""
        for path in self._write(lane, index, values, durable=False):
            flush_file(path)
        self.arrays.flush()
        self._spare.append(values)

    def _write(self, lane: int, index: int, values: Values, *, durable: bool) -> list[Path]:
        values = values | self.derive(lane, index * self.chunk, values)
        columns = self.arrays.layout.columns
        return [self.arrays.write(column, lane, index, values[column.path], durable=durable) for column in columns]

    def _draws(self, done: int) -> int:
        return max(done - self.num_warmup, 0)
