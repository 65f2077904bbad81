"""Runs in the background, callbacks, and methods whose state is more than a point, cut up and resumed."""

import subprocess
import sys
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from tests.execution import victim
from tests.execution.test_kill import assert_same

RUN = {"method": victim.METHOD, "draws": 400, "warmup": 50, "chains": 3, "seed": 5, "progress": False}


def wait_until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    assert condition()


ENDS_EARLY = """
import sys, time
import numpy as np
import pseudo_extended as pe
from tests.execution import victim
run = pe.start(victim.log_density, np.zeros(2), store=sys.argv[1], method=victim.METHOD, draws=10**9, warmup=50, seed=5)
while not run.num_draws:
    time.sleep(0.05)
"""


def test_a_script_that_ends_before_its_run_ends_in_peace(tmp_path):
    """XLA's threads would outlive the interpreter, and abort the process."""
    store = tmp_path / "run.zarr"
    ended = subprocess.run(
        [sys.executable, "-c", ENDS_EARLY, str(store)], cwd=Path(__file__).parents[2], capture_output=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    assert b"terminate" not in ended.stderr
    assert pe.load(store, pe.Target(victim.log_density, np.zeros(2))).num_draws > 0


def test_a_run_in_the_background():
    run = pe.start(victim.log_density, np.zeros(2), **RUN | {"draws": 10**9})
    wait_until(lambda: run.num_draws > 0)
    assert run.status is not None
    early = run.inspect()
    assert early.stopped == "running"
    run.pause()
    wait_until(lambda: not run_moves(run))
    paused = run.inspect().num_draws
    assert "paused" in repr(run)
    run.unpause()
    wait_until(lambda: run.inspect().num_draws > paused)
    with pytest.raises(TimeoutError, match="it goes on"):
        run.wait(timeout=0.01)
    result = run.abort()
    assert run.is_done
    assert result.stopped == "aborted"
    assert "aborted" in result.warnings[0]
    assert run.inspect() is result
    whole = pe.sample(victim.log_density, np.zeros(2), **RUN)
    np.testing.assert_array_equal(result.unconstrained[:, :400], whole.unconstrained)
    np.testing.assert_array_equal(early.unconstrained[:, :1], whole.unconstrained[:, :1])


def run_moves(run):
    before = run.status.done
    time.sleep(0.5)
    return run.status.done != before


def test_errors_come_where_somebody_waits():
    with pytest.raises(TypeError, match="draws must be"):  # bad input at once
        pe.start(victim.log_density, np.zeros(2), draws="many")
    run = pe.start(lambda x: jnp.log(-jnp.sum(x**2)), np.zeros(2), **RUN)
    with pytest.raises(ValueError, match="must be finite at the start"):
        run.wait()


def test_callback_sees_running_diagnostics_and_can_stop_the_run():
    seen = []

    def callback(run):
        if run.num_draws >= 100:
            seen.append((run.r_hat, run.ess, run.result.num_draws, run.status.describe()))
            return run.ess > 10
        return None

    result = pe.sample(victim.log_density, np.zeros(2), callback=callback, **RUN | {"draws": 10**6})
    assert result.stopped == "callback"
    r_hat, ess, num_draws, line = seen[-1]
    assert 0.9 < r_hat < 3
    assert ess > 10
    assert num_draws >= 100
    assert "sampling" in line
    with pytest.raises(TypeError, match="callback must be a function"):
        pe.sample(victim.log_density, np.zeros(2), callback="loud", **RUN)


@pytest.mark.slow
def test_a_callback_that_fails_loses_nothing(tmp_path):
    def callback(run):
        if run.num_draws > 50:
            raise ArithmeticError("mine")

    path = tmp_path / "run.zarr"
    with pytest.raises(ArithmeticError, match="mine"):
        pe.sample(victim.log_density, np.zeros(2), store=path, callback=callback, **RUN)
    assert pe.load(path, victim.log_density).num_draws > 50
    whole = pe.sample(victim.log_density, np.zeros(2), **RUN)
    assert_same(pe.resume(path, victim.log_density, progress=False), whole)


METHODS = {
    "index Gibbs": None,
    "equi-energy": pe.EquiEnergy([0.0, 1.0, 3.0], [1.0, 3.0, 9.0], burn_in=50, head_start=100, ring_capacity=64),
    "parallel tempering": pe.ParallelTempering([0.1, 0.4, 1.0], pe.HMC(2)),
    "simulated tempering": pe.SimulatedTempering([0.1, 0.4, 1.0], pe.HMC(2)),
    "annealed importance": pe.AnnealedImportance("sigmoidal", pe.HMC(2), num_steps=5),
    "continuous tempering": pe.ContinuousTempering(),
    "repelling-attracting": pe.RepellingAttracting(),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in METHODS])
def test_every_method_resumes(name, tmp_path):
    """Stopped in warm-up, then in sampling, then extended: rings, ladders and what a pilot learned survive."""
    target = (
        pe.Target(victim.log_density, np.zeros(2), base=pe.Normal(scale=3.0)) if METHODS[name] else victim.log_density
    )
    run = {"method": METHODS[name], "warmup": 600, "chains": 3, "seed": 5, "progress": False}
    path = tmp_path / "run.zarr"
    with pytest.raises(RuntimeError, match="goes on from there"):
        pe.sample(target, np.zeros(2), store=path, draws=300, callback=lambda run: run.status.done > 20, **run)
    pe.resume(path, target, callback=lambda run: run.num_draws > 0, chunk=11, progress=False)
    pe.resume(path, target, cores=1, progress=False)
    longer = pe.extend(path, target, 100, progress=False)
    whole = pe.sample(target, np.zeros(2), draws=400, **run)
    assert longer.num_draws == 400
    assert_same(longer, whole)
    assert longer.notes == whole.notes
    assert longer.method == whole.method
