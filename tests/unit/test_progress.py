"""Progress: what is said, when and where."""

import io

import numpy as np
import pytest
from rich.console import Console

import pseudo_extended as pe
from pseudo_extended.run import progress
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


def test_a_rule_knows_its_share():
    rule = pe.stopping.GoodEnough(ess=1e6, r_hat=None, round_trips=None)
    result = pe.sample(lambda x: -0.5 * x @ x, np.zeros(2), method=pe.Plain(), draws=50, seed=0, progress=False)
    assert 0 < rule.share(result) < 1e-3
    assert pe.stopping.GoodEnough(ess=1, r_hat=None, round_trips=None).share(result) == 1
