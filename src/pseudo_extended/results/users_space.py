"""The density of a model's own parameters, as a function of them: what labellings of a model leave unchanged."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pseudo_extended.compiled import Job, compile_once
from pseudo_extended.precision import in_double_precision
from pseudo_extended.target.labels import Parameter

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result
    from pseudo_extended.target import Target


class UsersDensity(NamedTuple):
    """A density on the free parameters of a model, in its own space."""

    parameters: tuple[Parameter, ...]
    columns: np.ndarray
    """Which coordinates of the result they are."""
    log_density: Callable[[Float[np.ndarray, "point c"]], Float[np.ndarray, " point"]]
    """Up to a constant; nan outside the model's support."""


def density_of_users(result: "Result") -> UsersDensity | None:
    """Return the density in the user's own space: the unconstrained one may hide a symmetry, as of a simplex.

    None for a target without a model, and for a model that shows its parameters by calling Python.
    """
    target = result.target
    view = target.view
    if view is None or view.on_host or target.host_functions:
        return None
    is_free = [parameter.name in view.free for parameter in view.parameters]
    parameters = tuple(parameter for parameter, free in zip(view.parameters, is_free, strict=True) if free)
    columns = np.flatnonzero(np.repeat(is_free, [parameter.size for parameter in view.parameters]))

    @in_double_precision
    def log_density(values: Float[np.ndarray, "point c"]) -> Float[np.ndarray, " point"]:
        [height] = compile_once(Job(lambda u: _on_users_scale(target, parameters, u), (np.zeros(target.dim),)))
        places = (_unconstrained(target, parameters, x) for x in values)
        return np.array([np.nan if u is None else float(height(u)) for u in places])

    return UsersDensity(parameters, columns, log_density)


def _unconstrained(
    target: "Target", parameters: tuple[Parameter, ...], values: Float[np.ndarray, " c"]
) -> Float[Array, " d"] | None:
    """The unconstrained vector of the free parameters; None where the model has no such point."""
    assert target.view is not None
    parts = np.split(values, np.cumsum([parameter.size for parameter in parameters])[:-1])
    named = {parameter.name: part.reshape(parameter.shape) for parameter, part in zip(parameters, parts, strict=True)}
    try:
        return target.unconstrain(target.view.read_start(named))
    except ValueError:
        return None


def _on_users_scale(target: "Target", parameters: tuple[Parameter, ...], u: Float[Array, " d"]) -> Float[Array, ""]:
    """log γ(u) without the volume that the map to the user's space changes, which may be onto a simplex."""
    view = target.view
    assert view is not None
    function = view.function

    def shown(u: Float[Array, " d"]) -> Float[Array, " c"]:
        values = function(target.constrain(u))
        return jnp.concatenate([jnp.ravel(jnp.asarray(values[parameter.name])) for parameter in parameters])

    jacobian = jax.jacfwd(shown)(u)
    return target.log_target(u) - 0.5 * jnp.linalg.slogdet(jacobian.T @ jacobian)[1]
