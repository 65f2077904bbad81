"""Target: log γ on an unconstrained vector, with its base, its names and the map back to the user's space."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree, Shaped

from pseudo_extended import checks
from pseudo_extended.precision import in_double_precision
from pseudo_extended.target import labels
from pseudo_extended.target.bases import AbstractBase, Base
from pseudo_extended.target.host import HostFunction
from pseudo_extended.target.symmetries import Action, Symmetry, actions_from
from pseudo_extended.target.transforms import Bounds, bounds_from
from pseudo_extended.target.views import View


class PathPoint(NamedTuple):
    """What a point on the path from base to target needs: log γ_β = log_base + β · delta.

    log γ is here beside the other two, and not their sum: what uses only the target must not see the base, neither
    its rounding nor its support.
    """

    log_base: Float[Array, "*batch"]
    """log γ0(x); zero when there is no base."""
    delta: Float[Array, "*batch"]
    """Δ(x) = log γ(x) - log γ0(x)."""
    log_target: Float[Array, "*batch"]
    """log γ(x), the end of the path at β = 1."""


class PathGradients(NamedTuple):
    """The gradients of log γ0 and of Δ."""

    log_base: Float[Array, "*batch d"]
    delta: Float[Array, "*batch d"]


class Target(eqx.Module):
    """A density to sample, known up to a constant.

    `log_density` is a JAX function of a `position`: an array, a dict of arrays or any pytree of them, shaped like
    `example`. A Bayesian model that can split itself gives `log_prior` and `log_likelihood` instead, and the prior is
    then the base (and `sample_prior`, a function of a random key, draws starts from it). `base` is where a tempered
    path starts: None tempers the whole target, `Normal` and `Base` are proper densities. `example` shows the structure
    and shapes of a position (arrays, not lists); its numbers do not matter.

    `bounds` maps the name of a parameter to `(lower, upper)`, either of them None; for a position that is one plain
    array it is the pair itself. `names` names the parameters (one name for a plain array, which is otherwise `x`; a
    dict names its own). `dims` and `coords` label the axes of the output, as in ArviZ. `symmetries` are those of the
    density, `pe.permutation(…)` and `pe.sign_flip(…)`: the default method uses them as exact moves. A target made from
    a model of another library has a `view`: its position is unconstrained already, and the view shows the model's own
    parameters.

    >>> def log_density(p):
    ...     return -jnp.sum(p["theta"] ** 2) / p["tau"] - p["tau"]
    >>> target = Target(log_density, {"theta": np.zeros(3), "tau": 1.0}, bounds={"tau": (0, None)})
    >>> target.names, target.dim
    (('tau', 'theta'), 4)
    >>> target
    <Target in 4 dimensions: tau (), theta (3,)>
    """

    log_density: Callable[[PyTree], Array] | None
    log_likelihood: Callable[[PyTree], Array] | None
    base: AbstractBase | None
    bounds: tuple[Bounds | None, ...]
    example: tuple[Float[np.ndarray, "..."], ...]
    parameters: tuple[labels.Parameter, ...] = eqx.field(static=True)
    treedef: Any = eqx.field(static=True)
    coords: labels.Coords = eqx.field(static=True)
    view: View | None
    symmetries: tuple[Action, ...]

    def __init__(
        self,
        log_density: Callable[[PyTree], Array] | None = None,
        example: PyTree = None,
        *,
        log_prior: Callable[[PyTree], Array] | None = None,
        log_likelihood: Callable[[PyTree], Array] | None = None,
        sample_prior: Callable[[Any], PyTree] | None = None,
        base: AbstractBase | None = None,
        bounds: Mapping[str, Any] | tuple[Any, Any] | None = None,
        names: str | Sequence[str] | None = None,
        dims: Mapping[str, Sequence[str]] | None = None,
        coords: Mapping[str, Sequence[Any]] | None = None,
        view: View | None = None,
        symmetries: Sequence[Symmetry] | None = None,
    ):
        self.log_density, self.log_likelihood, self.base = _densities(
            log_density, log_prior, log_likelihood, sample_prior, base
        )
        paths, self.treedef = flatten_position("example", example)
        given_names = labels.parameter_names(names, [path for path, _ in paths])
        self.example = tuple(
            checks.float_array(f"example for parameter {name!r}", leaf)
            for name, (_, leaf) in zip(given_names, paths, strict=True)
        )
        shapes = {name: leaf.shape for name, leaf in zip(given_names, self.example, strict=True)}
        self.parameters = labels.label(shapes, {} if dims is None else dims)
        self.coords = labels.label_coords(self.parameters, {} if coords is None else coords)
        self.bounds = _bounds(shapes, bounds)
        self.symmetries = actions_from(symmetries, self.parameters)
        self.view = None if view is None else checks.instance("view", view, View, "the view of a model")
        if self.base is not None:
            self.base.check("base", self.dim)
        if self.dim == 0:
            raise ValueError("example must hold at least one number; got an empty position.")

    def __repr__(self) -> str:
        """Say what is sampled; the fields hold a model's compiled functions, which say nothing to a reader."""
        size = "one dimension" if self.dim == 1 else f"{self.dim} dimensions"
        shown = ", ".join(f"{parameter.name} {parameter.shape}" for parameter in self.shown)
        more = "" if self.base is None else f"; base {type(self.base).__name__}"
        more += "".join(f"; {action.describe()}" for action in self.symmetries)
        return f"<Target in {size}: {shown}{more}>"

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names, in the order of the flat vector."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def dim(self) -> int:
        """d, the length of the unconstrained vector."""
        return sum(parameter.size for parameter in self.parameters)

    @property
    def shown(self) -> tuple[labels.Parameter, ...]:
        """The parameters of the output: a model's own if the target was made from one."""
        return self.parameters if self.view is None else self.view.parameters

    @property
    def shown_coords(self) -> labels.Coords:
        """The labels of the output's axes."""
        return self.coords if self.view is None else self.view.coords

    @property
    def host_functions(self) -> list[HostFunction]:
        """The functions that are called in Python, from outside the compiled programs."""
        return [leaf for leaf in jax.tree.leaves(self) if isinstance(leaf, HostFunction)]

    @property
    def is_differentiable(self) -> bool:
        """Whether there is a gradient, as there is for every JAX function."""
        return all(function.is_differentiable for function in self.host_functions)

    def path_point(self, u: Float[Array, " d"]) -> PathPoint:
        """log γ0 and Δ at the unconstrained `u`: one evaluation of the user's functions."""
        position, log_det = self.constrain_with_log_det(u)
        log_base = jnp.zeros(()) if self.base is None else _scalar(self.base.log_density(u, position, log_det))
        if self.log_density is None:
            assert self.log_likelihood is not None
            log_likelihood = _scalar(self.log_likelihood(position))
            return PathPoint(log_base, log_likelihood, log_base + log_likelihood)
        log_target = _scalar(self.log_density(position)) + log_det
        return PathPoint(log_base, log_target - log_base, log_target)

    def path_gradients(self, u: Float[Array, " d"]) -> tuple[PathPoint, PathGradients]:
        """The same, with the gradients of log γ0 and Δ apart: they serve every β on the path."""
        self._check_vector(u)
        if self.base is None:
            log_target, gradient = jax.value_and_grad(lambda u: self.path_point(u).log_target)(u)
            return PathPoint(jnp.zeros(()), log_target, log_target), PathGradients(jnp.zeros_like(u), gradient)
        # Apart from the start: of one function with both, XLA computes the base twice.
        log_base, of_base = jax.value_and_grad(lambda u: self.path_point(u).log_base)(u)
        if self.log_density is None:
            delta, of_delta = jax.value_and_grad(lambda u: self.path_point(u).delta)(u)
            return PathPoint(log_base, delta, log_base + delta), PathGradients(of_base, of_delta)
        log_target, of_target = jax.value_and_grad(lambda u: self.path_point(u).log_target)(u)
        path = PathPoint(log_base, log_target - log_base, log_target)
        return path, PathGradients(of_base, of_target - of_base)

    def with_symmetries(self, symmetries: Sequence[Symmetry]) -> "Target":
        """The same density with symmetries declared, such as those of a model of another library, by its own names.

        >>> import pseudo_extended as pe
        >>> target = pe.Target(lambda x: -jnp.sum(x**4), np.zeros(2)).with_symmetries([pe.permutation()])
        >>> target.symmetries[0].describe()
        'permutations of 2 indices of x'
        """
        actions = actions_from(symmetries, self.parameters)
        return eqx.tree_at(lambda target: target.symmetries, self, actions)

    def with_base(self, base: AbstractBase) -> "Target":
        """The same density with another base; that of a prior and a likelihood becomes their sum."""
        if self.log_density is not None:
            return eqx.tree_at(lambda target: target.base, self, base, is_leaf=lambda leaf: leaf is None)
        prior, log_likelihood = self.base, self.log_likelihood
        assert isinstance(prior, Base)
        assert log_likelihood is not None
        whole = _Product(prior.function, log_likelihood)
        return eqx.tree_at(
            lambda target: (target.log_density, target.log_likelihood, target.base),
            self,
            (whole, None, base),
            is_leaf=lambda leaf: leaf is None,
        )

    def log_target(self, u: Float[Array, " d"]) -> Float[Array, ""]:
        """log γ on the unconstrained space; a value that is no log density (nan, +inf) is a point of density zero."""
        return zero_if_invalid(self.path_point(u).log_target)

    def constrain(self, u: Float[Array, " d"]) -> PyTree:
        """The user's position from the unconstrained vector."""
        return self.constrain_with_log_det(u)[0]

    @in_double_precision
    def unconstrain(self, position: PyTree) -> Float[Array, " d"]:
        """The unconstrained vector of a user's position, which must have the structure and shapes of the example."""
        return self._unconstrain_traced(self.leaves("position", position))

    def leaves(self, what: str, position: PyTree, batch_ndim: int = 0) -> list[Float[np.ndarray, "..."]]:
        """The arrays of `position`, checked against the example; `what` names the argument in an error."""
        paths, treedef = flatten_position(what, position)
        if treedef != self.treedef:
            raise ValueError(
                f"{what} must have the structure of the target's position, {_structure(self.names)}; "
                f"got {_structure([labels.path_name(path) or type(position).__name__ for path, _ in paths])}."
            )
        arrays = []
        for (_, leaf), parameter in zip(paths, self.parameters, strict=True):
            array = checks.float_array(f"{what} for parameter {parameter.name!r}", leaf)
            if array.shape[batch_ndim:] != parameter.shape or array.ndim < batch_ndim:
                raise ValueError(
                    f"{what} for parameter {parameter.name!r} must have shape {parameter.shape}; got {array.shape}."
                )
            arrays.append(array)
        return arrays

    def outside_bounds(self, position: PyTree) -> str | None:
        """A sentence about the first parameter of `position` that is not inside its bounds, or None."""
        for leaf, parameter, bounds in zip(
            self.leaves("position", position), self.parameters, self.bounds, strict=True
        ):
            if bounds is None:
                continue
            flat = np.ravel(leaf)
            bad = ~((flat > bounds.lower) & (flat < bounds.upper))
            if bad.any():
                i = int(np.argmax(bad))
                return (
                    f"parameter {parameter.name!r} must lie inside ({bounds.lower[i]:g}, {bounds.upper[i]:g}); "
                    f"got {flat[i]:g}"
                )
        return None

    def check_density(self, name: str, function: Callable[[PyTree], Any]) -> jnp.dtype:
        """Refuse a `function` that is not a log density of a position: one float. Its dtype, if it is."""

        def traced(position: PyTree) -> Array:
            value = function(position)
            numeric = isinstance(value, (float, int)) or getattr(getattr(value, "dtype", None), "kind", "") in "fiubcV"
            if not (numeric and isinstance(value, (jax.Array, np.ndarray, np.generic, float, int))):
                raise TypeError(f"{name} must return one float, a JAX scalar; got {checks.describe(value)}.")
            return jnp.asarray(value)

        checks.function(name, function)
        position = jax.tree.unflatten(self.treedef, [jnp.asarray(leaf) for leaf in self.example])
        try:
            value = jax.eval_shape(traced, position)
        except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as error:
            raise TypeError(
                f"{name} must be a JAX function: jax.numpy instead of numpy, and jnp.where instead of a Python `if` on "
                "its values; JAX could not trace it. Or wrap it by pe.from_numpy, which calls it as it is."
            ) from error
        if value.shape != ():
            raise ValueError(
                f"{name} must return one float, a scalar; got an array of shape {value.shape}: sum it, if its entries "
                "are the log densities of independent parts."
            )
        if not jnp.issubdtype(value.dtype, jnp.floating):
            raise TypeError(f"{name} must return a float; got {value.dtype}.")
        return value.dtype

    def draw_base(self, key: Key[Array, ""]) -> Float[Array, " d"]:
        """A draw from the base, on the unconstrained space."""
        if not (isinstance(key, Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ()):
            raise TypeError(f"key must be a key, as jax.random.key(0); got {checks.describe(key)}.")
        if self.base is None:
            raise ValueError("a draw from the base needs a base; this target has none.")
        return self.base.draw(key, self.dim, self._unconstrain_traced)

    def constrain_with_log_det(self, u: Float[Array, " d"]) -> tuple[PyTree, Float[Array, ""]]:
        """The user's position, and the log Jacobian of the bounds."""
        self._check_vector(u)
        leaves, log_det = [], jnp.zeros(())
        # Not by slices: the gradient would be a sum of padded ones, and XLA computes each of them over all of `u`.
        parts = jax.lax.split(u, [parameter.size for parameter in self.parameters])
        for parameter, bounds, flat in zip(self.parameters, self.bounds, parts, strict=True):
            if bounds is not None:
                flat, log_slope = bounds.constrain(flat)
                log_det = log_det + log_slope
            leaves.append(jnp.reshape(flat, parameter.shape))
        return jax.tree.unflatten(self.treedef, leaves), log_det

    def _check_vector(self, u: Any) -> None:
        if not isinstance(u, (np.ndarray, Array)) or u.shape != (self.dim,) or u.dtype.kind not in "fiub":
            raise TypeError(f"u must be an array of {self.dim} real numbers; got {checks.describe(u)}.")

    def _unconstrain_traced(self, position: PyTree) -> Float[Array, " d"]:
        leaves = [jnp.ravel(jnp.asarray(leaf, float)) for leaf in jax.tree.leaves(position)]
        return jnp.concatenate(
            [
                leaf if bounds is None else bounds.unconstrain(leaf)
                for leaf, bounds in zip(leaves, self.bounds, strict=True)
            ]
        )


class _Product(eqx.Module):
    """The log density of a prior times a likelihood."""

    log_prior: Callable[[PyTree], Array]
    log_likelihood: Callable[[PyTree], Array]

    def __call__(self, position: PyTree) -> Array:
        return self.log_prior(position) + self.log_likelihood(position)


def zero_if_invalid(log_density: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """The log density, with -inf for what is none: nan and +inf."""
    return jnp.where(jnp.isnan(log_density) | (log_density == jnp.inf), -jnp.inf, log_density)


def _densities(
    log_density: Any, log_prior: Any, log_likelihood: Any, sample_prior: Any, base: Any
) -> tuple[Callable[..., Any] | None, Callable[..., Any] | None, AbstractBase | None]:
    """log_density, log_likelihood and base of a target: one of the first two is None."""
    if base is not None:
        checks.instance("base", base, AbstractBase, "a base density such as pe.Normal() or pe.Base(log_density)")
    if log_density is not None:
        if log_prior is not None or log_likelihood is not None:
            raise ValueError("give either log_density, or log_prior and log_likelihood; got both.")
        if sample_prior is not None:
            raise ValueError("sample_prior goes with log_prior and log_likelihood; got it with log_density.")
        return checks.function("log_density", log_density), None, base
    if log_prior is None or log_likelihood is None:
        raise TypeError("give log_density, or both log_prior and log_likelihood; got neither in full.")
    checks.function("log_prior", log_prior)
    checks.function("log_likelihood", log_likelihood)
    if base is None:
        return None, log_likelihood, Base(log_prior, sample_prior)
    if sample_prior is not None:
        raise ValueError("sample_prior draws from the prior as base; got it together with another base.")
    return _Product(log_prior, log_likelihood), None, base


def _scalar(value: Shaped[Array, "..."]) -> Float[Array, ""]:
    """The density as a double; preflight has checked that it is a scalar."""
    return jnp.asarray(value, float).reshape(())


def flatten_position(what: str, position: PyTree) -> tuple[list[tuple[Any, Any]], Any]:
    """The leaves of a position with their paths, and its structure; `what` names the argument in an error."""
    refusal = f"{what} must be an array or a pytree of arrays; got {checks.describe(position)}."
    try:
        paths, treedef = jax.tree_util.tree_flatten_with_path(position)
    except (ValueError, TypeError) as error:  # a dict whose keys cannot be sorted
        raise TypeError(refusal) from error
    if not paths:
        raise TypeError(refusal)
    return paths, treedef


def _structure(names: Sequence[str]) -> str:
    return f"({', '.join(names)})"


def _bounds(shapes: Mapping[str, tuple[int, ...]], bounds: Any) -> tuple[Bounds | None, ...]:
    if bounds is None:
        return (None,) * len(shapes)
    if not isinstance(bounds, Mapping):
        if len(shapes) != 1:
            raise TypeError(
                f"bounds must map parameter names to (lower, upper), with names out of {list(shapes)}; "
                f"got {checks.describe(bounds)}."
            )
        bounds = dict.fromkeys(shapes, bounds)
    labels.known_names("bounds", bounds, shapes)
    made = (bounds_from(name, bounds[name], shape) if name in bounds else None for name, shape in shapes.items())
    return tuple(made)
