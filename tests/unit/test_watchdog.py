"""Waiting for programs, and saying so if they are stuck."""

import threading
import time

import jax
import jax.numpy as jnp
import pytest

from pseudo_extended.precision import double_precision
from pseudo_extended.watchdog import Watch, on_own_thread, watched


def test_results_and_errors_come_back_in_the_precision_of_the_caller():
    with double_precision():
        assert watched([on_own_thread(lambda: jnp.ones(2), "ones")], "ones")[0].dtype == jnp.float64
    assert watched([on_own_thread(lambda: jnp.ones(2), "ones")], "ones")[0].dtype == jnp.float32
    with pytest.raises(ZeroDivisionError):
        watched([on_own_thread(lambda: 1 // 0, "nothing")], "nothing")


def test_threads_keep_no_interpreter_alive():
    release = threading.Event()
    future = on_own_thread(release.wait, "waiting")
    [thread] = [thread for thread in threading.enumerate() if thread.name == "pseudo-extended: waiting"]
    assert thread.daemon
    release.set()
    assert watched([future], "waiting") == [True]


def test_who_waits_for_long_without_work_is_told_and_ever_more_seldom(capsys, monkeypatch):
    clock, used = [0.0], [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "process_time", lambda: used[0])
    watch = Watch("the search", patience=10.0)
    said = []
    for second in range(1, 200):
        clock[0] = float(second)
        if second == 8:
            used[0] += 5.0  # it worked
        watch.look()
        said += [second] * bool(capsys.readouterr().err)
    assert said == [19, 40, 81, 162]


def test_work_is_never_reported(capsys, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "process_time", lambda: 0.05 * clock[0])
    watch = Watch("the search", patience=10.0)
    for _ in range(100):
        clock[0] += 1.0
        watch.look()
    assert not capsys.readouterr().err


def test_a_program_is_computed_when_the_future_is_done():
    [value] = watched([on_own_thread(lambda: jax.jit(lambda x: x @ x)(jnp.ones((50, 50))), "product")], "product")
    assert value.is_ready()
