"""log γ and its gradient at many points: the one program of the density that a pilot needs.

XLA takes seconds for each copy of a large density, and the loops around it, ascents and annealing, are a matter of some
hundred steps. So those are NumPy, and one small program evaluates the density for all of them.
"""

from collections.abc import Callable
from functools import partial
from threading import Event
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from pseudo_extended.compiled import Job, Program, compile_once
from pseudo_extended.recipes import recipe
from pseudo_extended.watchdog import on_own_thread, watched

LANES = 32
"""Points that the program takes at a time; the last ones are filled up."""
MAX_POINTS = 512
"""In one call, in few dimensions."""
MAX_NUMBERS = 2**16
"""In the points of one call."""
QUICK_UP_TO = 50
"""Dimensions in which a pilot runs so briefly that its program is not worth optimising."""

Values = tuple[Float[np.ndarray, " point"], Float[np.ndarray, "point d"]]
"""Log densities, and gradients: zero where none are computed."""
R = TypeVar("R")


class Density:
    """The log density of a target at many points, compiled at its first use, with the number of evaluations so far.

    >>> import pseudo_extended as pe
    >>> with jax.enable_x64(True):
    ...     density = Density(pe.Target(lambda x: -jnp.sum(x**2), np.zeros(2)), gradient=True)
    ...     density(np.array([[1.0, 2.0], [3.0, 1.0]]))
    (array([ -5., -10.]), array([[-2., -4.],
           [-6., -2.]]))
    >>> density.num_evaluations
    2
    """

    def __init__(self, target: Any, *, gradient: bool):
        self.log_density: Callable[[Float[Array, " d"]], Float[Array, ""]] = target.log_target
        self.target, self.dim, self.gradient = target, target.dim, gradient
        self.capacity = LANES * int(np.clip(MAX_NUMBERS // (LANES * self.dim), 1, MAX_POINTS // LANES))
        self.program: Callable[..., Any] | None = None
        self.num_evaluations = 0
        self._stopped = Event()

    @property
    def job(self) -> Job:
        """The job to compile as the program of the density."""
        quick, arguments = self.dim <= QUICK_UP_TO, (np.zeros((self.capacity, self.dim)), 0)
        made_from = recipe(self.target, "the density", self.gradient, self.capacity)
        return Job(self._evaluate, arguments, quick=quick, name="the density", recipe=made_from)

    def compile(self) -> None:
        """Compile it, if that has not been done."""
        if self.program is None:
            [self.program] = compile_once(self.job)

    def __call__(self, points: Float[np.ndarray, "point d"]) -> Values:
        """The values at all of them, whose number counts."""
        self.compile()
        assert self.program is not None
        program = self.program.compiled if isinstance(self.program, Program) else self.program
        self.num_evaluations += len(points)
        values, gradients = np.zeros(len(points)), np.zeros((len(points), self.dim))
        filled = np.zeros((self.capacity, self.dim))
        for first in range(0, len(points), self.capacity):
            if self._stopped.is_set():
                raise RuntimeError("the run that this belonged to has ended.")
            some = points[first : first + self.capacity]
            here, num_blocks = slice(first, first + len(some)), -(-len(some) // LANES)
            # Functions called in Python remember their answers: the last point again costs nothing.
            filled[: len(some)], filled[len(some) : LANES * num_blocks] = some, some[-1]
            found, slopes = program(filled, num_blocks)
            values[here] = np.asarray(found)[: len(some)]
            if self.gradient:
                gradients[here] = np.asarray(slopes)[: len(some)]
        return values, gradients

    def watched(self, call: Callable[[], R], name: str) -> R:
        """What a call returns that evaluates this density many times; Ctrl-C ends it."""
        self.compile()
        try:
            [result] = watched([on_own_thread(call, name)], name)
        except BaseException:
            self._stopped.set()
            raise
        return result

    def _evaluate(self, points: Float[Array, "point d"], num_blocks: Int[Array, ""]) -> tuple[Array, Array]:
        """The first so many blocks of the points."""
        both = jax.value_and_grad(self.log_density) if self.gradient else lambda x: (self.log_density(x), jnp.zeros(0))

        def block(i: Array, found: tuple[Array, Array]) -> tuple[Array, Array]:
            new = jax.vmap(both)(jax.lax.dynamic_slice_in_dim(points, i * LANES, LANES))
            put = partial(jax.lax.dynamic_update_slice_in_dim, start_index=i * LANES, axis=0)
            return put(found[0], new[0]), put(found[1], new[1])

        size = points.shape[0]
        blank = jnp.zeros(size), jnp.zeros((size, self.dim if self.gradient else 0))
        return jax.lax.fori_loop(0, num_blocks, block, blank)
