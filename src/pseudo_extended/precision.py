"""Double precision inside the library, and nowhere else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import jax

from pseudo_extended.constants import constants_by_precision

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def double_precision() -> Iterator[None]:
    """A context in which JAX computes with 64-bit floats.

    Samplers need it: an energy of 10⁴ leaves three decimals in single precision. It is a context, per thread,
    so that neither importing nor calling the library changes the precision of the user's other code.

    >>> import jax.numpy as jnp
    >>> with double_precision():
    ...     inside = jnp.ones(2).dtype
    >>> str(inside), str(jnp.ones(2).dtype)
    ('float64', 'float32')
    """
    with constants_by_precision(), jax.enable_x64(True):
        yield


def in_double_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public entry point so that all of it runs in double precision."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with double_precision():
            return function(*args, **kwargs)

    return wrapped
