"""Functions that JAX cannot trace (NumPy, Stan), called from compiled programs for many points at once.

Numbers cross the border as their bits, in 32-bit words: XLA runs callbacks on threads of its own, where JAX's double
precision is off unless it is on for the whole process, and doubles would arrive as floats.
"""

import pickle
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree, UInt32

from pseudo_extended import checks
from pseudo_extended.messages import Message, kinds

DIFFERENCE = 6e-6
"""Relative step of the differences of gradients that stand in for second derivatives: the cube root of the rounding."""
MAX_KNOWN = 16384
SAME = 1e-6
"""The largest difference, relative or absolute, between two values of a function at one point: threads and solvers
change last digits."""


class HostFunction:
    """A scalar function of a position that runs in Python, to be used wherever a JAX function is.

    Under `vmap` it is called once for all points. A point at which it raises has the value nan, which counts as a
    density of zero; how often, and what was raised first, is kept for the report.

    A subclass says what the values and gradients of many flat positions are. The last few thousand answers are
    kept: vectorised programs ask again for points that have finished or did not move.
    """

    is_differentiable: bool
    name: str
    pool: Any = None
    """Whose `map` computes points that a function takes one at a time, such as a pool of processes; None for here."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[tuple[bool, bytes], Float[np.ndarray, " answer"]] = {}
        self.forget()

    @abstractmethod
    def compute(
        self, points: Float[np.ndarray, "point d"], like: PyTree, *, gradient: bool
    ) -> Float[np.ndarray, "point answer"]:
        """A row for each point: the value, and then the gradient if asked for; nan where there is none.

        `like` shows the structure and shapes of a position.
        """

    def one_by_one(
        self, points: Float[np.ndarray, "point d"], answer: Callable[[Float[np.ndarray, " d"]], Any], *, gradient: bool
    ) -> Float[np.ndarray, "point answer"]:
        """The rows of a function that takes one point; what it raises is remembered."""
        rows = np.full((len(points), points.shape[1] + 1 if gradient else 1), np.nan)
        each = map if self.pool is None else self.pool.map
        for row, found in zip(rows, each(partial(_answer_or_error, answer), list(points)), strict=True):
            try:
                if isinstance(found, Exception):
                    raise found
                row[:] = found
            except Exception as error:
                self.failed(error)
        return rows

    def __call__(self, position: PyTree) -> Float[Array, ""]:
        """The value, as JAX sees it: traceable, and differentiable if the function is."""
        leaves = jax.tree.leaves(position)
        like = jax.tree.map(lambda leaf: np.zeros(jnp.shape(leaf)), position)
        flat = jnp.concatenate([jnp.ravel(jnp.asarray(leaf, float)) for leaf in leaves])
        if flat.dtype != jnp.float64:
            raise TypeError(
                f"{self.name} runs in double precision; call it inside jax.enable_x64(True), as pe.sample does."
            )
        return _evaluate(self, like)(flat)

    def failed(self, error: Exception) -> None:
        """Remember what was raised."""
        with self._lock:
            self.num_failures += 1
            if self.first_error is None:
                self.first_error = error

    def forget(self) -> None:
        """Count from zero, at the beginning of a run."""
        self.num_failures: int = 0
        self.first_error: Exception | None = None
        self._known.clear()
        self._first: tuple[Float[np.ndarray, " d"], PyTree, bool, float] | None = None
        """A point, the structure of a position, whether its gradient was asked for too, and the value."""

    def answers(
        self, points: Float[np.ndarray, "point d"], like: PyTree, *, gradient: bool
    ) -> Float[np.ndarray, "point answer"]:
        """The value, and the gradient if asked for, of each point in a row; each point is computed once."""
        keys = [(gradient, point.tobytes()) for point in points]
        known = {key: row for key in keys if (row := self._known.get(key)) is not None}
        # A step that went to infinity is rejected whatever the function says of it, and it may not like to be asked.
        nowhere = np.full(points.shape[1] + 1 if gradient else 1, np.nan)
        known |= {key: nowhere for key, point in zip(keys, points, strict=True) if not np.all(np.isfinite(point))}
        new = {key: i for i, key in enumerate(keys) if key not in known}
        if new:
            rows = self.compute(points[list(new.values())], like, gradient=gradient)
            computed = dict(zip(new, rows, strict=True))
            known |= computed
            with self._lock:
                for point, row in zip(points[list(new.values())], rows, strict=True):
                    if self._first is None and np.isfinite(row[0]):
                        self._first = point.copy(), like, gradient, float(row[0])
                if len(self._known) > MAX_KNOWN:
                    self._known.clear()
                self._known |= computed
        return np.stack([known[key] for key in keys])

    def complaints(self) -> list[Message]:
        """A sentence about points at which it raised, and one if it has another value now than it had before."""
        found = []
        if self.first_error is not None:
            times = "once" if self.num_failures == 1 else f"{self.num_failures} times"
            found.append(kinds.FUNCTION_RAISED(name=self.name, times=times, said=said(self.first_error)))
        changed = self._changed()
        return found if changed is None else [*found, kinds.CHANGES(name=self.name, first=changed[0], again=changed[1])]

    def _changed(self) -> tuple[float, float] | None:
        """The value at a point that was asked for early on, and the one there now, if they differ."""
        if self._first is None:
            return None
        point, like, gradient, value = self._first
        failures, first_error = self.num_failures, self.first_error
        again = float(self.compute(point[None], like, gradient=gradient)[0, 0])
        self.num_failures, self.first_error = failures, first_error
        return None if np.isclose(value, again, rtol=SAME, atol=SAME) else (value, again)


def check_pool(pool: Any, vectorised: bool) -> Any:
    """A pool is None, or has `map`; a function that takes many points at once has no use for one."""
    if pool is not None and not callable(getattr(pool, "map", None)):
        raise TypeError(
            "pool must have a method map, as multiprocessing.Pool and concurrent.futures' executors do; "
            f"got {checks.describe(pool)}."
        )
    if pool is not None and vectorised:
        raise ValueError("pool is for functions that take one position; with vectorised=True, leave it out.")
    return pool


def _answer_or_error(answer: Callable[[Any], Any], point: Float[np.ndarray, " d"]) -> Any:
    """What a function answers, or the error that it raised, fit to come from another process."""
    try:
        return np.asarray(answer(point), float)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return RuntimeError(said(error))
        return error


def said(error: BaseException) -> str:
    """An exception in words, on one line.

    >>> said(ValueError("no good."))
    'ValueError: no good'
    """
    text = str(error).strip().split("\n")[0].rstrip(".")[:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _evaluate(function: HostFunction, like: PyTree) -> Any:
    """The function of a flat vector, with its derivatives."""

    @jax.custom_jvp
    def value(x: Float[Array, " d"]) -> Float[Array, ""]:
        return _call_back(lambda points: function.answers(points, like, gradient=False), x, 1)[0]

    @jax.custom_jvp
    def both(x: Float[Array, " d"]) -> Float[Array, " d+1"]:
        return _call_back(lambda points: function.answers(points, like, gradient=True), x, x.shape[0] + 1)

    @value.defjvp
    def value_jvp(primals: Any, tangents: Any) -> Any:
        if not function.is_differentiable:
            raise TypeError(no_gradient(function.name))
        [x], [direction] = primals, tangents
        together = both(x)
        return together[0], jnp.vdot(together[1:], direction)

    @both.defjvp
    def both_jvp(primals: Any, tangents: Any) -> Any:
        # Second derivatives serve only to guess how wide a mode is: differences of exact gradients are good enough.
        [x], [direction] = primals, tangents
        step = DIFFERENCE * (1 + jnp.linalg.norm(x)) / jnp.maximum(jnp.linalg.norm(direction), 1e-300)
        ahead, behind = jax.vmap(both)(jnp.stack([x + step * direction, x - step * direction]))
        return both(x), (ahead - behind) / (2 * step)

    return value


def _call_back(on_host: Any, x: Float[Array, " d"], size: int) -> Float[Array, " {size}"]:
    def exchange(bits: UInt32[np.ndarray, "*batch d 2"]) -> UInt32[np.ndarray, "*batch {size} 2"]:
        bits = np.ascontiguousarray(np.asarray(bits))
        points = bits.view(np.float64)[..., 0]
        answer = np.ascontiguousarray(on_host(points.reshape(-1, points.shape[-1])), np.float64)
        return answer.view(np.uint32).reshape(*points.shape[:-1], size, 2)

    shape = jax.ShapeDtypeStruct((size, 2), jnp.uint32)
    bits = jax.lax.bitcast_convert_type(x, jnp.uint32)
    return jax.lax.bitcast_convert_type(
        jax.pure_callback(exchange, shape, bits, vmap_method="broadcast_all"), jnp.float64
    )


def no_gradient(name: str) -> str:
    """The refusal of a method that needs the gradient of a function that has none."""
    return (
        f"{name} has no gradient: it is no JAX function, and finite differences are too coarse to sample with. Give "
        "pe.from_numpy(log_density, gradient=...) its gradient, or choose moves that need none, such as "
        "method=pe.AdaptivePseudoExtended(kernel=pe.RandomWalk()), which is what pe.sample takes by default here."
    )
