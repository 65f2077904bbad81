"""The default method: its settings, what it prepares, and what it reports."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.pilot.annealer import Pilot
from pseudo_extended.pilot.choice import choose, in_doubt, is_settled, why_not_listed
from pseudo_extended.pilot.learned_base import broad_base, mode_base
from pseudo_extended.pilot.mode_search import MAX_MODES
from pseudo_extended.pilot.modes import Modes
from pseudo_extended.pilot.prior_mass import PriorMass
from pseudo_extended.results.travel import Travel, diagnose_travel, round_trips, travel
from pseudo_extended.run.loop import milestones
from pseudo_extended.tempering.temperatures import adapt_g, adapt_steps

from .sentences import assert_sentence


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: pe.AdaptivePseudoExtended(1), ValueError, ("num_particles", "2", "1")),
        (lambda: pe.AdaptivePseudoExtended(num_particles="few"), TypeError, ("num_particles", "auto", "few")),
        (
            lambda: pe.AdaptivePseudoExtended(kernel=pe.Cycle([pe.HMC(), pe.MALA()])),
            ValueError,
            ("kernel", "step size", "Cycle"),
        ),
        (
            lambda: pe.AdaptivePseudoExtended(instrument=pe.Stratified(0.1)),
            TypeError,
            ("instrument", "pe.Tempered", "Stratified"),
        ),
        (lambda: pe.AdaptivePseudoExtended(instrument=pe.Tempered(log_g=jnp.log)), ValueError, ("log_g", "learns g")),
        (lambda: pe.AdaptivePseudoExtended(base="prior"), ValueError, ("base", "auto", "prior")),
        (lambda: pe.AdaptivePseudoExtended(metric="full"), ValueError, ("metric", "dense", "full")),
        (lambda: pe.AdaptivePseudoExtended(width=0), ValueError, ("width", "1", "0")),
    ],
)
def test_bad_settings(make, error, words):
    with pytest.raises(error) as caught:
        make()
    assert_sentence(caught, *words)


def test_number_of_pseudo_samples():
    assert pe.AdaptivePseudoExtended().chooses_particles
    assert not pe.AdaptivePseudoExtended(5).chooses_particles
    assert pe.AdaptivePseudoExtended(instrument=pe.Ladder([0.1, 0.5, 1.0])).num_particles == 3


def test_without_a_base_nothing_may_be_improper():
    with pytest.raises(ValueError, match="beta_min") as caught:
        pe.sample(
            lambda x: -jnp.sum(x**2), np.zeros(2), method=pe.AdaptivePseudoExtended(base="target"), progress=False
        )
    assert_sentence(caught, "beta_min", "without a base")


class TestLearningTheBase:
    def learns(self, target, **settings):
        return pe.AdaptivePseudoExtended(**settings).learns_base(target)

    def test_a_plain_target(self):
        target = pe.Target(lambda x: -jnp.sum(x**2), np.zeros(2))
        assert self.learns(target)
        assert not self.learns(target, base="target")

    def test_a_base_given_by_the_user_wins(self):
        assert not self.learns(pe.Target(lambda x: -jnp.sum(x**2), np.zeros(2), base=pe.Normal()))

    def test_a_prior_is_one_candidate(self):
        target = pe.Target(
            example=np.zeros(2), log_prior=lambda x: -jnp.sum(x**2), log_likelihood=lambda x: -jnp.sum(x)
        )
        assert self.learns(target)

    @pytest.mark.parametrize("can_sample", [True, False])
    def test_a_prior_in_very_many_dimensions_is_the_base_if_it_can_be_drawn_from(self, can_sample):
        for dim, learns in ((1000, True), (1001, not can_sample)):
            target = pe.Target(
                example=np.zeros(dim),
                log_prior=lambda x: -0.5 * jnp.sum(x**2),
                log_likelihood=lambda x: -jnp.sum(x),
                sample_prior=(lambda key: jax.random.normal(key, (dim,))) if can_sample else None,  # noqa: B023
            )
            assert self.learns(target) == learns


def pilot(name, length, log_z, spread=0.0, finished=True, covered=1.0, base_mass=None):
    islands = np.array([[log_z - spread, log_z + spread, log_z - spread, log_z + spread]])
    annealed = pe.pilot.annealing.Annealed(
        None, None, np.array([length]), islands, None, None, 1, np.asarray(finished), np.asarray(covered), 1000
    )
    return Pilot(name, None, annealed, None, base_mass or PriorMass())


class TestChoosing:
    def test_the_shortest_path_wins(self):
        assert choose([pilot("long", 5.0, 0.0), pilot("short", 1.0, 0.1)]).name == "short"

    def test_unless_it_misses_something(self):
        assert choose([pilot("all", 5.0, 0.0), pilot("some", 1.0, -3.0)]).name == "all"

    def test_an_error_is_no_reason(self):
        assert choose([pilot("long", 5.0, 0.0, 0.1), pilot("short", 1.0, -1.5, 2.0)]).name == "short"

    def test_a_path_that_did_not_arrive_is_chosen_last(self):
        assert choose([pilot("arrived", 9.0, 0.0), pilot("did not", 1.0, 0.0, finished=False)]).name == "arrived"

    def test_a_base_whose_draws_all_miss_the_target_is_chosen_last(self):
        """What is said of its log Z is a guess, however high."""
        assert choose([pilot("missed", 1.0, 50.0, covered=0.0), pilot("met", 9.0, 0.0)]).name == "met"
        assert choose([pilot("missed", 1.0, 0.0, covered=0.0)]).name == "missed"
        assert np.isinf(pilot("missed", 1.0, 0.0, covered=0.0).error)
        assert "vanishes at all" in pilot("missed", 1.0, 0.0, covered=0.0).says()

    def test_a_prior_that_does_not_integrate_to_one(self):
        """With log Z0 = -5 its log Z/Z0 is 5 above the others', who missed nothing."""
        learned, mass = pilot("learned", 1.0, 0.0), PriorMass(-5.0, 0.02)
        assert choose([pilot("prior", 3.0, 5.0), learned]).name == "prior"  # if it did, it would tell of a lost mode
        assert choose([pilot("prior", 3.0, 5.0, base_mass=mass), learned]).name == "learned"
        assert choose([pilot("prior", 0.5, 5.0, base_mass=mass), learned]).name == "prior"
        unknown = PriorMass(0.0, np.inf)
        assert choose([pilot("prior", 3.0, 5.0, base_mass=unknown), learned]).name == "learned"
        assert choose([pilot("prior", 0.5, -5.0, base_mass=unknown), learned]).name == "prior"
        assert choose([pilot("prior", 0.5, -5.0, base_mass=unknown)]).name == "prior"

    def test_a_short_path_needs_no_rival(self):
        assert is_settled(pilot("short", 1.0, 0.0))
        assert not is_settled(pilot("long", 5.0, 0.0))
        assert not is_settled(pilot("uncertain", 1.0, 0.0, spread=1.0))
        assert not is_settled(pilot("did not arrive", 1.0, 0.0, finished=False))
        assert not is_settled(pilot("partly outside", 1.0, 0.0, covered=0.9))

    def test_two_that_do_about_as_well_leave_a_doubt(self):
        assert in_doubt(pilot("best", 5.0, 0.0), pilot("about as long", 6.0, 0.1))
        assert not in_doubt(pilot("best", 5.0, 0.0), pilot("clearly longer", 7.0, 0.0))
        assert not in_doubt(pilot("best", 0.5, 0.0), pilot("short as well", 0.6, 0.0))
        assert not in_doubt(pilot("best", 5.0, 0.0), pilot("missed something", 5.5, -3.0))


class TestWhatTheEvidenceIs:
    """Without the constant of its prior, N(0, 5²) in two dimensions, a model's evidence is off by log(2π 25) = 5.06."""

    @pytest.mark.parametrize(("base", "end"), [("auto", "mass, that included."), ("target", "mass over that.")])
    def test_a_note_says_that_a_prior_has_no_constant(self, base, end):
        target = pe.Target(
            example=np.zeros(2),
            log_prior=lambda x: -0.5 * jnp.sum((x / 5) ** 2),
            log_likelihood=lambda x: -50 * jnp.sum((x - 1) ** 2),
            sample_prior=lambda key: 5 * jax.random.normal(key, (2,), float),
        )
        method = pe.AdaptivePseudoExtended(base=base)
        result = pe.sample(target, method=method, seed=0, draws=20, warmup=20, chains=1, progress=False)
        [note] = [note for note in result.notes if "log_prior" in note]
        mass = float(note.partition("exp(")[2].partition(")")[0])
        assert abs(mass - np.log(2 * np.pi * 25)) < 0.1  # a bridge of some thousand draws, and one decimal
        assert note == f"log_prior integrates to exp({mass}): log_evidence is the log of the target's {end}"


class TestListingTheModes:
    """Normals of scale 0.1, ten apart on a line, visited twice; a broad base has reached 25 points at each."""

    def why_not(self, num_modes, num_hits=2, finished=True, reached=None):
        x = 10.0 * np.arange(num_modes)[:, None]
        modes = Modes(x, np.zeros(num_modes), np.full((num_modes, 1, 1), 0.01), np.full(num_modes, num_hits))
        points = np.random.default_rng(0).normal(np.repeat(x[:reached], 25, axis=0), 0.1)
        broad = pilot("a broad normal", 5.0, 0.0, finished=finished)
        broad = broad._replace(annealed=broad.annealed._replace(population=SimpleNamespace(position=points)))
        return why_not_listed(modes, mode_base(modes, broad_base(modes), MAX_MODES), broad)

    def test_as_many_as_the_longest_list(self):
        assert self.why_not(MAX_MODES) is None

    def test_a_few_more_that_hold_little(self):
        assert self.why_not(MAX_MODES + 2) is None
        assert self.why_not(2 * MAX_MODES, reached=MAX_MODES) is None

    def test_many_more_that_hold_much(self):
        assert self.why_not(MAX_MODES + 20) == "the 40 heaviest of 60 modes hold 66% of what a broad normal reached"

    def test_a_broad_base_that_did_not_arrive_tells_nothing(self):
        assert self.why_not(MAX_MODES + 20, finished=False) is None

    def test_modes_seen_once(self):
        assert self.why_not(2, num_hits=1) == "100% of the ascents ended in a mode of their own"


class TestAdaptation:
    def test_g_falls_where_the_visits_are_and_stays_zero_at_the_target(self):
        path = pe.tempering.path.Path(jnp.linspace(0, 1, 5), jnp.zeros(5))
        new = adapt_g(path, jnp.array([1.0, 0.0, 0.0, 0.0]), jnp.asarray(1.0))
        assert new.log_g[0] < new.log_g[1] < new.log_g[2]
        assert new.log_g[-1] == 0

    def test_even_visits_change_nothing(self):
        path = pe.tempering.path.Path(jnp.linspace(0, 1, 5), jnp.arange(5.0) - 4)
        np.testing.assert_allclose(adapt_g(path, jnp.full(4, 0.25), jnp.asarray(1.0)).log_g, path.log_g)

    def test_steps_follow_their_own_acceptance(self):
        log_step, visits = adapt_steps(
            jnp.zeros(3),
            jnp.zeros(3),
            jnp.array([0, 0, 2]),
            jnp.array([1.0, 0.9, 0.1]),
            jnp.array([True, True, True]),
            jnp.full(3, 0.8),
        )
        assert log_step[0] > 0
        assert log_step[1] == 0
        assert log_step[2] < 0
        np.testing.assert_array_equal(visits, [2, 0, 1])


def statistics(beta, index):
    shape = beta.shape
    return {
        "beta": beta,
        "carrier": index,
        "move_acceptance": np.full(shape, 0.8),
        "refresh_acceptance": 1 - beta,
    }


class TestTravel:
    rng = np.random.default_rng(0)

    def made(self, low=0.0, switches=True):
        index = self.rng.integers(4, size=(2, 300)) if switches else np.zeros((2, 300), int)
        beta = self.rng.uniform(low, 1, size=(2, 300, 4))
        np.put_along_axis(beta, index[..., None], 1.0, axis=2)
        return travel(statistics(beta, index))

    def test_healthy(self):
        found = self.made()
        assert isinstance(found, Travel)
        assert 0.6 < found.switch_rate < 0.9
        assert np.all(found.round_trips > 10)
        table = found.by_temperature
        np.testing.assert_allclose(table["share"].sum(), 1)
        assert table["beta"].is_monotonic_increasing
        np.testing.assert_allclose(table["share"].iloc[-1], 0.25)
        np.testing.assert_allclose(table["refresh_acceptance"], 1 - table["beta"], atol=1e-9)
        assert diagnose_travel(found, 300) == []

    def test_too_cold(self):
        [sentence] = diagnose_travel(self.made(low=0.4), 300)
        assert "the temperature never went below 0.4" in sentence

    def test_stuck_index(self):
        said = " ".join(diagnose_travel(self.made(switches=False), 300))
        assert "one and the same pseudo-sample" in said

    def test_a_bad_chain_is_told_beside_good_ones(self):
        good, cold, stuck = self.made(), self.made(low=0.4), self.made(switches=False)
        assert (
            "0.4 of chain 1" in diagnose_travel(good._replace(lowest_betas=np.array([0.0, cold.lowest_beta])), 300)[0]
        )
        assert "of chain 0" in diagnose_travel(good._replace(switch_rates=np.array([stuck.switch_rate, 0.7])), 300)[0]
        [few] = diagnose_travel(good._replace(round_trips=np.array([200, 0])), 300)
        assert "chain 1 made 0 round trips" in few

    def test_methods_without_a_path(self):
        assert travel({"beta": np.ones((1, 2, 3))}) is None

    def test_round_trips(self):
        carries = np.zeros((1, 6, 2), bool)
        carries[0, [1, 4], 0] = True
        beta = np.where(carries, 1.0, 0.5)
        beta[0, [0, 2, 5], 0] = 0.0
        np.testing.assert_array_equal(round_trips(beta, carries), [2])


def test_milestones_depend_on_the_number_of_draws_only():
    assert list(milestones(100)) == []
    assert list(milestones(10_000))[:3] == list(milestones(400))[:3] == [100, 150, 225]


@pytest.fixture(scope="module")
def short_run():
    def log_density(x):
        return jnp.logaddexp(-0.5 * jnp.sum((x - 4) ** 2), -0.5 * jnp.sum((x + 4) ** 2))

    def run(**options):
        given = {"warmup": 200, "chains": 2, "seed": 0, "progress": False}
        return pe.sample(log_density, jnp.zeros(1), **given | options)

    return run


@pytest.mark.xdist_group("index Gibbs")  # one worker, so that the programs are compiled once
class TestRun:
    def test_weights_evidence_and_notes(self, short_run):
        result = short_run(draws=400)
        np.testing.assert_allclose(result.weights.sum(axis=2), 1)
        evidence = result.log_evidence
        assert abs(evidence.value - np.log(2 * np.sqrt(2 * np.pi))) < 5 * evidence.standard_error < 0.5
        assert any("chosen" in note for note in result.notes)
        assert (
            np.unique(result.statistics["num_evaluations"]) == 12 * (2 + 1) + 2
        )  # two leapfrog steps, one refreshment; leaps
        assert result.travel is not None
        assert result.stopped is None

    def test_target_ess_stops_at_a_milestone_and_is_a_prefix(self, short_run):
        result = short_run(target_ess=500)
        assert result.stopped == "enough"
        assert result.num_draws in list(milestones(100_000))
        assert np.all(result.mean().ess >= 500)
        np.testing.assert_array_equal(short_run(draws=result.num_draws).unconstrained, result.unconstrained)

    def test_target_ess_that_is_not_reached_is_said(self, short_run):
        result = short_run(target_ess=1e6, draws=400)
        assert result.stopped is None
        assert result.warnings[0].startswith("target_ess = 1e+06 was not reached")
        assert "draws = 400" in result.warnings[0]

    def test_time_limit_keeps_the_draws(self, short_run):
        result = short_run(time_limit=1.0)
        assert result.stopped == "time_limit"
        assert "time_limit" in result.warnings[0]
        assert result.num_draws > 0

    @pytest.mark.slow
    def test_time_limit_without_a_draw(self, short_run):
        with pytest.raises(TimeoutError) as caught:
            short_run(time_limit=1e-9)
        assert_sentence(caught, "time_limit", "warm-up")

    def test_parameters_are_frozen_when_the_draws_begin(self):
        """The chain's parameters before and after a chunk of draws are the same arrays; in warm-up they are not."""
        target = pe.Target(lambda x: -0.5 * jnp.sum(x**2), np.zeros(2), base=pe.Normal(0.0, 3.0))
        method = pe.AdaptivePseudoExtended(3, width=1)
        x = np.zeros((3, 2))
        with pe.precision.double_precision():
            programs = pe.run.program.build_programs(target, method, capacity=16, thin=1, x=x)
            chain = programs.start(jax.random.key(0), np.asarray(0), x)
            stages = pe.warmup.stages(16)
            warm = pe.run.program.chunk_input(jax.random.key(1), 0, 16, 16, stages)
            warmed, _ = programs.advance(warm, np.asarray(0), chain)
            draws = pe.run.program.chunk_input(jax.random.key(2), 0, 16, 16, None)
            drawn, _ = programs.advance(draws, np.asarray(0), warmed)
        jax.tree.map(np.testing.assert_array_equal, warmed.parameters, drawn.parameters)
        assert np.any(np.asarray(warmed.parameters.path.log_g) != np.asarray(chain.parameters.path.log_g))
        assert np.any(np.asarray(drawn.state.points.position) != np.asarray(warmed.state.points.position))
