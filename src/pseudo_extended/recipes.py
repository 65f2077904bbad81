"""What a program is made from, as a digest that takes one trace of the density and not one of the program.

A run's programs are this library's code around the user's density. To trace and lower them takes a second, most of a
second run in a process. They are the same again if the density is, operation by operation and number by number, and the
method. So the density and its gradient are traced for themselves, anew each time, as a density may read a global that
has changed since; and what else there is, is encoded field by field. Whatever is not understood completely, such as a
class or a function of the user's within a method, a function called in Python, or a part of this library that somebody
has replaced, has no digest, and its programs are traced as ever.
"""

import dataclasses
import enum
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import local
from types import FunctionType, ModuleType
from typing import Any

import jax
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal  # pyright: ignore[reportPrivateImportUsage]

from pseudo_extended.generator import mixing
from pseudo_extended.target import Target
from pseudo_extended.target.bases import Base

PACKAGE = "pseudo_extended"
TRACED = (
    "extended", "generator", "instruments", "kernels", "methods", "randomness", "target", "tempering", "warmup",
    "weights", "run.packed", "run.program", "run.starts", "pilot.density", "small_batches", "precision",
    "compiler_options",
)  # fmt: skip
"""Modules and packages whose code is traced."""
LIBRARIES = ("blackjax", "equinox", "jax", "jaxlib", "numpy", "scipy")
"""Those that have a part in what a program is."""
WITHOUT_RULES = {"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr"}
"""Calls whose derivative is a rule of its own. It is in the gradient, which is traced; here only the value counts."""
PLAIN = (type(None), bool, int, float, complex, str, bytes)
_run = local()


class UnknownError(Exception):
    """Something has no digest."""


@contextmanager
def one_run() -> Iterator[None]:
    """Within it, a target is traced once, on this thread: a density does not change during a run."""
    _run.traced = {}
    try:
        yield
    finally:
        _run.traced = None


def recipe(target: Any, *parts: Any) -> str | None:
    """A digest of the density and of all `parts`: None if anything has none.

    >>> import jax.numpy as jnp
    >>> with jax.enable_x64(True):
    ...     same = [recipe(Target(lambda x: -jnp.sum(x**2), np.zeros(2)), 3) for _ in range(2)]
    ...     other = recipe(Target(lambda x: -jnp.sum(x**2) / 2, np.zeros(2)), 3)
    >>> same[0] == same[1], same[0] == other
    (True, False)
    """
    if not isinstance(target, Target):
        return None
    try:
        lines = [*_surroundings(), _digest_of(target), *(line for part in parts for line in encoded(part))]
    except Exception:  # `UnknownError`, or what a density raises: the program is traced, and says what is wrong
        return None
    return _digest(lines)


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _digest_of(target: Target) -> str:
    """The digest of a target, which during a run is known from the first time; so is that it has none."""
    traced = getattr(_run, "traced", None)
    if traced is None:
        return _digest(_of_target(target))
    if id(target) not in traced:
        try:
            traced[id(target)] = target, _digest(_of_target(target))
        except UnknownError:
            traced[id(target)] = target, None
    digest = traced[id(target)][1]
    if digest is None:
        raise UnknownError
    return digest


def _surroundings() -> Iterator[str]:
    """The library as it is in memory and on disk, others by version, and JAX's settings."""
    yield _sources()
    yield from _library_in_memory()
    yield repr(sorted((name, repr(value)) for name, value in jax.config.values.items()))
    yield repr((jax.default_backend(), jax.dtypes.canonicalize_dtype(float)))


@cache
def _sources() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(str(path).encode() + path.read_bytes())
    versions = []
    for library in LIBRARIES:
        try:
            versions.append(version(library))
        except PackageNotFoundError:
            raise UnknownError from None
    return f"{digest.hexdigest()} {versions} {sys.version}"


def _library_in_memory() -> Iterator[str]:
    """Every name of the modules that are traced, so that what somebody has put in its place is seen."""
    for name in sorted(sys.modules):
        short = name.removeprefix(f"{PACKAGE}.")
        if name.startswith(f"{PACKAGE}.") and any(short == part or short.startswith(f"{part}.") for part in TRACED):
            for key, value in vars(sys.modules[name]).items():
                if not key.startswith("__"):
                    yield f"{short}.{key} {_known(value)}"


def _known(value: Any) -> str:
    """What a name of a module stands for."""
    if isinstance(value, PLAIN) or (isinstance(value, tuple) and all(isinstance(part, PLAIN) for part in value)):
        return repr(value)
    if isinstance(value, np.ndarray | np.generic):
        return repr((value.dtype.str, value.shape, value.tobytes()))
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, type) and value.__module__.startswith(f"{PACKAGE}."):
        members = (f"{key} {_member(member)}" for key, member in vars(value).items() if not key.startswith("__"))
        return f"{value.__module__}.{value.__qualname__} {list(members)}"
    return _place(value)


def _member(member: Any) -> str:
    """What a name of a class stands for."""
    for inside in ("fget", "__func__", "method", "__wrapped__"):  # property, class method, Equinox's wrapper, cache
        inner = getattr(member, inside, None)
        if inner is not None and not isinstance(member, FunctionType):
            return _member(inner)
    return repr(member) if isinstance(member, PLAIN) else _place(member)


def _place(value: Any) -> str:
    """The name of a function or a class, which must be that of a library; the type of anything else."""
    module = getattr(value, "__module__", None) or type(value).__module__
    if isinstance(value, FunctionType | type) and not _is_of_library(str(module)):
        raise UnknownError
    return f"{module}.{getattr(value, '__qualname__', type(value).__qualname__)}"


def _is_of_library(module: str) -> bool:
    first = module.split(".")[0]
    return first in (PACKAGE, "jaxtyping", *LIBRARIES) or (first in sys.stdlib_module_names and first != "__main__")


def _of_target(target: Target) -> Iterator[str]:
    """The density, its gradient, and draws from its base, traced."""
    if target.host_functions:
        raise UnknownError
    place = np.zeros(target.dim)
    yield from _traced(target.path_point, place)
    yield from _traced(target.path_gradients, place)
    yield repr((target.dim, target.log_density is None, target.log_likelihood is None))
    yield from encoded(target.symmetries)
    base = target.base
    if isinstance(base, Base):
        yield f"Base {base.can_sample}"
        if base.can_sample:
            yield from _traced(target.draw_base, mixing(jax.random.key(0, impl="threefry2x32")))
    else:
        yield from encoded(base)


def _traced(function: Callable[..., Any], *arguments: Any) -> Iterator[str]:
    # Not `function` itself: JAX looks up what it has traced by the identity of a function.
    closed = jax.make_jaxpr(lambda *given: function(*given))(*arguments)
    yield from _of_program(closed.jaxpr, closed.consts)


def _of_program(program: Jaxpr, constants: Any) -> Iterator[str]:
    """The operations of a program, with its variables by number."""
    if program.effects:
        raise UnknownError
    numbers: dict[Any, int] = {}

    def named(atom: Any) -> str:
        if isinstance(atom, Literal):
            return "".join(encoded(_on_host(atom.val))) + _array(atom.aval)
        return f"{numbers.setdefault(atom, len(numbers))}:{_array(atom.aval)}"

    yield f"program {[named(variable) for variable in (*program.constvars, *program.invars)]}"
    for constant in constants:
        yield from encoded(_on_host(constant))
    for equation in program.eqns:
        name = equation.primitive.name
        yield f"{name} {[named(atom) for atom in equation.invars]} {[named(atom) for atom in equation.outvars]}"
        kept = WITHOUT_RULES.get(name)
        parameters = equation.params if kept is None else {kept: equation.params[kept]}
        for key, value in sorted(parameters.items()):
            yield f"{key}="
            yield from encoded(value)
    yield f"returns {[named(atom) for atom in program.outvars]}"


def _on_host(array: Any) -> Any:
    """The numbers of an array, or of a random key with its kind."""
    kind = getattr(array, "dtype", None)
    if kind is not None and jax.numpy.issubdtype(kind, jax.dtypes.prng_key):
        return str(array.dtype), np.asarray(jax.random.key_data(array))
    return np.asarray(array)


def _array(shape: Any) -> str:
    if not isinstance(shape, ShapedArray):
        raise UnknownError
    return f"{shape.dtype}{shape.shape}{shape.weak_type}"


def encoded(value: Any) -> Iterator[str]:
    """A value, field by field; of JAX's arrays the shape alone, as they are arguments of programs."""
    if isinstance(value, PLAIN):
        yield f"{type(value).__name__} {value!r}"
    elif isinstance(value, jax.Array):
        yield f"argument {value.dtype}{value.shape}{value.weak_type}"
    elif isinstance(value, np.ndarray | np.generic):
        if value.dtype.hasobject:
            raise UnknownError
        yield f"{value.dtype}{value.shape} {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    elif isinstance(value, ClosedJaxpr):
        yield from _of_program(value.jaxpr, value.consts)
    elif isinstance(value, Jaxpr):
        yield from _of_program(value, ())
    elif isinstance(value, ShapedArray):
        yield _array(value)
    elif isinstance(value, dict):
        for key in sorted(value, key=repr):
            yield from (*encoded(key), *encoded(value[key]))
        yield f"dict of {len(value)}"
    elif isinstance(value, list | tuple | set | frozenset) and (
        type(value).__module__ == "builtins" or _is_ours(value)
    ):
        parts = list(value) if isinstance(value, list | tuple) else sorted(value, key=repr)
        for part in parts:
            yield from encoded(part)
        yield f"{type(value).__qualname__} of {len(parts)}"
    elif isinstance(value, np.dtype | enum.Enum) or (isinstance(value, type) and _is_of_library(value.__module__)):
        yield repr(value)
    elif dataclasses.is_dataclass(value) and _is_ours(value):
        yield f"{type(value).__module__}.{type(value).__qualname__}"
        for field in dataclasses.fields(value):
            yield from (field.name, *encoded(getattr(value, field.name)))
    elif isinstance(value, jax.sharding.Mesh) and value.empty:
        yield "no mesh"
    elif _is_jax_setting(value):
        yield f"{type(value).__qualname__} {value!r}"
    else:
        raise UnknownError


def _is_ours(value: Any) -> bool:
    return type(value).__module__.split(".")[0] in (PACKAGE, "jax")


def _is_jax_setting(value: Any) -> bool:
    """Parameters of JAX's operations that say what they are when they are printed."""
    kind = type(value)
    return kind.__module__.startswith("jax") and " at 0x" not in repr(value) and not callable(value)
