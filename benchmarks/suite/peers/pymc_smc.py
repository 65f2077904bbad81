"""PyMC's sequential Monte Carlo, with its defaults."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.op import Op

from suite.answer import Answer, quantities_at
from suite.on_host import OnHost
from suite.priors import Box
from suite.problem import Problem

NUM_DRAWS, NUM_CHAINS = 2000, 4


class Likelihood(Op):
    """The likelihood as an operation of PyTensor, by calls into Python."""

    itypes, otypes = [pt.dvector], [pt.dscalar]

    def __init__(self, host: OnHost):
        self.host = host

    def perform(self, node, inputs, outputs):  # noqa: D102
        outputs[0][0] = np.array(self.host.one(inputs[0]))


def run(problem: Problem, seed: int) -> Answer:
    """Four chains of 2,000 particles, moved by independent Metropolis-Hastings."""
    host, prior = OnHost(problem), problem.prior
    with pm.Model():
        x = pm.Uniform("x", prior.low, prior.high) if isinstance(prior, Box) else pm.Normal("x", prior.mean, prior.sd)
        pm.Potential("likelihood", Likelihood(host)(x))
        trace = pm.sample_smc(
            NUM_DRAWS, chains=NUM_CHAINS, cores=1, random_seed=seed, progressbar=False, compute_convergence_checks=False
        )
    points = np.asarray(trace["posterior"]["x"])
    values = quantities_at(problem, points)[:, :, None]
    evidences = np.array(
        [_last(chain) for chain in np.asarray(trace["sample_stats"]["log_marginal_likelihood"], object)]
    )
    # The particles of a chain are no series; chains are what is independent.
    return Answer(
        values,
        np.ones(values.shape[:3]),
        host.count,
        log_evidence=float(np.mean(evidences)),
        log_evidence_error=float(np.std(evidences, ddof=1) / np.sqrt(NUM_CHAINS)),
        notes=["the error of log Z is that of the mean of four chains: it states none"],
    )


def _last(steps: object) -> float:
    """log Z after the last temperature."""
    parts = [np.atleast_1d(np.asarray(part, float)) for part in np.ravel(np.array(steps, dtype=object))]
    numbers = np.concatenate(parts)
    return float(numbers[np.isfinite(numbers)][-1])
