"""What all pages of the gallery share: run a model by its own library's NUTS and by ours, and put both in one table."""

import argparse
import time
from typing import Any

import numpy as np
import pandas as pd

import pseudo_extended as pe
from pseudo_extended.results.series import r_hat

DRAWS, CHAINS, SEED = 1000, 4, 1


def nuts_of_numpyro(model: Any, *, draws: int = DRAWS, chains: int = CHAINS, seed: int = SEED) -> dict[str, np.ndarray]:
    """Draws of NumPyro's own NUTS with its defaults, (chain, draw, ...) by name."""
    import jax
    from numpyro.infer import MCMC, NUTS

    with jax.enable_x64(True):
        run = MCMC(NUTS(model), num_warmup=draws, num_samples=draws, num_chains=chains, chain_method="sequential",
                   progress_bar=False)  # fmt: skip
        run.run(jax.random.PRNGKey(seed))
        return {name: np.asarray(values) for name, values in run.get_samples(group_by_chain=True).items()}


def nuts_of_pymc(model: Any, *, draws: int = DRAWS, chains: int = CHAINS, seed: int = SEED) -> dict[str, np.ndarray]:
    """Draws of PyMC's own NUTS with its defaults, (chain, draw, ...) by name."""
    import pymc as pm

    with model:
        data = pm.sample(draws, tune=draws, chains=chains, cores=1, random_seed=seed, progressbar=False,
                         compute_convergence_checks=False)  # fmt: skip
    return {str(name): values.to_numpy() for name, values in data["posterior"].data_vars.items()}


def table(nuts: dict[str, np.ndarray], ours: pe.Result, names: list[str]) -> pd.DataFrame:
    """Means with their standard errors, and R-hat, side by side; `names` are scalars of the model."""
    rows = {}
    for name in names:
        chains = nuts[name].astype(float)
        mean, error = chains.mean(), np.sqrt(chains.var(ddof=1) / max(_ess(chains), 1))
        estimate = ours.expect(ours.points[name])
        rows[name] = {
            "NUTS": mean,
            "± ": error,
            "R-hat ": r_hat(chains[..., None])[0],
            "by chain": " ".join(f"{part:.3g}" for part in chains.mean(axis=1)),
            "ours": float(estimate.value),
            "±": float(estimate.standard_error),
            "R-hat": ours.summary().loc[name, "r_hat"],
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _ess(chains: np.ndarray) -> float:
    """The effective sample size of NUTS's draws; of all of them if they never change."""
    import arviz

    return float(np.asarray(arviz.ess(chains))) if np.ptp(chains) else chains.size


def show(
    nuts: Any,
    target: Any,
    names: list[str],
    *,
    draws: int = DRAWS,
    method: pe.AdaptivePseudoExtended | None = None,
    our_draws: int | None = None,
    seed: int = SEED,
) -> pd.DataFrame:
    """Run both, print the table and how long they took, and return it. `nuts` is a function that runs NUTS.

    A draw of ours is far cheaper than one of NUTS where it is hard for NUTS, so `our_draws` may be more.
    """
    parser = argparse.ArgumentParser(description="A model by its own library's NUTS and by ours, in one table.")
    parser.add_argument("--quick", action="store_true", help="only see that the page runs: the numbers say nothing")
    quick = parser.parse_known_args()[0].quick  # a notebook or a test runner has arguments of its own
    ours: dict[str, Any] = {"draws": our_draws or draws, "method": method}
    if quick:
        draws, ours = 20, {"draws": 20, "warmup": 20, "method": pe.Plain(pe.HMC(2)), "chains": 2}
    began = time.perf_counter()
    theirs = nuts(draws=draws)
    between = time.perf_counter()
    result = pe.sample(target, seed=seed, progress=False, **ours)
    compared = table(theirs, result, names)
    print(compared.to_string(float_format=lambda number: f"{number:.3g}"))
    if quick:
        print("A quick run of a few draws, and not the default: these numbers say nothing.")
    print(f"NUTS took {between - began:.0f} s, ours {time.perf_counter() - between:.0f} s, compilation included.")
    print(*(f"  {note}" for note in result.notes), *(f"! {warning}" for warning in result.warnings), sep="\n")
    return compared
