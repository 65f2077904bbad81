"""A hierarchical model with a funnel, in PyMC: groups that the data hardly know, and a spread that nobody knows."""

import numpy as np
import pandas as pd
import pymc as pm
from compare import nuts_of_pymc, show

MEASURED = np.array([0.3, -0.8, 0.5, 1.1, -0.4, 0.2])


def build(*, centred: bool) -> pm.Model:
    """Neal's funnel with weak data; not centred, it is the same model without a funnel."""
    with pm.Model(coords={"group": range(len(MEASURED))}) as model:
        log_spread = pm.Normal("log_spread", 0, 3)
        if centred:
            effect = pm.Normal("effect", 0, pm.math.exp(log_spread), dims="group")
        else:
            raw = pm.Normal("raw", 0, 1, dims="group")
            effect = pm.Deterministic("effect", raw * pm.math.exp(log_spread), dims="group")
        pm.Normal("measured", effect, 2.0, observed=MEASURED, dims="group")
        pm.Deterministic("is_narrow", pm.math.lt(log_spread, -4) * 1.0)
    return model


model = build(centred=True)
NAMES = ["log_spread", "is_narrow"]


def main() -> pd.DataFrame:
    """Both, side by side."""
    return show(lambda draws: nuts_of_pymc(model, draws=draws), model, NAMES)


if __name__ == "__main__":
    main()
