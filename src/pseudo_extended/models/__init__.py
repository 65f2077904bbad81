"""Models in: whatever a user has (a function, a PyMC, NumPyro or Stan model) becomes a `Target`."""

from pseudo_extended.models.dispatch import as_target as as_target
from pseudo_extended.models.functions import from_numpy as from_numpy
from pseudo_extended.models.numpyro import from_numpyro as from_numpyro
from pseudo_extended.models.prior_transform import from_prior_transform as from_prior_transform
from pseudo_extended.models.pymc import from_pymc as from_pymc
from pseudo_extended.models.stan import from_stan as from_stan
