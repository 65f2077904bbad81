"""Compiled programs, kept and looked up by their text."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from threading import Lock, local
from typing import Any, NamedTuple

import jax
from jax.extend.core import jaxpr_as_fun
from jax.sharding import SingleDeviceSharding
from jax.stages import Lowered

from pseudo_extended.small_batches import in_small_batches, threads_may_wait_for_ever

_compiled: OrderedDict[str, Future[Callable[..., Any]]] = OrderedDict()
"""Those under way as well: a thread that wants one waits for the thread that compiles it, and for no other."""
_compiled_lock = Lock()
_MAX_COMPILED = 64
_clock = local()

Device = Any
"""A `jax.Device`, which type checkers know only as a variable."""


class Job(NamedTuple):
    """A function to compile for arguments like these."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    device: Device | None = None
    """Where it runs; None for where JAX puts it."""

    def lower(self) -> Lowered:
        """Traced and lowered, not yet compiled; rewritten where its kernels could wait for each other for ever."""
        traced = self._jit(self.function).trace(*self.arguments)
        platform = jax.default_backend() if self.device is None else self.device.platform
        program = traced.jaxpr
        if platform == "cpu" and threads_may_wait_for_ever():
            program = in_small_batches(program)
        if program is traced.jaxpr:
            return traced.lower()
        structure = jax.tree.structure(traced.out_info)

        def rewritten(*arguments: Any) -> Any:
            return jax.tree.unflatten(structure, jaxpr_as_fun(program)(*jax.tree.leaves(arguments)))

        return self._jit(rewritten).lower(*self.arguments)

    def _jit(self, function: Callable[..., Any]) -> Any:
        if self.device is None:
            return jax.jit(function)
        here = SingleDeviceSharding(self.device)
        return jax.jit(function, in_shardings=here, out_shardings=here)


def compile_once(*jobs: Job) -> list[Callable[..., Any]]:
    """The functions, compiled side by side, or from memory if the very same program was compiled before.

    A function is traced and lowered anew each time, and looked up by its text, data included. `jax.jit` would look it
    up by the identity of the user's function, and then a density that reads a global, changed since, gives old answers.
    """
    began = time.perf_counter()
    try:
        return _compile([job.lower() for job in jobs], [str(job.device) for job in jobs])
    finally:
        _clock.seconds = seconds_compiling() + time.perf_counter() - began


def seconds_compiling() -> float:
    """The time that this thread has spent tracing and compiling so far."""
    return getattr(_clock, "seconds", 0.0)


def _compile(programs: list[Lowered], places: list[str]) -> list[Callable[..., Any]]:
    texts = [program.as_text() for program in programs]
    if any("callback" in text for text in texts):
        # The text of a program that calls back into Python does not say which function it calls.
        return [program.compile() for program in programs]
    # The text says nothing of arguments that the program does not use, of the names in what it returns, nor of where.
    shells = [
        f"{program.in_tree} {program.in_avals} {program.out_tree} {place}"
        for program, place in zip(programs, places, strict=True)
    ]
    names = [hashlib.sha256((text + shell).encode()).hexdigest() for text, shell in zip(texts, shells, strict=True)]
    mine: dict[str, Lowered] = {}
    with _compiled_lock:
        for name, program in zip(names, programs, strict=True):
            if name not in _compiled:
                _compiled[name], mine[name] = Future(), program
            _compiled.move_to_end(name)
        found = {name: _compiled[name] for name in names}
        while len(_compiled) > _MAX_COMPILED:
            _compiled.popitem(last=False)
    try:
        with ThreadPoolExecutor(max(len(mine), 1)) as pool:
            for name, program in zip(mine, pool.map(lambda program: program.compile(), mine.values()), strict=True):
                found[name].set_result(program)
    finally:
        _forget([(name, found[name]) for name in mine if not found[name].done()])
    return [_awaited(found[name], program) for name, program in zip(names, programs, strict=True)]


def _awaited(future: Future[Callable[..., Any]], program: Lowered) -> Callable[..., Any]:
    try:
        return future.result()
    except CancelledError:  # another thread gave it up
        return program.compile()


def _forget(failed: list[tuple[str, Future[Any]]]) -> None:
    """Programs that were not compiled, because of an error or Ctrl-C: who waits for one compiles it alone."""
    with _compiled_lock:
        for name, future in failed:
            if _compiled.get(name) is future:
                del _compiled[name]
            future.cancel()
