"""A mixture of two normals in PyMC: which group is called the first is anybody's guess, and both weigh alike."""

import numpy as np
import pandas as pd
import pymc as pm
from compare import nuts_of_pymc, show

rng = np.random.default_rng(1)
HEIGHT = np.concatenate([rng.normal(-1.5, 0.6, 30), rng.normal(1.5, 0.6, 20)])

with pm.Model(coords={"group": ["first", "second"]}) as model:
    share = pm.Dirichlet("share", np.ones(2), dims="group")
    centre = pm.Normal("centre", 0, 5, dims="group")
    width = pm.HalfNormal("width", 2)
    pm.NormalMixture("height", w=share, mu=centre, sigma=width, observed=HEIGHT)
    pm.Deterministic("first_is_left", pm.math.lt(centre[0], centre[1]) * 1.0)
    pm.Deterministic("left", pm.math.minimum(centre[0], centre[1]))

NAMES = ["first_is_left", "left", "width"]
"""The first is 1/2 by symmetry; the others do not depend on the labels, and NUTS has them right."""


def main() -> pd.DataFrame:
    """Both, side by side."""
    return show(lambda draws: nuts_of_pymc(model, draws=draws), model, NAMES)


if __name__ == "__main__":
    main()
