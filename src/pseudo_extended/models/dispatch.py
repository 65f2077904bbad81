"""Any model as a target. Nothing optional is imported before the model's own type says that it is there."""

import sys
from collections.abc import Callable
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

import jax

from pseudo_extended.models.functions import target_from
from pseudo_extended.target import Target


def as_target(model: Any, init: Any = None) -> tuple[Target, Any]:
    """The target of whatever the user has, and where its chains start.

    `model` is a `Target`, a PyMC model, a NumPyro model that takes no arguments (see `from_numpyro` for others), a
    PyStan or BridgeStan model, or a plain function, which needs `init` to show the shape of its position.

    >>> import jax.numpy as jnp, numpy as np
    >>> as_target(lambda x: -jnp.sum(x**2), np.zeros(3))[0].dim
    3
    """
    target = library_target(model, init)
    if target is None:
        return target_from(model, init)
    if target.view is None:
        return target, init
    if init is not None:
        return target, target.view.read_start(init)
    can_sample = target.base is not None and target.base.can_sample
    return target, None if can_sample else target.view.facts.start


def model_of_context() -> Any:
    """The PyMC model inside whose `with` block the call is."""
    pymc = sys.modules.get("pymc")
    model = None if pymc is None else pymc.Model.get_context(error_if_none=False)
    if model is None:
        raise TypeError(
            "target must be given: a pe.Target, a function or a model; it may be left out only inside `with model:` of "
            "PyMC."
        )
    return model


def library_target(model: Any, init: Any = None) -> Target | None:
    """A target as it is, that of a model of another library, or None if it is neither."""
    if isinstance(model, Target):
        return model
    for recognises, module, adapter in (
        (_is_pymc, "pymc", "from_pymc"),
        (_is_stan, "stan", "from_stan"),
        (_is_numpyro, "numpyro", "from_numpyro"),
    ):
        if recognises(model, init):
            return getattr(import_module(f"pseudo_extended.models.{module}"), adapter)(model)
    return None


def _is_pymc(model: Any, init: Any) -> bool:
    del init
    pymc = sys.modules.get("pymc")
    return pymc is not None and isinstance(model, getattr(pymc, "Model", ()))


def _is_stan(model: Any, init: Any) -> bool:
    """Whether a model has the calls that BridgeStan or `stan.build` documents."""
    del init
    bridge = callable(getattr(model, "log_density_gradient", None)) and callable(
        getattr(model, "param_constrain", None)
    )
    return bridge or (isinstance(getattr(model, "program_code", None), str) and hasattr(model, "data"))


def _is_numpyro(model: Any, init: Any) -> bool:
    """A function of nothing in which NumPyro sees something sampled."""
    numpyro = sys.modules.get("numpyro")
    if numpyro is None or not callable(model) or (init is not None and not _takes_nothing(model)):
        return False
    handlers: Any = import_module("numpyro.handlers")
    try:
        trace = handlers.trace(handlers.seed(model, jax.random.PRNGKey(0))).get_trace()
    except TypeError:  # a function of a position, called with nothing; the other refusals are explained later
        return False
    except Exception:
        return _takes_nothing(model)
    return any(site["type"] == "sample" for site in trace.values())


def _takes_nothing(model: Callable[..., Any]) -> bool:
    """Whether the function can be called without arguments."""
    try:
        parameters = signature(model).parameters.values()
    except (TypeError, ValueError):
        return False
    variadic = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    return all(part.default is not Parameter.empty or part.kind in variadic for part in parameters)
