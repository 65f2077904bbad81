"""Runs that go on until they are good enough, and what they report of their cost."""

import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.methods.abstract import Prepared
from pseudo_extended.run.loop import milestones
from pseudo_extended.run.settings import MOST_DRAWS_UNASKED, Draws, check_draws, settled


def log_density(x):
    return jnp.logaddexp(-0.5 * jnp.sum((x - 3) ** 2), -0.5 * jnp.sum((x + 3) ** 2))


def checked(draws=None, warmup=None, target_ess=None, *, has_rule=False, until_good=True) -> Draws:
    return check_draws(draws, warmup, 4, 1, 0, target_ess, has_rule=has_rule, until_good=until_good)


def prepared(*, needs_round_trips=True) -> Prepared:
    method = pe.AdaptivePseudoExtended(6)
    return Prepared(method, np.zeros((4, 6, 1)), (), num_warmup=150, needs_round_trips=needs_round_trips)


class TestThePlan:
    def test_without_a_word_the_default_goes_on_until_it_is_good(self):
        plan = checked()
        assert (plan.draws, plan.warmup) == (MOST_DRAWS_UNASKED, None)
        assert (plan.target_ess, plan.max_r_hat, plan.min_round_trips) == (2000.0, 1.01, 10)

    def test_a_number_of_draws_is_that_number(self):
        assert checked(draws=500)[:1] == (500,)
        assert checked(draws=500).target_ess is None

    def test_other_methods_make_a_thousand(self):
        assert checked(until_good=False).draws == 1000

    def test_a_rule_of_the_users_is_the_only_one(self):
        plan = checked(target_ess=300, has_rule=True)
        assert (plan.target_ess, plan.max_r_hat, plan.min_round_trips) == (300, None, None)

    def test_the_method_says_how_long_warm_up_is(self):
        assert settled(checked(), prepared(), 10).warmup == 150
        assert settled(checked(warmup=20), prepared(), 10).warmup == 20

    def test_with_one_mode_no_trips_along_the_path_are_needed(self):
        assert settled(checked(), prepared(), 10).min_round_trips == 10
        assert settled(checked(), prepared(needs_round_trips=False), 10).min_round_trips is None

    def test_draws_that_nobody_asked_for_do_not_fill_the_memory(self):
        assert settled(checked(), prepared(), 10).draws == MOST_DRAWS_UNASKED
        assert settled(checked(), prepared(), 2000).draws == 2**29 // (8 * 4 * 6 * 2004)
        assert settled(checked(draws=20_000), prepared(), 2000).draws == 20_000


@pytest.fixture(scope="module")
def run():
    return pe.sample(log_density, np.zeros(2), seed=3, chains=2, progress=False)


@pytest.mark.xdist_group("good enough")
class TestARun:
    def test_it_stops_at_a_milestone_where_it_is_good(self, run):
        assert run.stopped == "enough"
        assert run.num_draws in list(milestones(MOST_DRAWS_UNASKED))
        summary = run.summary()
        assert summary["ess"].min() >= 2000
        assert summary["r_hat"].max() <= 1.01
        assert run.travel.round_trips.min() >= 10

    def test_everything_is_counted(self, run):
        evaluations = run.evaluations
        assert evaluations.draws == run.statistics["num_evaluations"].sum()
        assert evaluations.warmup == 2 * 150 * run.statistics["num_evaluations"][0, 0]
        assert evaluations.pilot == run.pilot.num_evaluations > 500

    def test_the_pilot_reports_what_it_saw(self, run):
        report = run.pilot
        np.testing.assert_allclose(np.sort(report.modes.x[:, 0]), [-3, 3], atol=0.05)
        assert report.chosen in [candidate.name for candidate in report.candidates]
        assert all(candidate.finished for candidate in report.candidates)
        assert f"chosen: {report.chosen}." in run.notes

    def test_the_draws_are_those_of_a_run_of_as_many(self, run):
        same = pe.sample(log_density, np.zeros(2), seed=3, chains=2, draws=run.num_draws, progress=False)
        np.testing.assert_array_equal(same.unconstrained, run.unconstrained)

    def test_a_stored_run_knows_it_too(self, run, tmp_path):
        path = tmp_path / "run.zarr"
        stored = pe.sample(log_density, np.zeros(2), seed=3, chains=2, progress=False, store=path)
        loaded = pe.load(path, log_density)
        assert loaded.evaluations == stored.evaluations == run.evaluations
        assert loaded.pilot.chosen == run.pilot.chosen
        np.testing.assert_array_equal(loaded.pilot.modes.x, run.pilot.modes.x)
        np.testing.assert_array_equal(loaded.unconstrained, run.unconstrained)
