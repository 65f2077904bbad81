"""Draws that do not count alike: the ratio estimator and its error, resampling, and what leaves the library."""

import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.results import diagnosis, estimates
from pseudo_extended.results.evidence import log_evidence
from pseudo_extended.weights import draw_rows, importance

from .sentences import assert_sentence

CHAINS, DRAWS = 4, 500
TARGET = pe.Target(lambda x: -0.5 * jnp.sum(x**2), np.zeros(1))


def result_with(x, log_importance, log_weights=None):
    """A result made of numbers: x has shape (chain, draw, particle, 1)."""
    calm = {name: np.zeros(x.shape[:2], bool) for name in ("diverging", "non_finite")}
    return pe.Result(
        target=TARGET,
        unconstrained=x,
        log_weights=np.zeros(x.shape[:3]) if log_weights is None else log_weights,
        log_importance=log_importance,
        statistics={"acceptance_rate": np.ones(x.shape[:2])} | calm,
        method="numbers",
        seed=0,
        seconds={},
        stopped=None,
        doubts=(),
    )


def importance_sample(seed, chains=CHAINS, draws=DRAWS):
    """N(1, 1) by independent draws from N(0, 1.5²)."""
    x = 1.5 * np.random.default_rng(seed).normal(size=(chains, draws, 1, 1))
    return x, (-0.5 * (x - 1) ** 2 + 0.5 * (x / 1.5) ** 2)[..., 0, 0] + 700.0


def test_weights_sum_to_the_importance_of_a_draw():
    x, log_v = importance_sample(0)
    result = result_with(x, log_v)
    np.testing.assert_allclose(result.weights.mean(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(result.weights[..., 0] / result.weights[0, 0, 0], np.exp(log_v - log_v[0, 0]))


def test_the_ratio_estimator():
    """Mean, variance and quantiles against brute force over all draws; a constant has no error."""
    x, log_v = importance_sample(1)
    result, v = result_with(x, log_v), np.exp(log_v - log_v.max()).ravel()
    points = x.ravel()
    mean = v @ points / v.sum()
    np.testing.assert_allclose(result.mean().value, [mean], rtol=1e-12)
    np.testing.assert_allclose(result.variance().value, [v @ (points - mean) ** 2 / v.sum()], rtol=1e-12)
    order = np.argsort(points)
    median = points[order][np.searchsorted(np.cumsum(v[order]) / v.sum(), 0.5)]
    assert result.quantile(0.5).value == median
    assert result.expect(lambda x: jnp.sum(0 * x) + 3.0).standard_error < 1e-12


def test_a_subset_of_the_chains_is_normalised_by_itself():
    x, log_v = importance_sample(2)
    whole = result_with(x, log_v)
    one = estimates.mean(x[1:2], whole.weights[1:2])
    alone = result_with(x[1:2], log_v[1:2]).mean()
    np.testing.assert_allclose(one.value, alone.value, rtol=1e-12)
    np.testing.assert_allclose(one.standard_error, alone.standard_error, rtol=1e-10)


def test_the_error_of_the_ratio_is_right():
    """Over 400 replications the errors in units of their standard errors have mean 0 and spread 1.

    The spread of 400 normal numbers is within 0.87 and 1.13 with probability 0.9998; a standard error that forgets the
    denominator is off by a factor of 1.4 here, which the last lines show.
    """
    z, wrong = [], []
    for seed in range(400):
        x, log_v = importance_sample(seed, chains=2, draws=200)
        estimate = estimates.mean(x, importance(log_v)[..., None])
        z.append((estimate.value[0] - 1) / estimate.standard_error[0])
        series = importance(log_v) * x[..., 0, 0]
        wrong.append((estimate.value[0] - 1) / pe.results.series.standard_error(series))
    assert 0.85 < np.std(z) < 1.15, np.std(z)
    assert abs(np.mean(z)) < 0.25, np.mean(z)
    assert not 0.85 < np.std(wrong) < 1.15, np.std(wrong)


def test_importance_and_weights_within_a_draw_multiply():
    rng = np.random.default_rng(3)
    x, log_v, log_w = rng.normal(size=(2, 50, 3, 1)), rng.normal(size=(2, 50)), rng.normal(size=(2, 50, 3))
    w = np.exp(log_w)
    w = w / w.sum(axis=2, keepdims=True) * np.exp(log_v)[..., None]
    expected = np.sum(w * x[..., 0]) / np.sum(w)
    np.testing.assert_allclose(result_with(x, log_v, log_w).mean().value, [expected], rtol=1e-12)


def test_resampling_follows_the_importance():
    """N(1, 1) again: mean within 5 errors of 2,000 systematic draws of about 800 effective ones."""
    x, log_v = importance_sample(4)
    result = result_with(x, log_v)
    rows = result.resample_draws()
    for chain in range(CHAINS):
        counts = np.bincount(rows[chain], minlength=DRAWS)
        v = np.exp(log_v[chain] - log_v[chain].max())
        assert np.all(np.abs(counts - DRAWS * v / v.sum()) < 1 + 1e-9)
        assert np.all(np.diff(rows[chain]) >= 0)
    assert abs(result.resample().mean() - 1) < 5 / np.sqrt(800)


@pytest.mark.parametrize("seed", range(5))
def test_draws_of_weight_zero_are_never_resampled(seed):
    weight = np.array([[0.0, 1.0, 0.0, 1e-3, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]])
    rows = draw_rows(weight, np.random.default_rng(seed))
    assert np.all(np.take_along_axis(weight, rows, axis=1) > 0)


def test_arviz_gets_unweighted_draws_and_the_importance():
    x, log_v = importance_sample(5)
    result = result_with(x, log_v)
    data = result.to_arviz()
    np.testing.assert_array_equal(data["posterior"]["x"].values, result.resample())
    np.testing.assert_array_equal(data["sample_stats"]["log_importance"].values, log_v)
    assert data["sample_stats"]["resampled_draw"].dims == ("chain", "draw")


def test_a_draw_that_carries_everything_is_told():
    x, log_v = importance_sample(6)
    assert not any("carries" in sentence for sentence in result_with(x, log_v).warnings)
    log_v[0, 0] += 50
    assert any("carries 100 % of the weight" in sentence for sentence in result_with(x, log_v).warnings)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_no_weight_at_all_is_told():
    x, log_v = importance_sample(7)
    result = result_with(x, np.full_like(log_v, -np.inf))
    assert any("no draw has any weight" in sentence for sentence in result.warnings)
    assert np.isnan(result.mean().value).all()
    with pytest.raises(ValueError, match="positive weight") as error:
        result.resample()
    assert_sentence(error)


def test_log_evidence_of_several_factors():
    """Σ log mean exp(top) - log mean exp(bottom) of each chain, by hand; errors over 300 replications have spread 1.

    Factors share their noise, so an error that adds their variances is wrong: it is 1/√2 of the right one.
    """
    z = []
    for seed in range(300):
        noise = np.random.default_rng(seed).normal(0.0, 0.5, size=(2, 200, 1))
        top, bottom = np.concatenate([noise - 300, noise], axis=2), np.concatenate([-noise, 0 * noise], axis=2)
        estimate = log_evidence(top, bottom)
        ups, downs = ([np.mean(np.exp(sign * one)) for one in noise] for sign in (1, -1))
        by_hand = -300 + np.log(np.mean(np.square(ups))) - np.log(np.mean(downs))
        np.testing.assert_allclose(estimate.value, by_hand, rtol=1e-12)
        z.append((estimate.value - (-300 + 0.125)) / estimate.standard_error)
    assert 0.85 < np.std(z) < 1.15, np.std(z)


def test_chains_with_ladders_of_their_own_are_not_pooled():
    """Z = 6 as 2 × 3 in one chain and 3 × 2 in the other: pooled over chains the factors would give 2.5²."""
    top = np.log(np.array([[[2.0, 3.0]] * 10, [[3.0, 2.0]] * 10]))
    np.testing.assert_allclose(log_evidence(top, np.zeros_like(top)).value, np.log(6), rtol=1e-12)


def test_a_chain_that_never_saw_one_end_does_not_outweigh_the_others():
    """Z = e³, and one of four chains with bottoms of e⁻²⁰ that should be 1: the mean of N/D would be near e²⁰."""
    noise = np.random.default_rng(10).normal(0.0, 0.1, size=(2, 4, 500, 1))
    top, bottom = 3 + noise[0], noise[1]
    bottom[2] -= 20
    estimate = log_evidence(top, bottom)
    assert abs(estimate.value - (3 + np.log(4 / 3))) < 0.05  # its own numerator counts, and no more
    assert estimate.standard_error > 0.1  # and the disagreement shows


def test_evidence_of_chains_with_constants_of_their_own():
    """Simulated tempering: chain c sees Z_1/C_c and Z_0/C_c, with C_c from its own weights, which cancels."""
    noise = np.random.default_rng(11).normal(0.0, 0.1, size=(2, 4, 500, 1))
    constants = np.array([0.0, 2.0, -1.0, 5.0])[:, None, None]
    estimate = log_evidence(3 + noise[0] - constants, noise[1] - constants)
    assert abs(estimate.value - 3) < 5 * estimate.standard_error < 0.1


def test_evidence_that_rests_on_one_draw_is_told():
    result = result_with(*importance_sample(8))
    terms = np.random.default_rng(8).normal(size=(CHAINS, DRAWS, 3))
    result.statistics.update(evidence_top=terms, evidence_bottom=0 * terms)
    assert not any("log_evidence" in sentence for sentence in result.warnings)
    again = result_with(*importance_sample(8))
    terms[2, 7, 1] += 30
    again.statistics.update(evidence_top=0 * terms, evidence_bottom=terms)
    assert any("log_evidence rests on a few draws" in sentence for sentence in again.warnings)


def test_statistics_of_rungs_have_axes_of_their_own_in_arviz():
    result = result_with(*importance_sample(9))
    result.statistics["replica"] = np.zeros((CHAINS, DRAWS, 5), int)
    assert result.to_arviz()["sample_stats"]["replica"].dims == ("chain", "draw", "replica_dim_0")


def test_evidence_of_which_a_chain_knows_nothing_is_told():
    """No draw of the base met the target in one chain of two, which is worse than one that did."""
    result = result_with(*importance_sample(0))
    terms = np.zeros((*result.log_weights.shape[:2], 2))
    terms[0, :, 1] = -np.inf
    result.statistics.update(evidence_top=terms, evidence_bottom=np.zeros_like(terms))
    assert any("log_evidence is not known" in sentence for sentence in result.warnings)


def test_weights_that_are_not_numbers_are_told():
    nothing = np.full(3, np.nan)
    [sentence] = diagnosis._mixing(np.full((2, 50, 4), np.nan), nothing, nothing, ["a", "b", "c"])
    assert "weights are NaN" in sentence


def test_no_evidence_without_a_base():
    with pytest.raises(ValueError, match="got numbers") as error:
        _ = result_with(*importance_sample(0)).log_evidence
    assert_sentence(error, "log_evidence")
