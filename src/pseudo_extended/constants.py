"""NumPy arrays in a density, in the precision of whoever traces it: the library's double or the user's own.

JAX converts a NumPy array that a function uses to the precision of the moment, and keeps the result with the array for
as long as any program has it, whatever the precision of the next one that asks. So once a function had been traced in
single precision, double precision got singles, and the other way round: "expected f64, got f32" in the user's own code
or in ours (JAX 0.10 to 0.12). While the library computes, and no longer, results are kept by array *and* precision;
before and after, JAX has only what it converted itself.
"""

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import jax
import numpy as np

try:  # what a JAX without the mistake may not have
    from jax._src import dtypes as _dtypes
    from jax._src.lib import _jax  # pyright: ignore[reportPrivateImportUsage]
    from jax._src.literals import TypedNdArray as _Constant  # pyright: ignore[reportAttributeAccessIssue]
except ImportError:  # pragma: no cover
    _dtypes = _jax = _Constant = None


class ByPrecision:
    """The conversion of an array, kept while anybody has its result, for each precision apart."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, str], tuple[weakref.ref[Any], weakref.ref[Any]]] = {}

    def __call__(self, array: np.ndarray) -> Any:
        """The array as a constant of a program."""
        dtype = jax.dtypes.canonicalize_dtype(array.dtype)
        key = id(array), str(dtype)
        kept, result = (ref() for ref in self.known.get(key, (lambda: None, lambda: None)))
        if kept is array and result is not None:
            return result
        result = _Constant(np.asarray(array, dtype))  # pyright: ignore[reportOptionalCall]

        def gone(ref: weakref.ref[Any]) -> None:
            if self.known.get(key, (None, None))[1] is ref:
                del self.known[key]

        self.known[key] = weakref.ref(array), weakref.ref(result, gone)
        return result


class Installation:
    """A conversion installed in JAX from the first context that is entered to the last that is left, on any thread."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.num_inside = 0
        self.restore: Callable[[], None] | None = None

    def enter(self) -> None:
        """Install it, if it is not."""
        with self.lock:
            if self.restore is None:
                self.restore = _install(ByPrecision())
            self.num_inside += 1

    def leave(self) -> None:
        """Put back what was there, if nobody else is inside."""
        with self.lock:
            self.num_inside -= 1
            if self.num_inside == 0 and self.restore is not None:
                self.restore()
                self.restore = None


_installation = Installation()


@contextmanager
def constants_by_precision() -> Iterator[None]:
    """A context in which no array comes in the precision of another trace; for all threads, as long as one is in it."""
    if not jax_mixes_precisions():
        yield
        return
    _installation.enter()
    try:
        yield
    finally:
        _installation.leave()


@cache
def jax_mixes_precisions() -> bool:
    """Whether this JAX makes the mistake, tried on an array of our own."""
    if _Constant is None or _dtypes is None or not hasattr(_dtypes, "canonicalize_value"):
        return False
    array = np.ones(2)
    with jax.enable_x64(False):
        kept = _dtypes.canonicalize_value(array)
    with jax.enable_x64(True):
        return _dtypes.canonicalize_value(array) is kept


def _install(convert: ByPrecision) -> Callable[[], None]:
    """Let JAX convert arrays so; the result puts back what was there."""
    handlers: Any = _dtypes.canonicalize_value_handlers  # pyright: ignore[reportOptionalMemberAccess]
    if isinstance(handlers, dict):
        before = handlers[np.ndarray]
        handlers[np.ndarray] = convert
        return lambda: handlers.__setitem__(np.ndarray, before)
    handlers[np.ndarray] = convert
    return lambda: _jax.set_typed_ndarray_type(_Constant)  # pyright: ignore[reportOptionalMemberAccess]
