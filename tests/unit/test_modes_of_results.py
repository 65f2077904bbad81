"""Modes found in weighted draws: neither too many nor too few, with masses whose errors cover."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.results.estimates import mean_value
from pseudo_extended.results.finding import describe_modes

from .landscapes import CASES, exact_result, mixture
from .sentences import assert_sentence

QUICK = ("two normals, d = 50", "a spike inside, d = 10", "two shells", "a ring, d = 10", "a banana", "Cauchy's tails")


def draws_of(name, seed, size=2000):
    return exact_result(CASES[name].log_density, CASES[name].draw(np.random.default_rng(seed), size))


@pytest.mark.parametrize("name", QUICK)
def test_number_of_modes(name):
    assert len(draws_of(name, 0).modes()) == CASES[name].num_modes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CASES)
def test_neither_too_many_modes_nor_too_few(name, seed):
    assert len(draws_of(name, seed, 4000).modes()) == CASES[name].num_modes


@pytest.fixture(scope="module")
def two():
    return draws_of("two normals", 0)


class TestTwoNormals:
    def test_masses_places_and_widths(self, two):
        modes = two.modes()
        assert abs(modes.mass.value[0] - 0.7) < 4 * modes.mass.standard_error[0] < 0.1
        assert modes.mass.value.sum() == pytest.approx(1)
        np.testing.assert_allclose(modes.mean, [[4, 4], [-4, -4]], atol=0.3)
        np.testing.assert_allclose(modes.sd, 1, atol=0.1)
        np.testing.assert_allclose(modes.peak, [[4, 4], [-4, -4]], atol=0.01)
        np.testing.assert_array_equal(modes.labels.ravel(), (two.points[..., 0].ravel() < 0).astype(int))
        assert modes.misassigned == 0

    def test_visits_are_counted_by_hand(self, two):
        held = np.array([[0, 0, 1, 1, 0, 1], [1, 1, 1, 1, 1, 1]])
        small = dataclasses.replace(
            two,
            unconstrained=np.where(held == 0, 4.0, -4.0)[..., None, None] * np.ones(2),
            log_weights=np.zeros((2, 6, 1)),
            statistics={},
        )
        modes = describe_modes(small, held[..., None], np.array([[4.0, 4.0], [-4.0, -4.0]]), 0.0)
        # The heavier one comes first: eight of the twelve draws are in what was mode 1.
        np.testing.assert_array_equal(modes.visits, [[2, 1], [2, 0]])
        np.testing.assert_array_equal(modes.crossings, [3, 0])
        np.testing.assert_allclose(modes.share, [[0.5, 1], [0.5, 0]])
        np.testing.assert_allclose(modes.mean, [[-4, -4], [4, 4]])

    def test_restricted_to_a_mode(self, two):
        at = two.at(1)
        inside = two.points[..., 0] < 0
        np.testing.assert_allclose(at.weights[~inside], 0)
        np.testing.assert_allclose(at.mean().value, two.points[inside].mean(axis=0))
        np.testing.assert_allclose(at.covariance().value, np.cov(two.points[inside].T, bias=True))
        assert np.all(at.resample()[..., 0] < 0)
        assert np.isfinite(at.summary().to_numpy()[:, :-1]).all()

    def test_printed(self, two):
        lines = repr(two).splitlines()
        found = [line for line in lines if line.startswith("mode ")]
        assert len(found) == 2
        assert "mass 0.7" in found[0] or "mass 0.6" in found[0]
        assert repr(two.modes()).startswith("2 modes")

    def test_of_many_modes_three_lines_are_printed(self):
        """The grid is its own mirror image, so that twenty of its modes come in pairs."""
        modes = draws_of("25 normals", 0).modes()
        lines = modes.lines()
        assert len(lines) == 3
        assert len(modes.group_mass.value) == 15
        shown = sum(2 if "1 more by symmetry" in line else 1 for line in lines[:2])
        assert f"{25 - shown} more modes" in lines[2]

    @pytest.mark.parametrize("bad", [{"min_mass": 0.0}, {"min_mass": "much"}, {"min_depth": -1.0}])
    def test_bad_arguments(self, two, bad):
        with pytest.raises((ValueError, TypeError)) as error:
            two.modes(**bad)
        assert_sentence(error, next(iter(bad)))

    def test_a_mode_that_is_not_there(self, two):
        with pytest.raises(ValueError, match="mode must be") as error:
            two.at(2)
        assert_sentence(error, "mode", "1")


def test_weights_count():
    """Draws from another mixture of the same parts, with the weights that make up for it."""
    case, rng = mixture([[4, 4], [-4, -4]], [1, 1], [0.9, 0.1]), np.random.default_rng(1)
    x = case.draw(rng, 4000)
    other = mixture([[4, 4], [-4, -4]], [1, 1], [0.2, 0.8])
    log_importance = np.where(x[:, 0] > 0, np.log(0.2 / 0.9), np.log(0.8 / 0.1)).reshape(4, 1000)
    modes = exact_result(other.log_density, x, log_importance=log_importance).modes()
    assert abs(modes.mass.value[0] - 0.8) < 4 * modes.mass.standard_error[0] < 0.1
    np.testing.assert_allclose(modes.mean.loc[0], -4, atol=0.3)


def test_a_density_without_a_gradient():
    case = CASES["two normals"]
    means = np.array([[4.0, 4.0], [-4.0, -4.0]])

    def log_density(x):
        return float(np.logaddexp(*(np.log([0.7, 0.3]) - 0.5 * np.sum((x - means) ** 2, axis=1))))

    target = pe.Target(pe.from_numpy(log_density), np.zeros(2))
    result = exact_result(target, case.draw(np.random.default_rng(0), 1000))
    modes = result.modes()
    assert len(modes) == 2
    assert abs(modes.mass.value[0] - 0.7) < 4 * modes.mass.standard_error[0]


def test_names_and_space_are_the_users():
    def log_density(p):
        return jnp.logaddexp(-0.5 * ((p["a"] - 3) / 0.1) ** 2, -0.5 * ((p["a"] - 9) / 0.1) ** 2)

    target = pe.Target(log_density, {"a": 1.0}, bounds={"a": (0, None)})
    rng = np.random.default_rng(0)
    a = rng.choice([3.0, 9.0], size=800, p=[0.25, 0.75]) + 0.1 * rng.normal(size=800)
    modes = exact_result(target, np.log(a)[:, None]).modes()
    assert list(modes.mean.columns) == ["a"]
    np.testing.assert_allclose(modes.mean["a"], [9, 3], atol=0.1)
    np.testing.assert_allclose(modes.peak["a"], [9, 3], atol=0.1)


def test_evidence_of_a_mode():
    """With log Z known to be 2 and without error, a mode's evidence is 2 + log mass, and its error that of the log."""
    case = CASES["two normals"]
    result = draws_of("two normals", 3)
    zero = np.zeros((*result.weights.shape[:2], 1))
    statistics = result.statistics | {"evidence_top": zero + 2, "evidence_bottom": zero}
    result = dataclasses.replace(result, statistics=statistics)
    modes = result.modes()
    assert modes.log_evidence is not None
    np.testing.assert_allclose(modes.log_evidence.value, 2 + np.log(modes.mass.value))
    np.testing.assert_allclose(
        modes.log_evidence.standard_error, modes.mass.standard_error / modes.mass.value, rtol=0.05
    )
    assert result.at(1).log_evidence.value == pytest.approx(modes.log_evidence.value[1])
    assert case.num_modes == 2


def test_what_lies_outside_of_a_part_is_not_missed():
    """The evidence of a mode is trusted, although ascents lead to the other."""
    rng = np.random.default_rng(0)
    k = rng.random(2000) < 0.3
    x = np.where(k, -4.0, 4.0)[:, None] + rng.normal(size=(2000, 2))
    result = exact_result(CASES["two normals"].log_density, x)
    part = result.at(1)
    assert len(part.modes()) == 1
    assert "PE501" not in {message.code for message in part.warnings}
    alone = exact_result(CASES["two normals"].log_density, x[~k][: 4 * (np.sum(~k) // 4)])
    alone.modes()
    assert "PE501" in {message.code for message in alone.warnings}


def test_of_a_stored_run(tmp_path):
    case = mixture([[3, 0], [-3, 0]], [1, 1], [0.5, 0.5])
    options = {"draws": 300, "warmup": 200, "chains": 2, "seed": 0, "progress": False}
    result = pe.sample(case.log_density, np.zeros(2), store=tmp_path / "run.zarr", **options)
    modes, loaded = result.modes(), pe.load(tmp_path / "run.zarr", case.log_density).modes()
    assert len(modes) == 2
    np.testing.assert_array_equal(modes.labels, loaded.labels)
    inside = (modes.labels == 0).astype(float)
    assert mean_value(inside, result.weights) == pytest.approx(modes.mass.value[0])
    # log Z is 0, and the part of each mode log 1/2.
    assert modes.log_evidence is not None
    assert np.all(np.abs(modes.log_evidence.value - np.log(0.5)) < 4 * modes.log_evidence.standard_error)


@pytest.mark.slow
def test_errors_of_masses_cover():
    """Of 100 seeds with draws that are correlated, 95 are within three standard errors; 99.7 are expected."""
    case, within = CASES["two normals"], 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        # A chain that stays in a mode for five draws on average, and keeps the target.
        k, stays = rng.random(2000) < 0.3, rng.random(2000) < 0.8
        for t in range(1, 2000):
            if stays[t] and t % 500:
                k[t] = k[t - 1]
        x = np.where(k, -4.0, 4.0)[:, None] + rng.normal(size=(2000, 2))
        modes = exact_result(case.log_density, x).modes()
        assert len(modes) == 2
        within += abs(modes.mass.value[0] - 0.7) < 3 * modes.mass.standard_error[0]
    assert within >= 95


REAL = {  # a density, its true mass of the first mode (where x[0] > 0), and where a run starts
    "two normals": (CASES["two normals"].log_density, 0.7, 2),
    "unequal scales": (mixture([[3, 3, 3], [-3, -3, -3]], [0.5, 1], [0.6, 0.4]).log_density, 0.6, 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_errors_of_masses_cover_in_real_runs(name):
    """Of 20 runs of the default, 19 are within three standard errors."""
    log_density, mass, dim = REAL[name]
    within = 0
    for seed in range(20):
        result = pe.sample(log_density, np.zeros(dim), draws=400, warmup=400, seed=seed, progress=False)
        modes = result.modes()
        right = int(np.argmax(modes.mean["x[0]"]))
        assert len(modes) == 2
        within += abs(modes.mass.value[right] - mass) < 3 * modes.mass.standard_error[right]
    assert within >= 19
