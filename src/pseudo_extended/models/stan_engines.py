"""Two ways to a Stan model in this process: PyStan's compiled module, and BridgeStan's library."""

import json
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float

from pseudo_extended.messages import kinds
from pseudo_extended.models import pystan_services
from pseudo_extended.optional import require

T = TypeVar("T")
WRONG_NUMBER = "number of parameters does not match"


class StanEngine(ABC):
    """What is needed of a Stan model; vectors are on the unconstrained space."""

    origin: str
    dim: int
    names: list[str]
    """All numbers of a draw, by Stan's names: parameters, transformed parameters, generated quantities."""
    num_parameters: int
    """How many of them are parameters."""
    doubts: tuple[str, ...] = ()

    def __init__(self) -> None:
        # Stan's derivatives belong to a thread, and XLA calls back from any: one thread does all of Stan's work.
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="stan")

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """`function` of these arguments, in Stan's own thread; all of the methods below belong there."""
        return self.thread.submit(function, *args).result()

    @abstractmethod
    def log_density(self, theta: Float[np.ndarray, " d"]) -> float:
        """The log density, with the Jacobians of the constraints."""

    @abstractmethod
    def log_density_gradient(self, theta: Float[np.ndarray, " d"]) -> tuple[float, Float[np.ndarray, " d"]]:
        """The same, and its gradient."""

    @abstractmethod
    def constrain(self, theta: Float[np.ndarray, " d"]) -> Float[np.ndarray, " names"]:
        """The numbers of a draw; generated quantities that are random depend on theta alone."""

    @abstractmethod
    def unconstrain(self, values: Mapping[str, np.ndarray]) -> Float[np.ndarray, " d"]:
        """Map parameters by name to the unconstrained vector."""


class PystanEngine(StanEngine):
    """A program compiled by PyStan. Its density drops constants, so evidence is known up to one."""

    doubts = (kinds.UNKNOWN_CONSTANT(),)

    def __init__(self, program: str, data: Mapping[str, Any]):
        super().__init__()
        info = pystan_services.program_info(program)
        self.data = check_data(info, data)
        self.module: ModuleType = self.call(pystan_services.load_privately, program)
        httpstan = require("httpstan", "pystan", "from_stan")
        self.origin = f"pystan (httpstan {httpstan.__version__})"
        try:
            self.names = list(self.call(self.module.constrained_param_names, self.data))
        except Exception as error:
            raise ValueError(f"data must suit the Stan program; it says: {error}") from error
        own = set(info["parameters"])
        self.num_parameters = sum(re.split(r"[.:]", name)[0] in own for name in self.names)
        self.dim = self.call(self._find_dim)
        # The module's own write_array draws all random numbers from one seed, zero; a service takes another.
        called = [*info.get("functions", []), *info.get("distributions", [])]
        self.is_random = any(name.endswith("_rng") for name in called) or "_rng(" in re.sub(r"\s", "", program)

    def log_density(self, theta: Float[np.ndarray, " d"]) -> float:
        """Evaluate the model in one call."""
        return self.module.log_prob(self.data, theta.tolist(), True)

    def log_density_gradient(self, theta: Float[np.ndarray, " d"]) -> tuple[float, Float[np.ndarray, " d"]]:
        """Two calls: the module has none for both."""
        flat = theta.tolist()
        value = self.module.log_prob(self.data, flat, True)
        return value, np.asarray(self.module.log_prob_grad(self.data, flat, True))

    def constrain(self, theta: Float[np.ndarray, " d"]) -> Float[np.ndarray, " names"]:
        """Constrain by the module, or by Stan's service of one draw at fixed parameters if anything is random."""
        if not self.is_random:
            return np.asarray(self.module.write_array(self.data, theta.tolist(), True, True))
        parameters = np.asarray(self.module.write_array(self.data, theta.tolist(), False, False))
        chosen = {"num_samples": 1, "random_seed": seed_of(theta), "chain": 1, "refresh": 0}
        init = as_variables(self.names[: self.num_parameters], parameters)
        start = {name: value.tolist() for name, value in init.items()}
        run = pystan_services.run_service(self.module, "fixed_param", self.data, start, chosen)
        return np.array([run.draws[name][0] for name in self.names])

    def unconstrain(self, values: Mapping[str, np.ndarray]) -> Float[np.ndarray, " d"]:
        """Unconstrain by the module that httpstan built."""
        given = {name: np.asarray(value).tolist() for name, value in values.items()}
        return np.asarray(self.module.transform_inits(self.data, given))

    def _find_dim(self) -> int:
        """The module does not say, but it refuses a vector of the wrong length.

        Constraints take dimensions away (a simplex of three has two), so it is not above the number of parameters.
        """
        for dim in range(self.num_parameters, -1, -1):
            try:
                self.module.log_prob(self.data, [0.0] * dim, True)
            except Exception as error:
                if WRONG_NUMBER in str(error):
                    continue
            return dim
        raise ValueError("program must have parameters that can be sampled; no number of them was accepted.")


class BridgestanEngine(StanEngine):
    """BridgeStan's model, by its documented calls."""

    def __init__(self, model: Any):
        super().__init__()
        self.model = model
        self.origin = "bridgestan"
        self.dim = int(model.param_unc_num())
        self.num_parameters = int(model.param_num())
        self.names = list(model.param_names(include_tp=True, include_gq=True))

    def log_density(self, theta: Float[np.ndarray, " d"]) -> float:
        """All constants included, so that the evidence is what it says."""
        return self.log_density_gradient(theta)[0]

    def log_density_gradient(self, theta: Float[np.ndarray, " d"]) -> tuple[float, Float[np.ndarray, " d"]]:
        """Evaluate density and gradient in one call."""
        value, gradient = self.model.log_density_gradient(np.ascontiguousarray(theta), propto=False, jacobian=True)
        return float(value), np.array(gradient)

    def constrain(self, theta: Float[np.ndarray, " d"]) -> Float[np.ndarray, " names"]:
        """Constrain with a random generator of its own for each point."""
        rng = self.model.new_rng(seed_of(theta))
        return self.model.param_constrain(np.ascontiguousarray(theta), include_tp=True, include_gq=True, rng=rng)

    def unconstrain(self, values: Mapping[str, np.ndarray]) -> Float[np.ndarray, " d"]:
        """Unconstrain values given as JSON, as Stan reads it."""
        given = {name: np.asarray(value).tolist() for name, value in values.items()}
        return self.model.param_unconstrain_json(json.dumps(given))


def check_data(info: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """The data as Stan's module wants them: lists and numbers, none missing, whole numbers whole."""
    missing = [name for name in info["inputs"] if name not in data]
    if missing:
        raise ValueError(f"data must hold all that the Stan program reads; {', '.join(missing)} is missing.")
    made = {}
    for name, kind in info["inputs"].items():
        try:
            array = np.asarray(data[name])
            if array.dtype.kind not in "fiub":
                raise TypeError
            if kind["type"] == "int" and not np.array_equal(array, np.rint(array)):
                raise TypeError
        except (TypeError, ValueError):
            raise TypeError(f"data for {name!r} must be numbers of Stan's type {kind['type']}.") from None
        if array.ndim != kind["dimensions"]:
            raise ValueError(f"data for {name!r} must have {kind['dimensions']} axes; got shape {array.shape}.")
        made[name] = array.astype(int if kind["type"] == "int" else float).tolist()
    return made


def seed_of(theta: Float[np.ndarray, " d"]) -> int:
    """A seed that belongs to a point: what is generated there is the same whenever it is asked for."""
    return zlib.crc32(np.ascontiguousarray(theta).tobytes()) % (2**31 - 1) + 1


def as_variables(names: list[str], values: Float[np.ndarray, "*batch number"]) -> dict[str, np.ndarray]:
    """Numbers with names such as m.2.1, in any order, as arrays by variable; parts of tuples keep their name (a:1)."""
    places: dict[str, dict[tuple[int, ...], int]] = {}
    for i, name in enumerate(names):
        variable, index = split_name(name)
        places.setdefault(variable, {})[index] = i
    made = {}
    for variable, entries in places.items():
        shape = tuple(np.max(np.array(list(entries)), axis=0)) if len(next(iter(entries))) else ()
        order = np.empty(shape, int)
        for index, i in entries.items():
            order[tuple(part - 1 for part in index)] = i
        made[variable] = values[..., order]
    return made


def split_name(name: str) -> tuple[str, tuple[int, ...]]:
    """The variable and the index in one of Stan's names.

    >>> split_name("m.2.1"), split_name("sigma"), split_name("z.3.real"), split_name("pair:1.4")
    (('m', (2, 1)), ('sigma', ()), ('z.real', (3,)), ('pair:1', (4,)))
    """
    variable, *parts = name.split(".")
    suffix = [part for part in parts if not part.isdigit()]
    return ".".join([variable, *suffix]), tuple(int(part) for part in parts if part.isdigit())


def parse_data(data: Any) -> dict[str, Any]:
    """Data as a dict: given so, or as JSON, or as the name of a JSON file."""
    if isinstance(data, Mapping):
        return dict(data)
    text = str(data)
    if not text.lstrip().startswith("{"):
        text = Path(text).read_text()
    return json.loads(text)
