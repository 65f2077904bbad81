"""Monte Carlo errors of series: against ArviZ, and against the truth on AR(1) series, whose answers are known."""

import arviz as az
import numpy as np
import pytest
from scipy.signal import lfilter

from pseudo_extended.results import series
from pseudo_extended.results.series import effective_sample_size, r_hat, standard_error


def autoregression(rho, size, seed=0):
    """Stationary AR(1) with unit variance; the mean of n of them has the error of n(1-ρ)/(1+ρ) independent ones."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=size) * np.sqrt(1 - rho**2)
    noise[:, 0] = rng.normal(size=(size[0], *size[2:]))
    return lfilter([1.0], [1.0, -rho], noise, axis=1)


@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.5, 0.9, 0.97])
@pytest.mark.parametrize("size", [(4, 1000), (4, 999), (2, 400)])
class TestAgainstArviz:
    def test_effective_sample_size(self, rho, size):
        """The same formula but for rounding and the order of two small terms near the end of the sum: 3% at most."""
        series = autoregression(rho, size)
        np.testing.assert_allclose(effective_sample_size(series), az.ess(series, method="mean"), rtol=0.03)

    def test_standard_error(self, rho, size):
        series = autoregression(rho, size)
        np.testing.assert_allclose(standard_error(series), az.mcse(series, method="mean"), rtol=0.015)

    def test_r_hat(self, rho, size):
        """Equal for an even length; of an odd one ArviZ drops the middle draw before it ranks, here after."""
        series = autoregression(rho, size)
        np.testing.assert_allclose(r_hat(series), az.rhat(series), rtol=1e-12 if size[1] % 2 == 0 else 1e-3)


@pytest.mark.parametrize("shift", [0.0, 0.5, 5.0])
def test_r_hat_sees_chains_that_disagree(shift):
    series = autoregression(0.3, (4, 500))
    series[0] += shift
    np.testing.assert_allclose(r_hat(series), az.rhat(series), rtol=1e-12)
    assert (r_hat(series) > 1.01) == (shift > 0)


def test_r_hat_sees_a_chain_of_another_spread():
    series = autoregression(0.0, (4, 500))
    series[0] *= 5
    np.testing.assert_allclose(r_hat(series), az.rhat(series), rtol=1e-12)
    assert r_hat(series) > 1.1


def test_every_entry_is_a_series_of_its_own():
    series = autoregression(0.6, (3, 300, 2, 4))
    for function in (effective_sample_size, standard_error, r_hat):
        together = function(series)
        assert together.shape == (2, 4)
        for index in np.ndindex(2, 4):
            np.testing.assert_allclose(together[index], function(series[(..., *index)]), rtol=1e-12)


@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.5, 0.9])
def test_effective_sample_size_is_that_of_the_process(rho):
    """4 × 20,000 draws: the estimate is within 15% of n(1-ρ)/(1+ρ), some 4 of its own standard errors at ρ = 0.9."""
    size = effective_sample_size(autoregression(rho, (4, 20_000)))
    np.testing.assert_allclose(size, 80_000 * (1 - rho) / (1 + rho), rtol=0.15)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_standard_error_covers(rho):
    """Of 1,000 replications the true mean lies within 1.96 errors in 95%.

    The binomial error is 0.7%, so ±3.5% is 5 of them; ρ = 0.9 with 4 × 500 draws is about 100 effective draws, whose
    estimated error is itself uncertain and costs up to 2% of coverage.
    """
    series = autoregression(rho, (4, 500, 1000), seed=1)
    covered = np.abs(series.mean(axis=(0, 1))) < 1.96 * standard_error(series)
    assert abs(covered.mean() - 0.95) < (0.035 if rho < 0.9 else 0.055)


def test_naive_error_does_not_cover():
    """The test above can fail: without the autocorrelation the coverage at ρ = 0.9 is about 35%."""
    series = autoregression(0.9, (4, 500, 1000), seed=1)
    naive = series.reshape(2000, 1000).std(axis=0) / np.sqrt(2000)
    assert np.mean(np.abs(series.mean(axis=(0, 1))) < 1.96 * naive) < 0.6


@pytest.mark.parametrize("num_draws", [1, 2, 3, 5, 7])
def test_too_short_to_tell(num_draws):
    series = autoregression(0.0, (2, num_draws))
    assert np.isnan(effective_sample_size(series))
    assert np.isnan(standard_error(series))


def test_one_draw_has_no_r_hat():
    assert np.isnan(r_hat(np.zeros((2, 1))))


def test_constant_series():
    """A constant, or a chain that is stuck: nothing can be told."""
    series = np.full((2, 100), 3.0)
    for function in (effective_sample_size, standard_error, r_hat):
        assert np.isnan(function(series))


def test_two_values():
    """±1, so that the distance to the median is constant: its R-hat says nothing, but that of the values does."""
    rng = np.random.default_rng(0)
    agree = rng.choice([-1.0, 1.0], size=(4, 500))
    agree[:, :2] = [-1.0, 1.0]
    disagree = agree.copy()
    disagree[0], disagree[1] = 1.0, -1.0
    assert r_hat(agree) < 1.02
    assert r_hat(disagree) > 1.1


def test_chains_stuck_at_different_values():
    """Nothing was learned: about one effective draw for each chain at most, and no finite R-hat near 1."""
    series = np.broadcast_to(np.array([[0.0], [1.0]]), (2, 100))
    assert effective_sample_size(series) < 3
    assert r_hat(series) > 2


def test_nan_in_nan_out():
    series = np.stack([autoregression(0.0, (2, 100)), np.full((2, 100), np.nan)], axis=-1)
    for function in (effective_sample_size, standard_error, r_hat):
        value = function(series)
        assert np.isfinite(value[0])
        assert np.isnan(value[1]), function.__name__


@pytest.mark.parametrize("estimate", [r_hat, effective_sample_size])
def test_many_entries_are_looked_at_in_blocks(estimate, monkeypatch):
    noise = np.random.default_rng(0).normal(size=(2, 50, 3, 5)).cumsum(axis=1)
    whole = estimate(noise)
    monkeypatch.setattr(series, "BLOCK", 400)
    np.testing.assert_allclose(estimate(noise), whole, rtol=1e-12)
    assert estimate(noise).shape == (3, 5)
    assert estimate(noise[:, :, 0, 0]).shape == ()
