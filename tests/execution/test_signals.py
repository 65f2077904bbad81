"""Ctrl-C and SIGTERM in every phase of a run: what there is is kept, or the process ends at once; a store goes on."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pseudo_extended as pe
from tests.execution import signalled
from tests.execution.test_kill import assert_same

QUICK = {"method": pe.Plain(pe.RandomWalk()), "time_limit": 600}


@pytest.fixture(autouse=True)
def handlers(monkeypatch):
    """Whatever the suite was started with."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="module")
def whole():
    return signalled.sample("plain", None, **QUICK)


@pytest.mark.parametrize("phase", ["preparing", "compiling", "warm-up", "draws", "finishing", "summary"])
def test_ctrl_c_loses_nothing_that_is_there(tmp_path, monkeypatch, whole, phase):
    store = tmp_path / "run.zarr"
    sent = signalled.press(phase, signal.SIGINT, monkeypatch.setattr)
    try:
        result = signalled.sample("plain", store, **QUICK)
    except KeyboardInterrupt as error:
        result, said = None, str(error)
        assert phase not in ("finishing", "summary"), said  # then there are draws
        assert "keeps" in said or "run pe.sample again" in said, said
    assert sent, "the phase was not reached"
    if phase in ("finishing", "summary"):  # which a Ctrl-C that comes too late does not lose
        assert result is not None
        assert result.stopped is None
        assert_same(result, whole)
    if result is not None:
        assert np.array_equal(result.unconstrained, whole.unconstrained[:, : result.num_draws])
    monkeypatch.undo()
    assert_same(signalled.sample("plain", store, **QUICK), whole)


@pytest.mark.parametrize("phase", ["finishing", "summary"])
def test_ctrl_c_at_the_end_keeps_a_result_that_is_nowhere_else(monkeypatch, whole, phase):
    sent = signalled.press(phase, signal.SIGINT, monkeypatch.setattr)
    assert_same(signalled.sample("plain", None, **QUICK), whole)
    assert sent


def test_a_second_ctrl_c_at_the_end_is_raised(monkeypatch):
    def summary(*arguments):
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(signalled.job, "build_result", summary)
    with pytest.raises(KeyboardInterrupt):
        signalled.sample("plain", None, **QUICK)


@pytest.mark.parametrize("phase", ["warm-up", "draws", "finishing", "summary"])
def test_sigterm_is_never_swallowed_by_a_run_with_a_store(tmp_path, monkeypatch, whole, phase):
    store = tmp_path / "run.zarr"
    sent = signalled.press(phase, signal.SIGTERM, monkeypatch.setattr)
    with pytest.raises(SystemExit) as end:
        signalled.sample("plain", store, **QUICK)
    assert sent
    assert end.value.code == 143
    assert pe.verify(store) == []
    monkeypatch.undo()
    assert_same(signalled.sample("plain", store, **QUICK), whole)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("name", "phase"),
    [
        *(("plain", phase) for phase in ("compiling the density", "looking", "annealing", "compiling", "draws")),
        *(("pymc", phase) for phase in ("looking", "annealing", "warm-up", "draws", "summary")),
    ],
)
def test_a_process_ends_at_once_or_with_what_there_is(tmp_path, name, phase, number):
    store = tmp_path / "run.zarr"
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, signalled.__file__, name, phase, str(int(number)), str(store)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1200, check=False)
    if number == signal.SIGTERM:
        assert done.returncode in (143, -signal.SIGTERM), done.stderr
    else:
        ended = done.returncode in (1, 130, -signal.SIGINT) and "KeyboardInterrupt" in done.stderr
        assert ended or done.stdout.endswith(("interrupted\n", "None\n")), done.stderr
    resumed = signalled.sample(name, store)
    assert resumed.num_draws == signalled.RUN["draws"]
    assert pe.verify(store) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_model_is_imported_ends_the_command(tmp_path, number):
    store = tmp_path / "run.zarr"
    signalled.sample("plain", store, **QUICK)
    file = tmp_path / "model.py"
    file.write_text(f"import os, time\nos.kill(os.getpid(), {int(number)})\ntime.sleep(600)\n")
    command = [sys.executable, "-m", "pseudo_extended", "extend", str(store), f"{file}:target", "10"]
    reset = "import signal, os; signal.signal(signal.SIGINT, signal.default_int_handler); "
    script = f"{reset}os.execv({command[0]!r}, {command!r})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (130, 143, -signal.SIGTERM), done.stderr
    assert "Traceback" not in done.stderr
    assert pe.verify(store) == []
