"""A horseshoe regression in NumPyro: two predictors tell nearly the same story, and sparsity wants one of them."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
from compare import nuts_of_numpyro, show

import pseudo_extended as pe

rng = np.random.default_rng(0)
X = rng.normal(size=(50, 4))
X[:, 1] = X[:, 0] + 0.1 * rng.normal(size=50)
Y = 1.5 * (X[:, 0] + X[:, 1]) / 2 + 0.3 * rng.normal(size=50)


def model(x: np.ndarray = X, y: np.ndarray = Y) -> None:
    """The horseshoe of Carvalho, Polson and Scott (2010), with a small global scale: few predictors count."""
    with numpyro.plate("predictor", x.shape[1]):
        local = numpyro.sample("local", dist.HalfCauchy(1))
        raw = numpyro.sample("raw", dist.Normal(0, 1))
    slope = numpyro.deterministic("slope", 0.01 * local * raw)
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    numpyro.deterministic("first_counts", jnp.abs(slope[0]) > jnp.abs(slope[1]))
    numpyro.deterministic("sum_of_both", slope[0] + slope[1])
    with numpyro.plate("row", len(y)):
        numpyro.sample("y", dist.Normal(x @ slope, noise), obs=y)


NAMES = ["first_counts", "sum_of_both", "noise"]

METHOD = pe.AdaptivePseudoExtended(base="target")
"""From the prior, which reaches everywhere: the bases that the default learns from ascents may miss a mode here."""


def main() -> pd.DataFrame:
    """Both, side by side."""
    return show(lambda draws: nuts_of_numpyro(model, draws=draws), model, NAMES, method=METHOD, our_draws=5000)


if __name__ == "__main__":
    main()
