"""Averages of whole runs against truth, within five of their own standard errors.

Five standard errors: a false alarm has probability 6e-7 for each number if the errors are right; with an effective
sample size of a few hundred the error itself is off by some 10 %, which leaves it below 1e-5. Seeds are constants.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import pseudo_extended as pe
from pseudo_extended.problems.mixtures import NormalMixture


def assert_close(estimate: pe.Estimate, truth, least_ess=100):
    value, error, ess = map(np.asarray, estimate)
    assert np.all(ess > least_ess), f"too few effective draws for a meaningful test: {ess}"
    z = (value - np.asarray(truth)) / error
    assert np.all(np.abs(z) < 5), f"{value} ± {error} is not {truth}: z = {z}"


BIMODAL = NormalMixture(np.array([0.3, 0.7]), np.array([[-2.0], [2.0]]), np.array([0.25, 0.25]))
BIMODAL_TARGET = pe.Target(BIMODAL, np.zeros(1))
WITH_BASE = pe.Target(BIMODAL, np.zeros(1), base=pe.Normal(0.0, 3.0))
KERNEL = pe.NUTS()

METHODS = {
    "tempered": (BIMODAL_TARGET, pe.PseudoExtended(pe.Tempered(0.01), KERNEL, 4)),
    "tempered, normal base": (WITH_BASE, pe.PseudoExtended(pe.Tempered(0.0), KERNEL, 3)),
    "fixed": (BIMODAL_TARGET, pe.PseudoExtended(pe.Fixed(0.15), KERNEL, 3)),
    "ladder": (BIMODAL_TARGET, pe.PseudoExtended(pe.Ladder([0.05, 0.1, 0.2]), KERNEL, 3)),
    "stratified": (BIMODAL_TARGET, pe.PseudoExtended(pe.Stratified(0.02), KERNEL, 4)),
    "density": (BIMODAL_TARGET, pe.PseudoExtended(pe.Density(pe.Normal(0.0, 2.5)), KERNEL, 3)),
    "per particle": (
        BIMODAL_TARGET,
        pe.PseudoExtended(pe.PerParticle([pe.Density(pe.Normal(0.0, 2.5)), pe.Fixed(0.1)]), KERNEL, 2),
    ),
    "HMC": (BIMODAL_TARGET, pe.PseudoExtended(pe.Fixed(0.15), pe.HMC(num_steps=8), 3, metric="dense")),
    "MALA": (BIMODAL_TARGET, pe.PseudoExtended(pe.Fixed(0.15), pe.MALA(), 3)),
    "random walk": (BIMODAL_TARGET, pe.PseudoExtended(pe.Fixed(0.15), pe.RandomWalk(), 2)),
    "cycle": (BIMODAL_TARGET, pe.PseudoExtended(pe.Fixed(0.15), pe.Cycle([pe.HMC(4), pe.RandomWalk()]), 2)),
    "mixture": (BIMODAL_TARGET, pe.PseudoExtended(pe.Fixed(0.15), pe.Mixture([pe.HMC(4), pe.MALA()], [0.5, 0.5]), 2)),
}


SLOW = (
    "per particle",
    "density",
    "tempered, normal base",
    "MALA",
    "random walk",
    "cycle",
    "mixture",
)  # left for `make test-all`


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in METHODS]
)
def test_moments_and_quantiles_of_two_modes(name):
    target, method = METHODS[name]
    result = pe.sample(target, np.zeros(1), method=method, draws=3000, warmup=500, chains=4, seed=1, progress=False)
    assert_close(result.mean(), [0.3 * -2 + 0.7 * 2])
    assert_close(result.variance(), [0.25 + 4 - 0.8**2])
    assert_close(result.expect(lambda x: (x > 0).astype(float)), [0.7])
    for probability in (0.1, 0.5, 0.9):
        grid = np.linspace(-5, 5, 20001)
        cdf = 0.3 * stats.norm.cdf(grid, -2, 0.5) + 0.7 * stats.norm.cdf(grid, 2, 0.5)
        assert_close(result.quantile(probability), [np.interp(probability, cdf, grid)])
    assert result.statistics["diverging"].mean() < 0.02


@pytest.mark.slow
def test_twenty_modes_b():
    problem = pe.problems.twenty_modes("b")
    method = pe.PseudoExtended(pe.Tempered(0.001), pe.NUTS(), 5)
    result = pe.sample(problem.target, np.full(2, 5.0), method=method, draws=2000, warmup=500, seed=2, progress=False)
    assert_close(result.mean(), problem.mean)
    assert_close(result.expect(lambda x: x**2), problem.second_moment)


@pytest.mark.slow
def test_covariance_of_a_correlated_normal():
    covariance = np.array([[2.0, -0.9], [-0.9, 0.5]])
    precision = np.linalg.inv(covariance)
    target = pe.Target(lambda x: -0.5 * (x - 1) @ precision @ (x - 1), np.zeros(2))
    for metric in ("diagonal", "dense"):
        method = pe.PseudoExtended(pe.Tempered(0.1), pe.NUTS(), 2, metric=metric)
        result = pe.sample(target, np.zeros(2), method=method, draws=2000, warmup=500, seed=3, progress=False)
        assert_close(result.mean(), [1.0, 1.0])
        assert_close(result.covariance(), covariance)


def test_a_model_with_bounds_and_a_prior_as_base():
    """A gamma prior on a Poisson rate and a beta prior on a probability, both conjugate."""
    counts, successes, trials = np.array([3, 5, 4]), 7, 20

    def log_prior(p):
        return 2 * jnp.log(p["rate"]) - p["rate"] + jnp.log1p(-p["chance"])

    def log_likelihood(p):
        poisson = jnp.sum(counts * jnp.log(p["rate"]) - p["rate"])
        return poisson + successes * jnp.log(p["chance"]) + (trials - successes) * jnp.log1p(-p["chance"])

    target = pe.Target(
        example={"rate": 1.0, "chance": 0.5},
        log_prior=log_prior,
        log_likelihood=log_likelihood,
        bounds={"rate": (0, None), "chance": (0, 1)},
    )
    rate = stats.gamma(3 + counts.sum(), scale=1 / (1 + len(counts)))
    chance = stats.beta(1 + successes, 2 + trials - successes)
    for method in (pe.Plain(), pe.PseudoExtended(pe.Tempered(0.0), pe.NUTS(), 3)):
        result = pe.sample(
            target, {"rate": 1.0, "chance": 0.5}, method=method, draws=2000, warmup=500, seed=4, progress=False
        )
        for name, truth in (("rate", rate), ("chance", chance)):
            assert_close(pe.Estimate(*(part[name] for part in result.mean())), truth.mean())
            assert_close(pe.Estimate(*(part[name] for part in result.variance())), truth.var())
            assert_close(pe.Estimate(*(part[name] for part in result.quantile(0.9))), truth.ppf(0.9))


def test_standard_errors_are_right():
    """Over 64 chains, the error of each chain's own estimate in units of its own standard error has spread one.

    The spread of 64 standard normal numbers is within 0.72 and 1.31 with probability 0.998; ESS estimates from a
    single chain of a few hundred effective draws are noisy, which widens the upper side a little.
    """
    method = pe.PseudoExtended(pe.Density(pe.Normal(0.0, 2.5)), pe.HMC(num_steps=6), 3)
    run = pe.sample(BIMODAL_TARGET, np.zeros(1), method=method, draws=3000, chains=64, seed=5, progress=False)
    z = []
    for chain in range(64):
        one = pe.results.estimates.mean(run.unconstrained[chain : chain + 1], run.weights[chain : chain + 1])
        z.append((one.value - 0.8) / one.standard_error)
    assert 0.7 < np.std(z) < 1.35, np.std(z)
    assert abs(np.mean(z)) < 4 / 8, np.mean(z)
