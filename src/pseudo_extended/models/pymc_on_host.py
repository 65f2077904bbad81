"""PyMC models that JAX cannot run (an operation of the user's own): compiled by PyTensor, called in Python."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, PyTree

from pseudo_extended.host import HostFunction
from pseudo_extended.models.pymc_library import PymcLibrary


class CompiledDensity(HostFunction):
    """The log density of a PyMC model on the unconstrained space."""

    name = "the PyMC model"

    def __init__(self, library: PymcLibrary, model: Any):
        super().__init__()
        self.order = [rv.name for rv in model.free_RVs]
        log_density, inputs = model.logp(), model.value_vars
        self.value = library.compile(inputs, [log_density])
        try:
            gradients = library.pytensor.grad(log_density, inputs)
            self.value_and_gradient = library.compile(inputs, [log_density, *gradients])
        except (NotImplementedError, AttributeError, TypeError, ValueError):  # an operation without a gradient
            self.value_and_gradient = None
        self.is_differentiable = self.value_and_gradient is not None

    def values(self, points: Float[np.ndarray, "point d"], like: PyTree) -> Float[np.ndarray, " point"]:
        """One point after the other."""
        answer = np.full(len(points), np.nan)
        for i, point in enumerate(points):
            try:
                answer[i] = np.asarray(self.value(*in_order(point, like, self.order))[0]).item()
            except Exception as error:
                self.failed(error)
        return answer

    def values_and_gradients(
        self, points: Float[np.ndarray, "point d"], like: PyTree
    ) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, "point d"]]:
        """One point after the other."""
        assert self.value_and_gradient is not None
        values, gradients = np.full(len(points), np.nan), np.full(points.shape, np.nan)
        for i, point in enumerate(points):
            try:
                value, *parts = self.value_and_gradient(*in_order(point, like, self.order))
                by_name = dict(zip(self.order, parts, strict=True))
                values[i] = np.asarray(value).item()
                gradients[i] = np.concatenate([np.ravel(by_name[name]) for name in sorted(by_name)])
            except Exception as error:
                self.failed(error)
        return values, gradients


def in_order(point: Float[np.ndarray, " d"], like: PyTree, order: Sequence[str]) -> list[np.ndarray]:
    """The values of a flat position, whose names are sorted, in the model's order."""
    names = sorted(like)
    parts = np.split(point, np.cumsum([np.size(like[name]) for name in names])[:-1])
    by_name = {name: part.reshape(np.shape(like[name])) for name, part in zip(names, parts, strict=True)}
    return [by_name[name] for name in order]


def compiled_view(
    library: PymcLibrary, model: Any, example: PyTree, shown: Sequence[str]
) -> tuple[Callable[[np.ndarray], dict[str, np.ndarray]], dict[str, tuple[int, ...]]]:
    """What the user sees of many flat positions, and its shapes."""
    order = [rv.name for rv in model.free_RVs]
    graphs = model.replace_rvs_by_values([*model.free_RVs, *model.deterministics])
    function = library.compile(model.value_vars, graphs)

    def show(flat: Float[np.ndarray, "point d"]) -> dict[str, np.ndarray]:
        rows = [function(*in_order(point, example, order)) for point in flat]
        return {name: np.stack([row[i] for row in rows]) for i, name in enumerate(shown)}

    first = function(*(example[name] for name in order))
    return show, {name: np.shape(value) for name, value in zip(shown, first, strict=True)}
