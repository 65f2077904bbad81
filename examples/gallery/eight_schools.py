"""Eight schools (Rubin 1981) in PyMC: one mode and no trouble, so nothing may be lost."""

import numpy as np
import pandas as pd
import pymc as pm
from compare import nuts_of_pymc, show

EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERROR = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SCHOOLS = ["Choate", "Deerfield", "Andover", "Exeter", "Hotchkiss", "Lawrenceville", "St. Paul's", "Mt. Hermon"]

with pm.Model(coords={"school": SCHOOLS}) as model:
    mu = pm.Normal("mu", 0, 5)
    tau = pm.HalfCauchy("tau", 5)
    raw = pm.Normal("raw", 0, 1, dims="school")
    theta = pm.Deterministic("theta", mu + tau * raw, dims="school")
    pm.Normal("effect", theta, ERROR, observed=EFFECT, dims="school")
    pm.Deterministic("choate", theta[0])

NAMES = ["mu", "tau", "choate"]


def main() -> pd.DataFrame:
    """Both, side by side."""
    return show(lambda draws: nuts_of_pymc(model, draws=draws), model, NAMES)


if __name__ == "__main__":
    main()
