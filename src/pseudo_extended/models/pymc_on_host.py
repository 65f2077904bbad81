"""PyMC models that JAX cannot run (an operation of the user's own): compiled by PyTensor, called in Python."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, PyTree

from pseudo_extended.models.pymc_library import PymcLibrary
from pseudo_extended.target.host import HostFunction


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

    def compute(
        self, points: Float[np.ndarray, "point d"], like: PyTree, *, gradient: bool
    ) -> Float[np.ndarray, "point answer"]:
        """One point after the other."""
        function = self.value_and_gradient if gradient else self.value
        assert function is not None

        def answer(point: Float[np.ndarray, " d"]) -> Float[np.ndarray, " answer"]:
            value, *parts = function(*in_order(point, like, self.order))
            by_name = dict(zip(self.order, parts, strict=True)) if gradient else {}
            return np.concatenate([np.ravel(value), *(np.ravel(by_name[name]) for name in sorted(by_name))])

        return self.one_by_one(points, answer, gradient=gradient)


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
