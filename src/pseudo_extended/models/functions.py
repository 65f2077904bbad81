"""Plain functions as targets: JAX functions as they are, NumPy functions by a call back into Python."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, PyTree

from pseudo_extended import checks
from pseudo_extended.target import Target, flatten_position
from pseudo_extended.target.host import HostFunction, check_pool


def from_numpy(
    log_density: Callable[[Any], Any],
    gradient: Callable[[Any], Any] | None = None,
    *,
    vectorised: bool = False,
    pool: Any = None,
) -> "NumpyFunction":
    """A NumPy function as one that can stand wherever a JAX function of a position can.

    It is called once for all pseudo-samples and chains that a program advances, if it is `vectorised`, and otherwise
    for one after the other. Where it raises, or returns nan, the density is zero; the result says how often it raised.

    Args:
        log_density: A function of a position (an array, or a dict or pytree of arrays) that returns a float; or, if
            `vectorised`, of positions with a leading axis that returns a vector.
        gradient: A function that returns the gradient of `log_density`, in the structure and shapes of a position (with
            a leading axis if `vectorised`); or None, and then only methods that need no gradient work.
        vectorised: Whether both take many positions at once.
        pool: A pool of processes for a slow function that takes one position, or anything else with a method `map`;
            the functions must be defined at the top of a module, so that other processes can import them.

    >>> import pseudo_extended as pe
    >>> def log_density(x):                                   # plain NumPy, plain Python
    ...     return -0.5 * float(np.sum(x**2))
    >>> target = pe.Target(pe.from_numpy(log_density, lambda x: -x), np.zeros(2))
    >>> method = pe.Plain(pe.HMC(4))
    >>> pe.sample(target, np.zeros(2), method=method, draws=20, warmup=20, seed=0, progress=False).weights.shape
    (4, 20, 1)
    """
    checks.function("log_density", log_density)
    if gradient is not None:
        checks.function("gradient", gradient)
    checks.choice("vectorised", vectorised, (True, False))
    return NumpyFunction(log_density, gradient, vectorised=vectorised, pool=check_pool(pool, vectorised))


class Rows(NamedTuple):
    """The user's functions in rows of numbers; other processes can be sent it, if they can be sent the functions."""

    function: Callable[[Any], Any]
    gradient: Callable[[Any], Any] | None

    def __call__(
        self, flat: Float[np.ndarray, "*batch d"], like: PyTree, gradient: bool
    ) -> Float[np.ndarray, "*batch answer"]:
        """The answers for one point or for many, as the function takes them."""
        position, batch = _unflatten(flat, like), flat.shape[:-1]
        value = _floats("log_density", self.function(position), batch)
        if not gradient:
            return value[..., None]
        # At points of density zero the gradient means nothing, and may raise.
        slope = self._flat_gradient(position, batch) if np.any(np.isfinite(value)) else np.full(flat.shape, np.nan)
        return np.concatenate([value[..., None], slope], axis=-1)

    def _flat_gradient(self, position: PyTree, batch: tuple[int, ...]) -> Float[np.ndarray, "*batch d"]:
        assert self.gradient is not None
        answer = self.gradient(position)
        leaves, expected = jax.tree.leaves(answer), jax.tree.leaves(position)
        if jax.tree.structure(answer) != jax.tree.structure(position):
            if len(expected) != 1:
                raise TypeError("gradient must return the structure of a position")
            leaves = [answer]
        parts = [_floats("gradient", leaf, np.shape(like)) for leaf, like in zip(leaves, expected, strict=True)]
        return np.concatenate([part.reshape((*batch, -1)) for part in parts], axis=-1)


class NumpyFunction(HostFunction):
    """A NumPy function of a position, with or without its gradient."""

    name = "log_density"

    def __init__(
        self,
        function: Callable[[Any], Any],
        gradient: Callable[[Any], Any] | None = None,
        *,
        vectorised: bool = False,
        pool: Any = None,
    ):
        super().__init__()
        self.rows, self.vectorised, self.pool = Rows(function, gradient), vectorised, pool
        self.is_differentiable = gradient is not None

    def compute(
        self, points: Float[np.ndarray, "point d"], like: PyTree, *, gradient: bool
    ) -> Float[np.ndarray, "point answer"]:
        """All points at once if the function is vectorised; nan where it, or its gradient, raises."""
        answer = partial(self.rows, like=like, gradient=gradient)
        if not self.vectorised:
            return self.one_by_one(points, answer, gradient=gradient)
        try:
            return answer(points)
        except Exception as error:
            self.failed(error)
            return np.full((len(points), points.shape[1] + 1 if gradient else 1), np.nan)


def _floats(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """`value` as floats of this shape; minus infinity and nan are densities of zero."""
    array = checks.float_array(f"the value of {name}", value, finite=False)
    if array.shape != shape and array.size != int(np.prod(shape)):
        raise ValueError(f"{name} must return shape {shape}; got {array.shape}")
    return array.reshape(shape)


def _unflatten(flat: Float[np.ndarray, "*batch d"], like: PyTree) -> PyTree:
    leaves, treedef = jax.tree.flatten(like)
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
    parts = np.split(flat, ends, axis=-1)
    shaped = [part.reshape((*flat.shape[:-1], *leaf.shape)) for part, leaf in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(treedef, [part[()] if part.ndim == 0 else part for part in shaped])


def target_from(function: Any, init: Any) -> tuple[Target, Any]:
    """A target from a plain function, and init as it fits it: an array or list is one vector, or a batch of them."""
    checks.function("target", function)
    if init is None:
        raise TypeError("init must be given with a plain function, to show the shape of its position; got None.")
    if callable(init):
        return _plain(function, _example(init(jax.random.key(0, impl="threefry2x32")))), init
    if not (hasattr(init, "__array__") or isinstance(init, (list, tuple, float, int, str))):
        return _plain(function, _example(init)), init
    array = checks.float_array("init", init)
    if array.ndim > 2 or array.size == 0:
        raise ValueError(
            "init for a plain function must be one vector or a batch of vectors, shape (d,) or (starts, d); got "
            f"shape {array.shape}. For a position of another shape, pass pe.Target(log_density, example)."
        )
    return _plain(function, array[0] if array.ndim == 2 else array), array


def _plain(function: Callable[[Any], Any], example: Any) -> Target:
    """The function as it is if JAX can trace it, and else, if it works on NumPy arrays, by calling back.

    One that cannot be traced and returns an array of JAX is no NumPy function but a JAX function with a slip, such
    as a Python `if` on its values. Called back it would run, without gradients and a hundred times slower.
    """
    target = Target(function, example)
    position = jax.tree.unflatten(target.treedef, target.example)
    try:
        jax.eval_shape(function, position)
    except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError):
        try:
            value = function(position)
            _floats("log_density", value, ())
        except Exception:  # no NumPy function either: the refusal of a function that JAX cannot trace says what to do
            return target
        return target if isinstance(value, jax.Array) else Target(NumpyFunction(function), example)
    except Exception:  # it is called again, and explained, with the other checks
        return target
    return target


def _example(position: Any) -> Any:
    """`position`, if it can be an example; errors speak of init, which is what the user gave."""
    leaves = [leaf for _, leaf in flatten_position("init", position)[0]]
    if not sum(checks.float_array("init", leaf).size for leaf in leaves):
        raise TypeError(f"init must be an array or a pytree of arrays with numbers; got {checks.describe(position)}.")
    return position
