"""SIGKILL at any moment: the run goes on, and its draws are those of a run that was never stopped."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import pseudo_extended as pe
from tests.execution import victim

DRAWS = 60_000


def begin(store, cache):
    # The program is compiled by the first of them only, so that the others are killed in what matters.
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    return subprocess.Popen(
        [sys.executable, victim.__file__, str(store), str(DRAWS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def progress_of(store):
    """The furthest snapshot that there is, without looking inside: their number and time."""
    return max((path.stat().st_mtime_ns for path in Path(store, "engine").glob("lane-*.[ab]")), default=0)


def wait_for_progress(process, store, since, seconds=60.0):
    """Until a snapshot is written, or the process has ended."""
    end = time.monotonic() + seconds
    while process.poll() is None and progress_of(store) <= since and time.monotonic() < end:
        time.sleep(0.01)


@pytest.mark.parametrize("num_kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_kill_9_at_random_moments(tmp_path, num_kills):
    rng = random.Random(num_kills)
    store = tmp_path / "run.zarr"
    kills = 0
    for i in range(num_kills):
        process = begin(store, tmp_path / "cache")
        if i % 5 != 4:  # every fifth is killed wherever it is: importing, compiling, verifying
            wait_for_progress(process, store, progress_of(store))
            time.sleep(rng.uniform(0.0, 0.3))
        else:
            time.sleep(rng.uniform(0.5, 4.0))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        _, log = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), log
        if (store / "zarr.json").exists():
            tree = xr.open_datatree(store, engine="zarr")
            assert np.all(np.isfinite(tree["posterior/x"].values))
    assert kills >= min(num_kills, 2)
    result = victim.run(str(store), DRAWS, progress=False)
    whole = victim.run(None, DRAWS, progress=False)
    assert result.num_draws == DRAWS
    assert_same(result, whole)


def assert_same(a: pe.Result, b: pe.Result):
    np.testing.assert_array_equal(a.unconstrained, b.unconstrained)
    np.testing.assert_array_equal(a.log_weights, b.log_weights)
    assert a.statistics.keys() == b.statistics.keys()
    for name, values in a.statistics.items():
        np.testing.assert_array_equal(values, b.statistics[name])
