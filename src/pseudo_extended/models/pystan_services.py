"""PyStan's compiled modules, called inside this process.

PyStan's own `sample` keeps a fit of every seed on disk and would answer a repeated run from there, starts processes by
fork (which JAX's threads do not like), and counts the polling of a web server. httpstan's compiled module is called
directly instead: it gives up Python's lock while it samples and writes its draws to a socket, which threads read.
"""

import asyncio
import importlib.util
import json
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from pseudo_extended.optional import require

EXTENSION_SUFFIXES = (".so", ".pyd", ".dylib")
NUM_CONNECTIONS = 4  # a logger, and writers of the start, the draws and the diagnostics


class ServiceRun(NamedTuple):
    """Draws of one chain."""

    draws: dict[str, np.ndarray]
    """By Stan's names, such as x.1.2, lp__ or n_leapfrog__."""
    seconds: float
    """From the call to its return: warm-up and draws, without compilation and without reading the draws."""
    cpu_seconds: float
    """The processor's time of the same."""


def build(program: str) -> tuple[ModuleType, float]:
    """The compiled module, and the seconds that its compilation took (zero when Stan had it in its cache)."""
    models = require("httpstan.models", "pystan", "compiling a Stan program")
    name = models.calculate_model_name(program)
    try:
        return models.import_services_extension_module(name), 0.0
    except KeyError:
        began = time.perf_counter()
        # In a thread, because there may be an event loop in this one: a notebook has one.
        failed: list[BaseException] = []
        thread = threading.Thread(target=_build, args=(models, program, failed))
        thread.start()
        thread.join()
        if failed:
            raise ValueError(f"program must compile as a Stan program; stanc says: {failed[0]}") from failed[0]
        return models.import_services_extension_module(name), time.perf_counter() - began


def load_privately(program: str) -> ModuleType:
    """A copy of the compiled module, loaded in the calling thread: the one that may then differentiate with it.

    Stan keeps its derivatives on a stack of each thread, and a module prepares that of the thread which loads it; in
    any other thread a gradient ends the process. A second load of the same file would prepare nothing, so it is a copy.
    """
    models = require("httpstan.models", "pystan", "loading a Stan program")
    build(program)
    directory = Path(
        require("httpstan.cache", "pystan", "loading a Stan program").model_directory(
            models.calculate_model_name(program)
        )
    )
    [library] = [path for path in directory.iterdir() if path.suffix in EXTENSION_SUFFIXES]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copy(library, folder))
        spec = importlib.util.spec_from_file_location("stan_services", copy)  # as its C++ calls it
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def _build(models: Any, program: str, failed: list[BaseException]) -> None:
    try:
        asyncio.run(models.build_services_extension_module(program))
    except BaseException as error:
        failed.append(error)


def program_info(program: str) -> dict[str, Any]:
    """What Stan's compiler knows of a program: the names in its blocks, and the functions that it calls."""
    stanc = Path(require("httpstan", "pystan", "reading a Stan program").__file__).parent / "stanc"
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.stan"
        path.write_text(program)
        done = subprocess.run([str(stanc), "--info", str(path)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(f"program must be a Stan program; stanc says: {done.stderr.strip()}")
    return json.loads(done.stdout)


def run_service(
    module: ModuleType, function: str, data: Mapping[str, Any], init: Mapping[str, Any], chosen: Mapping[str, Any]
) -> ServiceRun:
    """One of Stan's services, with its default settings where none were chosen."""
    arguments = require("httpstan.services.arguments", "pystan", "running Stan")
    settings = {
        name: chosen.get(name, arguments.lookup_default(arguments.Method.SAMPLE, name))
        for name in arguments.function_arguments(function, module)
        if name not in ("data", "init")
    }
    service = getattr(module, f"{function}_wrapper")
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as listener:
        path = str(Path(directory) / "stan.sock")
        listener.bind(path)
        listener.listen(NUM_CONNECTIONS)
        received: list[bytes] = []
        reader = threading.Thread(target=_read_all, args=(listener, received))
        reader.start()
        began, cpu_began = time.perf_counter(), time.thread_time()
        code = service(path, data=dict(data), init=dict(init), **settings)
        seconds, cpu_seconds = time.perf_counter() - began, time.thread_time() - cpu_began
        reader.join()
    if code != 0:
        raise RuntimeError(f"Stan's {function} must return 0; got {code}: {b' '.join(received)[-500:]!r}.")
    return ServiceRun(_parse(received), seconds, cpu_seconds)


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
