"""Names of parameters and axes as names of directories: every name has one, and no two have the same."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

MAX_BYTES = 150
"""Of a name on disk; file systems allow 255, and a temporary name is longer than the file's own."""


def file_names(names: Iterable[str]) -> dict[str, str]:
    """A directory name for every name, none of them the same, also where upper and lower case are one.

    Most names stay as they are, and a slash becomes an underscore. What a file system or zarr would misread is written
    as percent and hexadecimal digits. Names that would come out the same get a hash.

    >>> file_names(["mu", "model/scale", "..", "zarr.json"])
    {'mu': 'mu', 'model/scale': 'model_scale', '..': '%2E%2E', 'zarr.json': '%7Aarr.json'}
    >>> list(file_names(["a/b", "a_b"]).values())
    ['a_b~c14cddc033', 'a_b']
    """
    plain = {name: _plain(name) for name in dict.fromkeys(names)}
    shared = Counter(_key(name) for name in plain.values())
    exact = {_key(place) for name, place in plain.items() if place == name and name == _key(name)}
    return {
        name: place if _is_alone(name, place, shared, exact) else f"{_shortened(place, MAX_BYTES - 11)}~{_hash(name)}"
        for name, place in plain.items()
    }


def is_file_name(name: str) -> bool:
    """Whether `file_names` could have given this name, or an older version of the library."""
    return (
        0 < len(name.encode("utf-8", "surrogatepass")) <= 255
        and not re.search(r"[/\\\x00]", name)
        and name not in (".", "..", "zarr.json")
    )


def _is_alone(name: str, place: str, shared: Counter[str], exact: set[str]) -> bool:
    key = _key(place)
    return shared[key] == 1 or (key in exact and name == key)


def _plain(name: str) -> str:
    readable = re.sub(r'[\x00-\x1f\x7f%~\\:*?"<>|\ud800-\udfff]', _escaped, name.replace("/", "_"))
    if readable.startswith((".", "__")) or readable.lower() == "zarr.json":
        readable = f"%{ord(readable[0]):02X}{readable[1:]}"
    if readable.endswith((".", " ")):
        readable = f"{readable[:-1]}%{ord(readable[-1]):02X}"
    short = _shortened(readable, MAX_BYTES)
    return short if short == readable else f"{_shortened(readable, MAX_BYTES - 11)}~{_hash(name)}"


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found.group().encode("utf-8", "surrogatepass"))


def _shortened(name: str, num_bytes: int) -> str:
    return name.encode()[:num_bytes].decode(errors="ignore")


def _key(name: str) -> str:
    """The same for names that some file systems take for the same."""
    return unicodedata.normalize("NFC", name).casefold()


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]
