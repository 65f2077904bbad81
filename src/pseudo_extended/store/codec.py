"""Methods and positions as JSON and arrays, and back: no pickle, so opening a store runs no foreign code.

Only classes of this library are made again, from their fields. A function of the user's has no honest form as data: it
is marked as missing, and whoever resumes must give it again.
"""

import importlib
import json
import zlib
from dataclasses import fields
from typing import Any

import equinox as eqx
import jax
import numpy as np

PACKAGE = "pseudo_extended."


class NotStoredError(Exception):
    """Something that cannot be stored, such as a function of the user's; the argument says where it sits."""


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
    if isinstance(value, eqx.Module) and type(value).__module__.startswith(PACKAGE):
        inside = {
            field.name: encode(getattr(value, field.name), arrays, f"{path}/{field.name}") for field in fields(value)
        }
        return {"class": _name(type(value)), "fields": inside}
    names: Any = getattr(value, "_fields", None)
    if isinstance(value, tuple) and names and type(value).__module__.startswith(PACKAGE):
        inside = {name: encode(getattr(value, name), arrays, f"{path}/{name}") for name in names}
        return {"class": _name(type(value)), "fields": inside}
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        entries = [encode(entry, arrays, f"{path}/{i}") for i, entry in enumerate(value)]
        return {type(value).__name__: entries}
    return {"missing": path}


def decode(code: Any, arrays: dict[str, np.ndarray]) -> Any:
    """What `encode` was given; `NotStoredError` if a part of it could not be stored."""
    if not isinstance(code, dict):
        return code
    if "missing" in code:
        raise NotStoredError(code["missing"])
    if "array" in code:
        array = arrays[code["array"]]
        return jax.numpy.asarray(array) if code["jax"] else array
    if "dict" in code:
        return {key: decode(entry, arrays) for key, entry in code["dict"]}
    if "list" in code:
        return [decode(entry, arrays) for entry in code["list"]]
    if "tuple" in code:
        return tuple(decode(entry, arrays) for entry in code["tuple"])
    kind = _class(code["class"])
    inside = {name: decode(entry, arrays) for name, entry in code["fields"].items()}
    if issubclass(kind, tuple):
        return kind(**inside)
    if {field.name for field in fields(kind)} != inside.keys():
        raise ValueError(f"the store's {kind.__name__} has other fields than this version's.")
    made = object.__new__(kind)  # its __init__ has checked the fields before they were stored
    for name, entry in inside.items():
        object.__setattr__(made, name, entry)
    return made


def holds_functions(code: Any) -> bool:
    """Whether something could not be stored."""
    return '"missing": ' in json.dumps(code)


def differences(old: Any, old_arrays: dict[str, np.ndarray], new: Any, new_arrays: dict[str, np.ndarray]) -> list[str]:
    """Where two encoded values differ, such as `kernel.num_steps was 2 and is 3`."""
    before, after = _flat(old, old_arrays), _flat(new, new_arrays)
    return [
        f"{path.strip('.') or 'it'} was {before.get(path, 'absent')} and is {after.get(path, 'absent')}"
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    ]


def _flat(code: Any, arrays: dict[str, np.ndarray], path: str = "") -> dict[str, str]:
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
        flat = {path: code["class"].rpartition(":")[2]}
        entries = code["fields"].items()
    elif "dict" in code:
        flat, entries = {path: "dict"}, code["dict"]
    else:
        [(kind, listed)] = code.items()
        flat, entries = {path: f"{kind} of {len(listed)}"}, enumerate(listed)
    for name, entry in entries:
        flat |= _flat(entry, arrays, f"{path}.{name}")
    return flat


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _class(name: str) -> Any:
    module, _, qualname = name.partition(":")
    if not module.startswith(PACKAGE):
        raise ValueError(f"a store may name classes of pseudo_extended only; got {name!r}.")
    kind = getattr(importlib.import_module(module), qualname, None)
    if not (isinstance(kind, type) and (issubclass(kind, eqx.Module) or hasattr(kind, "_fields"))):
        raise ValueError(f"the store names {name!r}, which this version does not have.")
    return kind
