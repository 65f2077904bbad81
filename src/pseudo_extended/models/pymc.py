"""PyMC models as targets, through PyTensor's translation to JAX.

A position is a dict of the free variables on the unconstrained space, by their own names. The free variables are the
prior, with the Jacobians of their transforms; observed variables and Potentials are the likelihood. A model that
PyTensor cannot translate is called in Python.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from pseudo_extended.models.pymc_library import PymcLibrary
from pseudo_extended.models.pymc_on_host import CompiledDensity, compiled_view
from pseudo_extended.precision import in_double_precision
from pseudo_extended.target import Target, labels
from pseudo_extended.target.host import said
from pseudo_extended.target.views import Facts, View

NUM_STARTS = 64
"""Draws of the prior to start from, where JAX cannot draw from it."""
IMPROPER = ("FlatRV", "HalfFlatRV")


@in_double_precision
def from_pymc(model: Any) -> Target:
    """The target of a PyMC model: its free variables, its transforms, dims, coords and deterministics.

    Data are read once, here: after `pm.set_data`, make the target anew. The prior is the base of the path where it is
    proper; where it can be drawn from in JAX, starts and refreshment come from it.

    >>> import pymc as pm, pseudo_extended as pe
    >>> with pm.Model(coords={"place": ["a", "b", "c"]}) as model:
    ...     mu = pm.Normal("mu", 0, 10)
    ...     sigma = pm.HalfNormal("sigma", 5)
    ...     y = pm.Normal("y", mu, sigma, observed=[1.0, 2.0, 4.0], dims="place")
    >>> target = pe.from_pymc(model)
    >>> target.dim, target.base.can_sample, [parameter.name for parameter in target.shown]
    (2, True, ['mu', 'sigma'])
    """
    library = PymcLibrary()
    if not isinstance(model, library.pymc.Model):
        raise TypeError(f"model must be a pymc.Model; got {type(model).__name__}.")
    _check(model, library)
    names = [rv.name for rv in model.free_RVs]
    point = model.initial_point(random_seed=0)
    example = {rv.name: np.asarray(point[model.rvs_to_values[rv].name], np.float64) for rv in model.free_RVs}
    shown_vars = [*model.free_RVs, *model.deterministics]
    shown_names = tuple(variable.name for variable in shown_vars)
    is_proper = not any(type(rv.owner.op).__name__ in IMPROPER for rv in model.free_RVs)
    sample_prior = _prior_sampler(library, model, names) if is_proper else None
    starts = example if sample_prior is not None else _starts(library, model, example)
    try:
        log_prior, log_likelihood = _translate(library, model, names, example)
        seen = library.in_jax(model.value_vars, model.replace_rvs_by_values(shown_vars))
    except (NotImplementedError, TypeError, ValueError, jax.errors.JAXTypeError) as error:
        return _called_in_python(library, model, example, shown_names, starts, error)

    def show(position: PyTree) -> dict[str, Array]:
        values = seen(*(position[name] for name in names))
        return {name: jnp.asarray(value, float) for name, value in zip(shown_names, values, strict=True)}

    has_likelihood = bool(model.observed_RVs or model.potentials)
    notes = _notes(model, is_proper, has_likelihood, sample_prior is not None)
    seen_shapes = jax.eval_shape(show, example)
    shapes = {name: seen_shapes[name].shape for name in shown_names}
    view = _view(library, model, show, shapes, names, notes, starts)
    if not (is_proper and has_likelihood):
        if not has_likelihood:
            return Target(log_prior, example, view=view)
        return Target(lambda position: log_prior(position) + log_likelihood(position), example, view=view)
    return Target(
        log_prior=log_prior, log_likelihood=log_likelihood, sample_prior=sample_prior, example=example, view=view
    )


def _check(model: Any, library: PymcLibrary) -> None:
    discrete = [rv.name for rv in model.free_RVs if rv.dtype not in library.continuous]
    if discrete:
        raise ValueError(
            f"discrete free variable {', '.join(map(repr, discrete))} cannot be sampled: gradients and temperatures "
            "need continuous parameters. Marginalise it, for instance as pm.Mixture, or with "
            f"pymc_extras.marginalize(model, {discrete})."
        )
    if not model.free_RVs:
        raise ValueError("model must have at least one free variable; it has none.")
    if library.draws_at_random([model.logp()]):
        raise ValueError(
            "model must not use pm.Minibatch or draw at random inside its density: the density is then another at "
            "every call. Give it all its data."
        )


def _translate(
    library: PymcLibrary, model: Any, names: Sequence[str], example: PyTree
) -> tuple[Callable[[PyTree], Array], Callable[[PyTree], Array]]:
    """log_prior and log_likelihood in JAX, tried on the example."""

    def density(graph: Any) -> Callable[[PyTree], Array]:
        function = library.in_jax(model.value_vars, [graph])
        return lambda position: jnp.asarray(function(*(position[name] for name in names))[0], float).reshape(())

    parts = density(model.varlogp), density(model.datalogp)
    for part in parts:
        jax.eval_shape(jax.grad(part), {name: jnp.asarray(value) for name, value in example.items()})
    return parts


def _prior_sampler(library: PymcLibrary, model: Any, names: Sequence[str]) -> Callable[[Any], PyTree] | None:
    """Draws of the prior in JAX, on the unconstrained space; None where there are none.

    PyTensor cannot translate some distributions; and a transform that the user chose may restrict the density but not
    the draws (`ordered` does), which shows in draws that are not finite.
    """
    try:
        sampler = library.sampler_in_jax(library.forward(model, model.free_RVs))

        def sample_prior(key: Any) -> PyTree:
            return {name: jnp.asarray(value, float) for name, value in zip(names, sampler(key), strict=True)}

        keys = jax.random.split(jax.random.key(0, impl="threefry2x32"), NUM_STARTS)
        draws = jax.jit(jax.vmap(sample_prior))(keys)
    except Exception:  # PyTensor raises what it likes for what it cannot translate
        return None
    return sample_prior if all(np.all(np.isfinite(leaf)) for leaf in draws.values()) else None


def _starts(library: PymcLibrary, model: Any, example: PyTree) -> PyTree:
    """A batch of draws from the prior, by PyMC itself; where it cannot, its initial point."""
    try:
        graphs = library.forward(model, model.free_RVs)
        drawn = library.pymc.draw(graphs, draws=NUM_STARTS, random_seed=0, mode="FAST_COMPILE")
    except Exception:  # a prior without draws, such as pm.Flat
        return example
    batch = {rv.name: np.asarray(values, np.float64) for rv, values in zip(model.free_RVs, drawn, strict=True)}
    return batch if all(np.all(np.isfinite(values)) for values in batch.values()) else example


def _notes(model: Any, is_proper: bool, has_likelihood: bool, can_sample: bool) -> tuple[str, ...]:
    notes = []
    if model.potentials:
        names = ", ".join(potential.name for potential in model.potentials)
        notes.append(
            f"Potentials ({names}) count as likelihood: the base of the path is the prior without them, and draws of "
            "the prior ignore them, as PyMC's own do."
        )
    if not is_proper:
        notes.append("the prior is improper (Flat), so it cannot be the base of the path; one is learned.")
    elif has_likelihood and not can_sample:
        notes.append("the prior has no draws that JAX can make and that fit its transforms: it is not tried as a base.")
    return tuple(notes)


def _view(
    library: PymcLibrary,
    model: Any,
    show: Callable[..., Any],
    shapes: Mapping[str, tuple[int, ...]],
    names: Sequence[str],
    notes: tuple[str, ...],
    starts: PyTree,
    *,
    on_host: bool = False,
) -> View:
    dims = {
        name: tuple(axis or f"{name}_dim_{i}" for i, axis in enumerate(axes))
        for name, axes in model.named_vars_to_dims.items()
    }
    coords = {axis: _labels(values) for axis, values in model.coords.items() if values is not None}
    parameters = labels.label(shapes, {name: dims[name] for name in shapes if name in dims})
    sizes = {axis: size for part in parameters for axis, size in zip(part.dims, part.shape, strict=True)}
    back = library.way_back(model)
    facts = Facts(
        origin=f"pymc {library.pymc.__version__}",
        observed_data=library.observed_data(model),
        constant_data=library.constant_data(model),
        dims=dims,
        coords=coords,
        pointwise=None if on_host or not model.observed_RVs else _pointwise(library, model, names),
        start=starts,
        notes=notes,
    )
    return View(
        function=show,
        parameters=parameters,
        free=tuple(names),
        coords=labels.label_coords(parameters, {axis: coords[axis] for axis in coords if axis in sizes}),
        unconstrain=lambda values: dict(zip(names, back(*(jnp.asarray(values[name]) for name in names)), strict=True)),
        facts=facts,
        on_host=on_host,
    )


def _pointwise(library: PymcLibrary, model: Any, names: Sequence[str]) -> Callable[[PyTree], dict[str, Array]]:
    observed = [rv.name for rv in model.observed_RVs]
    function = library.in_jax(model.value_vars, model.logp(vars=model.observed_RVs, sum=False))

    def log_likelihood(position: PyTree) -> dict[str, Array]:
        return dict(zip(observed, function(*(position[name] for name in names)), strict=True))

    return log_likelihood


def _called_in_python(
    library: PymcLibrary, model: Any, example: PyTree, shown: Sequence[str], starts: PyTree, error: Exception
) -> Target:
    """A model with an operation that JAX has not: compiled by PyTensor itself, and called from outside."""
    density = CompiledDensity(library, model)
    show, shapes = compiled_view(library, model, example, shown)
    notes = (f"PyTensor cannot translate the model to JAX ({said(error)}): it is called in Python.",)
    names = [rv.name for rv in model.free_RVs]
    view = _view(library, model, show, shapes, names, notes, starts, on_host=True)
    return Target(density, example, view=view)


def _labels(values: Sequence[Any]) -> list[Any]:
    """Labels that the output can hold; anything unusual as its text."""
    plain = (str, int, float, np.generic, np.datetime64)
    return [value if isinstance(value, plain) or hasattr(value, "isoformat") else str(value) for value in values]
