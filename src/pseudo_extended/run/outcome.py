"""What a run comes to: a result, or a sentence about why there is none."""

import errno
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from pseudo_extended.messages import Message, kinds
from pseudo_extended.results.doubts import evidence_for_store
from pseudo_extended.results.result import Evaluations, Result
from pseudo_extended.results.stop_reason import StopReason
from pseudo_extended.run.axes import statistic_axes
from pseudo_extended.run.loop import Ending
from pseudo_extended.run.preflight import complaints
from pseudo_extended.run.preparing import Job, Ready
from pseudo_extended.run.recorder import Collected, Recorder
from pseudo_extended.stopping.abstract import clauses
from pseudo_extended.store import Store, StoreError, StoreWriteError, UnwritableError, has_manifest

TERMINATED = 128 + signal.SIGTERM
"""The status with which a process ends that was asked to by SIGTERM."""


def build_result(job: Job, ready: Ready, recorder: Recorder, ended: Ending, seconds: dict[str, float]) -> Result:
    """Make the result from the draws that every chain has."""
    found = recorder.collect(ended.most)
    store = job.store
    room = () if job.room is None else (job.room,)
    ran_out = room if ended.stopped is StopReason.MEMORY else ()
    result = Result(
        target=job.target,
        unconstrained=found.x,
        log_weights=found.log_weight,
        log_importance=found.log_importance,
        statistics=found.statistics,
        statistic_axes=statistic_axes(ready.method, {name: each.shape[2:] for name, each in found.statistics.items()}),
        method=ready.method.describe(),
        seed=job.draws.seed,
        seconds=seconds,
        stopped=ended.stopped,
        doubts=(),
        notes=(*ready.notes, *recorder.sentences, *room),
        store=None if store is None else str(store.root),
        thinned=found.thinned,
        pilot=ready.report,
        evaluations=count_evaluations(ready, recorder.warmup_evaluations, found),
    )
    doubts = (*job.doubts, *complaints(job.target), *_unmet(job, result, ended), *ran_out)
    result = replace(result, doubts=doubts)
    if store is not None and ended.stopped != "running":
        store.write(evidence=evidence_for_store(result))
    return result


def _unmet(job: Job, result: Result, ended: Ending) -> list[Message]:
    """A sentence if the run was to go on until its stopping rule was met, and it is not."""
    rule, draws = job.rule, job.draws
    if rule is None or ended.stopped in (StopReason.ENOUGH, StopReason.RUNNING):
        return []
    missing = clauses(rule, result)
    if not missing:
        return []
    if rule.target_ess is not None:
        limit = "the run ended before" if ended.stopped else f"draws = {draws.draws} were not enough: give more"
        return [kinds.ESS_NOT_REACHED(wanted=rule.target_ess, missing=missing[0], limit=limit)]
    limit = "the run ended"
    if ended.stopped is StopReason.EVALUATIONS:
        limit = f"the run ended at its limit of {draws.max_evaluations:,} evaluations of the density"
    elif ended.stopped is None:
        limit = f"the run ended at its limit of {draws.draws} draws a chain"
    return [kinds.NOT_GOOD_ENOUGH(limit=limit, missing="; ".join(missing))]


def count_evaluations(ready: Ready, num_warmup: int, found: Collected) -> Evaluations:
    """Count the evaluations of the whole run."""
    in_draws = int(np.sum(found.statistics["num_evaluations"])) * found.thinned
    return Evaluations(ready.num_evaluations, num_warmup, in_draws)


def explain_no_draws(job: Job, stopped: StopReason | None) -> BaseException:
    """The run ended before every chain had a draw."""
    kept = f" Store {str(job.store.root)!r} keeps where it was: pe.resume goes on from there." if job.store else ""
    if stopped is StopReason.TIME_LIMIT:
        return TimeoutError(
            "time_limit must leave time for warm-up and a draw of every chain; "
            f"{job.schedule.time_limit:g} s did not.{kept}"
        )
    if stopped is StopReason.TERMINATED:
        return SystemExit(TERMINATED)
    if stopped is StopReason.INTERRUPTED:
        there = "there is nothing to return" + ("." if kept else "")
        return KeyboardInterrupt(f"interrupted before every chain had a draw: {there}{kept}")
    return NoDrawsError(f"stopped before every chain had a draw: there is nothing to return.{kept}")


class NoDrawsError(RuntimeError):
    """A callback or `abort` ended the run before every chain had a draw."""


REMEDIES = {
    errno.ENOSPC: "make room on the disk",
    errno.EDQUOT: "make room within the quota",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "close files that other processes have open",
    errno.EACCES: "let this user write there",
    errno.EPERM: "let this user write there",
    errno.EROFS: "make the file system writable",
}


@contextmanager
def explaining_disk(store: Store | None) -> Iterator[None]:
    """Says, of files that could not be written, what is safe nevertheless."""
    try:
        yield
    except OSError as error:
        of_disk = isinstance(error, UnwritableError) or error.errno in (errno.ENOSPC, errno.EDQUOT)
        if store is None or isinstance(error, StoreWriteError) or not of_disk:
            raise
        raise StoreWriteError(_explain_disk(store, error)) from error


def _explain_disk(store: Store, error: OSError) -> str:
    where = f"store {str(store.root)!r}"
    if not store.root.exists() or (store.begun is not None and not has_manifest(store.root)):
        return f"{where} was removed while the run was writing to it, and with it all of its draws."
    cause = f"{where} could not be written: {error.strerror}, at {error.filename}."
    remedy = REMEDIES.get(error.errno or 0, "mend that")
    if not has_manifest(store.root):
        return f"{cause} Nothing of the run was saved yet: {remedy}, and run pe.sample again."
    try:
        saved = f"All that was committed to it is safe, {_committed(Store.open(store.root))} draws of each chain"
    except (StoreError, OSError):
        saved = "All that was committed to it is safe"
    return f"{cause} {saved}: {remedy}, and go on with pe.resume, which makes the draws since then again."


def _committed(store: Store) -> int:
    """Draws of each chain with which a run would go on."""
    if store.manifest.prepared is None:
        return 0
    warmup, furthest = store.manifest.plan.num_warmup, []
    for lane in range(store.prepared.layout.num_lanes):
        found, _ = store.snapshots.load(lane)
        furthest.append(max((max(snapshot.done - warmup, 0) for snapshot in found), default=0))
    return min(furthest)


@contextmanager
def keeping_what_is_stored(store: Store | None) -> Iterator[None]:
    """Says, of a run that is interrupted before its first iteration, what is kept of it."""
    try:
        yield
    except KeyboardInterrupt:
        if store is None:
            raise
        if store.begun is None:
            kept = "nothing was stored yet; run pe.sample again"
        elif store.begun.prepared is None:
            kept = f"store {str(store.root)!r} keeps the starting points, and pe.resume prepares the method again"
        else:
            kept = f"store {str(store.root)!r} keeps what preparation found, and pe.resume goes on from there"
        raise KeyboardInterrupt(f"interrupted before the first iteration: {kept}.") from None
