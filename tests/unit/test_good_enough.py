"""Runs that go on until they are good enough, and what they report of their cost."""

import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.methods.abstract import Prepared
from pseudo_extended.run import settings
from pseudo_extended.run.loop import milestones
from pseudo_extended.run.settings import (
    MOST_DRAWS,
    MOST_DRAWS_UNASKED,
    MOST_EVALUATIONS_UNASKED,
    Draws,
    check_draws,
    check_rule,
    settled,
)
from pseudo_extended.stopping import AbstractStoppingRule, GoodEnough
from pseudo_extended.store import decode


def log_density(x):
    return jnp.logaddexp(-0.5 * jnp.sum((x - 3) ** 2), -0.5 * jnp.sum((x + 3) ** 2))


def checked(draws=None, warmup=None, target_ess=None, *, has_limit=False, until_good=True) -> Draws:
    rule = check_rule(None, target_ess)
    return check_draws(draws, warmup, 4, 1, 0, rule, has_limit=has_limit, until_good=until_good)[0]


def rule_of(plan: Draws):
    return decode(plan.stop, {})


def prepared(*, needs_round_trips=True) -> Prepared:
    method = pe.AdaptivePseudoExtended(6)
    return Prepared(method, np.zeros((4, 6, 1)), (), num_warmup=150, needs_round_trips=needs_round_trips)


class TestThePlan:
    def test_without_a_word_the_default_goes_on_until_it_is_good(self):
        plan = checked()
        assert (plan.draws, plan.warmup) == (MOST_DRAWS_UNASKED, None)
        assert rule_of(plan) == GoodEnough(ess=2000, r_hat=1.01, round_trips=10)

    def test_a_number_of_draws_is_that_number(self):
        assert checked(draws=500)[:1] == (500,)
        assert rule_of(checked(draws=500)) is None

    def test_other_methods_make_a_thousand(self):
        assert checked(until_good=False).draws == 1000

    def test_it_has_a_limit_in_evaluations(self):
        assert checked().max_evaluations == MOST_EVALUATIONS_UNASKED
        assert checked(draws=500).max_evaluations is checked(target_ess=300).max_evaluations is None

    def test_a_rule_of_the_users_is_the_only_one(self):
        plan = checked(target_ess=300)
        assert rule_of(plan) == GoodEnough(ess=300, r_hat=None, round_trips=None)
        assert (plan.draws, checked(has_limit=True).draws) == (MOST_DRAWS, MOST_DRAWS)
        assert rule_of(checked(has_limit=True)) is None

    def test_the_method_says_how_long_warm_up_is(self):
        assert settled(checked(), prepared(), 10).warmup == 150
        assert settled(checked(warmup=20), prepared(), 10).warmup == 20

    def test_with_one_mode_no_trips_along_the_path_are_needed(self):
        assert GoodEnough().without_round_trips() == GoodEnough(round_trips=None)

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


class EvidenceKnown(AbstractStoppingRule):
    """Enough when the mean of the first coordinate is known to so much."""

    error: float

    def missing(self, result):
        error = float(np.max(result.mean().standard_error))
        return [] if error <= self.error else [f"the error of the mean is {error:.2g}"]


class Confused(AbstractStoppingRule):
    def missing(self, result):
        return result.num_draws > 200


SHORT = {"method": pe.Plain(pe.HMC(3)), "chains": 2, "warmup": 100, "seed": 1, "progress": False}


class TestARuleOfTheUsers:
    def test_it_is_asked_at_milestones_about_the_draws_so_far(self):
        result = pe.sample(log_density, np.zeros(1), stop=EvidenceKnown(0.5), **SHORT)
        assert result.stopped is pe.StopReason.ENOUGH
        assert result.num_draws in list(milestones(100_000))
        assert np.max(result.mean().standard_error) <= 0.5
        longer = pe.sample(log_density, np.zeros(1), draws=result.num_draws + 50, **SHORT)
        np.testing.assert_array_equal(longer.points[:, : result.num_draws], result.points)

    def test_a_run_that_does_not_meet_it_says_what_is_missing(self):
        result = pe.sample(log_density, np.zeros(1), stop=EvidenceKnown(1e-6), draws=120, **SHORT)
        assert result.stopped is None
        [said] = [each for each in result.warnings if "the error of the mean is" in each]
        assert said.startswith("the run ended at its limit of 120 draws a chain before")

    def test_bad_rules_are_refused(self):
        with pytest.raises(TypeError, match=r"missing of Confused must return a list of clauses"):
            pe.sample(log_density, np.zeros(1), stop=Confused(), draws=300, **SHORT)
        with pytest.raises(TypeError, match=r"stop must be a stopping rule such as pe\.stopping\.GoodEnough"):
            pe.sample(log_density, np.zeros(1), stop=lambda result: True, **SHORT)
        with pytest.raises(ValueError, match="target_ess must not be given with stop"):
            pe.sample(log_density, np.zeros(1), stop=GoodEnough(), target_ess=100, **SHORT)

    def test_a_stored_run_goes_on_with_its_rule(self, tmp_path):
        whole = pe.sample(log_density, np.zeros(1), stop=GoodEnough(30, None, None), **SHORT)
        stop = {"callback": lambda run: run.num_draws > 10, "store": tmp_path / "run", "chunk": 20}
        pe.sample(log_density, np.zeros(1), stop=GoodEnough(30, None, None), **stop, **SHORT)
        resumed = pe.resume(tmp_path / "run", log_density, progress=False)
        assert resumed.stopped is pe.StopReason.ENOUGH
        np.testing.assert_array_equal(resumed.points, whole.points)

    def test_a_rule_that_the_store_cannot_keep_must_be_given_again(self, tmp_path):
        whole = pe.sample(log_density, np.zeros(1), stop=EvidenceKnown(0.5), **SHORT)
        stop = {"callback": lambda run: run.num_draws > 10, "store": tmp_path / "run", "chunk": 20}
        pe.sample(log_density, np.zeros(1), stop=EvidenceKnown(0.5), **stop, **SHORT)
        with pytest.raises(pe.StoreError, match=r"stop must be given again: store .* its stopping rule, EvidenceKnown"):
            pe.resume(tmp_path / "run", log_density, progress=False)
        resumed = pe.resume(tmp_path / "run", log_density, stop=EvidenceKnown(0.5), progress=False)
        np.testing.assert_array_equal(resumed.points, whole.points)


class TestItsLimit:
    """What cannot become good ends at a number of evaluations, at a milestone, however the run is scheduled."""

    @pytest.fixture
    def limited(self, monkeypatch):
        monkeypatch.setattr(settings, "MOST_EVALUATIONS_UNASKED", 100_000)
        monkeypatch.setattr(settings, "GoodEnough", lambda: GoodEnough(ess=1e9))

        def sample(**given):
            return pe.sample(log_density, np.zeros(2), seed=3, chains=2, progress=False, **given)

        return sample

    def test_the_last_milestone_that_keeps_within_it(self, limited):
        run = limited()
        assert run.stopped == "evaluations"
        assert run.num_draws in list(milestones(MOST_DRAWS_UNASKED))
        assert 50_000 < run.evaluations.draws <= 100_000 < 1.5 * run.evaluations.draws
        assert any("100,000 evaluations" in sentence and "sample size" in sentence for sentence in run.warnings)

    def test_it_does_not_depend_on_the_schedule(self, limited):
        one, other = limited(), limited(cores=1, chunk=17)
        np.testing.assert_array_equal(one.unconstrained, other.unconstrained)
