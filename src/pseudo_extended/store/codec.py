"""Methods and positions as JSON and arrays, and back: no pickle, so opening a store runs no foreign code.

Only classes with a tag are made again, from their fields. A function of the user's has no honest form as data: it is
marked as missing, and whoever resumes must give it again.
"""

import json
import types
import typing
import zlib
from dataclasses import fields
from typing import Any

import equinox as eqx
import jax
import numpy as np

from pseudo_extended.store.tags import ADDED_FIELDS, ADDED_IN_PARTS, DROPPED_FIELDS, RENAMED_FIELDS, class_of, tag_of

MAX_DEPTH = 50
"""Levels of one value in another; methods have about six."""


class NotStoredError(Exception):
    """Something that cannot be stored, such as a function of the user's; the argument says where it sits."""


class CodeError(ValueError):
    """Something that `encode` would not have written; the argument says what is wrong with it."""


def encode(value: Any, arrays: dict[str, np.ndarray], path: str = "") -> Any:
    """`value` as JSON; its arrays go into `arrays`, by their path."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (np.ndarray, jax.Array, np.generic)):
        name = path or "value"
        arrays[name] = np.asarray(value)
        return {"array": name, "jax": isinstance(value, jax.Array)}
    if isinstance(value, dict):
        entries = [[key, encode(entry, arrays, f"{path}/{key}")] for key, entry in value.items()]
        return {"dict": entries}
    tag = tag_of(type(value))
    if tag is not None:
        inside = {name: encode(getattr(value, name), arrays, f"{path}/{name}") for name in _field_names(type(value))}
        return {"class": tag, "fields": inside}
    if type(value) in (list, tuple):
        entries = [encode(entry, arrays, f"{path}/{i}") for i, entry in enumerate(value)]
        return {type(value).__name__: entries}
    return {"missing": path} | ({"of": type(value).__qualname__} if isinstance(value, eqx.Module) else {})


def decode(code: Any, arrays: typing.Mapping[str, np.ndarray], depth: int = 0) -> Any:
    """What `encode` was given; `NotStoredError` if a part could not be stored, `CodeError` if the code is no code."""
    if depth > MAX_DEPTH:
        raise CodeError(f"values lie in one another more than {MAX_DEPTH} deep")
    if code is None or isinstance(code, (bool, int, float, str)):
        return code
    match code:
        case {"missing": str(place)}:
            raise NotStoredError(place, code.get("of"))
        case {"array": str(name), "jax": bool(on_device)}:
            try:
                return jax.numpy.asarray(arrays[name]) if on_device else arrays[name]
            except KeyError:
                raise CodeError(f"there is no array {name!r}") from None
        case {"dict": list(entries)} if all(_is_entry(entry) for entry in entries):
            return {key: decode(entry, arrays, depth + 1) for key, entry in entries}
        case {"list": list(entries)}:
            return [decode(entry, arrays, depth + 1) for entry in entries]
        case {"tuple": list(entries)}:
            return tuple(decode(entry, arrays, depth + 1) for entry in entries)
        case {"class": tag, "fields": dict(inside)}:
            return _make(tag, {name: decode(entry, arrays, depth + 1) for name, entry in inside.items()})
    raise CodeError(f"{str(code)[:60]!r} is not the code of a value")


def up_to_date(code: Any) -> Any:
    """The code that this version would have written, from one that an older version has written."""
    if isinstance(code, list):
        return [up_to_date(entry) for entry in code]
    if not isinstance(code, dict):
        return code
    if "class" in code and isinstance(code.get("fields"), dict):
        tag = code["class"]
        renamed, dropped = RENAMED_FIELDS.get(tag, {}), DROPPED_FIELDS.get(tag, ())
        code = _with_added_parts(code)
        inside = {
            renamed.get(name, name): up_to_date(entry) for name, entry in code["fields"].items() if name not in dropped
        }
        return {"class": tag, "fields": ADDED_FIELDS.get(tag, {}) | inside}
    return {name: up_to_date(entry) for name, entry in code.items()}


def _with_added_parts(code: dict[str, Any]) -> dict[str, Any]:
    """The code of an object whose parts have the fields that they had by being parts of it."""
    inside = dict(code["fields"])
    for name, added in ADDED_IN_PARTS.get(code["class"], {}).items():
        match inside.get(name):
            case {"class": str(tag), "fields": dict(fields)} if tag in added:
                inside[name] = {"class": tag, "fields": added[tag] | fields}
    return {"class": code["class"], "fields": inside}


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], (str, int, float))


def _make(tag: Any, inside: dict[str, Any]) -> Any:
    """An object of the class of a tag, with the fields that it has in this version."""
    kind: Any = class_of(tag)
    if set(_field_names(kind)) != inside.keys():
        raise CodeError(f"its {kind.__name__} has other fields than this version's")
    hints = _simple_hints(kind)
    for name, entry in inside.items():
        if name in hints and not isinstance(entry, hints[name]):
            raise CodeError(f"{name} of its {kind.__name__} cannot be {str(entry)[:40]!r}")
    if issubclass(kind, tuple):
        return kind(**inside)
    made = object.__new__(kind)  # its __init__ has checked the fields before they were stored
    for name, entry in inside.items():
        object.__setattr__(made, name, entry)
    return made


def _field_names(kind: Any) -> tuple[str, ...]:
    names: Any = getattr(kind, "_fields", None)
    return names or tuple(field.name for field in fields(kind))


def _simple_hints(kind: Any) -> dict[str, tuple[type, ...]]:
    """Fields that are declared as plain classes, or unions of them: what an `isinstance` can check."""
    simple = {}
    for name, hint in typing.get_type_hints(kind).items():
        parts = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        if all(type(part) is type or isinstance(part, type(eqx.Module)) for part in parts):
            numbers = (int, np.ndarray) if {int, float} & set(parts) else ()  # a NumPy number comes back as an array
            simple[name] = (*parts, *numbers)
    return simple


def holds_functions(code: Any) -> bool:
    """Whether something could not be stored."""
    return '"missing": ' in json.dumps(code)


def differences(
    old: Any, old_arrays: typing.Mapping[str, np.ndarray], new: Any, new_arrays: typing.Mapping[str, np.ndarray]
) -> list[str]:
    """List where two encoded values differ, such as `kernel.num_steps was 2 and is 3`."""
    before, after = _flat(old, old_arrays), _flat(new, new_arrays)
    return [
        f"{path.strip('.') or 'it'} was {before.get(path, 'absent')} and is {after.get(path, 'absent')}"
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    ]


def _flat(code: Any, arrays: typing.Mapping[str, np.ndarray], path: str = "") -> dict[str, str]:
    """Every number and name in an encoded value, by its place."""
    if not isinstance(code, dict):
        return {path: str(code)}
    if "missing" in code:
        return {path: "a function"}
    if "array" in code:
        array = arrays[code["array"]]
        text = np.array2string(array, threshold=6, separator=", ").replace("\n", "")
        return {path: text if array.size <= 6 else f"{text} (CRC {zlib.crc32(array.tobytes())})"}
    if "class" in code:
        flat = {path: code["class"]}
        entries = code["fields"].items()
    elif "dict" in code:
        flat, entries = {path: "dict"}, code["dict"]
    else:
        [(kind, listed)] = code.items()
        flat, entries = {path: f"{kind} of {len(listed)}"}, enumerate(listed)
    for name, entry in entries:
        flat |= _flat(entry, arrays, f"{path}.{name}")
    return flat
