"""A run from its preparation to its result."""

import contextlib
import time
from collections.abc import Callable
from functools import partial

from pseudo_extended.compiled import seconds_compiling
from pseudo_extended.precision import in_double_precision
from pseudo_extended.recipes import one_run
from pseudo_extended.results.result import Result
from pseudo_extended.results.stop_reason import StopReason
from pseudo_extended.run.advance import Work
from pseudo_extended.run.cluster import Cluster
from pseudo_extended.run.control import Control
from pseudo_extended.run.interrupt import Interruptions
from pseudo_extended.run.lanes import Lane, make_lanes
from pseudo_extended.run.loop import Ending, Loop, Plan, next_milestone
from pseudo_extended.run.outcome import (
    TERMINATED,
    build_result,
    explain_no_draws,
    explaining_disk,
    keeping_what_is_stored,
)
from pseudo_extended.run.preparing import Job, Ready, prepare
from pseudo_extended.run.program import capacity_for, lane_shapes
from pseudo_extended.run.progress import Reporter, reporter
from pseudo_extended.run.recorder import Memory, Recorder
from pseudo_extended.run.room import explain_room
from pseudo_extended.run.stored import Stored
from pseudo_extended.run.workers import Threads, Workers
from pseudo_extended.stopping.abstract import AbstractStoppingRule, clauses
from pseudo_extended.store import Draws


def carry_out(job: Job, control: Control) -> Result:
    """Prepare, compile, run; whatever ends it, what there is is kept."""
    try:
        with explaining_disk(job.store), one_run():
            return _carry_out(job, control)
    finally:
        if job.store is not None:
            job.store.close()


@in_double_precision
def _carry_out(job: Job, control: Control) -> Result:
    report = reporter(job.schedule.progress)
    clock, compiling = time.perf_counter(), seconds_compiling()
    try:
        with keeping_what_is_stored(job.store):
            ready = prepare(job, report)
            lanes = make_lanes(ready.x, ready.method.width)
            recorder = _recorder(job, ready, lanes, report)
            workers = _workers(job, ready, lanes, report)
        waited, compiling = time.perf_counter() - clock, seconds_compiling() - compiling
        began = time.perf_counter()

        def result(ended: Ending) -> Result:
            seconds = {"compile": compiling, "prepare": waited - compiling, "run": time.perf_counter() - began}
            return build_result(job, ready, recorder, ended, seconds)

        def inspect(most: int | None = None) -> Result:
            return result(Ending(StopReason.RUNNING, most))

        control.inspect = inspect
        with Interruptions() as interruptions:
            ended = _run(job, workers, lanes, recorder, report, control, inspect, interruptions)
            if not recorder.num_draws:
                raise explain_no_draws(job, ended.stopped)
            _end_if_terminated(job, recorder, interruptions, report)
            made = result(ended)
            _end_if_terminated(job, recorder, interruptions, report)
        return made
    finally:
        report.close()


def _end_if_terminated(job: Job, recorder: Recorder, interruptions: Interruptions, report: Reporter) -> None:
    """End the process after SIGTERM, if everything is in a store."""
    if interruptions.terminated and job.store is not None:
        report.note(f"terminated: store {str(job.store.root)!r} has {recorder.num_draws} draws of each chain")
        raise SystemExit(TERMINATED)


def _recorder(job: Job, ready: Ready, lanes: list[Lane], report: Reporter) -> Recorder:
    if job.store is None:
        sentence = explain_room(job.target, ready.method, job.draws)
        if sentence is not None:
            report.note(sentence)
            job.room = sentence
        return Memory(len(lanes), job.draws.chains)
    recorder = Stored(job.store, job.target, job.draws.num_warmup)
    recorder.restore(lanes, lambda: lane_shapes(job.target, ready.method, lanes[0].x)[0])
    for sentence in recorder.sentences:
        report.note(sentence)
    return recorder


def _workers(job: Job, ready: Ready, lanes: list[Lane], report: Reporter) -> Workers | None:
    """None if there is nothing left to do."""
    draws, schedule = job.draws, job.schedule
    if all(lane.done >= draws.num_warmup + draws.draws for lane in lanes):
        return None
    capacity = capacity_for(job.target, ready.method) if schedule.chunk is None else schedule.chunk
    work = Work(job.target, ready.method, capacity, draws.thin, draws.seed, draws.num_warmup, lanes[0].x)
    report.say("compiling warm-up and draws (the last of two programs)")
    if schedule.cluster is not None:
        return Cluster(schedule.cluster, work)
    return Threads(work, len(lanes), schedule.cores, schedule.devices)


def _run(
    job: Job,
    workers: Workers | None,
    lanes: list[Lane],
    recorder: Recorder,
    report: Reporter,
    control: Control,
    inspect: Callable[..., Result],
    interruptions: Interruptions,
) -> Ending:
    """The loop, with what there is written down whatever ends it."""
    if workers is None:
        recorder.finish(lanes, job.draws.draws, None)
        return Ending(None, job.draws.draws)
    draws, schedule = job.draws, job.schedule
    has_end = job.rule is not None or draws.max_evaluations is not None
    ends_at = partial(_ends_at, job.rule, draws, inspect) if has_end else None
    share = None if job.rule is None else partial(_share, job.rule, inspect)
    plan = Plan(
        draws.num_warmup,
        draws.draws,
        4 * lanes[0].x.nbytes,
        ends_at,
        share,
        schedule.time_limit,
        schedule.callback,
    )
    try:
        ended = Loop(workers, lanes, plan, recorder, interruptions).run(report, control, inspect)
    except BaseException:
        workers.close()
        with contextlib.suppress(OSError):  # on a disk that is full, there is nothing more to write
            recorder.finish(lanes, None, StopReason.FAILED)
        raise
    workers.close()
    # Chains that were further than the plan, as after a shorter `extend`, are cut to it.
    most = draws.draws if ended.most is None else ended.most
    recorder.finish(lanes, most, ended.stopped)
    return Ending(ended.stopped, most)


def _ends_at(
    rule: AbstractStoppingRule | None, draws: Draws, inspect: Callable[[int], Result], num_draws: int
) -> StopReason | None:
    """Whether a rule is content with the first so many draws, or half as many more would be too many evaluations."""
    result = inspect(num_draws)
    if rule is not None and not clauses(rule, result):
        return StopReason.ENOUGH
    evaluations = result.evaluations
    if draws.max_evaluations is None or evaluations is None:
        return None
    before = evaluations.pilot + evaluations.warmup if draws.counts_all else 0
    following = before + evaluations.draws * next_milestone(num_draws) / num_draws
    return StopReason.EVALUATIONS if following > draws.max_evaluations else None


def _share(rule: AbstractStoppingRule, inspect: Callable[[int], Result], num_draws: int) -> float | None:
    """How much of what a rule wants the first so many draws have."""
    return rule.share(inspect(num_draws))
