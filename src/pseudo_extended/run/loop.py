"""The loop: chains over cores, chunk by chunk, the one furthest behind first."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from pseudo_extended.methods import Chain
from pseudo_extended.precision import double_precision
from pseudo_extended.run.program import Programs, Record, chunk_input
from pseudo_extended.run.progress import Reporter, Status
from pseudo_extended.warmup import stages

CHUNK_SECONDS = 0.3


class Plan(NamedTuple):
    """How long to run, and how it is cut up."""

    num_warmup: int
    num_draws: int
    capacity: int
    cores: int
    is_enough: Callable[[Record], bool] | None = None
    """Asked about the draws there are, at milestones that depend on nothing but their number."""
    time_limit: float | None = None
    """Seconds after which the run ends with what it has."""


class Keys(NamedTuple):
    """One stream for each use of randomness, so that a longer warm-up leaves the draws' own stream alone."""

    start: Key[Array, ""]
    init: Key[Array, ""]
    warmup: Key[Array, ""]
    draws: Key[Array, ""]
    prepare: Key[Array, ""]


@dataclass(eq=False)
class Lane:
    """One chain, or a few vectorised ones, on the way."""

    numbers: np.ndarray
    x: Float[np.ndarray, "... particle d"]
    chain: Chain | None = None
    done: int = 0
    """Iterations of warm-up and draws."""
    next_count: int = 1
    records: list[Record] = field(default_factory=list)


class Finished(NamedTuple):
    """All draws of all chains, as NumPy arrays with leading axes (chain, draw)."""

    record: Record
    stopped: str | None
    """What ended the run before all draws were made: "interrupted", "time_limit", "enough", or nothing."""


def milestones(num_draws: int) -> Iterator[int]:
    """Numbers of draws at which a run may end early: 100, 150, 225 and so on.

    >>> list(milestones(500))
    [100, 150, 225, 337]
    """
    milestone = 100
    while milestone < num_draws:
        yield milestone
        milestone = milestone * 3 // 2


class NoDrawsError(Exception):
    """The run ended before every chain had a draw; its argument is what ended it."""


def run_lanes(programs: Programs, lanes: list[Lane], plan: Plan, keys: Keys, reporter: Reporter) -> Finished:
    """Advance every lane to the end of the plan, or to a Ctrl-C, which keeps the draws there are.

    Threads do: the compiled programs run outside Python's lock. Each worker advances one lane by one chunk, always
    the lane that is furthest behind, so that an interrupted run leaves chains of about equal length.
    """
    total = plan.num_warmup + plan.num_draws
    warmup_plan = stages(plan.num_warmup)
    began, divergences = time.monotonic(), 0
    ahead = milestones(plan.num_draws) if plan.is_enough is not None else iter(())
    milestone = next(ahead, None)
    stopped: str | None = None

    def advance(lane: Lane) -> tuple[Lane, int]:
        with double_precision():
            return lane, _advance(programs, lane, plan, keys, warmup_plan)

    waiting, running = list(lanes), set[Future[tuple[Lane, int]]]()
    with ThreadPoolExecutor(plan.cores) as pool:
        while waiting or running:
            try:
                if plan.time_limit is not None and time.monotonic() - began > plan.time_limit:
                    stopped = stopped or "time_limit"
                while waiting and stopped is None and len(running) < plan.cores:
                    lane = min(waiting, key=lambda lane: lane.done)
                    waiting.remove(lane)
                    running.add(pool.submit(advance, lane))
                if stopped is not None and not running:
                    break
                finished, running = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in finished:
                    lane, new_divergences = future.result()
                    divergences += new_divergences
                    if lane.done < total:
                        waiting.append(lane)
                if finished:
                    done = sum(lane.done for lane in lanes)
                    behind = min(lane.done for lane in lanes)
                    rate = done / max(time.monotonic() - began, 1e-9)
                    reporter.show(Status(done, total * len(lanes), behind < plan.num_warmup, divergences, rate))
                    while milestone is not None and behind - plan.num_warmup >= milestone and stopped is None:
                        if plan.is_enough is not None and plan.is_enough(_collect(lanes, milestone)):
                            stopped = "enough"
                        else:
                            milestone = next(ahead, None)
            except KeyboardInterrupt:
                if stopped == "interrupted":
                    raise
                stopped = "interrupted"
                reporter.say("stopping after the chunks under way; press Ctrl-C again to lose them")
    if not all(lane.records for lane in lanes):
        raise NoDrawsError(stopped)
    return Finished(_collect(lanes, milestone if stopped == "enough" else None), stopped)


def _advance(programs: Programs, lane: Lane, plan: Plan, keys: Keys, warmup_plan: Any) -> int:
    """One chunk of one lane; the number of divergences after warm-up."""
    began = time.monotonic()
    if lane.chain is None:
        lane.chain = jax.block_until_ready(programs.start(keys.init, lane.numbers, lane.x))
        began = time.monotonic()
    warming = lane.done < plan.num_warmup
    first = lane.done if warming else lane.done - plan.num_warmup
    count = min(lane.next_count, (plan.num_warmup if warming else plan.num_draws) - first, plan.capacity)
    if warming:
        chunk = chunk_input(keys.warmup, first, count, plan.capacity, warmup_plan)
    else:
        chunk = chunk_input(keys.draws, first, count, plan.capacity, None)
    chain, record = jax.block_until_ready(programs.advance(chunk, lane.numbers, lane.chain))
    lane.chain = chain
    divergences = 0
    if not warming:
        kept = jax.tree.map(lambda leaf: _to_host(leaf, lane.numbers.ndim, count), record)
        lane.records.append(kept)
        divergences = int(kept.statistics["diverging"].sum())
    lane.done += count
    # A chunk should take about CHUNK_SECONDS: seldom enough to cost nothing, often enough for a bar and a Ctrl-C.
    pace = CHUNK_SECONDS * count / max(time.monotonic() - began, 1e-9)
    lane.next_count = int(np.clip(pace, 1, 8 * lane.next_count))
    return divergences


def _to_host(leaf: Array, lane_ndim: int, count: int) -> np.ndarray:
    """The part of a buffer that was filled, with a leading axis of chains."""
    host = np.asarray(leaf)
    return (host if lane_ndim else host[None])[:, :count].copy()


def _collect(lanes: list[Lane], most: int | None = None) -> Record:
    """The draws that every chain has, or at most so many of them."""
    per_lane = [jax.tree.map(lambda *chunks: np.concatenate(chunks, axis=1), *lane.records) for lane in lanes]
    num_draws = min(record.x.shape[1] for record in per_lane)
    num_draws = num_draws if most is None else min(num_draws, most)
    return jax.tree.map(lambda *parts: np.concatenate([part[:, :num_draws] for part in parts]), *per_lane)
