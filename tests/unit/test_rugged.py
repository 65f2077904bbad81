"""Rugged landscapes: races, expeditions, and what they agree on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.compiled import compile_once
from pseudo_extended.messages import kinds
from pseudo_extended.pilot.ascents import ascend
from pseudo_extended.pilot.mode_search import ModeSearch
from pseudo_extended.pilot.modes import Atlas, Ends, Modes
from pseudo_extended.pilot.proposals import Proposals
from pseudo_extended.pilot.race import Race
from pseudo_extended.pilot.rugged import MAX_CLOSE, Expedition, Means, is_rugged

pytestmark = pytest.mark.usefixtures("x64")


def wells(x):
    """A quartic well at every tenth number, the higher the nearer to 30."""
    near = 10 * np.round(x / 10)
    return -np.sum((x - near) ** 4, axis=1) / 50 - np.sum((near - 30) ** 2, axis=1), -2 / 25 * (x - near) ** 3


def test_a_race_keeps_the_best_as_they_are_without_it():
    starts = np.linspace(-100, 100, 41)[:, None] + 2.0
    free = ascend(wells, starts)
    raced = ascend(wells, starts, race=Race(rungs=(6,), kept=0.25))
    left = np.isfinite(raced.log_density)
    assert 5 <= left.sum() <= 15
    assert free.log_density[left].min() >= np.median(free.log_density)
    np.testing.assert_array_equal(raced.x[left], free.x[left])
    assert raced.num_evaluations.sum() < 0.7 * free.num_evaluations.sum()


def test_what_has_gone_home_is_given_up_and_does_not_count_for_the_others():
    race = Race(lambda x: x[:, 0] < 1, rungs=(2,), kept=0.5)
    lost = race.lost(np.array([2, 2, 2, 3]), np.array([[0.0], [5.0], [6.0], [0.0]]), np.array([9.0, 1.0, 2.0, 0.0]))
    np.testing.assert_array_equal(lost, [True, True, False, False])


def test_ascents_together_cost_no_more_than_they_may():
    starts = np.random.default_rng(0).uniform(-10, 10, (700, 2))
    ends = ascend(wells, starts, max_total=2_000)
    assert 1_000 < ends.num_evaluations.sum() <= 2_000
    assert np.isneginf(ends.log_density[ends.num_evaluations == 0]).all()


def comb(places, width):
    """Two coordinates, each with a comb of needles, of which one pair of places is right; a third that matters little.

    The height is a sum of what each coordinate has right, as in a fit of two parts, so that they can be found in turn.
    """

    def log_density(x):
        parts = [
            jnp.max(height - 0.5 * ((x[i] - place) / width) ** 2)
            for i, (place, height) in enumerate(zip(places, 2 * [heights(places[0])], strict=True))
        ]
        return sum(parts) - 0.5 * x[2] ** 2

    def heights(place):
        return jnp.where(jnp.arange(len(place)) == 17, 30.0, jnp.asarray(np.sin(np.arange(len(place))) * 8))

    return log_density


@pytest.fixture(scope="module")
def rugged():
    rng = np.random.default_rng(4)
    places = np.sort(rng.uniform(0.02, 0.98, (2, 60)), axis=1)
    with jax.enable_x64(True):
        inner = comb(places, 4e-4)
        bounds = (np.array([0.0, 0.0, -10.0]), np.array([1.0, 1.0, 10.0]))
        target = pe.Target(inner, np.array([0.5, 0.5, 0.0]), bounds=bounds)
        search = ModeSearch(target, gradient=True)
        [program] = compile_once(*search.jobs)
    return target, program, places[:, 17]


@pytest.mark.parametrize("seed", range(3))
def test_a_needle_among_thousands_is_found_by_two_expeditions(rugged, seed):
    target, program, right = rugged
    search = ModeSearch(target, gradient=True)
    search.programs = [program]
    found = search.from_starts(jax.random.key(seed), np.zeros((4, 3)))
    heaviest = np.asarray(target.constrain(jnp.asarray(found.x[np.argmax(found.log_mass)])))
    np.testing.assert_allclose(heaviest[:2], right, atol=2e-3)
    assert search.explored
    assert search.notes == []
    assert search.evaluations < 150_000
    assert len(found.x) < 40


def test_a_search_that_may_not_go_on_until_two_agree_says_so(rugged):
    target, program, _ = rugged
    search = ModeSearch(target, gradient=True, max_evaluations=9_000)
    search.programs = [program]
    search.from_starts(jax.random.key(0), np.zeros((4, 3)))
    assert search.evaluations <= 9_000
    assert [kinds.SEARCH_UNSETTLED.says(note) for note in search.notes] == [True]


def test_modes_that_hold_next_to_nothing_are_left_out_of_a_rugged_list():
    modes = Modes(np.arange(3.0)[:, None], np.array([0.0, -5.0, -12.0]), np.ones((3, 1)), np.ones(3, int), 3)
    assert len(modes.heavier_than(1e-4).x) == 2
    assert is_rugged(modes._replace(num_hits=np.array([1, 1, 20]), num_ascents=22))
    assert not is_rugged(modes._replace(num_hits=np.array([20, 1, 1]), num_ascents=22))


def test_a_close_scan_is_bounded_however_narrow_the_modes_are():
    target = pe.Target(lambda x: -0.5 * jnp.sum(x**2), np.zeros(2))
    scanned = []

    def look(x):
        return -0.5e12 * np.sum(x**2, axis=1), -1e12 * x

    def climb(starts, units=None, race=None):
        scanned.append(len(starts))
        return Ends(starts, *look(starts), np.full(len(starts), 1.0), 0 * starts, np.ones(len(starts), int))

    atlas = Atlas(look, 2, dense=True, max_modes=80)
    proposals = Proposals(jax.random.key(0), target, np.zeros((1, 2)), None)
    means = Means(climb, lambda x: look(x)[0], lambda number, cost: number)
    expedition = Expedition(proposals, atlas, means)
    assert not expedition._scan_closely()  # there is no mode yet
    x = np.array([[0.0, 0.0], [1e3, 1e3]])
    atlas.add(Ends(x, np.array([0.0, -1.0]), 0 * x, np.zeros(2), 0 * x, np.ones(2, int)), 1)
    assert expedition._scan_closely()
    assert MAX_CLOSE <= scanned[-1] <= MAX_CLOSE + 2
