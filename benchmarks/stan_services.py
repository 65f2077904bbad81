"""The one door to Stan: build a program with PyStan's compiler, and run its NUTS inside this process.

PyStan's own `sample` keeps a fit of every seed on disk and would answer a repeated run from there, starts processes by
fork (which JAX's threads do not like), and counts the polling of a web server. httpstan's compiled module is called
directly instead: it gives up Python's lock while it samples and writes its draws to a socket, which threads read.
"""

import asyncio
import json
import socket
import tempfile
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import httpstan.models  # pyright: ignore[reportMissingImports]
import httpstan.services.arguments as arguments  # pyright: ignore[reportMissingImports]
import numpy as np

NUM_CONNECTIONS = 4  # a logger, and writers of the start, the draws and the diagnostics
FUNCTION = "hmc_nuts_diag_e_adapt"


class StanRun(NamedTuple):
    """Draws of one chain."""

    draws: dict[str, np.ndarray]
    """By Stan's names, such as x.1.2, lp__ or n_leapfrog__."""
    seconds: float
    """From the call to its return: warm-up and draws, without compilation and without reading the draws."""
    cpu_seconds: float
    """The processor's time of the same."""


def build(program: str) -> tuple[ModuleType, float]:
    """The compiled module, and the seconds that its compilation took (zero when Stan had it in its cache)."""
    name = httpstan.models.calculate_model_name(program)
    try:
        return httpstan.models.import_services_extension_module(name), 0.0
    except KeyError:
        began = time.perf_counter()
        asyncio.run(httpstan.models.build_services_extension_module(program))
        return httpstan.models.import_services_extension_module(name), time.perf_counter() - began


def run_nuts(
    module: ModuleType, data: dict[str, Any], init: dict[str, Any], *, draws: int, warmup: int, seed: int, chain: int
) -> StanRun:
    """One chain of Stan's NUTS with its default settings: diagonal metric, depth at most 10, target 0.8."""
    chosen = {"num_samples": draws, "num_warmup": warmup, "random_seed": seed, "chain": chain, "refresh": 0}
    settings = {
        name: chosen.get(name, arguments.lookup_default(arguments.Method.SAMPLE, name))
        for name in arguments.function_arguments(FUNCTION, module)
        if name not in ("data", "init")
    }
    function = getattr(module, f"{FUNCTION}_wrapper")
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as listener:
        path = str(Path(directory) / "stan.sock")
        listener.bind(path)
        listener.listen(NUM_CONNECTIONS)
        received: list[bytes] = []
        reader = threading.Thread(target=_read_all, args=(listener, received))
        reader.start()
        began, cpu_began = time.perf_counter(), time.thread_time()
        code = function(path, data=data, init=init, **settings)
        seconds, cpu_seconds = time.perf_counter() - began, time.thread_time() - cpu_began
        reader.join()
    if code != 0:
        raise RuntimeError(f"Stan's NUTS must return 0; got {code}: {b' '.join(received)[-500:]!r}.")
    return StanRun(_parse(received), seconds, cpu_seconds)


def _read_all(listener: socket.socket, received: list[bytes]) -> None:
    """All that Stan writes, each connection by a thread of its own so that none blocks another."""

    def read(connection: socket.socket) -> None:
        with connection:
            parts = iter(lambda: connection.recv(1 << 20), b"")
            received.append(b"".join(parts))

    readers = [threading.Thread(target=read, args=(listener.accept()[0],)) for _ in range(NUM_CONNECTIONS)]
    for thread in readers:
        thread.start()
    for thread in readers:
        thread.join()


def _parse(received: list[bytes]) -> dict[str, np.ndarray]:
    """The draws, out of lines of JSON in which some are messages."""
    rows = []
    for text in received:
        if b'"topic":"sample"' in text[:200]:
            values = (json.loads(line)["values"] for line in text.splitlines())
            rows = [value for value in values if isinstance(value, dict)]
    return {name: np.array([row[name] for row in rows], float) for name in rows[0]}
