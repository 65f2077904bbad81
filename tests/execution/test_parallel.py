"""The same draws over cores, JAX devices and the workers of a cluster, also when one of them is killed."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import xarray as xr

import pseudo_extended as pe
from tests.execution import victim
from tests.execution.test_kill import assert_same

RUN = {"method": victim.METHOD, "draws": 400, "warmup": 50, "chains": 3, "seed": 5, "progress": False}


def sample(**options):
    return pe.sample(victim.log_density, np.zeros(2), **RUN | options)


@pytest.fixture(scope="module")
def reference():
    return sample()


ON_DEVICES = """
import sys, jax, numpy as np, pseudo_extended as pe
from tests.execution import victim
from tests.execution.test_parallel import sample
assert len(jax.devices()) == 8
np.savez(sys.argv[1], **{str(n): sample(devices=n).unconstrained for n in (1, 8)})
"""


@pytest.mark.slow
def test_devices(tmp_path, reference):
    """Each of three chains on a device of its own; simulated, as the number is fixed when JAX starts."""
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    environment = os.environ | {"XLA_FLAGS": flags}
    subprocess.run([sys.executable, "-c", ON_DEVICES, str(tmp_path / "draws.npz")], env=environment, check=True)
    draws = np.load(tmp_path / "draws.npz")
    np.testing.assert_array_equal(draws["1"], reference.unconstrained)
    np.testing.assert_array_equal(draws["8"], reference.unconstrained)


def test_bad_devices_and_clusters():
    with pytest.raises(ValueError, match=r"devices must be between 1 and \d+, which JAX has here; got 1000"):
        sample(devices=1000)
    with pytest.raises(TypeError, match=r"devices must be a number or a list of JAX devices; got 'all'"):
        sample(devices="all")
    with pytest.raises(TypeError, match=r"cluster must be a dask\.distributed\.Client; got 'here'"):
        sample(cluster="here")
    with pytest.raises(ValueError, match=r"cores and devices must not be given with a cluster"):
        sample(cluster="here", cores=2)


@pytest.fixture(scope="module")
def client():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("method", [victim.METHOD, pytest.param(None, marks=pytest.mark.slow)], ids=["HMC", "default"])
def test_cluster_in_this_process(method, tmp_path):
    """The same path through the scheduler, without the time that new processes take to begin."""
    from distributed import Client

    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as client:
        result = sample(cluster=client, store=tmp_path / "run.zarr", method=method)
    reference = sample(method=method)
    assert_same(result, reference)
    assert_same(pe.load(tmp_path / "run.zarr", victim.log_density), reference)


@pytest.mark.slow
def test_cluster_and_a_worker_killed(client, reference, tmp_path):
    """A worker dies in the middle of a chunk; another does it again, and the draws are the same."""
    store = tmp_path / "run.zarr"
    killed, began = [], time.monotonic()

    def kill_when_busy():
        while not killed and time.monotonic() - began < 60:
            busy = [worker for worker, tasks in client.processing().items() if tasks]
            if busy and (store / "zarr.json").exists():
                [pid] = client.run(os.getpid, workers=[busy[0]], wait=True).values()
                os.kill(pid, 9)
                killed.append(pid)
            time.sleep(0.02)

    draws = 50_000
    seen = []

    def callback(run):
        seen.append(run.num_draws)
        if len(seen) == 1:
            threading.Thread(target=kill_when_busy).start()

    result = sample(cluster=client, store=store, callback=callback, draws=draws)
    assert killed
    assert result.num_draws == draws
    np.testing.assert_array_equal(result.unconstrained[:, : reference.num_draws], reference.unconstrained)
    whole = sample(draws=draws)
    assert_same(result, whole)
    stored = xr.open_datatree(store, engine="zarr")["weighted_points/x"].values
    np.testing.assert_array_equal(stored, whole.unconstrained)
