"""Lanes over the workers of a dask.distributed cluster.

A task is one lane and some of its iterations: chain in, chain and draws out. A worker that dies takes nothing with it:
the scheduler gives the task to another, which makes the same draws.
"""

import hashlib
import math
import time
from collections import OrderedDict
from concurrent.futures import Future
from threading import Lock
from typing import Any

import jax
import jax.numpy as jnp

from pseudo_extended import checks
from pseudo_extended.methods import Chain
from pseudo_extended.precision import double_precision
from pseudo_extended.run.advance import AdvancedLane, LaneInput, LaneProgram, Segment, Work
from pseudo_extended.run.workers import Workers

_programs: OrderedDict[str, LaneProgram] = OrderedDict()
"""In a worker's process: what it has compiled, by the digest of the work."""
_programs_lock = Lock()
_MOST_PROGRAMS = 4


class Cluster(Workers):
    """The workers of a client."""

    seconds = 1.0

    def __init__(self, client: Any, work: Work):
        import cloudpickle  # comes with distributed; only transport, never storage

        self.client = client
        payload = cloudpickle.dumps(work)
        self.digest = hashlib.sha256(payload).hexdigest()
        # A task, not scattered data: if the worker that holds it dies, the scheduler makes it again.
        self.payload = client.submit(_hold, payload, key=f"pseudo-extended-{self.digest}", pure=False)
        self._slots, self._asked = 1, -math.inf
        self.executor = client.get_executor(pure=False, retries=2)

    @property
    def slots(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The number of threads of all workers, counted again each time: a cluster may grow and shrink."""
        if time.monotonic() - self._asked > 1.0:
            self._slots, self._asked = max(sum(self.client.nthreads().values()), 1), time.monotonic()
        return self._slots

    def submit(self, number: int, lane: LaneInput, segment: Segment) -> Future[AdvancedLane]:
        """Advance a lane on whichever worker is free."""
        del number
        chain = None if lane.chain is None else jax.tree.map(_portable, lane.chain)
        return self.executor.submit(_advance, self.payload, self.digest, lane._replace(chain=chain), segment)

    def close(self) -> None:
        """Tasks that still run are cancelled."""
        self.executor.shutdown(wait=False)
        self.payload.release()


def check_cluster(cluster: Any) -> Any:
    """`cluster`, if it is a client of dask.distributed."""
    if cluster is None:
        return None
    checks.instance("cluster", cluster, _client_class(), "a dask.distributed.Client")
    if cluster.asynchronous:
        raise ValueError("cluster must be a Client that is not asynchronous; got one with asynchronous=True.")
    return cluster


def connect(address: str) -> Any:
    """A client of the Dask scheduler at an address."""
    client = _client_class()
    try:
        return client(address)
    except ValueError as error:
        raise ValueError(f"cluster must be an address such as tcp://host:8786; got {address!r} ({error}).") from None


def _client_class() -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise ImportError("cluster needs dask.distributed: pip install 'pseudo-extended[cluster]'.") from None
    return Client


def _hold(payload: bytes) -> bytes:
    return payload


def _advance(payload: bytes, digest: str, lane: LaneInput, segment: Segment) -> AdvancedLane:
    """Advance a lane on a worker of the cluster."""
    advanced = _program(payload, digest).advance(lane, segment)
    chain: Chain = jax.tree.map(_portable, advanced.chain)
    return advanced._replace(chain=chain)


def _program(payload: bytes, digest: str) -> LaneProgram:
    import cloudpickle

    with _programs_lock:
        if digest not in _programs:
            with double_precision():  # or what a pilot has learned would come out of its envelope in single precision
                work = cloudpickle.loads(payload)
            [_programs[digest]] = LaneProgram.compile(work)
            while len(_programs) > _MOST_PROGRAMS:
                _programs.popitem(last=False)
        _programs.move_to_end(digest)
        return _programs[digest]


def _portable(leaf: Any) -> Any:
    """A NumPy array, unless it is a random key, which JAX itself knows how to send."""
    return leaf if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else jax.device_get(leaf)
