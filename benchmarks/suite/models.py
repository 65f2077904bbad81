"""Three models as users write them, in PyMC and in NumPyro: a mixture, a hierarchy and a factor model.

The mixture has its labels in any order and the factor its sign, so both have several modes of equal mass; the hierarchy
has one. What is compared are the parameters of all of them.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

NAMES = ("mixture-8", "hierarchical-65", "factor-23")
SHOWN = {
    "mixture-8": ("weight", "centre", "width"),
    "hierarchical-65": ("mean", "spread", "noise", "intercept", "slope"),
    "factor-23": ("loading", "unique", "level"),
}
"""The parameters that are compared."""
NUM_GROUPS, NUM_VARIABLES = 30, 11


def data(name: str) -> dict[str, Float[np.ndarray, "..."]]:
    """Made up once and for all."""
    rng = np.random.default_rng(NAMES.index(name))
    if name == "mixture-8":
        label = rng.choice(3, 120, p=[0.5, 0.3, 0.2])
        return {"y": rng.normal(np.array([-2.0, 0.5, 3.0])[label], np.array([0.5, 0.8, 0.4])[label])}
    if name == "hierarchical-65":
        group = np.repeat(np.arange(NUM_GROUPS), 8)
        x = rng.normal(size=group.size)
        intercept, slope = rng.normal(1.0, 0.7, NUM_GROUPS), rng.normal(-0.5, 0.4, NUM_GROUPS)
        return {"group": group, "x": x, "y": intercept[group] + slope[group] * x + 0.6 * rng.normal(size=group.size)}
    loading, unique = rng.normal(0.0, 1.0, NUM_VARIABLES), rng.uniform(0.4, 1.0, NUM_VARIABLES)
    factor, noise = rng.normal(size=(80, 1)), rng.normal(size=(80, NUM_VARIABLES))
    return {"y": 0.3 + factor * loading + noise * unique}


def pymc_model(name: str) -> Any:
    """The model in PyMC."""
    import pymc as pm

    known = data(name)
    with pm.Model() as model:
        if name == "mixture-8":
            weight = pm.Dirichlet("weight", np.ones(3))
            centre, width = pm.Normal("centre", 0, 5, shape=3), pm.HalfNormal("width", 1, shape=3)
            pm.NormalMixture("y", weight, centre, width, observed=known["y"])
        elif name == "hierarchical-65":
            mean, spread = pm.Normal("mean", 0, 2, shape=2), pm.HalfNormal("spread", 1, shape=2)
            noise = pm.HalfNormal("noise", 1)
            intercept, slope = (
                pm.Normal("intercept", 0, 1, shape=NUM_GROUPS),
                pm.Normal("slope", 0, 1, shape=NUM_GROUPS),
            )
            at = known["group"]
            line = mean[0] + spread[0] * intercept[at] + (mean[1] + spread[1] * slope[at]) * known["x"]
            pm.Normal("y", line, noise, observed=known["y"])
        else:
            loading = pm.Normal("loading", 0, 1, shape=NUM_VARIABLES)
            unique, level = pm.HalfNormal("unique", 1, shape=NUM_VARIABLES), pm.Normal("level", 0, 1)
            covariance = loading[:, None] * loading + pm.math.eye(NUM_VARIABLES) * unique**2
            pm.MvNormal("y", level + np.zeros(NUM_VARIABLES), cov=covariance, observed=known["y"])
    return model


def numpyro_model(name: str) -> Any:
    """The model in NumPyro, a function without arguments."""
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    sample: Any = numpyro.sample  # its type is that of all sites of all models

    known = data(name)

    def mixture() -> None:
        weight = sample("weight", dist.Dirichlet(jnp.ones(3)))
        centre = sample("centre", dist.Normal(0, 5).expand([3]).to_event(1))
        width = sample("width", dist.HalfNormal(1).expand([3]).to_event(1))
        law = dist.MixtureSameFamily(dist.Categorical(probs=weight), dist.Normal(centre, width))
        sample("y", law, obs=known["y"])

    def hierarchy() -> None:
        mean = sample("mean", dist.Normal(0, 2).expand([2]).to_event(1))
        spread = sample("spread", dist.HalfNormal(1).expand([2]).to_event(1))
        noise = sample("noise", dist.HalfNormal(1))
        intercept = sample("intercept", dist.Normal(0, 1).expand([NUM_GROUPS]).to_event(1))
        slope = sample("slope", dist.Normal(0, 1).expand([NUM_GROUPS]).to_event(1))
        at = known["group"]
        line = mean[0] + spread[0] * intercept[at] + (mean[1] + spread[1] * slope[at]) * known["x"]
        sample("y", dist.Normal(line, noise), obs=known["y"])

    def factor() -> None:
        loading = sample("loading", dist.Normal(0, 1).expand([NUM_VARIABLES]).to_event(1))
        unique = sample("unique", dist.HalfNormal(1).expand([NUM_VARIABLES]).to_event(1))
        level = sample("level", dist.Normal(0, 1))
        covariance = loading[:, None] * loading + jnp.diag(unique**2)
        law = dist.MultivariateNormal(jnp.broadcast_to(level, NUM_VARIABLES), covariance_matrix=covariance)
        sample("y", law, obs=known["y"])

    return {"mixture-8": mixture, "hierarchical-65": hierarchy, "factor-23": factor}[name]
