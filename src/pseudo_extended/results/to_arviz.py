"""ArviZ objects, for both of its lines: InferenceData (0.23) and xarray.DataTree (1.x)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from pseudo_extended import checks
from pseudo_extended.memory import check_fits
from pseudo_extended.optional import require
from pseudo_extended.precision import in_double_precision
from pseudo_extended.results.doubts import evidence_attributes
from pseudo_extended.target import Target
from pseudo_extended.target.labels import made_up_axes
from pseudo_extended.target.views import Facts, map_in_batches
from pseudo_extended.weights import log_normalise

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

PRIOR_DRAWS = 500
COPIES_OF_PRIOR = 4
"""Of its draws: keys, coordinates, and what is shown of them."""


class Group(NamedTuple):
    """Arrays of one group, and the names of their axes after the leading ones."""

    arrays: Mapping[str, np.ndarray]
    dims: Mapping[str, Sequence[str]]
    leading: tuple[str, ...] = ("chain", "draw")


def result_to_arviz(result: "Result", *, seed: int, log_likelihood: bool, prior: int | None) -> Any:
    """The groups of a result; see `Result.to_arviz`."""
    target = result.target
    facts = None if target.view is None else target.view.facts
    checks.choice("log_likelihood", log_likelihood, (True, False))
    posterior = dict(zip(_names(target), jax.tree.leaves(result.resample(seed=seed)), strict=True))
    pointwise = {}
    if log_likelihood:
        pointwise = _pointwise(result, facts, posterior, seed)
    moved = () if facts is None else tuple(name for name in facts.pointwise_names if name in pointwise)
    groups = {
        "posterior": Group({name: posterior[name] for name in posterior if name not in moved}, _dims(target)),
        "sample_stats": _sample_stats(result, seed),
    }
    if log_likelihood:
        dims = dict(_dims(target) if moved else facts.dims if facts is not None else {})
        groups["log_likelihood"] = Group(pointwise, _axes(pointwise, dims, 2))
    draws = _prior(target, prior, [result.seed, seed])
    if draws is not None:
        groups["prior"] = Group(draws, _dims(target))
    for name in ("observed_data", "constant_data"):
        arrays = {} if facts is None else dict(getattr(facts, name))
        if arrays and facts is not None:
            groups[name] = Group(arrays, _axes(arrays, facts.dims, 0), ())
    attributes: dict[str, str | float] = {
        "inference_library": "pseudo_extended",
        "sampling_method": result.method,
        "seed": str(result.seed),
        "note": "posterior is resampled from weighted points; the weights are sample_stats.log_weight",
    }
    if "evidence_top" in result.statistics:
        attributes |= evidence_attributes(result.log_evidence, result.evidence_doubts)
    attributes["warnings"] = "\n".join(message.line() for message in result.warnings)
    if facts is not None:
        attributes["modeling_interface"] = facts.origin
    return build_arviz(groups, dict(target.shown_coords) | dict({} if facts is None else facts.coords), attributes)


def build_arviz(
    groups: Mapping[str, Group], coords: Mapping[str, Sequence[Any]], attributes: Mapping[str, str | float]
) -> Any:
    """An ArviZ object with the given groups.

    The datasets are made here: ArviZ's `from_dict` differs between the lines, and gives a parameter the axes of a
    statistic that has its name.
    """
    xarray = _require("xarray")
    arviz = _require("arviz")  # importing it takes one to two seconds
    datasets = {name: _dataset(group, coords, attributes) for name, group in groups.items()}
    if arviz.__version__.startswith("0."):
        return arviz.InferenceData(**datasets)
    return xarray.DataTree.from_dict(datasets)


def _require(module: str) -> Any:
    return require(module, "'pseudo-extended[arviz]'", "to_arviz")


def _sample_stats(result: "Result", seed: int) -> Group:
    weights = {"log_weight": log_normalise(result.log_weights), "index": result.resample_index(seed)}
    axes: dict[str, Sequence[str]] = {"log_weight": ("particle",), "index": ()}
    if result.log_importance is not None:
        weights |= {"log_importance": result.log_importance, "resampled_draw": result.resample_draws(seed)}
        axes |= {"log_importance": (), "resampled_draw": ()}
    statistics = {}
    for name, values in result.statistics.items():
        shown = f"method_{name}" if name in weights else name  # `index` is the pseudo-sample that was resampled
        statistics[shown] = values
        axes[shown] = result.statistic_axes.get(name, made_up_axes(name, values.ndim - 2))
    return Group(statistics | weights, axes)


@in_double_precision
def _pointwise(
    result: "Result", facts: Facts | None, posterior: Mapping[str, np.ndarray], seed: int
) -> dict[str, np.ndarray]:
    """The log likelihood of every observation at the resampled points."""
    if facts is not None and facts.pointwise is not None:
        index, rows = result.resample_index(seed), result.resample_draws(seed)
        chains = np.arange(result.num_chains)[:, None]
        u = np.take_along_axis(result.unconstrained, index[..., None, None], axis=2)[:, :, 0][chains, rows]
        constrain, pointwise = result.target.constrain, facts.pointwise
        values = map_in_batches(lambda u: pointwise(constrain(u)), u.reshape(-1, result.target.dim))
        return {name: leaf.reshape(*u.shape[:2], *leaf.shape[1:]) for name, leaf in values.items()}
    names = () if facts is None else facts.pointwise_names
    if not names:
        raise ValueError(
            "log_likelihood must be False here: only models of PyMC and NumPyro with observed variables, and Stan "
            "programs with a generated quantity log_lik, know the log likelihood of each observation; got True."
        )
    return {name: posterior[name] for name in names}


@in_double_precision
def _prior(target: Target, num_draws: int | None, seed: list[int]) -> dict[str, np.ndarray] | None:
    """Draws of the prior, as one chain; None where it cannot be sampled, or no draws are asked for."""
    is_prior = target.log_likelihood is not None and target.base is not None and target.base.can_sample
    if num_draws is not None:
        num_draws = checks.integer("prior", num_draws, minimum=0)
        check_fits("prior", num_draws, 8 * COPIES_OF_PRIOR * num_draws * target.dim)
        if num_draws and not is_prior:
            raise ValueError(
                "prior must be 0 or None for a target whose prior cannot be sampled: that needs log_prior, "
                f"log_likelihood and sample_prior, or a model with a proper prior; got {num_draws}."
            )
    if num_draws == 0 or not is_prior:
        return None
    root = jax.random.key(int(np.random.SeedSequence(seed).generate_state(1)[0]), impl="threefry2x32")
    keys = jax.random.split(root, PRIOR_DRAWS if num_draws is None else num_draws)
    u = np.asarray(jax.jit(jax.vmap(target.draw_base))(keys))
    if target.view is None:
        leaves = jax.tree.leaves(map_in_batches(target.constrain, u))
        shown = dict(zip(target.names, leaves, strict=True))
    else:
        shown = target.view.show(u, target.constrain)
    return {name: values[None] for name, values in shown.items()}


def _names(target: Target) -> list[str]:
    return [parameter.name for parameter in target.shown]


def _dims(target: Target) -> dict[str, tuple[str, ...]]:
    return {parameter.name: parameter.dims for parameter in target.shown}


def _axes(
    arrays: Mapping[str, np.ndarray], dims: Mapping[str, Sequence[str]], num_leading: int
) -> dict[str, tuple[str, ...]]:
    """The names of the axes of `arrays`, as `dims` has them or made up."""
    return {
        name: tuple(dims.get(name, ()))
        if len(dims.get(name, ())) == values.ndim - num_leading
        else made_up_axes(name, values.ndim - num_leading)
        for name, values in arrays.items()
    }


def _dataset(group: Group, coords: Mapping[str, Sequence[Any]], attributes: Mapping[str, str | float]) -> Any:
    variables = {name: ((*group.leading, *group.dims[name]), values) for name, values in group.arrays.items()}
    sizes = {axis: size for axes, values in variables.values() for axis, size in zip(axes, values.shape, strict=True)}
    used = {
        axis: list(coords[axis]) if len(coords.get(axis, ())) == size else list(range(size))
        for axis, size in sizes.items()
    }
    return _require("xarray").Dataset(variables, coords=used, attrs=dict(attributes))
