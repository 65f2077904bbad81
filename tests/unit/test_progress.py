"""Progress: what is said, when and where."""

import io
from concurrent.futures import Future

import numpy as np
import pytest
from rich.console import Console

import pseudo_extended as pe
from pseudo_extended.results.stop_reason import StopReason
from pseudo_extended.run import progress
from pseudo_extended.run.advance import AdvancedLane
from pseudo_extended.run.control import Control
from pseudo_extended.run.lanes import make_lanes
from pseudo_extended.run.loop import Loop, Plan
from pseudo_extended.run.progress import Bar, Lines, Silent, Status, reporter


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (Status(0, 100, True, 0, 0.0), "warm-up 0/100 (0%), 0 it/s, 0 divergences, inf s left"),
        (Status(50, 100, True, 1, 2.5), "warm-up 50/100 (50%), 2.5 it/s, 1 divergences, 20 s left"),
        (Status(100, 100, False, 7, 1234.5), "sampling 100/100 (100%), 1234 it/s, 7 divergences, 0 s left"),
    ],
)
def test_status(status, line):
    assert status.describe() == line


def test_nothing_when_it_is_not_wanted(capfd):
    silent = reporter(False)
    assert isinstance(silent, Silent)
    silent.say("compiling")
    silent.show(Status(1, 2, False, 0, 1.0))
    silent.close()
    assert capfd.readouterr() == ("", "")


def test_lines_in_a_log(capsys):
    """stderr is captured, hence no terminal; stdout stays the user's."""
    lines = reporter(True)
    assert isinstance(lines, Lines)
    lines.say("compiling")
    lines.close()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "pseudo-extended: compiling\n"


def test_lines_come_now_and_then_and_at_the_end(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    lines = Lines(seconds=10.0)
    for second in range(25):
        now[0] = float(second)
        lines.show(Status(second, 25, False, 0, 1.0))
    now[0] = 25.0
    lines.show(Status(25, 25, False, 0, 1.0))
    shown = capsys.readouterr().err.splitlines()
    assert [line.split()[2].split("/")[0] for line in shown] == ["10", "20", "25"]


def test_bar_shows_rate_divergences_and_stage():
    stream = io.StringIO()
    bar = Bar(Console(file=stream, force_terminal=True, width=120))
    bar.say("compiling")
    bar.show(Status(30, 120, True, 2, 4321.0))
    bar.progress.refresh()
    bar.show(Status(120, 120, False, 3, 5.0))
    bar.progress.refresh()
    bar.close()
    text = stream.getvalue()
    for part in ("warm-up", "sampling", "30/120", "120/120", "4,321 it/s", "5 it/s", "2 divergences", "3 divergences"):
        assert part in text, part


def test_the_end_is_foretold_from_the_share_of_what_is_wanted():
    """The first of 100, 150, 225, 337 draws that will do; all of them where the rule cannot say, or sees no gain."""
    for share, expected in ((lambda draws: draws / 300, 337), (lambda draws: 0.99, 150), (None, 5000)):
        loop = Loop(None, [], Plan(50, 5000, 8, lambda draws: None, share), None, None)  # it runs nothing
        assert loop.expected == 100
        loop._expect(100)
        assert loop.expected == expected


class FakeRun:
    """Workers, recorder and reporter of a loop in which nothing runs but the clock: iterations take known times."""

    slots, seconds, is_full = 2, 0.3, False

    def __init__(self, of_warmup, of_draw):
        self.costs, self.now, self.foretold, self.counts = (of_draw, of_warmup), 0.0, [], {}

    def submit(self, number, lane, segment):
        self.now += self.costs[segment.warming] * segment.num_iterations / self.slots
        if not segment.warming:
            self.counts[number] = self.counts.get(number, 0) + segment.num_iterations
        future = Future()
        seconds = self.costs[segment.warming] * segment.num_iterations
        future.set_result(AdvancedLane(None, None, 0, 0, seconds))
        return future

    def show(self, status):
        self.foretold.append((self.now, status))

    @property
    def num_draws(self):
        return min(self.counts.values(), default=0) if len(self.counts) == 4 else 0

    @property
    def count(self):
        return 0

    def nothing(self, *given, **options):
        return 2**62

    most = add = commit = draws_are_made = note = nothing
    warmup_evaluations, terminated = 0, False


@pytest.mark.parametrize("of_warmup", [0.008, 0.01, 0.0125])
@pytest.mark.parametrize("enough", [None, 1000])
def test_the_time_left_is_right_within_a_third_after_the_first_tenth(monkeypatch, of_warmup, enough):
    """Four chains of 200 and 2,000 iterations; or as many as a rule wants whose share grows with the draws."""
    run = FakeRun(of_warmup, 0.01)
    monkeypatch.setattr("pseudo_extended.run.loop.time.monotonic", lambda: run.now)
    lanes = make_lanes(np.zeros((4, 1, 1)), 1)
    ends_at = None if enough is None else lambda draws: StopReason.ENOUGH if draws >= enough else None
    plan = Plan(200, 2000, 8, ends_at, None if enough is None else lambda draws: draws / enough)
    Loop(run, lanes, plan, run, run).run(run, Control(), lambda: None)
    later = [(run.now - now, status) for now, status in run.foretold if now > 0.1 * run.now]
    assert sum(status.may_grow for _, status in later) <= (0 if enough is None else 0.2 * len(later))
    for left, status in later:
        if status.may_grow:
            assert status.seconds_left < left
            assert "at least" in status.describe()
        else:
            assert abs(status.seconds_left - left) < left / 3 + 2 * run.seconds


def test_a_rule_knows_its_share():
    rule = pe.stopping.GoodEnough(ess=1e6, r_hat=None, round_trips=None)
    result = pe.sample(lambda x: -0.5 * x @ x, np.zeros(2), method=pe.Plain(), draws=50, seed=0, progress=False)
    assert 0 < rule.share(result) < 1e-3
    assert pe.stopping.GoodEnough(ess=1, r_hat=None, round_trips=None).share(result) == 1
