"""The one door to PyMC and PyTensor: what is used of them, imported without side effects."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from pseudo_extended.optional import require


class PymcLibrary:
    """PyMC, and translations of PyTensor's graphs into JAX functions."""

    def __init__(self) -> None:
        what = "from_pymc"
        self.pymc = require("pymc", "pymc", what)
        self.pytensor = require("pytensor", "pymc", what)
        self.in_jax_module = _import_quietly("pymc.sampling.jax", what)
        self.arviz_module = require("pymc.backends.arviz", "pymc", what)
        self.graph = require("pytensor.graph.fg", "pymc", what)
        self.replace = require("pytensor.graph.replace", "pymc", what)
        self.traversal = require("pytensor.graph.traversal", "pymc", what)
        self.random_type = require("pytensor.tensor.random.type", "pymc", what).RandomType
        self.continuous = ("float16", "float32", "float64")

    def in_jax(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Callable[..., Sequence[Any]]:
        """A graph as a JAX function; shared data become constants."""
        return self.in_jax_module.get_jaxified_graph(inputs=list(inputs), outputs=list(outputs))

    def draws_at_random(self, outputs: Sequence[Any]) -> bool:
        """Whether a graph holds a random generator, so that it is no function of its inputs."""
        return any(isinstance(part.type, self.random_type) for part in self.traversal.graph_inputs(list(outputs)))

    def forward(self, model: Any, variables: Sequence[Any]) -> list[Any]:
        """The values of free variables on the unconstrained space, as graphs of the variables themselves."""
        transforms = [model.rvs_to_transforms[rv] for rv in variables]
        pairs = zip(variables, transforms, strict=True)
        return [rv if way is None else way.forward(rv, *rv.owner.inputs) for rv, way in pairs]

    def way_back(self, model: Any) -> Callable[..., Sequence[Any]]:
        """Return the map from the free variables in the model's own space to the unconstrained one."""
        given = {rv: rv.type() for rv in model.free_RVs}
        outputs = self.replace.clone_replace(self.forward(model, model.free_RVs), replace=given)
        return self.in_jax(list(given.values()), outputs)

    def sampler_in_jax(self, outputs: Sequence[Any]) -> Callable[[Any], Sequence[Any]]:
        """Draws of a graph with random variables, as a JAX function of a random key."""
        constants, generators = {}, []
        for part in self.traversal.graph_inputs(list(outputs)):
            if isinstance(part.type, self.random_type):
                generators.append(part)
            elif hasattr(part, "get_value"):
                constants[part] = self.pytensor.tensor.constant(part.get_value(borrow=True))
        free = {generator: generator.type() for generator in dict.fromkeys(generators)}
        graph = self.replace.clone_replace(list(outputs), replace=constants | free)
        function_graph = self.graph.FunctionGraph(inputs=list(free.values()), outputs=graph, clone=True)
        self.in_jax_module.mode.JAX.optimizer.rewrite(function_graph)
        function = self.in_jax_module.jax_funcify(function_graph)

        def draw(key: Any) -> Sequence[Any]:
            keys = jax.random.split(key, max(len(free), 1))
            return function(*({"jax_state": keys[i]} for i in range(len(free))))

        return draw

    def compile(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Callable[..., Sequence[np.ndarray]]:
        """A graph compiled by PyTensor itself."""
        return self.pymc.pytensorf.compile(list(inputs), list(outputs), on_unused_input="ignore")

    def observed_data(self, model: Any) -> dict[str, np.ndarray]:
        """Return the data by the names of the observed variables."""
        return {name: np.asarray(data) for name, data in self.arviz_module.find_observations(model).items()}

    def constant_data(self, model: Any) -> dict[str, np.ndarray]:
        """What `pm.Data` holds besides."""
        return {name: np.asarray(data) for name, data in self.arviz_module.find_constants(model).items()}


def _import_quietly(module: str, what: str) -> Any:
    """A module whose import writes XLA_FLAGS and switches JAX's precision for the whole process: both are put back.

    In a thread of its own, because only there JAX's precision is the process's and not that of a context around us.
    """

    def load() -> Any:
        flags, precision = os.environ.get("XLA_FLAGS"), jax.config.read("jax_enable_x64")
        try:
            return require(module, "pymc", what)
        finally:
            if flags is None:
                os.environ.pop("XLA_FLAGS", None)
            else:
                os.environ["XLA_FLAGS"] = flags
            jax.config.update("jax_enable_x64", precision)

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(load).result()
