"""The public surface: each argument of each call, with the other arguments right."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import pseudo_extended as pe

RUN = {"method": pe.Plain(pe.RandomWalk()), "draws": 8, "warmup": 2, "chains": 2, "seed": 1, "progress": False}
ANNEALED = pe.AnnealedImportance(num_steps=2, kernel=pe.RandomWalk())
"""A method that estimates the evidence."""


def normal(x):
    return -0.5 * jnp.sum(x**2)


class Call(NamedTuple):
    """One argument of one call."""

    name: str
    argument: str
    function: Callable[..., Any]
    right: Mapping[str, Any]

    def of(self, value: Any) -> Any:
        if callable(value) and self.argument in USERS_FUNCTIONS:
            return None  # the errors of a user's function are the user's
        return self.function(**{**self.right, self.argument: value})


EXTENDED = {"target": pe.Target(normal, np.zeros(2)), "instrument": pe.Fixed(0.5), "num_particles": 2}
FREE = (
    *(pe.AdaptivePseudoExtended, pe.AnnealedImportance, pe.ContinuousTempering, pe.Plain, pe.PseudoExtended),
    *(pe.RepellingAttracting, pe.stopping.GoodEnough, pe.HMC, pe.MALA, pe.NUTS, pe.RandomWalk),
    *(pe.Normal, pe.Stratified, pe.Tempered, pe.Fixed, pe.PerParticle),
)
"""Classes that need at most the argument in question."""
CLASSES: dict[Any, dict[str, Any]] = {
    **{kind: {} for kind in FREE},
    **{kind: {"betas": [0.1, 1.0]} for kind in (pe.Ladder, pe.ParallelTempering, pe.SimulatedTempering)},
    pe.Base: {"log_density": normal},
    pe.Cycle: {"kernels": [pe.NUTS()]},
    pe.Density: {"log_q": normal},
    pe.EquiEnergy: {"energies": [-1, 1], "temperatures": [1.0, 3.0]},
    pe.ExtendedTarget: EXTENDED,
    pe.Mixture: {"kernels": [pe.NUTS(), pe.MALA()]},
    pe.NormalMixture: {"means": np.zeros((2, 2)), "scales": np.ones((2, 2))},
    pe.Target: {"log_density": normal, "example": np.zeros(2)},
}
NOT_OURS = {
    *("target_moves", "learned_base", "shared_metric", "parameters", "view", "what", "batch_ndim", "figure", "ax"),
}
"""Which no user gives, or matplotlib gets."""
USERS_FUNCTIONS = {"f", "init", "function", "model", "sample_prior", "sample_data", "log_prior", "log_likelihood"}
MORE: dict[str, dict[str, Any]] = {
    "at": {"mode": 0},
    "leaves": {"what": "init", "position": np.zeros(2)},
    "report": {"path": "nowhere/report.html"},
}
"""Arguments that methods need besides the one in question."""
NOT_HERE = {"to_anesthetic", "to_chainconsumer", "check_density"}
"""Of libraries that are not installed; and what asks about a function that a user has given elsewhere."""


def surface(result: pe.Result) -> Iterator[Call]:
    """Every argument of every call but those that sample."""
    target = pe.Target(normal, np.zeros(2), base=pe.Normal())
    annealed = pe.sample(target, np.zeros(2), **RUN | {"method": ANNEALED})
    two, modes = {"results": {"a": annealed, "b": annealed}}, result.modes()
    data = {"sample_prior": lambda key: jax.random.normal(key, (2,)), "sample_data": lambda key, x: x}
    model = {"log_prior": normal, "log_likelihood": lambda x, y: normal(x - y)}
    regression = {"covariates": np.zeros((3, 2)), "labels": np.array([0, 1, 1]), "expected_active": 1}
    functions: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        **{kind.__name__: (kind, right) for kind, right in CLASSES.items()},
        **{f"Result.{name}": (each, MORE.get(name, {})) for name, each in methods(result)},
        **{f"annealed.{name}": (each, MORE.get(name, {})) for name, each in methods(annealed)},
        **{f"Modes.{name}": (each, {}) for name, each in methods(modes)},
        **{f"Target.{name}": (each, MORE.get(name, {})) for name, each in methods(target)},
        **{f"plots.{name}": (each, {"result": result}) for name, each in methods(pe.plots) if name != "comparison"},
        "plots.comparison": (pe.plots.comparison, two),
        "bayes_factor": (pe.compare(**two).bayes_factor, {"one": "a", "other": "b"}),
        "check": (pe.check, {"model": normal, "init": np.zeros(2), "show": False, "num_starts": 0}),
        "compare": (pe.compare, two),
        "compare_predictions": (pe.compare_predictions, {}),
        "from_numpy": (pe.from_numpy, {"log_density": normal}),
        "from_numpyro": (pe.from_numpyro, {"model": None}),
        "from_prior_transform": (
            pe.from_prior_transform,
            {"log_likelihood": normal, "prior_transform": lambda u: u, "ndim": 2},
        ),
        "from_pymc": (pe.from_pymc, {}),
        "from_stan": (pe.from_stan, {"model": None}),
        "permutation": (lambda name="x", axis=0: pe.permutation(name, axis=axis), {}),
        "sign_flip": (lambda name="x", axis=0: pe.sign_flip(name, axis=axis), {}),
        "register_class": (pe.register_class, {"tag": "x", "kind": pe.HMC}),
        "sensitivity": (pe.sensitivity, {"target": result, "trials": 0, "progress": False}),
        "calibration": (pe.simulation_based_calibration, data | model | RUN | {"simulations": 0}),
        "twenty_modes": (pe.problems.twenty_modes, {}),
        "boltzmann_machine": (pe.problems.boltzmann_machine, {"units": 1}),
        "horseshoe_regression": (pe.problems.horseshoe_regression, regression),
    }
    for name, (function, right) in functions.items():
        if name.rpartition(".")[2] not in NOT_HERE:
            for argument, parameter in inspect.signature(function).parameters.items():
                if argument not in NOT_OURS and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                    yield Call(name, argument, function, right)


def methods(owner: Any) -> list[tuple[str, Callable[..., Any]]]:
    """The public functions of a module, or of an object."""
    kind = owner if inspect.ismodule(owner) else type(owner)
    return [(name, getattr(owner, name)) for name, _ in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"]
