"""Compiled programs, kept and looked up by their text."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from threading import Lock, local
from typing import Any, NamedTuple

import jax
from jax.extend.core import jaxpr_as_fun
from jax.sharding import SingleDeviceSharding
from jax.stages import Lowered

from pseudo_extended.compiler_options import loop_options, quick_options, single_threaded_options
from pseudo_extended.kept_programs import compiled_or_kept, kept_by_recipe
from pseudo_extended.small_batches import in_small_batches, threads_may_wait_for_ever
from pseudo_extended.watchdog import finished, on_own_thread, watched

_compiled: OrderedDict[str, Future[Any]] = OrderedDict()
"""Those under way as well: a thread that wants one waits for that one, and for no other."""
_recipes: OrderedDict[str, str] = OrderedDict()
"""Names of programs, by recipe and device."""
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
    quick: bool = False
    """Whether it runs so briefly that it is compiled with little optimisation: in a third of the time, to run in up to
    four times the time. Its numbers may differ in their last digits, so that this must be a fixed property of it."""
    name: str = "a program"
    """What it does, for whoever waits for it."""
    recipe: str | None = None
    """A digest of all that the program is made from but the device; see `recipes`. None if it has to be traced."""
    last: Callable[[], Any] | None = None
    """What makes the last of the arguments, if it takes a trace to know its shape."""

    def lower(self) -> Lowered:
        """Traced and lowered, not yet compiled; rewritten where its kernels could wait for each other for ever."""
        arguments = self.arguments if self.last is None else (*self.arguments, self.last())
        traced = self._jit(self.function).trace(*arguments)
        platform = jax.default_backend() if self.device is None else self.device.platform
        program = traced.jaxpr
        if platform == "cpu" and threads_may_wait_for_ever():
            program = in_small_batches(program)
        if program is traced.jaxpr:
            return traced.lower()
        structure = jax.tree.structure(traced.out_info)

        def rewritten(*arguments: Any) -> Any:
            return jax.tree.unflatten(structure, jaxpr_as_fun(program)(*jax.tree.leaves(arguments)))

        return self._jit(rewritten).lower(*arguments)

    def _jit(self, function: Callable[..., Any]) -> Any:
        if self.device is None:
            return jax.jit(function)
        here = SingleDeviceSharding(self.device)
        return jax.jit(function, in_shardings=here, out_shardings=here)


class Program:
    """A compiled program, which runs on a thread of its own while the caller waits where Ctrl-C is heard."""

    def __init__(self, compiled: Callable[..., Any], name: str) -> None:
        self.compiled, self.name = compiled, name

    def __call__(self, *arguments: Any) -> Any:
        """What it computes, when it is there."""
        [result] = watched([on_own_thread(partial(self.compiled, *arguments), self.name)], self.name)
        return result


def compile_once(*jobs: Job) -> list[Callable[..., Any]]:
    """The functions, compiled side by side, or from memory or disk if the very same program was compiled before.

    A program is looked up by the recipe of its job; where there is none, it is traced and lowered anew each time, and
    looked up by its text, data included. `jax.jit` would look it up by the identity of the user's function, and then a
    density that reads a global, changed since, gives old answers.
    """
    began = time.perf_counter()
    try:
        programs = [_known(job) for job in jobs]
        others = [i for i, program in enumerate(programs) if program is None]
        if others:
            unknown = tuple(jobs[i] for i in others)
            for i, program in zip(others, _compile(unknown, [job.lower() for job in unknown]), strict=True):
                programs[i] = program
        return [Program(program, job.name) for program, job in zip(programs, jobs, strict=True)]
    finally:
        _clock.seconds = seconds_compiling() + time.perf_counter() - began


def run_once(function: Callable[..., Any], *arguments: Any, quick: bool = True, name: str = "a program") -> Any:
    """What a function computes, compiled by `compile_once`, for what is computed a single time.

    >>> import jax.numpy as jnp
    >>> float(run_once(jnp.sum, jnp.ones(3)))
    3.0
    """
    [compiled] = compile_once(Job(function, arguments, quick=quick, name=name))
    return compiled(*arguments)


def seconds_compiling() -> float:
    """The time that this thread has spent tracing and compiling so far."""
    return getattr(_clock, "seconds", 0.0)


def _compile(jobs: tuple[Job, ...], programs: list[Lowered]) -> list[Callable[..., Any]]:
    texts = [program.as_text() for program in programs]
    options = [_options(job, text) for job, text in zip(jobs, texts, strict=True)]
    calls = [
        partial(program.compile, compiler_options=option or None)
        for program, option in zip(programs, options, strict=True)
    ]
    what = "compiling " + ", ".join(dict.fromkeys(job.name for job in jobs))
    if any("callback" in text for text in texts):
        # The text of a program that calls back into Python does not say which function it calls.
        return watched([on_own_thread(call, what) for call in calls], what)
    # The text says nothing of arguments that the program does not use, of the names in what it returns, nor of where.
    shells = [
        f"{program.in_tree} {program.in_avals} {program.out_tree} {job.device} {option}"
        for program, job, option in zip(programs, jobs, options, strict=True)
    ]
    names = [hashlib.sha256((text + shell).encode()).hexdigest() for text, shell in zip(texts, shells, strict=True)]
    mine = set()
    with _compiled_lock:
        for name, program, job, call in zip(names, programs, jobs, calls, strict=True):
            if name not in _compiled:
                mine.add(name)
                if _is_kept(job):
                    call = partial(compiled_or_kept, name, program, call, job.recipe)
                _compiled[name] = on_own_thread(call, what)
            _compiled.move_to_end(name)
            if job.recipe is not None:
                _recipes[f"{job.recipe} {job.device}"] = name
        found = {name: _compiled[name] for name in names}
        for known, most in ((_compiled, _MAX_COMPILED), (_recipes, 2 * _MAX_COMPILED)):
            while len(known) > most:
                known.popitem(last=False)
    try:
        finished(list(found.values()), what)
    finally:
        _forget_failed(found)
    return [
        # What failed for another thread, for want of memory perhaps, is tried again.
        found[name].result() if name in mine or found[name].exception() is None else call()
        for name, call in zip(names, calls, strict=True)
    ]


def _known(job: Job) -> Any:
    """The program of a job whose recipe is known, from memory or disk; None if it has to be traced."""
    if job.recipe is None:
        return None
    recipe = f"{job.recipe} {job.device}"
    with _compiled_lock:
        future = _compiled.get(_recipes.get(recipe, ""))
    if future is not None:
        finished([future], f"compiling {job.name}")
        return None if future.exception() is not None else future.result()
    kept = kept_by_recipe(job.recipe) if _is_kept(job) else None
    if kept is None:
        return None
    name, program = kept
    with _compiled_lock:
        _recipes[recipe] = name
        if name not in _compiled:
            _compiled[name] = Future()
            _compiled[name].set_result(program)
    return program


def _is_kept(job: Job) -> bool:
    return job.device is None and jax.default_backend() == "cpu"


def _options(job: Job, text: str) -> dict[str, Any]:
    """XLA's options for a program; those of a processor mean nothing to an accelerator."""
    platform = jax.default_backend() if job.device is None else job.device.platform
    speed = quick_options() if job.quick else loop_options() if platform == "cpu" else {}
    return speed | (single_threaded_options() if "stablehlo.fft" in text else {})


def _forget_failed(found: dict[str, Future[Any]]) -> None:
    """Programs that could not be compiled: who wants one tries again. After Ctrl-C, the others are there in time."""
    with _compiled_lock:
        for name, future in found.items():
            if future.done() and future.exception() is not None and _compiled.get(name) is future:
                del _compiled[name]
