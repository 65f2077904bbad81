"""The algebra of weights."""

import numpy as np
import pytest
from scipy.stats import chisquare

from pseudo_extended.weights import draw_index, effective_number, log_normalise, normalise


def test_normalise_against_the_definition():
    log_weight = np.random.default_rng(0).normal(size=(3, 4, 5)) * 3
    expected = np.exp(log_weight) / np.exp(log_weight).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(normalise(log_weight), expected, rtol=1e-13)  # a few roundings


@pytest.mark.parametrize("shift", [-1e6, -800.0, 800.0, 1e6])
def test_normalise_does_not_see_a_constant(shift):
    """Also where exp(shift) is 0 or infinite; adding 1e6 itself rounds in the tenth decimal."""
    log_weight = np.array([[0.3, -1.0, 2.0], [5.0, 0.0, -np.inf]])
    np.testing.assert_allclose(normalise(log_weight + shift), normalise(log_weight), rtol=1e-9)


def test_weights_sum_to_one_within_each_draw():
    weights = normalise(np.random.default_rng(1).normal(size=(100, 7)) * 50)
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-14)


def test_log_weights_do_not_underflow():
    log_weight = np.array([[0.0, -2000.0, -np.inf], [1000.0, 1000.0, 999.0]])
    shares = np.exp([0.0, 0.0, -1.0])
    expected = [[0.0, -2000.0, -np.inf], np.log(shares / shares.sum())]
    np.testing.assert_allclose(log_normalise(log_weight), expected, rtol=1e-12)


def test_effective_number_lies_between_one_and_all():
    assert effective_number(np.array([0.0, 1.0, 0.0])) == 1.0
    assert effective_number(np.full(4, 0.25)) == 4.0
    np.testing.assert_allclose(effective_number(np.array([[0.5, 0.25, 0.25], [1.0, 0, 0]])), [1 / 0.375, 1.0])


def test_draw_index_follows_the_weights():
    """Chi-square with a constant seed; a false alarm had probability 1e-4."""
    weight = np.array([0.1, 0.0, 0.6, 0.3])
    index = draw_index(np.broadcast_to(weight, (20_000, 4)), np.random.default_rng(0).uniform(size=20_000))
    counts = np.bincount(index, minlength=4)
    assert counts[1] == 0
    assert chisquare(counts[[0, 2, 3]], 20_000 * weight[[0, 2, 3]]).pvalue > 1e-4


@pytest.mark.parametrize("uniform", [0.0, 0.5, np.nextafter(1.0, 0.0)])
@pytest.mark.parametrize(
    "weight", [[0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.1] * 10, [1 / 3] * 3, [1.0, 1e-320], [0.7, 0.3, 0.0], [1e-320, 1.0]]
)
def test_draw_index_at_the_ends_of_the_uniform(uniform, weight):
    """Never beyond the last pseudo-sample, and never one of weight zero."""
    weight = np.array([weight])
    index = draw_index(weight, np.array([uniform]))
    assert index.shape == (1,)
    assert 0 <= index[0] < weight.shape[1]
    assert weight[0, index[0]] > 0
