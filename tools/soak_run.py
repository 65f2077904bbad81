"""The run that a soak kills and damages, and what its draws must be.

Everything that the run needs is imported here, except that XLA does not start: a process in which its threads run
cannot be forked. So a fork begins to sample within a fraction of a second.
"""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.experimental.multihost_utils
import jax.numpy as jnp
import numpy as np
import zarr

with mock.patch("jax.numpy.log", np.log):  # BlackJAX computes the default value of an argument, which starts XLA
    import blackjax

import pseudo_extended as pe
from pseudo_extended.run import resume, sample, stored

DRAWS, WARMUP, CHAINS = 1_800, 600, 2
SEEDS = (7, 8)
"""Of two runs of one shape: files of one are put among those of the other."""
DONE, WRONG, RAW = 0, 3, 4
"""How a fork ends: as it should, with wrong draws, or with an exception."""
IMPORTED = (blackjax, jax.experimental.multihost_utils, resume, sample, zarr)
Truth = dict[str, np.ndarray]


def log_density(x: Any) -> Any:
    """Two normals."""
    return jnp.logaddexp(-0.5 * jnp.sum((x - 2) ** 2), -0.5 * jnp.sum((x + 2) ** 2))


def begin_or_go_on(store: Path, seed: int) -> pe.Result:
    """The one call of a job that may be killed at any time."""
    write_often()
    method = pe.PseudoExtended(pe.Fixed(0.3), pe.RandomWalk(), 2)
    run: dict[str, Any] = {"draws": DRAWS, "warmup": WARMUP, "chains": CHAINS, "seed": seed, "progress": False}
    return pe.sample(log_density, np.zeros(2), method=method, store=store, resume=True, **run)


def write_often() -> None:
    """Many small chunks, and snapshots all the time."""
    stored.LEAST_SECONDS, stored.SECONDS_BETWEEN_VIEWS, stored.SHARE_OF_TIME = 0.005, 0.02, 2
    stored.CHUNK_BYTES = 2**14


def values_of(result: pe.Result) -> Truth:
    """All that a result has of its draws."""
    return {"x": result.unconstrained, "log_weight": result.log_weights} | {
        f"statistic {name}": each for name, each in result.statistics.items()
    }


def assert_same(result: pe.Result, whole: Truth) -> None:
    """The draws are the first ones of a run that was never stopped."""
    for name, values in values_of(result).items():
        np.testing.assert_array_equal(values, whole[name][:, : result.num_draws], err_msg=name)


def fork(work: Callable[[], None]) -> int:
    """Do the work in a process of its own, whose number is returned at once."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        or_end(work)
        os._exit(DONE)
    return child


def or_end(work: Callable[..., None], *arguments: Any) -> None:
    """In a fork: do the work on this thread; if it fails, all of the fork ends."""
    try:
        work(*arguments)
    except AssertionError:
        traceback.print_exc()
        os._exit(WRONG)
    except BaseException:
        traceback.print_exc()
        os._exit(RAW)


def ended(child: int) -> int:
    """Wait for a fork; its status, negative if a signal ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_when(child: int, is_time: Callable[[], bool]) -> int:
    """Send SIGKILL to a fork when it is time, unless it has ended before; its status."""
    while not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) and not is_time():
        time.sleep(0.0003)
    os.kill(child, signal.SIGKILL)  # of our own child, which is not waited for yet
    return ended(child)
