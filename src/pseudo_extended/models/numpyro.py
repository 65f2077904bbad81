"""NumPyro models as targets, through its effect handlers.

A position is a dict of the continuous latent sites on the unconstrained space. Latent sites are the prior, with the
Jacobians of their supports; observed sites and factors are the likelihood. Where the prior is improper, scaled or
masked, or discrete sites are summed out, there is no split, and the density is one.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from pseudo_extended import checks
from pseudo_extended.optional import require
from pseudo_extended.precision import in_double_precision
from pseudo_extended.target import Target, labels
from pseudo_extended.target.views import Facts, View


@in_double_precision
def from_numpyro(
    model: Callable[..., Any],
    *args: Any,
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Sequence[Any]] | None = None,
    **kwargs: Any,
) -> Target:
    """The target of a NumPyro model, called with `args` and `kwargs`.

    Plates name the axes of the output; `dims` and `coords` add to them, as in ArviZ. (A model whose own arguments have
    one of these names is given by `functools.partial`.) The prior is the base of the path where the model splits.
    Discrete latent sites are summed out where NumPyro can enumerate them.

    >>> import numpyro, numpyro.distributions as dist, pseudo_extended as pe
    >>> def model(y):
    ...     mu = numpyro.sample("mu", dist.Normal(0, 10))
    ...     sigma = numpyro.sample("sigma", dist.HalfNormal(5))
    ...     with numpyro.plate("place", len(y)):
    ...         numpyro.sample("y", dist.Normal(mu, sigma), obs=y)
    >>> target = pe.from_numpyro(model, np.array([1.0, 2.0, 4.0]))
    >>> target.dim, target.base.can_sample, [parameter.name for parameter in target.shown]
    (2, True, ['mu', 'sigma'])
    """
    checks.function("model", model)
    _check_arguments(model, args, kwargs)
    library = _Library()
    bound = _Bound(partial(model, *args, **kwargs), library)
    trace, is_proper = bound.first_trace()
    sites = _sort(trace, library)
    has_discrete = _check_sites(sites, trace, library)
    names, split = tuple(sites.latent), is_proper and not has_discrete and not _bent(sites.latent)
    split = split and bool(sites.observed or sites.factors)
    example = {name: np.asarray(library.to_unconstrained(site)) for name, site in sites.latent.items()}
    shown, notes = _shown(bound, trace, sites, example, has_discrete)
    facts = _facts(bound, trace, sites, is_proper, has_discrete, split, notes, dims, coords)
    shapes = {name: np.shape(value) for name, value in shown.items()}
    given = {} if dims is None else dict(dims)
    labels.known_names("dims", given, shapes | dict.fromkeys(sites.observed))
    named = {name: _axes(trace[name], given.get(name)) for name in shapes}
    parameters = labels.label(shapes, {name: axes for name, axes in named.items() if axes is not None})
    used = {axis for parameter in parameters for axis in parameter.dims}
    known = {} if coords is None else dict(coords)
    view = View(
        function=bound.shower(tuple(shapes)),
        parameters=parameters,
        free=names,
        coords=labels.label_coords(parameters, {axis: known[axis] for axis in known if axis in used}),
        unconstrain=bound.unconstrain,
        facts=facts,
    )
    if not split:
        return Target(bound.whole(has_discrete, trace), example, view=view)
    return Target(
        log_prior=bound.part(sites.latent, prior=True),
        log_likelihood=bound.part(sites.latent, prior=False),
        sample_prior=bound.draw_prior,
        example=example,
        view=view,
    )


class _Sites(NamedTuple):
    """The sites of a trace, by what they are."""

    latent: dict[str, Any]
    """Continuous."""
    discrete: dict[str, Any]
    observed: dict[str, Any]
    factors: dict[str, Any]


class _Library:
    """What is used of NumPyro."""

    def __init__(self) -> None:
        what = "from_numpyro"
        self.package = require("numpyro", "numpyro", what)
        self.handlers = require("numpyro.handlers", "numpyro", what)
        self.util = require("numpyro.infer.util", "numpyro", what)
        self.initialisation = require("numpyro.infer.initialization", "numpyro", what)
        self.distributions = require("numpyro.distributions", "numpyro", what)

    def to_unconstrained(self, site: Any) -> Array:
        """The value of a site, on the unconstrained space."""
        with self.util.helpful_support_errors(site):
            return self.distributions.biject_to(site["fn"].support).inv(site["value"])


def _check_arguments(model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    try:
        inspect.signature(model).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"model must take the arguments that are given after it: {error}.") from None
    except ValueError:  # some built-in functions have no signature
        pass


class _Bound:
    """A model with its arguments: functions of a position."""

    def __init__(self, model: Callable[[], Any], library: _Library):
        self.library = library
        # Everything latent is substituted; the key is for what else a model may draw, such as a dropout.
        self.model = library.handlers.seed(model, jax.random.key(0, impl="threefry2x32"))
        self.unseeded = model

    def first_trace(self) -> tuple[dict[str, Any], bool]:
        """A trace at a draw from the prior, and whether there is one to draw from."""
        handlers = self.library.handlers
        try:
            return handlers.trace(self.model).get_trace(), True
        except NotImplementedError:  # ImproperUniform and the like
            start = self.library.initialisation.init_to_uniform
            return handlers.trace(handlers.substitute(self.model, substitute_fn=start)).get_trace(), False

    def part(self, latent: Mapping[str, Any], *, prior: bool) -> Callable[[PyTree], Array]:
        """The prior, with the Jacobians; or what is left, the likelihood and the factors."""
        names = {*latent, *(f"_{name}_log_det" for name in latent)}

        def log_density(position: PyTree) -> Array:
            log_probs = self.log_probs(position)
            return sum((jnp.sum(log_probs[name]) for name in log_probs if (name in names) == prior), jnp.zeros(()))

        return log_density

    def whole(self, enumerates: bool, trace: Any) -> Callable[[PyTree], Array]:
        """All of it, with discrete sites summed out."""
        if not enumerates:
            return lambda position: sum((jnp.sum(part) for part in self.log_probs(position).values()), jnp.zeros(()))
        funsor = require("numpyro.contrib.funsor", "funsor", "summing out discrete sites of a NumPyro model")
        frames = (frame.dim for site in trace.values() for frame in site.get("cond_indep_stack", ()))
        nesting = -min((dim for dim in frames if dim is not None), default=0)
        model = funsor.enum(funsor.config_enumerate(self.model), -nesting - 1)
        return lambda position: -self.library.util.potential_energy(model, (), {}, position, enum=True)

    def log_probs(self, position: PyTree, *, summed: bool = True) -> dict[str, Array]:
        """The log density of every site, those that hold Jacobians among them."""
        util = self.library.util
        substitute = self.library.handlers.substitute
        model = substitute(self.model, substitute_fn=partial(util._unconstrain_reparam, position))
        return util.compute_log_probs(model, (), {}, {}, sum_log_prob=summed)[0]

    def draw_prior(self, key: Any) -> PyTree:
        """A draw of the latent sites, on the unconstrained space."""
        handlers = self.library.handlers
        trace = handlers.trace(handlers.seed(self.unseeded, key)).get_trace()
        latent = _sort(trace, self.library).latent
        return {name: self.library.to_unconstrained(site) for name, site in latent.items()}

    def shower(self, names: tuple[str, ...], key: Any = None) -> Callable[[PyTree], dict[str, Array]]:
        """What the user sees of a position."""
        model = self.model if key is None else self.library.handlers.seed(self.unseeded, key)

        def show(position: PyTree) -> dict[str, Array]:
            values = self.library.util.constrain_fn(model, (), {}, position, return_deterministic=True)
            return {name: jnp.asarray(values[name], float) for name in names}

        return show

    def unconstrain(self, values: Mapping[str, np.ndarray]) -> PyTree:
        """The way back, for starts."""
        handlers = self.library.handlers
        trace = handlers.trace(handlers.substitute(self.model, data=dict(values))).get_trace()
        return {name: self.library.to_unconstrained(trace[name]) for name in values}

    def pointwise(self, names: Sequence[str]) -> Callable[[PyTree], dict[str, Array]]:
        """The log likelihood of every observation."""

        def log_likelihood(position: PyTree) -> dict[str, Array]:
            log_probs = self.log_probs(position, summed=False)
            return {name: log_probs[name] for name in names}

        return log_likelihood


def _sort(trace: Any, library: _Library) -> _Sites:
    sites = _Sites({}, {}, {}, {})
    for name, site in trace.items():
        if site["type"] != "sample":
            continue
        if site["is_observed"]:
            is_factor = isinstance(site["fn"], library.distributions.Unit)
            (sites.factors if is_factor else sites.observed)[name] = site
        else:
            (sites.discrete if site["fn"].support.is_discrete else sites.latent)[name] = site
    return sites


def _check_sites(sites: _Sites, trace: Any, library: _Library) -> bool:
    """Refuse what cannot be sampled; whether there are discrete sites to sum out."""
    for name, site in trace.items():
        if site["type"] == "plate" and site["args"][1] not in (None, site["args"][0]):
            size, part = site["args"]
            raise ValueError(
                f"plate {name!r} must not be subsampled: it takes {part} of {size} at random, and then the density is "
                "another at every call. Give it all its data, without subsample_size."
            )
        if site["type"] == "param":
            raise ValueError(
                f"site {name!r} is a numpyro.param, which has no prior and is optimised rather than sampled: make it a "
                "sample site, or fix it with numpyro.handlers.substitute."
            )
    for name, site in sites.latent.items():
        if isinstance(site["fn"], library.distributions.Delta):
            raise ValueError(f"site {name!r} has a delta distribution: use numpyro.deterministic for it.")
    impossible = [name for name, site in sites.discrete.items() if not site["fn"].has_enumerate_support]
    if impossible:
        raise ValueError(
            f"discrete latent site {', '.join(map(repr, impossible))} cannot be summed out by NumPyro: gradients and "
            "temperatures need continuous parameters. Marginalise it by hand, for instance as a mixture."
        )
    if not sites.latent:
        raise ValueError("model must have at least one continuous latent site; it has none.")
    return bool(sites.discrete)


def _bent(latent: Mapping[str, Any]) -> bool:
    """Whether scales or masks make the prior something else than what is drawn."""
    scaled = any(site["scale"] is not None and np.any(np.asarray(site["scale"]) != 1) for site in latent.values())
    return scaled or any(type(site["fn"]).__name__ == "MaskedDistribution" for site in latent.values())


def _shown(
    bound: _Bound, trace: Any, sites: _Sites, example: PyTree, has_discrete: bool
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Latent and deterministic sites at one position; those that depend on a discrete one are left out."""
    names = [name for name in trace if name in sites.latent or trace[name]["type"] == "deterministic"]
    names = [name for name in names if np.asarray(trace[name]["value"]).dtype.kind in "fiub"]
    shown = {name: np.asarray(value) for name, value in bound.shower(tuple(names))(example).items()}
    if not has_discrete:
        return shown, []
    keys = jax.random.split(jax.random.key(1, impl="threefry2x32"), 8)
    again = [bound.shower(tuple(names), key)(example) for key in keys]
    random = [name for name in names if any(np.any(np.asarray(other[name]) != shown[name]) for other in again)]
    notes = [f"discrete sites {', '.join(sites.discrete)} are summed out."]
    if random:
        notes.append(
            f"{', '.join(random)} depend on them, and are not shown; Predictive(infer_discrete=True) draws them."
        )
    return {name: value for name, value in shown.items() if name not in random}, notes


def _facts(
    bound: _Bound,
    trace: Any,
    sites: _Sites,
    is_proper: bool,
    has_discrete: bool,
    split: bool,
    notes: list[str],
    dims: Mapping[str, Sequence[str]] | None,
    coords: Mapping[str, Sequence[Any]] | None,
) -> Facts:
    if split and sites.factors:
        notes.append(
            f"factors ({', '.join(sites.factors)}) count as likelihood: the base of the path is the prior alone."
        )
    if not is_proper:
        notes.append("the prior is improper, so it cannot be the base of the path; one is learned.")
    axes = {name: _axes(site, (dims or {}).get(name)) for name, site in sites.observed.items()}
    return Facts(
        origin=f"numpyro {bound.library.package.__version__}",
        observed_data={name: np.asarray(site["value"]) for name, site in sites.observed.items()},
        dims={name: names for name, names in axes.items() if names is not None},
        coords=dict(coords or {}),
        pointwise=None if has_discrete or not sites.observed else bound.pointwise(tuple(sites.observed)),
        start=bound.draw_prior if is_proper else _middle(bound, sites),
        notes=tuple(notes),
    )


def _middle(bound: _Bound, sites: _Sites) -> PyTree:
    """The middle of a bound: a start around zero on the unconstrained space, where no prior can be drawn from."""
    return {name: np.zeros(np.shape(bound.library.to_unconstrained(site))) for name, site in sites.latent.items()}


def _axes(site: Any, given: Sequence[str] | None) -> tuple[str, ...] | None:
    """The names of a site's axes: as given, or its plates; None where there is nothing to say."""
    if given is not None:
        return tuple(given)
    if site["type"] != "sample":
        return None
    shape, event = np.shape(site["value"]), len(site["fn"].event_shape)
    names = [f"{site['name']}_dim_{i}" for i in range(len(shape))]
    for frame in site["cond_indep_stack"]:
        axis = len(shape) - event + (frame.dim or 0)
        if frame.dim is not None and 0 <= axis < len(shape) and shape[axis] == frame.size:
            names[axis] = frame.name
    return tuple(names)
