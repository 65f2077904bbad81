"""Libraries that are not required: imported when they are needed, or missed in one sentence."""

from importlib import import_module
from typing import Any


def require(module: str, package: str, what: str, options: str = "") -> Any:
    """The module, or a sentence with the line that installs it; `options` are those of pip."""
    try:
        return import_module(module)
    except ImportError as error:
        missing = (error.name or "").split(".")[0]
        if missing != module.split(".")[0]:
            raise  # it is there, and broken: what it says is the thing to know
        raise ImportError(f"{what} needs {package}; install it with `pip install {options}{package}`.") from error
