"""Ctrl-C keeps what there is."""

import signal
import subprocess
import sys
import threading

import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.run import recorder

METHOD = pe.Plain(pe.HMC(num_steps=2))


def normal(x):
    return -0.5 * jnp.sum(x**2)


@pytest.fixture(autouse=True)
def default_handler_and_little_memory(monkeypatch):
    """A process started by nohup, cron or a CI system may ignore SIGINT; and no test is to fill the machine."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(recorder, "free_memory", lambda: 2e9)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_when(condition):
    """A callback that presses Ctrl-C once, from another thread, when the run has come so far."""
    pressed = []

    def callback(run):
        if condition(run) and not pressed:
            pressed.append(threading.Thread(target=signal.raise_signal, args=(signal.SIGINT,)))
            pressed[0].start()

    return callback


def sample(callback=None, **options):
    run = {"method": METHOD, "chains": 2, "seed": 0, "progress": False, "time_limit": 120}
    return pe.sample(normal, np.zeros(2), callback=callback, **run | options)


def test_ctrl_c_returns_the_draws_there_are():
    full = sample(draws=50, warmup=20)
    result = sample(interrupt_when(lambda run: run.num_draws >= 50), draws=10**9, warmup=20)
    assert result.interrupted
    assert result.num_draws >= 50
    np.testing.assert_array_equal(result.unconstrained[:, :50], full.unconstrained)
    assert "interrupted" in result.warnings[0]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_in_warmup_says_that_there_is_nothing(tmp_path):
    callback = interrupt_when(lambda run: run.status.done > 10)
    with pytest.raises(KeyboardInterrupt, match="nothing to return"):
        sample(callback, draws=5, warmup=10**7)
    store, callback = tmp_path / "run.zarr", interrupt_when(lambda run: run.status.done > 10)
    with pytest.raises(KeyboardInterrupt, match=r"nothing to return\. Store .* keeps where it was: pe\.resume goes on"):
        sample(callback, draws=5, warmup=10**7, store=store)


def test_a_second_ctrl_c_ends_it_at_once():
    def callback(run):
        if run.num_draws:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        sample(callback, draws=10**9, warmup=20)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


SCRIPT = """
import signal
import numpy as np, jax.numpy as jnp, pseudo_extended as pe
from pseudo_extended.run import recorder
signal.signal(signal.SIGINT, signal.default_int_handler)
recorder.free_memory = lambda: 2e9
print("ready", flush=True)
method = pe.Plain(pe.HMC(num_steps=200))
result = pe.sample(lambda x: -0.5 * jnp.sum(x**2), np.zeros(2), method=method, draws=10**9, warmup=10, chains=2, seed=0,
                   time_limit=120)
print(result.interrupted, result.num_draws > 0, flush=True)
"""


def test_sigint_to_a_real_process_shows_progress_in_the_log_and_returns():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as nohup leaves it to its children
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert process.stderr is not None
    log = ""
    while "sampling" not in log:  # one line of the log comes every ten seconds
        line = process.stderr.readline()
        assert line, f"the process ended: {log}"
        log += line
    process.send_signal(signal.SIGINT)
    out, rest = process.communicate(timeout=60)
    log += rest
    assert out == "True True\n", log
    assert "sampling" in log
    assert "it/s" in log
    assert "s left" in log
