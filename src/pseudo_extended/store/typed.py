"""JSON that somebody else may have written, as values of the types that it should have."""

import types
import typing
from typing import Any

Code = Any
"""What `encode` makes of a method; `decode` checks it."""


def typed(kind: Any, value: Any, place: str) -> Any:
    """`value` as a `kind`: a plain class, a union, a tuple, list or dict of them, a NamedTuple or a dataclass.

    `ValueError` says what is wrong, and where. A field that is missing has its default; one that is not known is
    refused, because it may change what the others mean.

    >>> typed(tuple[int, ...], [1, 2], "shape")
    (1, 2)
    >>> typed(int, "3", "seed")
    Traceback (most recent call last):
    ValueError: seed should be int, and is '3'
    """
    if kind is Any:
        return value
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, types.UnionType):
        return _one_of(parts, value, place)
    if origin in (tuple, list) and isinstance(value, (list, tuple)):
        return _sequence(origin, parts, value, place)
    if origin is dict and isinstance(value, dict):
        return {
            typed(parts[0], key, place): typed(parts[1], each, f"{place}.{key}"[:80]) for key, each in value.items()
        }
    if hasattr(kind, "_fields") or hasattr(kind, "__dataclass_fields__"):
        return _record(kind, value, place)
    if kind is float and type(value) is int:
        return float(value)
    if origin is not None or type(value) is not (type(None) if kind is None else kind):
        raise ValueError(f"{place} should be {_name(kind)}, and is {str(value)[:40]!r}")
    return value


def _one_of(parts: tuple[Any, ...], value: Any, place: str) -> Any:
    if value is None and type(None) in parts:
        return None
    inside = [part for part in parts if part is not type(None)]
    if len(inside) == 1:
        return typed(inside[0], value, place)
    if type(value) not in inside:
        raise ValueError(f"{place} should be {' or '.join(map(_name, inside))}, and is {str(value)[:40]!r}")
    return value


def _sequence(origin: Any, parts: tuple[Any, ...], value: Any, place: str) -> Any:
    if origin is list or parts[-1] is Ellipsis:
        return origin(typed(parts[0], each, f"{place}[{i}]") for i, each in enumerate(value))
    if len(value) != len(parts):
        raise ValueError(f"{place} should have {len(parts)} parts, and has {len(value)}")
    return tuple(typed(part, each, f"{place}[{i}]") for i, (part, each) in enumerate(zip(parts, value, strict=True)))


def _record(kind: Any, value: Any, place: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{place} should have the fields of {_name(kind)}, and is {str(value)[:40]!r}")
    hints = typing.get_type_hints(kind)
    unknown = [name for name in value if name not in hints]
    if unknown:
        raise ValueError(f"{place} has a field {str(unknown[0])[:40]!r}, which this format does not have")
    given = {name: typed(hint, value[name], f"{place}.{name}") for name, hint in hints.items() if name in value}
    try:
        return kind(**given)
    except TypeError:
        absent = sorted(set(hints) - set(given))
        raise ValueError(f"{place} lacks a field: one of {', '.join(absent)}") from None


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))
