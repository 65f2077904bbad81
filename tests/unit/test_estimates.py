"""Weighted estimates: against brute force over all points, and blind to points of weight zero."""

import numpy as np
import pytest

from pseudo_extended.results import estimates
from pseudo_extended.results.series import effective_sample_size, standard_error

CHAINS, DRAWS, PARTICLES = 2, 120, 3
RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(CHAINS, DRAWS, PARTICLES, 2)) @ np.array([[1.0, 0.6], [0.0, 2.0]]) + [0.0, 10.0]
WEIGHTS = RNG.dirichlet([0.5, 1.0, 2.0], size=(CHAINS, DRAWS))
FLAT, SHARE = VALUES.reshape(-1, 2), WEIGHTS.ravel() / (CHAINS * DRAWS)


def test_mean():
    """Σ over everything of w x / (chains × draws), and the error of the series of within-draw means."""
    estimate = estimates.mean(VALUES, WEIGHTS)
    np.testing.assert_allclose(estimate.value, SHARE @ FLAT, rtol=1e-13)
    series = np.array([[w @ x for w, x in zip(ws, xs, strict=True)] for ws, xs in zip(WEIGHTS, VALUES, strict=True)])
    np.testing.assert_allclose(estimate.standard_error, standard_error(series), rtol=1e-12)
    # Independent draws from the target that would have this error: Var[f] over its square.
    np.testing.assert_allclose(
        estimate.ess, np.diag(np.cov(FLAT.T, aweights=SHARE, ddof=0)) / estimate.standard_error**2, rtol=1e-12
    )


def test_effective_sample_size_of_equal_weights_is_that_of_the_series():
    series = np.random.default_rng(3).normal(size=(2, 200, 1))
    estimate = estimates.mean(series, np.ones((2, 200, 1)))
    np.testing.assert_allclose(estimate.ess, effective_sample_size(series[..., 0]), rtol=1e-12)


def test_variance_and_covariance():
    """Against NumPy's weighted covariance, which divides by the total weight with these options."""
    expected = np.cov(FLAT.T, aweights=SHARE, ddof=0)
    np.testing.assert_allclose(estimates.variance(VALUES, WEIGHTS).value, np.diag(expected), rtol=1e-12)
    covariance = estimates.covariance(VALUES, WEIGHTS)
    np.testing.assert_allclose(covariance.value, expected, rtol=1e-12)
    np.testing.assert_allclose(covariance.standard_error, covariance.standard_error.T, rtol=1e-12)
    assert np.all(covariance.standard_error > 0)
    np.testing.assert_allclose(
        np.diag(covariance.standard_error), estimates.variance(VALUES, WEIGHTS).standard_error, rtol=1e-12
    )


def brute_force_quantile(values, share, probability):
    """The smallest point with positive weight at or below which at least `probability` of the weight lies."""
    candidates = np.sort(values[share > 0])
    return next(point for point in candidates if share[values <= point].sum() >= probability - 1e-12)


@pytest.mark.parametrize("probability", [0.0, 0.05, 0.31, 0.5, 0.95, 1.0])
def test_quantile(probability):
    estimate = estimates.quantile(VALUES, WEIGHTS, probability)
    for i in range(2):
        assert estimate.value[i] == brute_force_quantile(FLAT[:, i], SHARE, probability)


def test_several_quantiles_at_once():
    several = estimates.quantile(VALUES, WEIGHTS, [0.2, 0.7])
    for i, probability in enumerate((0.2, 0.7)):
        for part, alone in zip(several, estimates.quantile(VALUES, WEIGHTS, probability), strict=True):
            np.testing.assert_array_equal(part[i], alone)


def test_quantile_of_equal_weights_is_numpys():
    values = RNG.normal(size=(2, 50, 1))
    for probability in (0.1, 0.5, 0.77):
        expected = np.quantile(values, probability, method="inverted_cdf")
        assert estimates.quantile(values, np.ones((2, 50, 1)), probability).value == expected


def test_quantile_error_covers():
    """400 replications of 4 × 100 independent draws: the error of the median is √(π/2)/√400 on average.

    A single estimated error varies by some 20%, so the mean of 400 by 1%; 10% also allows for its bias.
    """
    errors, inside = [], []
    for values in np.random.default_rng(2).normal(size=(400, 4, 100, 1)):
        estimate = estimates.quantile(values, np.ones((4, 100, 1)), 0.5)
        errors.append(estimate.standard_error)
        inside.append(abs(estimate.value) < 1.96 * estimate.standard_error)
    np.testing.assert_allclose(np.mean(errors), np.sqrt(np.pi / 2) / 20, rtol=0.1)
    assert abs(np.mean(inside) - 0.95) < 0.055  # 5 binomial errors


def test_quantile_error_covers_between_two_modes():
    """The median of ±2 with probability a half each jumps: one standard error often missed 0."""
    rng = np.random.default_rng(4)
    inside = []
    for values in rng.normal(rng.choice([-2.0, 2.0], size=(400, 4, 100, 1)), 0.1):
        estimate = estimates.quantile(values, np.ones((4, 100, 1)), 0.5)
        inside.append(abs(estimate.value) < 3 * estimate.standard_error)
    assert np.mean(inside) > 0.95 - 0.055  # 5 binomial errors


@pytest.mark.parametrize("probability", [-0.1, 1.1, np.nan, "a", None, True])
def test_bad_probability(probability):
    with pytest.raises((TypeError, ValueError), match="probability"):
        estimates.quantile(VALUES, WEIGHTS, probability)


@pytest.mark.parametrize("junk", [np.nan, np.inf, -np.inf, 1e300, -1e300])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:overflow:RuntimeWarning")
class TestPointsOfWeightZero:
    """Whatever f is where the weight is zero, every number is what it is without such a point."""

    def with_junk(self, junk):
        """A fourth pseudo-sample of weight zero in every draw."""
        values = np.concatenate([VALUES, np.full((CHAINS, DRAWS, 1, 2), junk)], axis=2)
        return values, np.concatenate([WEIGHTS, np.zeros((CHAINS, DRAWS, 1))], axis=2)

    @pytest.mark.parametrize("estimator", [estimates.mean, estimates.variance, estimates.covariance])
    def test_moments(self, estimator, junk):
        for seen, expected in zip(estimator(*self.with_junk(junk)), estimator(VALUES, WEIGHTS), strict=True):
            np.testing.assert_allclose(seen, expected, rtol=1e-13)

    @pytest.mark.parametrize("probability", [0.0, 0.02, 0.5, 0.98, 1.0])
    def test_quantiles(self, junk, probability):
        """Near the ends, where an error reaches beyond the last point, too."""
        seen = estimates.quantile(*self.with_junk(junk), probability)
        expected = estimates.quantile(VALUES, WEIGHTS, probability)
        for one, other in zip(seen, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_nan_with_weight_is_seen():
    values = VALUES.copy()
    values[0, 0, 0, 0] = np.nan
    estimate = estimates.mean(values, WEIGHTS)
    assert np.isnan(estimate.value[0])
    assert np.isfinite(estimate.value[1])


def test_an_error_that_underflows_is_not_zero():
    """An event that only points of weight 1e-200 have met: its error is not known, and certainly not nothing."""
    weights = np.concatenate([WEIGHTS, np.full((CHAINS, DRAWS, 1), 1e-200)], axis=2)
    met = np.zeros(weights.shape)
    met[0, 3, -1] = 1.0
    value, error, ess = estimates.mean(met, weights)
    assert 0 < value < 1e-200
    assert np.isnan(error)
    assert np.isnan(ess)
