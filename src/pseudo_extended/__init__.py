"""Sampling posteriors with many modes: pseudo-extended MCMC (Nemeth, Lindsten, Filippone and Hensman 2019).

The common names are here: `pe.sample`, `pe.Target`, the methods, kernels and instruments. The namespaces
`pe.methods`, `pe.kernels`, `pe.instruments` and `pe.bases` also have the abstract classes from which you derive your
own; `pe.problems` has targets with known answers, and `pe.testing` tests your own methods and kernels.

Every name is imported when it is first used, so `import pseudo_extended` itself takes milliseconds. The names are
listed in `__init__.pyi`.
"""

import ast
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from pseudo_extended.version import __version__ as __version__


def _read_names() -> dict[str, str]:
    """Read from the stub where each public name is defined: a new name is written there and nowhere else."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [line for line in stub.body if isinstance(line, ast.ImportFrom)]
    return {alias.name: str(line.module) for line in imports for alias in line.names}


_HOMES = _read_names()
__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


_RENAMED = {"IndexGibbs": "AdaptivePseudoExtended"}
"""Old names, which go away with version 0.4, and the new ones."""


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        new = _RENAMED[name]
        warnings.warn(f"pe.{name} is now pe.{new}; the old name goes away in 0.4.", DeprecationWarning, stacklevel=2)
        return __getattr__(new)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]
    value = import_module(f"{home}.{name}") if home == __name__ else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
