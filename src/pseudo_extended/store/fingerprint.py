"""What a run is made of, as hashes: so that nobody goes on with another model, other data or another JAX."""

import hashlib
import os
import platform
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from pseudo_extended.precision import in_double_precision
from pseudo_extended.target import Target
from pseudo_extended.version import __version__

PACKAGES = ("jax", "jaxlib", "blackjax", "numpy")


@in_double_precision
def fingerprint_target(target: Target) -> dict[str, str]:
    """Hashes of the density's formula, of the arrays in it (the data), of its position, and of declared symmetries."""
    functions: list[Any] = [target.path_point, target.constrain]
    arguments: list[Any] = [np.zeros(target.dim)] * 2
    if target.base is not None and target.base.can_sample:
        functions.append(target.draw_base)
        arguments.append(jax.random.key(0, impl="threefry2x32"))
    reader = _Reader()
    for function, argument in zip(functions, arguments, strict=True):
        reader.read(jax.make_jaxpr(function)(argument))
    position = str([(parameter.name, parameter.shape) for parameter in target.parameters])
    found = {
        "position": hashlib.sha256(position.encode()).hexdigest(),
        "density": reader.formula.hexdigest(),
        "data": reader.data.hexdigest(),
    }
    if target.symmetries:
        declared = str([(action.symmetry.kind, action.blocks.tolist()) for action in target.symmetries])
        found["symmetries"] = hashlib.sha256(declared.encode()).hexdigest()
    return found


@in_double_precision
def fingerprint_function(function: Callable[..., Any], *arguments: Any) -> str:
    """One hash of all that a function computes."""
    reader = _Reader()
    reader.read(jax.make_jaxpr(function)(*arguments))
    return reader.formula.hexdigest() + reader.data.hexdigest()


def fingerprint_versions() -> dict[str, str]:
    """What the bits of a draw may depend on besides the model: versions, the platform, and XLA's flags."""
    flags = os.environ.get("XLA_FLAGS", "").split()
    kept = sorted(flag for flag in flags if "device_count" not in flag)
    versions = {"pseudo-extended": __version__} | {package: version(package) for package in PACKAGES}
    return versions | {"platform": jax.default_backend(), "XLA_FLAGS": " ".join(kept)}


def machine() -> str:
    """The processor: XLA writes other instructions, which may round differently, for another."""
    try:
        with Path("/proc/cpuinfo").open() as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
        return names[0] if names else platform.processor() or platform.machine()
    except OSError:
        return platform.processor() or platform.machine()


class _Reader:
    """Reads jaxprs: operations and scalars are the formula, arrays are data."""

    def __init__(self) -> None:
        self.formula = hashlib.sha256()
        self.data = hashlib.sha256()

    def read(self, closed: Any) -> None:
        """A closed jaxpr and all that is inside it."""
        jaxpr = closed.jaxpr if isinstance(closed, core.ClosedJaxpr) else closed  # pyright: ignore[reportPrivateImportUsage]
        for constant in closed.consts if isinstance(closed, core.ClosedJaxpr) else ():  # pyright: ignore[reportPrivateImportUsage]
            self.value(constant)
        numbers: dict[Any, int] = {}
        for variable in (*jaxpr.constvars, *jaxpr.invars):
            self.variable(variable, numbers)
        for equation in jaxpr.eqns:
            self.say(equation.primitive.name)
            for variable in (*equation.invars, *equation.outvars):
                self.variable(variable, numbers)
            for name in sorted(equation.params):
                self.say(name)
                self.parameter(equation.params[name])
        for variable in jaxpr.outvars:
            self.variable(variable, numbers)

    def variable(self, variable: Any, numbers: dict[Any, int]) -> None:
        """A variable by its number and type, a literal by its value."""
        if isinstance(variable, core.Literal):
            self.value(variable.val)
        else:
            self.say(f"{numbers.setdefault(variable, len(numbers))}:{variable.aval}")

    def parameter(self, value: Any) -> None:
        """Add a parameter of a primitive: jaxprs and arrays are looked into, the rest is taken by its text."""
        if isinstance(value, (core.Jaxpr, core.ClosedJaxpr)):  # pyright: ignore[reportPrivateImportUsage]
            self.read(value)
        elif isinstance(value, (np.ndarray, jax.Array)):
            self.value(value)
        elif isinstance(value, (list, tuple)):
            self.say(f"{len(value)}")
            for entry in value:
                self.parameter(entry)
        elif callable(value):  # such as the rule of a custom derivative, which has an address and no text
            self.say(getattr(value, "__name__", type(value).__name__))
        else:
            self.say(re.sub(r"0x[0-9a-f]+", "", str(value)))

    def value(self, value: Any) -> None:
        """A scalar belongs to the formula, an array to the data."""
        if hasattr(value, "dtype") and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            value = jax.random.key_data(value)
        array = np.asarray(value)
        self.say(f"{array.dtype}{array.shape}")
        (self.data if array.ndim else self.formula).update(np.ascontiguousarray(array).tobytes())

    def say(self, text: str) -> None:
        """Add text to the formula."""
        self.formula.update(text.encode() + b"\0")
