"""The competitors against truth, within five of their own standard errors, as in test_ergodic_averages.py."""

import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.problems.mixtures import NormalMixture

from .test_ergodic_averages import assert_close

DENSITY = NormalMixture(np.array([0.3, 0.7]), np.array([[-2.0], [2.0]]), np.array([0.25, 0.25]))
LOG_Z = 3.0
TARGET = pe.Target(lambda x: DENSITY(x) + LOG_Z, np.zeros(1))
"""Not normalised: the lowest energy is 0.58 - 3."""

# Sixteen chains for the equi-energy sampler: its error is also in the rings, which a chain has only once.
METHODS = {
    "equi-energy": (
        pe.EquiEnergy([-2.5, -1.0, 3.0], [1.0, 4.0, 15.0], step_size=0.5, burn_in=200, head_start=1500),
        {"warmup": 3600, "draws": 3000, "chains": 16},
    ),
    "repelling-attracting": (pe.RepellingAttracting(2.0), {"warmup": 200, "draws": 5000, "chains": 4}),
    "continuous tempering": (pe.ContinuousTempering(), {"warmup": 500, "draws": 4000, "chains": 4}),
    "continuous tempering, Gibbs, random walk": (
        pe.ContinuousTempering("gibbs", pe.RandomWalk(), base=pe.Normal(0.0, 2.5), log_zeta=LOG_Z + 0.5),
        {"warmup": 500, "draws": 30_000, "chains": 4},
    ),
}


@pytest.fixture(scope="module", params=METHODS)
def result(request):
    method, run = METHODS[request.param]
    return pe.sample(TARGET, np.zeros(1), method=method, seed=1, progress=False, **run)


def test_moments_of_two_modes(result):
    assert_close(result.mean(), [0.3 * -2 + 0.7 * 2])
    assert_close(result.variance(), [0.25 + 4 - 0.8**2])
    assert_close(result.expect(lambda x: (x > 0).astype(float)), [0.7])


def test_moves_that_make_the_method(result):
    """Jumps between rings, forced moves, temperatures over the whole range: not only the ordinary steps beside them."""
    statistics = result.statistics
    if "jumped" in statistics:
        assert np.mean(statistics["jumped"]) > 0.05
        assert np.all(statistics["started"])
        assert not np.any(statistics["below_first_energy"])
    elif "gave_up" in statistics:
        assert np.mean(statistics["num_evaluations"]) >= 3
        assert not np.any(statistics["gave_up"])
    else:
        share = np.histogram(statistics["beta"], bins=4, range=(0, 1))[0] / statistics["beta"].size
        assert np.all(share > 0.1), share
    crossings = np.mean(np.diff(np.sign(result.unconstrained[:, :, 0, 0]), axis=1) != 0)
    assert crossings > 0.005


def test_evidence(result):
    if "evidence_top" not in result.statistics:
        pytest.skip("this method has no base")
    assert_close(result.log_evidence, LOG_Z)


def test_a_first_energy_too_high_is_reported_and_does_not_bias():
    """The paper's sampler would flatten the target below H_0, here more than half of its mass."""
    method = pe.EquiEnergy([-1.5, 0.0], [1.0, 6.0], step_size=0.5, burn_in=200, head_start=1500)
    result = pe.sample(TARGET, np.zeros(1), method=method, draws=3000, warmup=2000, chains=16, seed=2, progress=False)
    assert any("energies of EquiEnergy" in sentence for sentence in result.warnings)
    assert_close(result.expect(lambda x: (abs(x) - 2) ** 2), [0.25])
