"""Before the first iteration: where chains start and what the method learns, taken from the store if it is there."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from pseudo_extended.methods import AbstractMethod, AbstractPreparedMethod
from pseudo_extended.run.advance import Keys
from pseudo_extended.run.defaults import notes_about
from pseudo_extended.run.program import lane_shapes
from pseudo_extended.run.progress import Reporter
from pseudo_extended.run.settings import Draws, Schedule, code_of_rule, settled
from pseudo_extended.run.starts import starting_points
from pseudo_extended.run.stored import layout_for
from pseudo_extended.stopping import AbstractStoppingRule
from pseudo_extended.store import (
    BrokenFileError,
    CodeError,
    Layout,
    Manifest,
    NotStoredError,
    Prepared,
    Store,
    StoreError,
    UnknownTagError,
    decode,
    encode,
    fingerprint_function,
    fingerprint_target,
    fingerprint_versions,
    holds_functions,
    machine,
)
from pseudo_extended.target import Target

Points = Float[np.ndarray, "chain particle d"]


@dataclass
class Job:
    """A run to carry out."""

    target: Target
    method: AbstractMethod
    """As the user gave it, before it has learned anything."""
    draws: Draws
    schedule: Schedule
    store: Store | None
    """Open and locked."""
    rule: AbstractStoppingRule | None = None
    """With which the run may end before its last draw."""
    init: Any = None
    """Where to start; of no use once the starting points are stored."""
    doubts: tuple[str, ...] = ()
    room: str | None = None
    """That its draws will not fit into memory, if they will not."""

    @property
    def is_new(self) -> bool:
        """Whether there is nothing to go on from."""
        return self.store is None or self.store.begun is None


class Ready(NamedTuple):
    """A method that has learned what there is to learn before the chains start, and where they start."""

    method: AbstractMethod
    x: Points
    notes: tuple[str, ...]
    report: Any = None
    """What the method found on the way, such as a `PilotReport`."""
    num_evaluations: int = 0
    """Of the density, to prepare the method."""


def prepare(job: Job, report: Reporter) -> Ready:
    """Find starting points and let the method learn, or take both from the store."""
    learned = None if job.is_new else _learned(job, report)
    if learned is not None:
        return learned
    keys = Keys.of(job.draws.seed)
    x = _starting_points(job, keys)
    ready = Ready(job.method, x, notes_about(job.target))
    if isinstance(job.method, AbstractPreparedMethod):
        prepared = job.method.prepare(keys.prepare, job.target, x, report.say)
        notes = (*ready.notes, *prepared.notes)
        ready = Ready(prepared.method, prepared.x, notes, prepared.report, prepared.num_evaluations)
        if job.rule is not None and not prepared.needs_round_trips:
            job.rule = job.rule.without_round_trips()
        job.draws = settled(job.draws, prepared, job.target.dim)._replace(stop=code_of_rule(job.rule))
    if job.store is not None:
        _store_learned(job, job.store, ready)
    return ready


def check_same_values(store: Store, target: Target) -> None:
    """Refuse a density that has other values where the run started, which its formula need not show.

    A formula does not tell what a Python function does that it calls back, and says nothing to another version of JAX.
    """
    try:
        x = store.read_arrays("start.npz")["x"]
    except BrokenFileError:  # without the points, the formula has to do
        return
    here, stored = _values(target, x), np.asarray(store.manifest.values)
    if here.shape != stored.shape or not np.allclose(here, stored, rtol=1e-6, atol=1e-6, equal_nan=True):
        raise StoreError(
            f"target differs from that of store {str(store.root)!r}: its log density has other values at the points "
            "where the run started."
        )


def _starting_points(job: Job, keys: Keys) -> Points:
    if job.store is not None and not job.is_new:
        try:
            return _of_target(job, job.store.read_arrays("start.npz")["x"])
        except BrokenFileError as error:
            raise StoreError(f"store {str(job.store.root)!r} cannot be resumed: {error}.") from None
    x = starting_points(job.target, job.method, job.init, keys.start, job.draws.chains)
    if job.store is not None:
        _store_start(job, job.store, x)
    return x


def _of_target(job: Job, x: Points) -> Points:
    """Points from a store, if they are points of the target at all: the file may be somebody else's."""
    assert job.store is not None
    if x.shape[2] != job.target.dim:
        raise StoreError(f"store {str(job.store.root)!r} has points of {x.shape[2]} coordinates, not {job.target.dim}.")
    return x


def _store_start(job: Job, store: Store, x: Points) -> None:
    """Store the start of the run, from which it can be resumed; the manifest comes last."""
    arrays: dict[str, np.ndarray] = {"x": x}
    target, method = job.target, encode(job.method, arrays, "method")
    example = encode(jax.tree.unflatten(target.treedef, list(target.example)), {}, "example")
    store.write_arrays("start.npz", arrays)
    store.begin(
        Manifest(
            run=store.run,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            machine=machine(),
            fingerprint=fingerprint_target(target),
            versions={**fingerprint_versions()},
            values=_values(target, x).tolist(),
            plan=job.draws,
            method=method,
            functions=method_functions(job.method, target) if holds_functions(method) else None,
            description=job.method.describe(),
            example=example,
            position=tuple((parameter.name, parameter.shape) for parameter in target.parameters),
            doubts=job.doubts,
        )
    )


def method_functions(method: AbstractMethod, target: Target) -> str:
    """A fingerprint of the user's functions that a method holds, by what they do when a chain starts."""
    key = jax.random.key(0, impl="threefry2x32")
    return fingerprint_function(lambda x: method.init(key, target, x), np.zeros((method.num_points, target.dim)))


def _store_learned(job: Job, store: Store, ready: Ready) -> None:
    arrays: dict[str, np.ndarray] = {"x": ready.x}
    learned, report = encode(ready.method, arrays, "method"), encode(ready.report, arrays, "report")
    store.write_arrays("learned.npz", arrays)
    if store.manifest.prepared is not None:  # learned again, as the file was broken: the draws there lie like this
        return
    lane_x = ready.x[0] if ready.method.width == 1 else np.repeat(ready.x[:1], ready.method.width, axis=0)
    layout = layout_for(job.target, ready.method, len(ready.x), lane_shapes(job.target, ready.method, lane_x)[1])
    prepared = Prepared(learned, ready.method.describe(), ready.notes, layout, report, ready.num_evaluations)
    store.write(prepared=prepared, plan=job.draws)


def _check_layout(job: Job, method: AbstractMethod, layout: Layout) -> None:
    """`StoreError` if draws of this method do not lie in a store like that: its manifest is somebody else's."""
    assert job.store is not None
    shapes = {column.path: column.shape for column in layout.columns}
    points, dim = getattr(method, "num_points", None), job.target.dim
    if (
        not isinstance(method, AbstractMethod)
        or layout.width != method.width
        or shapes.get("weighted_points/x") != (points, dim)
        or shapes.get("sample_stats/log_weight") != (points,)
    ):
        raise StoreError(f"store {str(job.store.root)!r} has a layout that is not that of its method and target.")


def _learned(job: Job, progress: Reporter) -> Ready | None:
    """What the store has; None if the run was stopped before, or if it is broken: then it is learned again."""
    assert job.store is not None
    prepared = job.store.manifest.prepared
    if prepared is None:
        return None
    try:
        arrays = job.store.read_arrays("learned.npz")
    except BrokenFileError as error:
        progress.note(f"{error}: it is computed again.")
        return None
    is_prepared = isinstance(job.method, AbstractPreparedMethod)
    try:
        method = decode(prepared.method, arrays) if is_prepared else job.method
        report = decode(prepared.report, arrays)
    except (NotStoredError, CodeError, UnknownTagError) as error:
        raise StoreError(f"store {str(job.store.root)!r} has a method that cannot be made again: {error}.") from None
    _check_layout(job, method, prepared.layout)
    return Ready(method, _of_target(job, arrays["x"]), prepared.notes, report, prepared.num_evaluations or 0)


def _values(target: Target, x: Points) -> Float[np.ndarray, " particle"]:
    """The log density at the starting points of the first chain."""
    return np.asarray(jax.jit(jax.vmap(target.log_target))(x[0]))
