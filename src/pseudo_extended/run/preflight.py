"""Before any long work: whether the density is what a density must be, and if not, which parameter is at fault."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify
from jaxtyping import Array, Float

from pseudo_extended.messages import Message, kinds, recall
from pseudo_extended.methods import AbstractMethod
from pseudo_extended.run.declared_symmetries import check_symmetries
from pseudo_extended.target import Target
from pseudo_extended.target.host import no_gradient, said


def check_densities(target: Target, method: AbstractMethod) -> list[Message]:
    """Refuse a density that is not one float, or that the method cannot use; sentences about what is only doubtful."""
    for function in target.host_functions:
        function.forget()
        if method.needs_gradient and not function.is_differentiable:
            raise TypeError(no_gradient(function.name))
    doubts = [] if target.view is None else [recall(doubt, kinds.DOUBT) for doubt in target.view.facts.doubts]
    parts = {"log_density": target.log_density, "log_likelihood": target.log_likelihood}
    parts["base" if target.log_likelihood is None else "log_prior"] = getattr(target.base, "function", None)
    for name, function in parts.items():
        if function is not None:
            doubts += _check_density(target, name, function)
    return doubts + [recall(doubt, kinds.DOUBT) for doubt in check_symmetries(target, method)]


def _check_density(target: Target, name: str, function: Callable[[Any], Any]) -> list[Message]:
    try:
        dtype = target.check_density(name, function)
    except Exception as error:
        shapes = ", ".join(f"{parameter.name}: {parameter.shape}" for parameter in target.parameters)
        error.add_note(f"pseudo-extended called {name} with a position like init, of {shapes}, in double precision.")
        raise
    doubts = _index_out_of_bounds(target, name, function)
    if dtype != jnp.float64:
        doubts.append(kinds.LOW_PRECISION(name=name, dtype=dtype))
    return doubts


def _index_out_of_bounds(target: Target, name: str, function: Callable[[Any], Any]) -> list[Message]:
    """JAX reads the nearest entry where an index is out of bounds, and says nothing: indices that count from 1 show so.

    A doubt and no refusal, because some write code that relies on it. Writing out of bounds is not looked at: JAX does
    so itself, where `jnp.tril_indices` is traced. Compiled only for functions that read by numbers: an index that is a
    constant and within bounds is a slice to JAX.
    """
    position = jax.tree.unflatten(target.treedef, [jnp.asarray(leaf) for leaf in target.example])
    try:
        text = str(jax.make_jaxpr(function)(position))
        if "callback" in text or not any(word in text for word in ("gather", "dynamic_slice")):
            return []
        error = jax.jit(checkify.checkify(function, errors=checkify.index_checks))(position)[0].get_exception()
    except Exception:  # a primitive that checkify does not know
        return []
    if error is None or "scatter" in getattr(error, "prim", ""):
        return []
    found = str(error).split("(`")[0].strip().rstrip(".")
    return [kinds.INDEX_OUT_OF_BOUNDS(name=name, found=found)]


def complaints(target: Target) -> list[Message]:
    """Sentences about functions that raised on the way."""
    return [sentence for function in target.host_functions for sentence in function.complaints()]


def first_error(target: Target) -> Exception | None:
    """What a function of the user raised first, if any did."""
    errors = (function.first_error for function in target.host_functions)
    return next((error for error in errors if error is not None), None)


def explain_instrument(target: Target, u: Float[np.ndarray, " d"], tried: str) -> str:
    """A sentence about a start at which the target is positive, but the instrument q is not."""
    where = f"after {tried}, for instance at {_position(target, u)}"
    log_base = float(target.path_point(jnp.asarray(u)).log_base)
    if not np.isfinite(log_base):
        return f"the base must be positive wherever the target is; its log density is {log_base:g} {where}."
    return f"the instrument's density q must be positive wherever the target is; it is not {where}."


def explain(target: Target, u: Float[Array, " d"], tried: str, *, needs_gradient: bool) -> str:
    """A sentence about a start at which the target is not finite, naming the parameter at fault where one is."""
    path = target.path_point(u)
    value = float(target.log_target(u))
    where = f"after {tried}, for instance at {_position(target, u)}"
    error = first_error(target)
    if error is not None and not np.isfinite(value):
        return f"the log density must be finite at the start; it raised {said(error)} {where}."
    if target.log_likelihood is not None and not np.isfinite(float(path.log_base)):
        return f"log_prior must be finite at the start; it is {float(path.log_base):g} {where}{_blame(target, u)}."
    if not np.isfinite(value):
        raw = float(path.log_target)
        return f"the log density must be finite at the start; it is {raw:g} {where}{_blame(target, u)}."
    if needs_gradient:
        gradient = np.asarray(jax.grad(target.log_target)(u))
        names = [name for name, part in _split(target, gradient) if not np.all(np.isfinite(part))]
        return (
            f"the gradient of the log density must be finite at the start; it is not for parameter "
            f"{', '.join(map(repr, names))} {where}."
        )
    raise AssertionError("nothing to explain: the start is finite")


def _blame(target: Target, u: Float[Array, " d"]) -> str:
    """The parameters of which one alone, moved elsewhere, makes the target finite."""
    if len(target.parameters) == 1:
        return ""
    finite = jax.jit(jax.vmap(lambda u: jnp.isfinite(target.log_target(u))))
    rng = np.random.default_rng(0)
    start, guilty = 0, []
    for parameter in target.parameters:
        moved = np.tile(np.asarray(u), (64, 1))
        # From close by to far away, on both sides of zero and of where it was.
        scales = np.repeat([0.1, 1.0, 10.0, 100.0], 8)[:, None]
        noise = scales * rng.normal(size=(32, parameter.size))
        place = slice(start, start + parameter.size)
        moved[:32, place] += noise
        moved[32:, place] = noise
        if np.any(np.asarray(finite(moved))):
            guilty.append(repr(parameter.name))
        start += parameter.size
    if not guilty:
        return ", and no single parameter is at fault"
    noun = "parameter" if len(guilty) == 1 else "one of the parameters"
    return f"; {noun} {', '.join(guilty)} is at fault: moving it alone makes it finite"


def _position(target: Target, u: Any) -> str:
    if target.view is not None:
        position = ((name, value[0]) for name, value in target.view.show(np.asarray(u)[None], target.constrain).items())
    else:
        position = zip(target.names, jax.tree.leaves(target.constrain(jnp.asarray(u))), strict=True)
    return ", ".join(f"{name} = {_short(value)}" for name, value in position)


def _split(target: Target, flat: np.ndarray) -> list[tuple[str, np.ndarray]]:
    ends = np.cumsum([parameter.size for parameter in target.parameters])[:-1]
    return list(zip(target.names, np.split(flat, ends), strict=True))


def _short(value: Any) -> str:
    flat = np.ravel(np.asarray(value))
    text = ", ".join(f"{number:.4g}" for number in flat[:4])
    return text if np.ndim(value) == 0 else f"[{text}{', ...' if flat.size > 4 else ''}]"
