"""Draws that go into a store, and come back from it."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

import numpy as np

from pseudo_extended.methods import AbstractMethod, Chain
from pseudo_extended.run.advance import chain_from, chain_leaves
from pseudo_extended.run.axes import statistic_axes
from pseudo_extended.run.lanes import Lane
from pseudo_extended.run.program import Record
from pseudo_extended.run.recorder import Collected, Recorder
from pseudo_extended.store import (
    SEALS,
    Arrays,
    BrokenFileError,
    Column,
    DrawWriter,
    Layout,
    Seals,
    Store,
    StoreError,
    Values,
    constrainer,
    file_names,
    machine,
    resample_particles,
)
from pseudo_extended.target import Target

CHUNK_BYTES = 2**22
"""Of the points in a chunk on disk, about: the disk takes a millisecond for each file, whatever its size."""
RESULT_BYTES = 100 * 2**20
"""Of the draws that a result takes into memory; of a longer run it takes every second draw, or third, and so on."""
LEAST_SECONDS = 1.0
SHARE_OF_TIME = 100
"""A commit waits until a hundred times what the last one cost, here and on the disk's thread, has passed since."""
SECONDS_BETWEEN_VIEWS = 5.0
"""After which readers see new draws."""
NAMES = {"x": "weighted_points/x", "log_weight": "sample_stats/log_weight", "importance": "sample_stats/log_importance"}
CARRIER, FORMERLY = "sample_stats/carrier", "sample_stats/index"
"""A statistic of the default, and the name that older versions gave it: a run goes on under the name it began with."""


def layout_for(target: Target, method: AbstractMethod, num_chains: int, draw: Record) -> Layout:
    """The columns of a run's draws, from the shapes of one draw of a lane."""
    width = method.width
    skip = 1 if width > 1 else 0
    named = statistic_axes(method, {name: leaf.shape[skip:] for name, leaf in draw.statistics.items()})
    return columns_for(target, num_chains, width, draw, named)


def columns_for(
    target: Target, num_chains: int, width: int, draw: Record, named: Mapping[str, tuple[str, ...]]
) -> Layout:
    """The same where the axes of the statistics are known."""
    skip = 1 if width > 1 else 0
    named = dict(named)
    named |= {"log_weight": ("particle",), "x": ("particle", "coordinate")}
    num_particles, dim = draw.x.shape[skip:]
    columns = []
    for path, leaf in values_of(draw).items():
        group, name = path.split("/")
        shape = tuple(leaf.shape[skip:])
        columns.append(Column(group, name, np.dtype(leaf.dtype).name, shape, named.get(name, ())))
    columns.append(Column("sample_stats", "resampled_particle", "int64", (), ()))
    if draw.log_importance is None:  # else one point a draw would have to be weighted, and ArviZ knows no weights
        places = _places(target)
        for parameter in target.shown:
            dims = tuple(places[dim] for dim in parameter.dims)
            columns.append(Column("posterior", places[parameter.name], "float64", parameter.shape, dims))
    chunk = 2 ** int(np.log2(max(CHUNK_BYTES / (8 * width * num_particles * dim), 1)))
    return Layout(num_chains, width, int(np.clip(chunk, 16, 32768)), tuple(columns))


def values_of(record: Record) -> dict[str, Any]:
    """The arrays of a record by the path of their column."""
    values = {NAMES["x"]: record.x, NAMES["log_weight"]: record.log_weight}
    if record.log_importance is not None:
        values[NAMES["importance"]] = record.log_importance
    return values | {f"sample_stats/{name}": each for name, each in record.statistics.items()}


def has_old_names(layout: Layout) -> bool:
    """Whether these are draws of the default, made before its `index` was called `carrier`."""
    return {FORMERLY, "sample_stats/refresh_acceptance"} <= {column.path for column in layout.columns}


def statistics_by_name(values: Mapping[str, Any], layout: Layout) -> dict[str, Any]:
    """What is known of the columns of statistics, by the names that this version gives them."""
    renamed = {FORMERLY: CARRIER} if has_old_names(layout) else {}
    return {renamed.get(path, path).removeprefix("sample_stats/"): each for path, each in values.items()}


def read_record(arrays: Arrays, num_draws: int, seals: Seals | None, least_thin: int = 1) -> Collected:
    """The first draws, thinned evenly as far as the memory they may take asks for."""
    layout = arrays.layout
    size = layout.num_chains * num_draws * layout.bytes_per_draw("weighted_points", "sample_stats")
    thin = max(-(-size // RESULT_BYTES), least_thin)
    columns = {column.path: column for column in layout.columns if column.group != "posterior"}
    missing = {NAMES["x"], NAMES["log_weight"], "sample_stats/resampled_particle"} - columns.keys()
    if missing:
        raise BrokenFileError(f"{arrays.root} has no {sorted(missing)[0]}")
    columns.pop("sample_stats/resampled_particle")
    # From the end backwards, so that the newest draw is among them and the number of draws is what one expects.
    first = (num_draws - 1) % thin
    values = {path: arrays.read_draws(column, num_draws, thin, first, seals) for path, column in columns.items()}
    x, log_weight = (values.pop(NAMES[name]) for name in ("x", "log_weight"))
    importance = values.pop(NAMES["importance"], None)
    return Collected(x, log_weight, statistics_by_name(values, layout), importance, thin)


class Stored(Recorder):
    """Writes draws by chunk, and every now and then what is needed to go on."""

    def __init__(self, store: Store, target: Target, num_warmup: int):
        super().__init__()
        self.store = store
        arrays = store.arrays
        arrays.create()
        places = _places(target)
        arrays.label({places[axis]: labels for axis, labels in target.shown_coords})
        seed, width, chunk = store.manifest.plan.seed, arrays.layout.width, arrays.layout.chunk
        derive = partial(_derive, target, arrays.layout, seed, constrainer(target, width * chunk))
        self.writer = DrawWriter(arrays, store.snapshots, num_warmup, derive)
        self.saved: dict[int, int] = {}
        self.last = self.published = time.monotonic()
        self.cost = 0.0
        """Of the last commit, on the run's thread."""
        self.committing: tuple[Future[float], Future[float]] | None = None
        """The seconds of the disk's thread when it began with the last commit, and when it ended."""

    @property
    def num_draws(self) -> int:
        """The number of draws that every chain has."""
        return min(self.writer.num_draws)

    def restore(self, lanes: list[Lane], shapes: Callable[[], Chain]) -> None:
        """Put every lane where it can go on; `sentences` tell what was broken."""
        like = None
        self.warmup_evaluations = self.store.manifest.warmup_evaluations
        self.sentences += self.store.broken
        before = self.store.manifest.machine
        if before != machine():
            self.sentences.append(f"begun on {before}, goes on on {machine()}: the last digits of draws may differ.")
        for lane in lanes:
            found = self.writer.recover(lane.index)
            if found.snapshot is not None:
                like = shapes() if like is None else like
                try:
                    lane.chain, lane.done = chain_from(found.snapshot.leaves, like), found.snapshot.done
                except ValueError as error:
                    raise StoreError(f"store {str(self.store.root)!r} cannot be resumed: {error}.") from None
                self.saved[lane.index] = lane.done
            if found.broken:
                where = f"lane {lane.index} (chains {', '.join(map(str, np.ravel(lane.numbers)))})"
                self.sentences.append(f"{'; '.join(found.broken)}: {where} goes on from iteration {lane.done}.")
        self._seal_older()
        self.writer.publish()
        self.writer.disk.wait()

    def most(self, lane: Lane) -> int:
        """Up to the next state that is kept for good."""
        return self.writer.until_mark(lane.done)

    def add(self, lane: Lane, record: Record | None) -> None:
        """Whole chunks are on their way to the disk."""
        assert lane.chain is not None
        with self.lock:
            if record is not None:
                values = values_of(record)
                if has_old_names(self.store.arrays.layout):
                    values[FORMERLY] = values.pop(CARRIER)
                self.writer.append(lane.index, values)
            self.writer.keep_mark(lane.index, lane.done, partial(chain_leaves, lane.chain))

    def commit(self, lanes: list[Lane], *, force: bool = False) -> None:
        """Snapshots of the lanes that went on, and, less often, the new number of draws for readers."""
        began, disk = time.monotonic(), self.writer.disk
        if not force and not self._is_time(began):
            return
        with self.lock:
            before = disk.mark()
            changed = self._save(lanes)
            if changed and (force or began - self.published >= SECONDS_BETWEEN_VIEWS):
                self.writer.publish()
                self.published = began
            self.committing = before, disk.mark()
        if force:
            disk.wait()
        self.last = time.monotonic()
        self.cost = self.last - began

    def collect(self, most: int | None = None) -> Collected:
        """Read the draws from the files, thinned if there are very many; what is in no whole chunk is written first."""
        with self.lock:
            self.writer.show_tails()
            self.writer.disk.wait()
            num_draws = self.num_draws if most is None else min(self.num_draws, most)
            return read_record(self.writer.arrays, num_draws, self.writer.seals())

    def finish(self, lanes: list[Lane], most: int | None, stopped: str | None) -> None:
        """Everything to the disk, and into the manifest how it ended."""
        with self.lock:
            self._save(lanes)
            num_draws = self.writer.publish(most, durable=True)
            self.writer.disk.wait()
            self.store.write(num_draws=num_draws, stopped=stopped, warmup_evaluations=self.warmup_evaluations)

    def _seal_older(self) -> None:
        """Say, once, that chunks which an older version wrote are sealed from now on, as they were found."""
        manifest, num_draws = self.store.manifest, self.num_draws
        if not (manifest.sealed or (self.store.engine / SEALS).exists()) and num_draws:
            note = (
                f"the first {num_draws} draws of each chain were written by a version of this library that did not "
                "seal them; they are sealed from now on, as they were found."
            )
            self.sentences.append(note)
            self.store.write(notes=(*manifest.notes, note))

    def _is_time(self, now: float) -> bool:
        """Whether the last commit has ended, and was long enough ago; chunks on their way to the disk do not count."""
        cost = self.cost
        if self.committing is not None:
            before, after = self.committing
            if not after.done():
                return False
            cost += after.result() - before.result()
        return now - self.last >= max(LEAST_SECONDS, SHARE_OF_TIME * cost)

    def _save(self, lanes: list[Lane]) -> bool:
        """Snapshots of the lanes that went on since their last one; whether there are any."""
        changed = [lane for lane in lanes if lane.done != self.saved.get(lane.index, 0)]
        for lane in changed:
            assert lane.chain is not None
            if self.writer.num_draws[lane.index] != max(lane.done - self.writer.num_warmup, 0):
                continue  # an exception came between two halves of a step: the snapshot before it holds
            self.writer.save(lane.index, lane.done, chain_leaves(lane.chain))
            self.saved[lane.index] = lane.done
        return bool(changed)


def _derive(
    target: Target, layout: Layout, seed: int, constrain: Any, lane: int, first: int, values: Values
) -> dict[str, np.ndarray]:
    """The resampled point of each draw, in the user's space."""
    chains = np.arange(lane * layout.width, (lane + 1) * layout.width)
    index = resample_particles(values[NAMES["log_weight"]], seed, chains, first)
    derived = {"sample_stats/resampled_particle": index}
    if NAMES["importance"] in values:
        return derived
    x = np.take_along_axis(values[NAMES["x"]], index[..., None, None], axis=2)[:, :, 0]
    leaves = constrain(x.reshape(-1, target.dim))
    # By their order: an older version may have written them under other names.
    names = [column.path for column in layout.columns if column.group == "posterior"]
    return derived | {
        name: leaf.reshape(*x.shape[:2], *leaf.shape[1:]) for name, leaf in zip(names, leaves, strict=True)
    }


def _places(target: Target) -> dict[str, str]:
    """Names of parameters and of their axes as names of directories, none of them the same."""
    names = [parameter.name for parameter in target.shown]
    return file_names([*names, *(dim for parameter in target.shown for dim in parameter.dims)])
