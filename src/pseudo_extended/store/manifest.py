"""The manifest: what a run is, in JSON, twice, each with its own checksum."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pseudo_extended.store.codec import up_to_date
from pseudo_extended.store.files import BrokenFileError, flush_directory, replace_file
from pseudo_extended.store.migrations import from_version_1
from pseudo_extended.version import __version__

VERSION = 2
"""Of the format; raised when an older library could not read, or would misread, what is written."""

MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: from_version_1}
"""From each older format to the next."""

COPIES = ("manifest.json", "manifest.backup.json")


class StoreVersionError(ValueError):
    """The store was written in a format that this library does not know."""


def write_manifest(directory: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Both copies, one after the other, so that one of them is whole at any moment; what was written."""
    content = content | {"format": "pseudo-extended run", "version": VERSION, "library": __version__}
    text = json.dumps(content, indent=1)
    sealed = json.dumps({"sha256": _digest(text), "manifest": text}, indent=1)
    for copy in COPIES:
        replace_file(directory / copy, sealed.encode())
        flush_directory(directory)
    return content


def read_manifest(directory: Path) -> tuple[dict[str, Any], list[str]]:
    """The manifest, brought up to this version, and sentences about a copy that is broken."""
    broken = []
    for copy in COPIES:
        try:
            content = _read(directory / copy)
        except BrokenFileError as error:
            broken.append(f"{error}")
            continue
        return _migrated(directory.parent, content), broken
    raise BrokenFileError(f"both copies of the manifest are unusable: {'; '.join(broken)}")


def _read(path: Path) -> dict[str, Any]:
    try:
        sealed = json.loads(path.read_bytes())
        text, digest = sealed["manifest"], sealed["sha256"]
        if _digest(text) == digest:
            return json.loads(text)
    except FileNotFoundError:
        raise BrokenFileError(f"{path} is missing") from None
    except (ValueError, KeyError, TypeError):
        pass
    raise BrokenFileError(f"{path} is damaged: its SHA-256 does not match its contents")


def _migrated(store: Path, content: dict[str, Any]) -> dict[str, Any]:
    found, library = content["version"], content["library"]
    if found > VERSION:
        raise StoreVersionError(
            f"store {str(store)!r} has format {found}, written by pseudo-extended {library}; this is "
            f"{__version__}, which knows formats up to {VERSION}: upgrade to resume it."
        )
    while content["version"] < VERSION:
        migrate = MIGRATIONS.get(content["version"])
        if migrate is None:
            raise StoreVersionError(
                f"store {str(store)!r} has format {found}, written by pseudo-extended {library}, which this version "
                f"({__version__}, format {VERSION}) cannot go on with: resume it with "
                f"pseudo-extended {library}; xarray opens its draws as ever."
            )
        content = migrate(content)
    return content | {name: up_to_date(content[name]) for name in ("method", "learned") if name in content}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
