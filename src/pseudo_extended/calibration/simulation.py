"""One simulation: parameters from the prior, data from them, a run, and the ranks of the parameters among its draws."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, PyTree

from pseudo_extended.precision import in_double_precision
from pseudo_extended.results import estimates
from pseudo_extended.results.result import Result
from pseudo_extended.run.sample import sample
from pseudo_extended.target import Target

Quantity = Callable[[PyTree, PyTree], Any]


class Likelihood(eqx.Module):
    """The log likelihood of simulated data, which are arrays of the target and not constants of its density."""

    function: Callable[[PyTree, PyTree], Array]
    data: PyTree

    def __call__(self, position: PyTree) -> Array:
        """log p(data | position)."""
        return self.function(position, self.data)


class Model(NamedTuple):
    """A model that can be simulated."""

    sample_prior: Callable[[Any], PyTree]
    sample_data: Callable[[Any, PyTree], PyTree]
    log_prior: Callable[[PyTree], Array]
    log_likelihood: Callable[[PyTree, PyTree], Array]
    bounds: Any
    quantities: Mapping[str, Quantity]
    """Of a position and the data, beside every coordinate and the log likelihood."""


@in_double_precision
def simulate(model: Model, number: int, seed: int, num_points: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The ranks of simulation `number`, and how its run went: what a line of the store holds."""
    root = jax.random.fold_in(jax.random.key(seed, impl="threefry2x32"), number)
    key_prior, key_data = jax.random.split(root)
    truth = jax.tree.map(np.asarray, model.sample_prior(key_prior))
    data = jax.tree.map(np.asarray, model.sample_data(key_data, truth))
    target = Target(
        log_prior=model.log_prior,
        log_likelihood=Likelihood(model.log_likelihood, data),
        sample_prior=model.sample_prior,
        bounds=model.bounds,
        example=truth,
    )
    run_seed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    result = sample(target, seed=run_seed, progress=False, **options)
    values, true_values = _quantities(model, result, truth, data)
    rng = np.random.default_rng([seed, number, 1])
    ranks = {name: rank(values[name], true_values[name], result.weights, num_points, rng) for name in values}
    ess = float(np.min(estimates.mean(result.coordinates, result.weights).ess))
    codes = " ".join(dict.fromkeys(message.code for message in result.warnings))
    return {"simulation": number, "ranks": ranks, "ess": ess, "warnings": codes}


def rank(values: np.ndarray, true_value: float, weights: np.ndarray, num_points: int, rng: np.random.Generator) -> int:
    """How many of so many points, drawn by their weights from all over the run, are smaller; ties by chance.

    Ties matter for quantities that take few values, such as in which mode a point is.

    >>> rng = np.random.default_rng(0)
    >>> rank(np.arange(8.0).reshape(1, 8, 1), 4.5, np.ones((1, 8, 1)), 8, rng)
    5
    """
    share = np.cumsum(weights.ravel()) / np.sum(weights)
    rows = np.searchsorted(share, (np.arange(num_points) + rng.random()) / num_points).clip(max=share.size - 1)
    chosen = values.ravel()[rows]
    ties = int(np.sum(chosen == true_value))
    return int(np.sum(chosen < true_value)) + int(rng.integers(0, ties + 1))


def _quantities(
    model: Model, result: Result, truth: PyTree, data: PyTree
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Every coordinate, the log likelihood (Modrák et al. 2023) and the user's, at all points and at the truth."""
    coordinates = result.coordinates
    values = {name: coordinates[..., i] for i, name in enumerate(result.labels)}
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(truth)])
    true_values = {name: float(flat[i]) for i, name in enumerate(result.labels)}
    for name, function in {"log_likelihood": model.log_likelihood, **model.quantities}.items():
        values[name] = np.asarray(result.map_points(lambda p, f=function: f(p, data)), float)
        true_values[name] = float(function(truth, data))
    return values, true_values
