"""mRNA transfection (Ballnus et al. 2017, model M1a) in NumPyro: two rates can change places, and nothing tells.

Reads mrna.csv in the directory that PSEUDO_EXTENDED_DATA names (from the example data of Pigeons.jl); without it, data
are simulated.
"""

import os
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
from compare import nuts_of_numpyro, show

from pseudo_extended.problems.mrna import fluorescence

FILE = Path(os.environ.get("PSEUDO_EXTENDED_DATA", "../shared/data")) / "mrna.csv"


if FILE.is_file():
    TIME, MEASURED = np.genfromtxt(FILE, delimiter=",").T
else:
    TIME = np.linspace(0, 30, 90)
    MEASURED = np.array(fluorescence(TIME, 2.0, 5.0, 0.12, 0.6)) + np.random.default_rng(0).normal(0, 1, 90)


def model(time: np.ndarray = TIME, measured: np.ndarray = MEASURED) -> None:
    """Uniform priors on the logarithms, as in the paper."""
    log_t0 = numpyro.sample("log_t0", dist.Uniform(-2, 1))
    log_k = numpyro.sample("log_k", dist.Uniform(-5, 5))
    log_b = numpyro.sample("log_b", dist.Uniform(-5, 5))
    log_d = numpyro.sample("log_d", dist.Uniform(-5, 5))
    log_sigma = numpyro.sample("log_sigma", dist.Uniform(-2, 2))
    numpyro.deterministic("b_is_slower", log_b < log_d)
    numpyro.deterministic("log_slower", jnp.minimum(log_b, log_d))
    with numpyro.plate("time", len(time)):
        mean = fluorescence(time, 10**log_t0, 10**log_k, 10**log_b, 10**log_d)
        numpyro.sample("measured", dist.Normal(mean, 10**log_sigma), obs=measured)


NAMES = ["b_is_slower", "log_slower", "log_t0", "log_k", "log_sigma"]
"""The first is 1/2 by symmetry; the others do not depend on which rate is which."""


def main() -> pd.DataFrame:
    """Both, side by side."""
    return show(lambda draws: nuts_of_numpyro(model, draws=draws), model, NAMES, our_draws=5000)


if __name__ == "__main__":
    main()
