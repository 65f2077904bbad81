"""`max_evaluations=`: everything counts, each chain has 100 draws, and no schedule decides where a run ends."""

import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe


def normal(x):
    return -0.5 * jnp.sum(x**2)


def sample(budget, **options):
    asked = {"chains": 2, "seed": 1, "progress": False} | options
    return pe.sample(normal, np.zeros(2), max_evaluations=budget, **asked)


@pytest.mark.parametrize("method", [None, pe.Plain(pe.HMC(4))])
def test_a_run_keeps_within_its_budget(method):
    result = sample(60_000, method=method, warmup=100, draws=20_000)
    assert result.stopped == "evaluations"
    assert result.evaluations is not None
    pilot, warmup, draws = result.evaluations
    assert 30_000 < pilot + warmup + draws <= 60_000 < pilot + warmup + 1.5 * draws


def test_every_chain_has_a_hundred_draws():
    assert sample(1, method=pe.Plain(pe.HMC(4)), warmup=50).num_draws == 100


def test_a_run_that_is_good_before_ends_before():
    result = sample(10_000_000, target_ess=50)
    assert result.stopped == "enough"


def test_a_budget_ends_what_is_not_good_enough_and_says_so():
    result = sample(25_000, stop=pe.stopping.GoodEnough(ess=1e6))
    assert result.stopped == "evaluations"
    assert any("limit of 25,000 evaluations" in sentence for sentence in result.warnings)


def test_it_does_not_depend_on_the_schedule():
    runs = [sample(4_000, method=pe.Plain(pe.HMC(4)), warmup=50, cores=cores, chunk=7 * cores) for cores in (1, 2)]
    assert runs[0].num_draws == runs[1].num_draws < 1000
    np.testing.assert_array_equal(runs[0].unconstrained, runs[1].unconstrained)


def test_what_is_no_budget_is_refused():
    with pytest.raises((TypeError, ValueError), match="max_evaluations must be"):
        sample(0)
