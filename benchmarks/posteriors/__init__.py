"""Posteriors with one mode (or one that matters) that users of NUTS know, for `against_nuts.py`.

Every problem is a log density of a flat, unconstrained vector, written in JAX, so that every sampler gets the same
function. Data are simulated from fixed seeds. Moments are exact where there is a closed form or a quadrature; the
others come from long runs of NUTS, kept in `references.json.xz` by `against_nuts.py --reference`.
"""

from posteriors import hierarchies, latent, networks, normals, processes, regressions, ridges
from posteriors.posterior import Moments as Moments
from posteriors.posterior import Posterior as Posterior

FACTORIES = {
    **normals.FACTORIES,
    **regressions.FACTORIES,
    **hierarchies.FACTORIES,
    **latent.FACTORIES,
    **processes.FACTORIES,
    **ridges.FACTORIES,
    **networks.FACTORIES,
}
"""A function that makes each posterior, by name."""


def load(name: str) -> Posterior:
    """The posterior of this name.

    >>> load("unit-200").dim
    200
    """
    return FACTORIES[name]()
