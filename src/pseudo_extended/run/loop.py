"""The loop: lanes over workers, chunk by chunk, the one furthest behind first."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import NamedTuple

import numpy as np

from pseudo_extended.results.result import Result
from pseudo_extended.results.stop_reason import StopReason
from pseudo_extended.run.advance import AdvancedLane, LaneInput, Segment
from pseudo_extended.run.control import Callback, Control, Running
from pseudo_extended.run.interrupt import Interruptions
from pseudo_extended.run.lanes import Lane
from pseudo_extended.run.program import Record
from pseudo_extended.run.progress import Reporter, Status
from pseudo_extended.run.recorder import Recorder
from pseudo_extended.run.workers import Workers

MOST_BYTES_A_TASK = 2**25


class Plan(NamedTuple):
    """How long to run."""

    num_warmup: int
    num_draws: int
    bytes_a_draw: int
    """Of a lane, about."""
    ends_at: Callable[[int], StopReason | None] | None = None
    """Why the run ends with the first so many draws, if at all. Asked at milestones."""
    share: Callable[[int], float | None] | None = None
    """How much of what is wanted they have, where they are not enough: tells how long it will take."""
    time_limit: float | None = None
    """Seconds after which the run ends with what it has."""
    callback: Callback | None = None


class Ending(NamedTuple):
    """How a run ended."""

    stopped: StopReason | None
    """What ended it before all draws were made; None if nothing did."""
    most: int | None
    """The number of draws that were enough, where that ended it."""


def milestones(num_draws: int) -> Iterator[int]:
    """Numbers of draws at which a run may end early: 100, 150, 225 and so on.

    >>> list(milestones(500))
    [100, 150, 225, 337]
    """
    milestone = 100
    while milestone < num_draws:
        yield milestone
        milestone = next_milestone(milestone)


def next_milestone(milestone: int) -> int:
    """Half as many again."""
    return milestone * 3 // 2


class Loop:
    """Advances every lane to the end of the plan, or to whatever ends the run before, which keeps the draws there are.

    Each worker advances one lane by one task, always the lane that is furthest behind, so that an interrupted run
    leaves chains of about equal length.
    """

    def __init__(
        self, workers: Workers, lanes: list[Lane], plan: Plan, recorder: Recorder, interruptions: Interruptions
    ):
        self.workers, self.lanes, self.plan, self.recorder = workers, lanes, plan, recorder
        self.interruptions = interruptions
        self.total = plan.num_warmup + plan.num_draws
        self.divergences = 0
        self.stopped: StopReason | None = None
        self.by_rule = False
        """Whether it was a milestone that ended the run."""
        self.ahead = milestones(plan.num_draws) if plan.ends_at is not None else iter(())
        self.milestone = next(self.ahead, None)
        self.expected = plan.num_draws if self.milestone is None else self.milestone
        """Draws of each chain that will probably be made; at first the fewest that are possible."""
        self.asked = False
        """Whether a milestone has been looked at."""
        self.running: dict[Future[AdvancedLane], tuple[Lane, Segment]] = {}

    def run(self, report: Reporter, control: Control, inspect: Callable[[], Result]) -> Ending:
        """Advance all lanes until the end of the run."""
        self.began = time.monotonic()
        self.marks = [(self.began, self._all_done)]
        waiting = [lane for lane in self.lanes if lane.done < self.total]
        self._ask_milestones()
        while waiting or self.running:
            self._ask_to_stop(control, report)
            self._submit(waiting, control)
            if self.stopped is not None and not self.running:
                break
            if not self.running:  # paused
                self.recorder.commit(self.lanes, force=True)
                control.wait(0.2)
                continue
            finished = wait(self.running, timeout=0.2, return_when=FIRST_COMPLETED).done
            for future in finished:
                lane, record = self._take(future)
                if lane.done < self.total:
                    waiting.append(lane)
                self._submit(waiting, control)  # before anything is written: that goes on beside the next task
                self.recorder.add(lane, record)
            if finished:
                self._tell(report, control, inspect)
            self.recorder.commit(self.lanes)
        self.interruptions.draws_are_made()
        return Ending(self.stopped, self.milestone if self.by_rule else None)

    def _submit(self, waiting: list[Lane], control: Control) -> None:
        """Work for every free worker."""
        while waiting and self.stopped is None and not control.paused and len(self.running) < self.workers.slots:
            lane = min(waiting, key=lambda lane: lane.done)
            waiting.remove(lane)
            segment = self._segment(lane)
            future = self.workers.submit(lane.index, LaneInput(lane.numbers, lane.x, lane.chain), segment)
            self.running[future] = lane, segment

    def _segment(self, lane: Lane) -> Segment:
        warming = lane.done < self.plan.num_warmup
        first = lane.done if warming else lane.done - self.plan.num_warmup
        if warming:
            return Segment(True, first, min(lane.pace, self.plan.num_warmup - first))
        room = max(MOST_BYTES_A_TASK // self.plan.bytes_a_draw, 1)
        return Segment(False, first, min(lane.pace, room, self.plan.num_draws - first, self.recorder.most(lane)))

    def _take(self, future: Future[AdvancedLane]) -> tuple[Lane, Record | None]:
        """The lane that went on, and the draws that it made."""
        lane, segment = self.running.pop(future)
        advanced = future.result()
        lane.chain = advanced.chain
        lane.done += segment.num_iterations
        # As many as take about the seconds of a task; but growing slowly, and not because a task was cut short.
        pace = self.workers.seconds * segment.num_iterations / max(advanced.seconds, 1e-9)
        most = 8 * lane.pace if segment.num_iterations == lane.pace else lane.pace
        lane.pace = int(np.clip(pace, 1, most))
        self.divergences += advanced.divergences
        if segment.warming:
            self.recorder.warmup_evaluations += advanced.num_evaluations
        return lane, advanced.record

    def _tell(self, report: Reporter, control: Control, inspect: Callable[[], Result]) -> None:
        """Bar, callback and milestones."""
        done, now = self._all_done, time.monotonic()
        seconds = now - self.began
        warming = min(lane.done for lane in self.lanes) < self.plan.num_warmup
        # Over the last half of the time: the first tasks are short, and tell little of what comes.
        self.marks.append((now, done))
        while len(self.marks) > 2 and self.marks[1][0] < self.began + seconds / 2:
            self.marks.pop(0)
        rate = (done - self.marks[0][1]) / max(now - self.marks[0][0], 1e-9)
        total = (self.plan.num_warmup + self.expected) * sum(lane.numbers.size for lane in self.lanes)
        may_grow = self.milestone is not None and not self.asked
        status = Status(min(done, total), total, warming, self.divergences, rate, may_grow)
        report.show(status)
        control.status, control.num_draws = status, self.recorder.num_draws
        if self.plan.callback is not None:
            running = Running(status, self.recorder.num_draws, seconds, inspect)
            if self.plan.callback(running):
                self.stopped = self.stopped or StopReason.CALLBACK
        self._ask_milestones()

    def _ask_milestones(self) -> None:
        while self.milestone is not None and self.recorder.num_draws >= self.milestone and self.stopped is None:
            self.stopped = None if self.plan.ends_at is None else self.plan.ends_at(self.milestone)
            self.by_rule = self.stopped is not None
            self.asked = True
            if not self.by_rule:
                self._expect(self.milestone)
                self.milestone = next(self.ahead, None)

    def _expect(self, num_draws: int) -> None:
        """After so many draws that were not enough: what is wanted grows with their number."""
        share = None if self.plan.share is None else self.plan.share(num_draws)
        wanted = np.inf if not share else num_draws / share
        later = (each for each in milestones(self.plan.num_draws) if each > num_draws and each >= wanted)
        self.expected = next(later, self.plan.num_draws)

    def _ask_to_stop(self, control: Control, report: Reporter) -> None:
        interruptions = self.interruptions
        if interruptions.count > 1:
            raise KeyboardInterrupt
        if self.stopped is None:
            if interruptions.count:
                self.stopped = StopReason.TERMINATED if interruptions.terminated else StopReason.INTERRUPTED
                again = "" if interruptions.terminated else "; press Ctrl-C again to lose them"
                report.note(f"stopping after the chunks under way{again}")
            elif self.plan.time_limit is not None and time.monotonic() - self.began > self.plan.time_limit:
                self.stopped = StopReason.TIME_LIMIT
            elif control.aborted:
                self.stopped = StopReason.ABORTED
            elif self.recorder.is_full:
                self.stopped = StopReason.MEMORY

    @property
    def _all_done(self) -> int:
        """Iterations of all chains together."""
        return sum(min(lane.done, self.total) * lane.numbers.size for lane in self.lanes)
