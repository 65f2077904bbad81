"""Checks of what the user hands in: one sentence that says what, what is allowed and what came."""

import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def describe(value: Any) -> str:
    """What came, short enough for one sentence.

    >>> describe(3), describe("abc"), describe([1.0, 2.0]), describe(object)
    ('3', "'abc'", '[1.0, 2.0]', "<class 'object'>")
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"an array of shape {shape}"
    try:
        text = repr(value).replace("\n", " ")
    except ValueError:  # Python refuses to print an int of thousands of digits
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def integer(name: str, value: Any, *, minimum: int, maximum: int = 2**63 - 1) -> int:
    """`value` as an int of at least `minimum`, and at most what 64 bits hold."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a whole number of at least {minimum}; got {describe(value)}.")
    if value < minimum:
        raise ValueError(f"{name} must be a whole number of at least {minimum}; got {describe(value)}.")
    if int(value) > maximum:
        raise ValueError(f"{name} must be a whole number of at most {maximum}; got {describe(value)}.")
    return int(value)


def real(name: str, value: Any, *, low: float = -math.inf, high: float = math.inf, closed: str = "[]") -> float:
    """`value` as a finite float between `low` and `high`; `closed` shows which ends are allowed."""
    lower = f"{closed[0]}{low:g}" if math.isfinite(low) else "(-inf"
    upper = f"{high:g}{closed[1]}" if math.isfinite(high) else "inf)"
    allowed = f"a number in {lower}, {upper}".replace("(-inf, inf)", "(-inf, inf), finite")
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    is_array_scalar = getattr(value, "shape", None) == () and kind in ("f", "i", "u")
    if isinstance(value, bool) or not (isinstance(value, numbers.Real) or is_array_scalar):
        raise TypeError(f"{name} must be {allowed}; got {describe(value)}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    above = number >= low if closed[0] == "[" else number > low
    below = number <= high if closed[1] == "]" else number < high
    if not (math.isfinite(number) and above and below):
        raise ValueError(f"{name} must be {allowed}; got {describe(value)}.")
    return number


def choice(name: str, value: Any, allowed: Iterable[Any]) -> Any:
    """`value`, if it is one of `allowed`."""
    options = list(allowed)
    if not any(type(value) is type(option) and value == option for option in options):
        listed = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {listed}; got {describe(value)}.")
    return value


def function(name: str, value: Any) -> Callable[..., Any]:
    """`value`, if it can be called."""
    if not callable(value):
        raise TypeError(f"{name} must be a function; got {describe(value)}.")
    return value


def instance(name: str, value: Any, kind: type[T], allowed: str) -> T:
    """`value`, if it is a `kind`; `allowed` says in words what that is."""
    if not isinstance(value, kind):
        got = value.__name__ if isinstance(value, type) else describe(value)
        hint = f" (did you mean {got}()?)" if isinstance(value, type) else ""
        raise TypeError(f"{name} must be {allowed}; got {got}{hint}.")
    return value


def entries(name: str, value: Any) -> list[Any]:
    """What `value` has in it, if it is a list or the like, one entry after the other."""
    if isinstance(value, (str, bytes, Mapping)) or np.ndim(value if isinstance(value, np.ndarray) else [0]) != 1:
        raise TypeError(f"{name} must be a list; got {describe(value)}.")
    try:
        return list(value)
    except TypeError:
        raise TypeError(f"{name} must be a list; got {describe(value)}.") from None


def float_array(name: str, value: Any, *, finite: bool = True) -> np.ndarray:
    """`value` as an array of doubles, finite unless said otherwise."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be an array of real numbers; got {describe(value)}.") from None
    if finite and not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must hold finite numbers only; got {describe(value)} with a nan or an infinity.")
    return array


def path_to_write(name: str, value: Any) -> Path:
    """`value` as the path of a file that could be written, in a directory that exists."""
    if not (isinstance(value, (str, Path)) and Path(value).name):
        raise TypeError(f"{name} must be the path of a file; got {describe(value)}.")
    path = Path(value)
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # which those say in their place who need it
        pass
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it has a character that no path may have"
        raise ValueError(f"{name} must be the path of a file; got {describe(value)}: {reason}.") from None
    if not path.parent.is_dir():
        raise ValueError(f"{name} must be in a directory that exists; {str(path.parent)!r} does not.")
    return path
