"""Draws on their way into a store: gathered to whole chunks, with snapshots from which to go on."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pseudo_extended.store.arrays import Arrays, crc_of_first
from pseudo_extended.store.disk import Disk
from pseudo_extended.store.files import flush_file
from pseudo_extended.store.seals import LaneSeal, Seals, write_seals
from pseudo_extended.store.snapshots import Snapshot, Snapshots

Values = dict[str, np.ndarray]
"""Draws of a lane by the path of their column, with leading axes (chain of the lane, draw)."""


class Recovered(NamedTuple):
    """The place from which a lane goes on, if any, and what was found broken on the way."""

    snapshot: Snapshot | None
    broken: list[str]


class Written(NamedTuple):
    """A chunk in its file."""

    path: Path
    crc: int
    values: np.ndarray


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
        self._whole: list[list[list[int]]] = [[] for _ in range(layout.num_lanes)]
        """By lane, chunk and column: the CRCs of the whole chunks in the files. The disk's thread alone adds to it."""
        self._tails: list[list[int]] = [[] for _ in range(layout.num_lanes)]
        """By lane and column: the CRCs of the draws after them."""
        self.disk = Disk()

    def recover(self, lane: int) -> Recovered:
        """The furthest whole snapshot all of whose chunks are whole too, and its own; its draws are taken over."""
        loaded, broken = self.snapshots.load(lane)
        candidates = [snapshot for snapshot in loaded if self._fits(snapshot)]
        if len(candidates) < len(loaded):
            broken.append(f"a snapshot of lane {lane} in {self.snapshots.directory} does not fit its run")
        needed = max((self._draws(snapshot.done) // self.chunk for snapshot in candidates), default=0)
        found, damage = self.arrays.checksums(lane, needed)
        broken += [] if damage is None else [damage]
        for snapshot in candidates:
            place = None if snapshot.whole is None else _first_difference(found, snapshot.whole)
            if place is not None:
                wrong = self.arrays.file(self.arrays.layout.columns[place[1]], lane, place[0])
                broken.append(f"{wrong} is whole, but is not the chunk that was written at its place")
                found = found[: place[0]]
        for snapshot in candidates:
            num_draws = self._draws(snapshot.done)
            num_whole = num_draws // self.chunk
            if num_whole <= len(found):
                if broken:
                    self.snapshots.drop_beyond(lane, snapshot.done)
                self.num_draws[lane] = num_draws
                self._whole[lane] = found[:num_whole]
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
            keep = partial(self.snapshots.keep, lane, num_chunks)
            self.disk.give(partial(self._snapshot, keep, lane, Snapshot(done, leaves(), {})))

    def save(self, lane: int, done: int, leaves: dict[str, np.ndarray]) -> None:
        """A snapshot from which the lane goes on."""
        filled = self.num_draws[lane] % self.chunk
        tail = {name: values[:, :filled].copy() for name, values in self.buffers[lane].items()} if filled else {}
        self.disk.give(partial(self._snapshot, partial(self.snapshots.save, lane), lane, Snapshot(done, leaves, tail)))

    def show_tails(self, *, durable: bool = False) -> None:
        """The last draws, which are no whole chunk yet, for readers; snapshots have what the run itself needs."""
        for lane, num_draws in enumerate(self.num_draws):
            if num_draws % self.chunk and (durable or self._shown[lane] != num_draws):
                written = self._write(lane, num_draws // self.chunk, self.buffers[lane], durable=durable)
                self._tails[lane] = [crc_of_first(chunk.values, num_draws % self.chunk) for chunk in written]
                self._shown[lane] = num_draws

    def publish(self, most: int | None = None, *, durable: bool = False) -> int:
        """Show readers the draws that every chain has, or at most so many; how many that are."""
        num_draws = min(self.num_draws)
        num_draws = num_draws if most is None else min(num_draws, most)
        self.show_tails(durable=durable)
        if durable:
            self.disk.give(self.arrays.flush)
        self.disk.give(partial(self._publish, num_draws, [*self.num_draws], [*self._tails], durable=durable))
        return num_draws

    def seals(self) -> Seals:
        """Return the seals of all chunks; call it after `show_tails`, when the disk has nothing to do."""
        return self._seals(min(self.num_draws), self.num_draws, self._tails)

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
        written = self._write(lane, index, values, durable=False)
        for chunk in written:
            flush_file(chunk.path)
        self.arrays.flush()
        self._whole[lane][index:] = [[chunk.crc for chunk in written]]
        self._spare.append(values)

    def _write(self, lane: int, index: int, values: Values, *, durable: bool) -> list[Written]:
        values = values | self.derive(lane, index * self.chunk, values)
        written = []
        for column in self.arrays.layout.columns:
            each = np.asarray(values[column.path], np.dtype(column.dtype))
            written.append(Written(*self.arrays.write(column, lane, index, each, durable=durable), each))
        return written

    def _snapshot(self, write: Callable[[Snapshot], None], lane: int, snapshot: Snapshot) -> None:
        """Make a snapshot with the seals of the chunks before it, all of which are on the disk by now."""
        num_whole = self._draws(snapshot.done) // self.chunk
        write(snapshot._replace(whole=self._crcs(lane, num_whole)))

    def _publish(self, num_draws: int, counts: list[int], tails: list[list[int]], *, durable: bool) -> None:
        """The seals first: what they say of fewer draws than readers see is still true."""
        write_seals(self.snapshots.directory, self.snapshots.run, self._seals(num_draws, counts, tails), durable=True)
        self.arrays.publish(num_draws, durable=durable)

    def _seals(self, num_draws: int, counts: list[int], tails: list[list[int]]) -> Seals:
        lanes = [
            LaneSeal(
                count,
                self._crcs(lane, count // self.chunk),
                np.asarray(tails[lane] if count % self.chunk else [], np.uint32),
            )
            for lane, count in enumerate(counts)
        ]
        return Seals(num_draws, tuple(lanes), self.arrays.label_digests)

    def _crcs(self, lane: int, num_whole: int) -> np.ndarray:
        columns = len(self.arrays.layout.columns)
        return np.asarray(self._whole[lane][:num_whole], np.uint32).reshape(num_whole, columns)

    def _fits(self, snapshot: Snapshot) -> bool:
        """Whether it can be one of this run: the file may be somebody else's."""
        layout = self.arrays.layout
        num_whole, rest = divmod(self._draws(snapshot.done), self.chunk)
        if snapshot.whole is not None and snapshot.whole.shape != (num_whole, len(layout.columns)):
            return False
        if not rest:
            return not snapshot.tail
        known = {column.path: column for column in layout.columns}
        return len(snapshot.tail) > 0 and all(
            path in known
            and values.dtype == np.dtype(known[path].dtype)
            and values.shape == (layout.width, rest, *known[path].shape)
            for path, values in snapshot.tail.items()
        )

    def _draws(self, done: int) -> int:
        return max(done - self.num_warmup, 0)


def _first_difference(found: list[list[int]], sealed: np.ndarray) -> tuple[int, int] | None:
    """The first chunk and column whose CRC is another than the sealed one, among those that both have."""
    overlap = min(len(found), len(sealed))
    places = np.argwhere(np.asarray(found[:overlap], np.uint32).reshape(overlap, sealed.shape[1]) != sealed[:overlap])
    return (int(places[0][0]), int(places[0][1])) if len(places) else None
