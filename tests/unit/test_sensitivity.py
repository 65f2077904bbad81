"""Injection and recovery: places and heights of planted modes, the table, and its calibration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

import pseudo_extended as pe
from pseudo_extended.compiled import compile_once
from pseudo_extended.pilot.mode_search import ModeSearch
from pseudo_extended.precision import double_precision
from pseudo_extended.recovery.planting import Posterior, Searcher, plant
from pseudo_extended.recovery.sensitivity import binomial_interval

from .landscapes import CASES, exact_result
from .sentences import assert_sentence


def unit_normal(x):
    return -0.5 * jnp.sum(x**2)


def posterior(dim):
    return Posterior(pe.Target(unit_normal, np.zeros(dim)), dim / 2 * np.log(2 * np.pi), np.zeros(dim), np.eye(dim))


def known_result(dim, size=4000):
    """Exact draws of a unit normal, with its log Z."""
    result = exact_result(unit_normal, np.random.default_rng(0).normal(size=(size, dim)))
    zero = np.zeros((*result.weights.shape[:2], 1))
    result.statistics["evidence_top"] = zero + dim / 2 * np.log(2 * np.pi)
    result.statistics["evidence_bottom"] = zero
    return result


def test_a_planted_mode_has_the_mass_that_was_asked_for():
    """By quadrature on a grid: the planted part over the whole."""
    planted = plant(np.random.default_rng(0), posterior(2), mass=0.2, scale=0.5, spread=4.0)
    assert planted is not None
    axis = np.linspace(-25, 25, 1001)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    with double_precision():
        part = np.exp(np.asarray(jax.vmap(planted.log_density)(grid))).sum()
        rest = np.exp(np.asarray(jax.vmap(unit_normal)(grid))).sum()
    assert part / (part + rest) == pytest.approx(0.2, rel=1e-3)


def test_a_mode_that_would_drown_is_not_planted():
    assert plant(np.random.default_rng(0), posterior(2), mass=0.001, scale=1.0, spread=0.1) is None


def test_the_search_is_compiled_once_and_finds_what_is_easy():
    """The planted numbers are arguments: a search that had them in its program would find the first mode again."""
    rng = np.random.default_rng(1)
    with double_precision():
        searcher = Searcher(posterior(2), None)
        for seed in range(5):
            planted = plant(rng, posterior(2), 0.4, 0.5, 4.0)
            assert planted is not None
            assert searcher.finds(jax.random.key(seed, impl="threefry2x32"), planted, rng.normal(size=(8, 2)))


def test_the_table():
    found = pe.sensitivity(known_result(2), masses=[0.3, 0.05], scales=[0.5], trials=3, progress=False)
    table = found.table()
    assert list(table["planted"]) == [3, 3]
    assert list(table["mass"]) == [0.3, 0.05]
    assert np.all((table["low"] <= table["found"]) & (table["found"] <= table["high"]))
    assert "found" in repr(found)
    assert found.finished


def test_a_time_limit_leaves_what_there_is():
    found = pe.sensitivity(known_result(2), masses=[0.3], scales=[0.5], trials=1000, time_limit=1e-3, progress=False)
    assert not found.finished
    assert len(found.trials) == 1
    assert "time_limit" in repr(found)


@pytest.mark.parametrize("bad", [{"masses": [0.0]}, {"scales": [-1.0]}, {"trials": 0}, {"runs": 30}])
def test_bad_arguments(bad):
    with pytest.raises((ValueError, TypeError)) as error:
        pe.sensitivity(known_result(2), progress=False, **bad)
    assert_sentence(error, next(iter(bad)))


def test_a_result_without_evidence():
    case = CASES["two normals"]
    with pytest.raises(ValueError, match="evidence") as error:
        pe.sensitivity(exact_result(case.log_density, case.draw(np.random.default_rng(0), 400)), progress=False)
    assert_sentence(error, "target")


@pytest.mark.parametrize(("successes", "number"), [(0, 20), (7, 20), (20, 20)])
def test_intervals_are_clopper_and_pearsons(successes, number):
    low, high = binomial_interval(successes, number)
    if successes > 0:
        assert binom.sf(successes - 1, number, low) == pytest.approx(0.025)
    if successes < number:
        assert binom.cdf(successes, number, high) == pytest.approx(0.025)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.2, 0.1, 0.05])
def test_predicted_and_observed_rates_agree(scale):
    """Targets with a mode at a drawn place, written as such and searched anew: as often found as predicted."""
    number, mass, spread = 60, 0.1, 10.0
    options = {"masses": [mass], "scales": [scale], "trials": number, "spread": spread, "progress": False}
    predicted = float(pe.sensitivity(known_result(2), **options).table()["found"][0])
    found = 0
    for seed in range(number):
        rng = np.random.default_rng([7, seed])
        mean = spread * rng.normal(size=2)

        def log_density(x, mean=mean):
            normal = -0.5 * jnp.sum(x**2) + jnp.log(1 - mass)
            narrow = -0.5 * jnp.sum((x - mean) ** 2) / scale**2 - 2 * jnp.log(scale) + jnp.log(mass)
            return jnp.logaddexp(normal, narrow)

        with double_precision():
            search = ModeSearch(pe.Target(log_density, np.zeros(2)), gradient=True)
            search.programs = compile_once(*search.jobs)
            modes = search.from_starts(jax.random.key(seed, impl="threefry2x32"), rng.normal(size=(32, 2)))
        found += bool(np.any(np.sum((modes.x - mean) ** 2, axis=1) < 2 * scale**2))
    observed = found / number
    middle = (predicted + observed) / 2
    error = np.sqrt(max(middle * (1 - middle), 0.02) * 2 / number)
    assert abs(predicted - observed) < 3 * error
