"""What a user names on the command line: an object in a module or a file. Nothing heavy is imported here."""

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from pseudo_extended.paths import is_file


class TargetNameError(ValueError):
    """The name on the command line names nothing; the sentence says why."""


def load_target(name: str) -> Any:
    """The object that `module:name` or `path/to/file.py:name` names; with a trailing () what it returns.

    Modules beside the file can be imported from it, as when Python runs it.

    >>> load_target("math:exp")(0.0)
    1.0
    """
    place, _, attribute = name.rpartition(":")
    calls, attribute = attribute.endswith("()"), attribute.removesuffix("()")
    if not (place and attribute):
        raise TargetNameError(f"target must be module:name or path/to/file.py:name; got {name!r}.")
    module = _from_file(Path(place)) if place.endswith(".py") else _from_path(place)
    if not hasattr(module, attribute):
        raise TargetNameError(f"target must name something in {place!r}; it has no {attribute!r}.")
    found = getattr(module, attribute)
    return found() if calls else found


def _from_file(path: Path) -> Any:
    if not is_file(path):
        raise TargetNameError(f"target must name a file that exists; there is no {str(path)!r}.")
    _put_first(path.resolve().parent)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(spec.name, module)
    spec.loader.exec_module(module)
    return module


def _from_path(name: str) -> Any:
    if not all(part.isidentifier() for part in name.split(".")):
        raise TargetNameError(f"target must name a module, such as package.module, or a .py file; got {name!r}.")
    _put_first(Path.cwd())  # as python -m does
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and not name.startswith(error.name):
            raise  # the module is there, and something that it imports is not
        raise TargetNameError(f"target must name a module that can be imported; there is no {name!r}.") from None


def _put_first(directory: Path) -> None:
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
