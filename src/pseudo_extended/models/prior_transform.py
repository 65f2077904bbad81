"""A likelihood and a prior transform, as dynesty, UltraNest, nautilus and bilby take them, as a target.

A parameter is θ = T(Φ(z)) with z normal, so the base of the path is the unit normal: normalised, smooth, and drawn from
exactly. The evidence is the integral of the likelihood over the prior, without any constant left out.

A periodic coordinate of the unit cube is the angle of two normals, u = atan2(z', z) / 2π: uniform as well, and its two
ends are neighbours.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree
from scipy.special import ndtr

from pseudo_extended import checks
from pseudo_extended.memory import check_fits
from pseudo_extended.precision import in_double_precision
from pseudo_extended.target import Target, labels
from pseudo_extended.target.host import HostFunction, check_pool, said
from pseudo_extended.target.views import Facts, View

BYTES_PER_COORDINATE = 1024
"""Of a target, at least: vectors of doubles in every particle, and the names."""

LOWEST, HIGHEST = float(np.finfo(float).tiny), 1 - 2.0**-53
"""The doubles next to the faces of the unit cube: Φ(z) rounds to 1 from z = 8.3 on, where a quantile is infinite."""


@in_double_precision
def from_prior_transform(
    log_likelihood: Callable[[Any], Any],
    prior_transform: Callable[[Any], Any],
    ndim: int | None = None,
    *,
    names: Sequence[str] | None = None,
    periodic: Sequence[str | int] | None = None,
    vectorised: bool = False,
    pool: Any = None,
) -> Target:
    """The target of a log likelihood and a prior transform: the interface of dynesty, UltraNest, nautilus and bilby.

    `result.log_evidence` is then the evidence that nested samplers compute. Functions that JAX can trace are compiled,
    and sampled with gradients. NumPy functions are called as they are, and sampled by random walks.

    Args:
        log_likelihood: A function of the vector of parameters that returns a float.
        prior_transform: A function of a vector in the unit cube that returns the vector of parameters. It may return
            more parameters than the cube has dimensions, as UltraNest allows for derived ones.
        ndim: The dimension of the unit cube; the number of names unless given.
        names: A name for each parameter; unless given they are one vector, `theta`.
        periodic: Names (or numbers, as in dynesty) of the parameters whose coordinate in the unit cube wraps around.
        vectorised: Whether both functions take many points at once, one in each row. Only for NumPy functions: those of
            JAX are vectorised by JAX.
        pool: A pool of processes for slow NumPy functions, as for `pe.from_numpy`.

    >>> import pseudo_extended as pe
    >>> def log_likelihood(theta):                            # eighteen equal modes, log Z = 235.856
    ...     return (2 + jnp.prod(jnp.cos(theta / 2))) ** 5
    >>> target = pe.from_prior_transform(log_likelihood, lambda u: 10 * jnp.pi * u, names=["x", "y"])
    >>> target.dim, [parameter.name for parameter in target.shown]
    (2, ['x', 'y'])
    >>> wrapped = pe.from_prior_transform(log_likelihood, lambda u: 10 * jnp.pi * u, names=["x", "y"], periodic=["x"])
    >>> wrapped.dim                                            # an angle is two normals
    3
    """
    checks.function("log_likelihood", log_likelihood)
    checks.function("prior_transform", prior_transform)
    checks.choice("vectorised", vectorised, (True, False))
    check_pool(pool, vectorised)
    ndim = _dimension(ndim, names)
    cube = UnitCube(ndim, _periodic(periodic, names, ndim))
    num_parameters, on_host = _try_out(log_likelihood, prior_transform, ndim, vectorised)
    parameters = _parameters(names, num_parameters)
    likelihood: Any
    if on_host:
        likelihood = TransformedDensity(log_likelihood, prior_transform, cube, vectorised=vectorised, pool=pool)
        show = _HostShower(prior_transform, cube, parameters, vectorised=vectorised)
    else:
        likelihood = TransformedLikelihood(log_likelihood, prior_transform, cube)
        show = _Shower(prior_transform, cube, parameters)
    view = View(
        function=show,
        parameters=parameters,
        free=tuple(parameter.name for parameter in parameters),
        coords=(),
        unconstrain=_no_way_back,
        facts=Facts(origin="a prior transform"),
        on_host=on_host,
    )
    return Target(
        log_prior=_log_normal,
        log_likelihood=likelihood,
        sample_prior=_NormalSampler(cube.dim),
        example=np.zeros(cube.dim),
        names="z",
        view=view,
    )


class UnitCube(eqx.Module):
    """A map from unit normals to the unit cube: Φ of each, and for a periodic coordinate the angle of two."""

    ndim: int = eqx.field(static=True)
    periodic: tuple[int, ...] = eqx.field(static=True)

    @property
    def dim(self) -> int:
        """Normals that are needed."""
        return self.ndim + len(self.periodic)

    def __call__(self, z: Float[Array, " d"]) -> Float[Array, " ndim"]:
        """One point, strictly inside."""
        u = jax.scipy.special.ndtr(z[: self.ndim])
        if self.periodic:
            which = np.array(self.periodic)
            u = u.at[which].set(jnp.arctan2(z[self.ndim :], z[which]) / (2 * jnp.pi) % 1.0)
        return jnp.clip(u, LOWEST, HIGHEST)

    def many(self, z: Float[np.ndarray, "*batch d"]) -> Float[np.ndarray, "*batch ndim"]:
        """The same for many points, in NumPy."""
        u = np.asarray(ndtr(z[..., : self.ndim]))
        if self.periodic:
            which = np.array(self.periodic)
            u[..., which] = np.arctan2(z[..., self.ndim :], z[..., which]) / (2 * np.pi) % 1.0
        return np.clip(u, LOWEST, HIGHEST)


class TransformedLikelihood(eqx.Module):
    """log L(T(Φ(z))) for JAX functions."""

    log_likelihood: Callable[[Any], Any]
    prior_transform: Callable[[Any], Any]
    cube: UnitCube

    def __call__(self, z: Float[Array, " d"]) -> Array:
        """The value at unit normals."""
        return jnp.asarray(self.log_likelihood(jnp.asarray(self.prior_transform(self.cube(z)))))


class TransformedDensity(HostFunction):
    """log L(T(Φ(z))) for NumPy functions."""

    name = "log_likelihood"
    is_differentiable = False

    def __init__(self, log_likelihood: Any, prior_transform: Any, cube: UnitCube, *, vectorised: bool, pool: Any):
        super().__init__()
        self.value = partial(_value, log_likelihood, prior_transform, cube)
        self.vectorised, self.pool = vectorised, pool

    def compute(
        self, points: Float[np.ndarray, "point d"], like: PyTree, *, gradient: bool
    ) -> Float[np.ndarray, "point answer"]:
        """All points at once if both functions are vectorised; nan where one of them raises."""
        del like
        if not self.vectorised:
            return self.one_by_one(points, self.value, gradient=gradient)
        try:
            return np.asarray(self.value(points), float).reshape(len(points), 1)
        except Exception as error:
            self.failed(error)
            return np.full((len(points), 1), np.nan)


def _value(log_likelihood: Any, prior_transform: Any, cube: UnitCube, points: Float[np.ndarray, "*batch d"]) -> Any:
    return log_likelihood(prior_transform(cube.many(points)))


class _NormalSampler(eqx.Module):
    """Unit normals from a random key."""

    dim: int = eqx.field(static=True)

    def __call__(self, key: Any) -> Float[Array, " d"]:
        return jax.random.normal(key, (self.dim,), dtype=float)


class _Shower(eqx.Module):
    """The parameters at one position, by name, in JAX."""

    prior_transform: Callable[[Any], Any]
    cube: UnitCube
    parameters: tuple[labels.Parameter, ...] = eqx.field(static=True)

    def __call__(self, z: Float[Array, " d"]) -> dict[str, Array]:
        return _by_name(jnp.asarray(self.prior_transform(self.cube(z)), float), self.parameters)


class _HostShower:
    """The parameters at many points, by name, in NumPy; nan where the transform raises."""

    def __init__(
        self, prior_transform: Any, cube: UnitCube, parameters: tuple[labels.Parameter, ...], *, vectorised: bool
    ):
        self.prior_transform, self.cube, self.parameters = prior_transform, cube, parameters
        self.vectorised = vectorised

    def __call__(self, flat: Float[np.ndarray, "point d"]) -> dict[str, Any]:
        u = self.cube.many(flat)
        if self.vectorised:
            return _by_name(np.asarray(self.prior_transform(u), float), self.parameters)
        rows = np.full((len(u), sum(parameter.size for parameter in self.parameters)), np.nan)
        for row, point in zip(rows, u, strict=True):
            try:
                row[:] = self.prior_transform(point)
            except Exception:  # a point of weight zero may be one that the transform does not know
                continue
        return _by_name(rows, self.parameters)


def _by_name(theta: Any, parameters: tuple[labels.Parameter, ...]) -> dict[str, Any]:
    if len(parameters) == 1 and parameters[0].shape:
        return {parameters[0].name: theta}
    return {parameter.name: theta[..., i] for i, parameter in enumerate(parameters)}


def _log_normal(z: Float[Array, " d"]) -> Float[Array, ""]:
    """The log density of unit normals, with its constant: the evidence is exact."""
    return -0.5 * jnp.sum(z**2) - 0.5 * z.shape[0] * np.log(2 * np.pi)


def _no_way_back(values: Any) -> Any:
    raise ValueError("a prior transform has no inverse, so leave init out: starts are drawn from the prior")


def _dimension(ndim: Any, names: Any) -> int:
    if names is not None and (isinstance(names, str) or not isinstance(names, Sequence) or not names):
        raise TypeError(f"names must be a list of names, one for each parameter; got {checks.describe(names)}.")
    if ndim is None:
        if names is None:
            raise TypeError("give ndim, the dimension of the unit cube, or names, one for each parameter; got neither.")
        return len(names)
    count = checks.integer("ndim", ndim, minimum=1)
    check_fits("ndim", count, BYTES_PER_COORDINATE * count)
    return count


def _periodic(periodic: Any, names: Any, ndim: int) -> tuple[int, ...]:
    """The coordinates of the unit cube that wrap around."""
    if periodic is None:
        return ()
    given = [periodic] if isinstance(periodic, (str, int)) else checks.entries("periodic", periodic)
    known = list(names[:ndim]) if names is not None else []
    found = []
    for entry in given:
        if isinstance(entry, str) and entry in known:
            found.append(known.index(entry))
        elif isinstance(entry, (int, np.integer)) and not isinstance(entry, bool) and 0 <= entry < ndim:
            found.append(int(entry))
        else:
            allowed = f"names out of {known}, or numbers" if known else "numbers"
            raise ValueError(f"periodic must hold {allowed} from 0 to {ndim - 1}; got {checks.describe(entry)}.")
    return tuple(sorted(set(found)))


def _parameters(names: Any, num_parameters: int) -> tuple[labels.Parameter, ...]:
    if names is None:
        return labels.label({"theta": (num_parameters,)}, {})
    if len(names) != num_parameters:
        raise ValueError(
            f"names must be one for each of the {num_parameters} parameters that prior_transform returns; "
            f"got {len(names)}."
        )
    return labels.label(dict.fromkeys(labels.parameter_names(list(names), [()] * num_parameters), ()), {})


def _try_out(log_likelihood: Any, prior_transform: Any, ndim: int, vectorised: bool) -> tuple[int, bool]:
    """How many parameters there are, and whether the functions must be called in Python.

    Whatever JAX says when it traces a function (that arrays cannot be assigned to, that a value is not known), the
    function may be one of NumPy: it is called once, in the middle of the prior.
    """
    middle = np.full(ndim, 0.5)
    reason = "vectorised=True is for NumPy functions"
    if not vectorised:
        traced = "prior_transform"
        try:
            theta = jax.eval_shape(lambda u: jnp.asarray(prior_transform(u), float), middle)
            traced = "log_likelihood"
            value = jax.eval_shape(lambda t: jnp.asarray(log_likelihood(t), float), theta)
        except Exception as error:
            theta, value, reason = None, None, f"{traced} raised {said(error)}"
        if theta is not None and value is not None:
            _check_shapes(theta.shape, value.shape, ())
            return theta.shape[0], False
    batch = (2,) if vectorised else ()
    u = np.tile(middle, (2, 1)) if vectorised else middle
    made = _call("prior_transform", prior_transform, u.copy())
    value = _call("log_likelihood", log_likelihood, np.asarray(made))
    if isinstance(made, jax.Array) or isinstance(value, jax.Array):
        raise TypeError(
            "log_likelihood and prior_transform must be JAX functions that JAX can trace (jnp.where instead of a "
            "Python `if` on values, jax.scipy instead of scipy), or both NumPy functions; one of them returns JAX "
            f"arrays and cannot be traced: {reason}."
        )
    _check_shapes(np.shape(made), np.shape(value), batch)
    return np.shape(made)[-1], True


def _call(name: str, function: Any, argument: np.ndarray) -> Any:
    try:
        return function(argument)
    except Exception as error:
        raise TypeError(
            f"{name} must be a function of one vector (of many, in rows, if vectorised); called in the middle of the "
            f"prior it raised {said(error)}."
        ) from error


def _check_shapes(theta: tuple[int, ...], value: tuple[int, ...], batch: tuple[int, ...]) -> None:
    if theta[:-1] != batch or len(theta) != len(batch) + 1:
        expected = "a row for each point" if batch else "one vector"
        raise ValueError(f"prior_transform must return {expected}; got shape {theta}.")
    if value != batch and int(np.prod(value)) != int(np.prod(batch)):
        expected = "one float for each point" if batch else "one float"
        raise ValueError(f"log_likelihood must return {expected}; got shape {value}.")
