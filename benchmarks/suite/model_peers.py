"""Samplers of a model of PyMC or NumPyro, each as its users call it: four chains, and nothing else that is tuned."""

from typing import Any

import numpy as np
from jaxtyping import Float

from pseudo_extended.results import estimates
from pseudo_extended.results.series import r_hat
from suite import models

SAMPLERS = {"pymc": ("default", "pymc", "nutpie"), "numpyro": ("default", "numpyro")}
"""What samples the models of each library."""


def run(name: str, library: str, sampler: str, seed: int) -> dict[str, Any]:
    """What one sampler says of a model: the least effective sample size and the largest R-hat of its parameters."""
    model = models.pymc_model(name) if library == "pymc" else models.numpyro_model(name)
    values, weights, evaluations = _DOORS[sampler](model, models.SHOWN[name], seed)
    estimate = estimates.mean(values, weights)
    return {
        "evaluations": evaluations,
        "ess": float(np.min(estimate.ess)),
        "r_hat": float(np.max(r_hat(estimates.contributions(values, weights)))),
        "value": [round(float(value), 6) for value in estimate.value],
        "error": [round(float(error), 6) for error in estimate.standard_error],
    }


Sampled = tuple[Float[np.ndarray, "chain draw particle quantity"], Float[np.ndarray, "chain draw particle"], int | None]


def _default(model: Any, shown: tuple[str, ...], seed: int) -> Sampled:
    import pseudo_extended as pe

    result = pe.sample(model, seed=seed, progress=False)
    result.summary()
    parts = [np.asarray(result.points[name]).reshape(*result.weights.shape, -1) for name in shown]
    evaluations = result.evaluations
    return np.concatenate(parts, axis=-1), result.weights, None if evaluations is None else int(sum(evaluations))


def _unweighted(draws: dict[str, np.ndarray], shown: tuple[str, ...], evaluations: int | None) -> Sampled:
    parts = [np.asarray(draws[name]).reshape(*np.shape(draws[name])[:2], 1, -1) for name in shown]
    values = np.concatenate(parts, axis=-1).astype(float)
    return values, np.ones(values.shape[:3]), evaluations


def _from_arviz(data: Any, shown: tuple[str, ...]) -> Sampled:
    """The draws, and the gradients of warm-up and draws where both are recorded."""
    import arviz as az

    az.summary(data)
    posterior = data["posterior"]
    steps = [
        int(data[group]["n_steps"].to_numpy().sum())
        for group in ("sample_stats", "warmup_sample_stats")
        if group in data and "n_steps" in data[group]
    ]
    return _unweighted(
        {name: posterior[name].to_numpy() for name in shown}, shown, sum(steps) if len(steps) == 2 else None
    )


def _pymc(model: Any, shown: tuple[str, ...], seed: int) -> Sampled:
    import pymc as pm

    with model:
        data = pm.sample(chains=4, random_seed=seed, progressbar=False, discard_tuned_samples=False)
    return _from_arviz(data, shown)


def _nutpie(model: Any, shown: tuple[str, ...], seed: int) -> Sampled:
    import nutpie  # pyright: ignore[reportMissingImports]

    compiled = nutpie.compile_pymc_model(model)
    return _from_arviz(nutpie.sample(compiled, chains=4, seed=seed, progress_bar=False, save_warmup=True), shown)


def _numpyro(model: Any, shown: tuple[str, ...], seed: int) -> Sampled:
    import jax
    from numpyro.infer import MCMC, NUTS

    mcmc = MCMC(
        NUTS(model), num_warmup=1000, num_samples=1000, num_chains=4, chain_method="vectorized", progress_bar=False
    )
    mcmc.warmup(jax.random.key(seed), extra_fields=("num_steps",), collect_warmup=True)
    warmup = int(np.sum(mcmc.get_extra_fields()["num_steps"]))
    mcmc.run(jax.random.key(seed + 1), extra_fields=("num_steps",))
    evaluations = warmup + int(np.sum(mcmc.get_extra_fields()["num_steps"]))
    return _unweighted(mcmc.get_samples(group_by_chain=True), shown, evaluations)


_DOORS = {"default": _default, "pymc": _pymc, "nutpie": _nutpie, "numpyro": _numpyro}
