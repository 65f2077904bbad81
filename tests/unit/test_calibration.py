"""Simulation-based calibration: ranks, their tests, a store that goes on, and a bug that is caught."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import pseudo_extended as pe
from pseudo_extended.calibration.simulation import rank
from pseudo_extended.calibration.table import bin_edges, bins_p_value, ecdf_p_value

from .sentences import assert_sentence

OPTIONS = {"method": pe.Plain(pe.HMC(4)), "draws": 100, "warmup": 100, "chains": 2, "progress": False}
MODEL = (
    lambda key: jax.random.normal(key, (1,)),
    lambda key, x: x + jax.random.normal(key, (3,)),
    lambda x: -0.5 * jnp.sum(x**2),
    lambda x, y: -0.5 * jnp.sum((y - x) ** 2),
)


def calibration_of(ranks, num_points=63):
    runs = pd.DataFrame({"ess": 1000.0, "warnings": ""}, index=range(len(ranks)))
    return pe.Calibration(pd.DataFrame({"x": ranks}), num_points, runs)


@pytest.mark.parametrize("test", [ecdf_p_value, bins_p_value])
def test_p_values_of_uniform_ranks_are_uniform(test):
    p = [test(np.random.default_rng(seed).integers(0, 64, 200), 63) for seed in range(100)]
    assert 0.4 < np.mean(p) < 0.6
    assert 1 <= np.sum(np.array(p) < 0.1) <= 22


@pytest.mark.parametrize(
    "wrong", [lambda u: u**1.5, lambda u: 0.5 + 0.6 * (u - 0.5), lambda u: np.where(u < 0.5, 0.25 * u, u)]
)
def test_ranks_that_are_shifted_or_too_narrow_are_seen(wrong):
    u = np.random.default_rng(0).random(200)
    assert calibration_of((64 * wrong(u)).astype(int)).suspects == ["x"]
    assert calibration_of((64 * u).astype(int)).suspects == []
    assert "not calibrated: x" in repr(calibration_of((64 * wrong(u)).astype(int)))


def test_ranks_of_weighted_points_are_uniform():
    """Points from N(0, 2²) with the weights of N(0, 1), and a truth from N(0, 1)."""
    ranks = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        x = 2 * rng.normal(size=(2, 400, 3))
        weights = np.exp(-0.5 * x**2 + 0.125 * x**2)
        ranks.append(rank(x, rng.normal(), weights, 31, rng))
    assert ecdf_p_value(np.array(ranks), 31) > 1e-3


def test_ties_are_broken_by_chance():
    rng = np.random.default_rng(0)
    ranks = [rank(np.ones((1, 64, 1)), 1.0, np.ones((1, 64, 1)), 15, rng) for _ in range(400)]
    assert bins_p_value(np.array(ranks), 15) > 1e-3
    assert set(ranks) == set(range(16))


def test_bins_hold_whole_ranks():
    np.testing.assert_allclose(bin_edges(63, 16), np.arange(0, 65, 4) - 0.5)


def test_a_second_call_goes_on(tmp_path):
    """After a crash in the middle of a line; and to the bit as in one go, in threads or not."""
    path = tmp_path / "calibration.jsonl"
    pe.simulation_based_calibration(*MODEL, simulations=2, store=path, seed=3, **OPTIONS)
    path.write_text(path.read_text() + '{"simulation": 2, "ra')
    before = path.stat().st_mtime_ns
    longer = pe.simulation_based_calibration(*MODEL, simulations=3, store=path, seed=3, jobs=2, **OPTIONS)
    whole = pe.simulation_based_calibration(*MODEL, simulations=3, seed=3, jobs=2, **OPTIONS)
    pd.testing.assert_frame_equal(longer.ranks, whole.ranks)
    assert list(longer.ranks) == ["x[0]", "log_likelihood"]
    assert [json.loads(line).get("simulation") for line in path.read_text().splitlines()] == [None, 0, 1, 2]
    assert path.stat().st_mtime_ns > before
    with pytest.raises(ValueError, match="store") as error:
        pe.simulation_based_calibration(*MODEL, simulations=3, store=path, seed=4, **OPTIONS)
    assert_sentence(error, "store", "seed")
    assert longer.plot().axes[0].get_title() == "x[0]"


def test_bad_arguments():
    with pytest.raises((ValueError, TypeError)) as error:
        pe.simulation_based_calibration(*MODEL, simulations=0, **OPTIONS)
    assert_sentence(error, "simulations")
    with pytest.raises(TypeError) as error:
        pe.simulation_based_calibration(None, *MODEL[1:], **OPTIONS)
    assert_sentence(error, "sample_prior")


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_a_wrong_likelihood_is_caught(factor):
    """Noise that is taken to be half as wide as it is gives a posterior that is too narrow."""
    prior, data, log_prior, log_likelihood = MODEL
    found = pe.simulation_based_calibration(
        prior, data, log_prior, lambda x, y: factor * log_likelihood(x, y), simulations=100, jobs=2, **OPTIONS
    )
    assert bool(found.suspects) == (factor != 1)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[1]\n", b"dear\n", b"{}\n{}\n", b'{"a": 1}\n[]\n'])
def test_a_store_that_no_calibration_wrote_is_a_sentence_and_stays(tmp_path, content):
    path = tmp_path / "letter.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="store") as error:
        pe.simulation_based_calibration(*MODEL, simulations=1, store=path, **OPTIONS)
    assert_sentence(error, "store")
    assert path.read_bytes() == content


@pytest.mark.parametrize("path", ["x" * 300, "", ".", "nowhere/file"])
def test_a_store_that_cannot_be_a_file_is_a_sentence(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, TypeError), match="store") as error:
        pe.simulation_based_calibration(*MODEL, simulations=1, store=path, **OPTIONS)
    assert_sentence(error, "store")
