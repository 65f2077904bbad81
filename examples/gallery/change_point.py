"""A change point in NumPyro: the level went up and down again, the model knows one step: there are two explanations."""

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
from compare import nuts_of_numpyro, show

rng = np.random.default_rng(10)
DAY = np.arange(60.0)
LEVEL = np.where((DAY >= 20) & (DAY < 40), 1.5, 0.0) + rng.normal(0, 0.5, 60)


def model(level: np.ndarray = LEVEL) -> None:
    """One step, a day wide, somewhere."""
    when = numpyro.sample("when", dist.Uniform(0, 60))
    before = numpyro.sample("before", dist.Normal(0, 3))
    after = numpyro.sample("after", dist.Normal(0, 3))
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    numpyro.deterministic("is_early", when < 30)
    with numpyro.plate("day", len(level)):
        mean = before + (after - before) * jax.nn.sigmoid((DAY - when) / 0.5)
        numpyro.sample("level", dist.Normal(mean, noise), obs=level)


NAMES = ["is_early", "when", "before", "after", "noise"]
"""All of them depend on the mode but the last: with it stuck, NUTS has them wrong, and the chains disagree."""


def main() -> pd.DataFrame:
    """Both, side by side."""
    return show(lambda draws: nuts_of_numpyro(model, draws=draws), model, NAMES)


if __name__ == "__main__":
    main()
