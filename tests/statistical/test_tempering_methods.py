"""Whole runs of the tempering methods, tuned as a user would run them, against truth.

Within five of their own standard errors, as in test_ergodic_averages; seeds are constants.
"""

import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.problems.mixtures import NormalMixture
from pseudo_extended.results import tempering
from pseudo_extended.tempering.schedule import sigmoidal

from .test_ergodic_averages import assert_close

BIMODAL = NormalMixture(np.array([0.3, 0.7]), np.array([[-2.0], [2.0]]), np.array([0.25, 0.25]))
LOG_Z = 5.0
TARGET = pe.Target(lambda x: BIMODAL(x) + LOG_Z, np.zeros(1))
WITH_BASE = pe.Target(lambda x: BIMODAL(x) + LOG_Z, np.zeros(1), base=pe.Normal(0.0, 3.0))

METHODS = {
    "parallel": (TARGET, pe.ParallelTempering(np.geomspace(0.03, 1, 5), pe.RandomWalk())),
    "parallel, base": (WITH_BASE, pe.ParallelTempering(np.linspace(0, 1, 6), pe.HMC(4))),
    "simulated": (TARGET, pe.SimulatedTempering(np.geomspace(0.03, 1, 12), pe.RandomWalk())),
    "simulated, base": (WITH_BASE, pe.SimulatedTempering(sigmoidal(200), pe.HMC(4))),
    "annealed": (WITH_BASE, pe.AnnealedImportance("sigmoidal", pe.MALA(), num_steps=20)),
}


FAST = (
    "parallel",
    "simulated, base",
    "annealed",
)  # one of each; docs/reference/baselines.md runs parallel tempering with a base


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in METHODS]
)
def test_moments_and_evidence_of_two_modes(name):
    target, method = METHODS[name]
    draws = 2000 if name == "annealed" else 6000
    result = pe.sample(target, np.zeros(1), method=method, draws=draws, warmup=600, chains=4, seed=1, progress=False)
    assert_close(result.mean(), [0.3 * -2 + 0.7 * 2])
    assert_close(result.variance(), [0.25 + 4 - 0.8**2])
    assert_close(result.expect((result.unconstrained[..., 0] > 0).astype(float)), 0.7)
    if target.base is not None:
        assert result.log_evidence.standard_error < 0.1
        assert_close(result.log_evidence, LOG_Z)
    if name.startswith("parallel"):
        rates = tempering.swap_rates(result.statistics).value
        assert rates.max() - rates.min() < 0.1, rates  # the ladder was tuned to equal rates
        assert np.all(tempering.round_trips(result.statistics) > 100)
        np.testing.assert_allclose(tempering.communication_barrier(result.statistics).value, np.sum(1 - rates))
    if name.startswith("simulated"):
        visits = np.histogram(result.statistics["level"], bins=4, range=(-0.5, method.betas.size - 0.5))[0]
        assert visits.min() > 0.1 * visits.sum(), visits  # the weights were tuned to equal visits


@pytest.mark.slow
def test_the_published_setting_of_parallel_tempering():
    """Kou, Zhou and Wong (2006) on their 20 modes, started as they did; 50,000 draws in each of four chains."""
    problem = pe.problems.twenty_modes("a")
    result = pe.sample(
        problem.target,
        np.random.default_rng(0).uniform(size=(4, 2)),
        method=pe.ParallelTempering.kou_2006(),
        draws=50_000,
        warmup=2_000,
        chains=4,
        seed=2,
        progress=False,
    )
    assert_close(result.mean(), problem.mean, least_ess=50)
    assert_close(result.expect((result.unconstrained) ** 2), problem.second_moment, least_ess=50)
    assert np.all(result.statistics["num_evaluations"] == 5)
    np.testing.assert_allclose(result.statistics["beta"][0, 0], 1 / np.array([60, 21.6, 7.7, 2.8, 1]))
