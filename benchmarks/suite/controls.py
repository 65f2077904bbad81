"""Controls: posteriors with one mode, on which NUTS is fine, out of `posteriors/`, with exact moments."""

from collections.abc import Callable
from functools import partial

import numpy as np

import posteriors
from suite.priors import Gaussian
from suite.problem import Problem, moments

CITATIONS = {
    "ar1-20": "Neal (2011), Handbook of MCMC: a correlated normal",
    "ar1-50": "Neal (2011), Handbook of MCMC: a correlated normal",
    "rosenbrock-6": "Goodman, Weare (2010), CAMCoS 5; Pagani, Wiegand, Nadarajah (2022)",
    "funnel-10": "Neal (2003), Ann. Statist. 31",
}


def control(name: str) -> Problem:
    """A posterior of the comparison with NUTS, with its exact moments."""
    posterior = posteriors.load(name)
    known = posterior.moments
    assert known is not None, f"{name} has no exact moments"
    return Problem(
        CITATIONS[name],
        Gaussian(np.array(posterior.start), np.full(posterior.dim, 10.0)),
        {"mean": moments(posterior.quantities, known.mean, known.square)},
        log_density=posterior.log_density,
        start=np.array(posterior.start),
    )


FACTORIES: dict[str, Callable[[], Problem]] = {name: partial(control, name) for name in CITATIONS}
