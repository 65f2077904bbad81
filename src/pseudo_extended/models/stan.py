"""Stan models as targets: the density and what it generates are called in Stan, for all pseudo-samples at once."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, PyTree

from pseudo_extended import checks
from pseudo_extended.models.stan_engines import (
    BridgestanEngine,
    PystanEngine,
    StanEngine,
    as_variables,
    parse_data,
)
from pseudo_extended.optional import require
from pseudo_extended.paths import is_file
from pseudo_extended.target import Target, labels
from pseudo_extended.target.host import HostFunction
from pseudo_extended.target.views import Facts, View

LOG_LIK = "log_lik"


def from_stan(
    model: Any,
    data: Mapping[str, Any] | str | None = None,
    *,
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Sequence[Any]] | None = None,
) -> Target:
    """The target of a Stan model, with its transformed parameters and generated quantities in the output.

    Stan does not tell prior from likelihood, so the base of the path is learned. A generated quantity `log_lik` is the
    log likelihood of each observation for `result.to_arviz(log_likelihood=True)`.

    Args:
        model: The text of a Stan program or the name of its file (compiled by PyStan, which needs a C++ compiler and
            half a minute), what PyStan's `stan.build` returned, a BridgeStan model, or the name of a library that
            BridgeStan compiled (`*.so`).
        data: A dict, JSON, or the name of a JSON file; only with a program or a library, other models have theirs.
        dims: Names of the axes of the output, by variable.
        coords: Labels along them.
    """
    engine, known = _engine(model, data)
    if engine.dim == 0:
        raise ValueError("model must have at least one parameter; it has none.")
    variables = as_variables(engine.names, np.arange(len(engine.names), dtype=float))
    parameters = labels.label({name: value.shape for name, value in variables.items()}, {} if dims is None else dims)
    free = tuple(as_variables(engine.names[: engine.num_parameters], np.arange(engine.num_parameters, dtype=float)))
    view = View(
        function=_Shower(engine),
        parameters=parameters,
        free=free,
        coords=labels.label_coords(parameters, {} if coords is None else coords),
        unconstrain=lambda values: engine.call(engine.unconstrain, values),
        facts=Facts(
            origin=engine.origin,
            observed_data={name: np.asarray(value) for name, value in known.items()},
            pointwise_names=(LOG_LIK,) if LOG_LIK in variables else (),
            start=np.zeros(engine.dim),
            notes=("Stan does not tell prior from likelihood: the base of the path is learned.", *engine.doubts),
        ),
        on_host=True,
    )
    return Target(StanDensity(engine), np.zeros(engine.dim), names="theta", view=view)


class StanDensity(HostFunction):
    """The log density of a Stan model on its unconstrained space."""

    name = "the Stan model"
    is_differentiable = True

    def __init__(self, engine: StanEngine):
        super().__init__()
        self.engine = engine

    def compute(
        self, points: Float[np.ndarray, "point d"], like: PyTree, *, gradient: bool
    ) -> Float[np.ndarray, "point answer"]:
        """One point after the other, on the engine's own thread; what Stan rejects is a density of zero."""
        del like
        return self.engine.call(
            lambda points: self.one_by_one(points, self._answer(gradient), gradient=gradient), points
        )

    def _answer(self, gradient: bool) -> Callable[[Float[np.ndarray, " d"]], Any]:
        return (
            (lambda point: np.append(*self.engine.log_density_gradient(point))) if gradient else self.engine.log_density
        )


class _Shower:
    """All variables of the program at many points; nan where Stan refuses to generate them."""

    def __init__(self, engine: StanEngine):
        self.engine = engine

    def __call__(self, flat: Float[np.ndarray, "point d"]) -> dict[str, np.ndarray]:
        return self.engine.call(self._show, flat)

    def _show(self, flat: Float[np.ndarray, "point d"]) -> dict[str, np.ndarray]:
        rows = np.full((len(flat), len(self.engine.names)), np.nan)
        for i, theta in enumerate(flat):
            try:
                rows[i] = self.engine.constrain(theta)
            except RuntimeError:  # a point of weight zero may be one that the program rejects
                continue
        return as_variables(self.engine.names, rows)


def _engine(model: Any, data: Any) -> tuple[StanEngine, dict[str, Any]]:
    """Stan behind `model`, and the data as far as they are known."""
    if isinstance(model, (str, Path)):
        return _from_text(str(model), {} if data is None else data)
    if data is not None:
        raise ValueError("data must be None with a model that has its data already; give them when it is built.")
    if callable(getattr(model, "log_density_gradient", None)):
        return BridgestanEngine(model), _read(getattr(model, "data", None))
    program = getattr(model, "program_code", None)
    if isinstance(program, str):
        known = dict(model.data)
        return PystanEngine(program, known), known
    raise TypeError(
        "model must be the text of a Stan program, the name of a .stan file or of a library compiled by BridgeStan, or "
        f"a model of PyStan or BridgeStan; got {checks.describe(model)}."
    )


def _from_text(model: str, data: Any) -> tuple[StanEngine, dict[str, Any]]:
    if "{" in model:
        known = parse_data(data)
        return PystanEngine(model, known), known
    path = Path(model)
    if not is_file(path):
        raise ValueError(f"model must be a Stan program or the name of a file that there is; got {model!r}.")
    if path.suffix == ".stan":
        return _from_text(path.read_text(), data)
    bridgestan = require("bridgestan", "bridgestan", "a library compiled by BridgeStan")
    given = json.dumps(data, default=lambda value: np.asarray(value).tolist()) if isinstance(data, Mapping) else data
    return BridgestanEngine(bridgestan.StanModel(str(path), data=given)), _read(given)


def _read(data: Any) -> dict[str, Any]:
    """Data for the output, if they can be read: BridgeStan keeps them as JSON, or the name of a file."""
    try:
        return parse_data(data) if data else {}
    except (OSError, ValueError):
        return {}
