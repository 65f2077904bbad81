"""Symmetries that nobody declared: guessed from the layout or from two modes, believed only if the density agrees."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pseudo_extended.compiled import compile_once
from pseudo_extended.pilot.hidden_symmetries import HiddenSymmetries
from pseudo_extended.pilot.mode_search import ModeSearch
from pseudo_extended.pilot.modes import Atlas, no_ends
from pseudo_extended.target import Target

from .landscapes import needle_and_images

pytestmark = pytest.mark.usefixtures("x64")

LAYOUTS = {
    "rows": ([[2, 3, 4, 5, 6], [7, 8, 9, 10, 11]], 12),
    "columns": ([[0, 3, 6], [1, 4, 7], [2, 5, 8]], 9),
    "columns after others": ([[2, 4, 6], [3, 5, 7]], 8),
}


def search_of(log_density, dim, **settings):
    search = ModeSearch(Target(log_density, np.zeros(dim)), gradient=True, **settings)
    search.programs = compile_once(*search.jobs)
    return search


@pytest.mark.parametrize("layout", LAYOUTS)
def test_images_of_a_needle_are_found(layout):
    """A start leads to one labelling of a needle; the basins of the others hold 10⁻⁶ of the space around."""
    blocks, dim = LAYOUTS[layout]
    log_density, places = needle_and_images(blocks, dim)
    search = search_of(log_density, dim)
    modes = search.from_starts(jax.random.key(0), np.concatenate([places[:1], np.zeros((7, dim))]))
    significant = modes.x[modes.is_significant]
    assert len(significant) == len(places)
    apart = np.linalg.norm(significant[:, None] - places, axis=2)
    assert sorted(apart.argmin(axis=1)) == list(range(len(places)))
    assert apart.min(axis=1).max() < 0.05
    assert search.evaluations < 60_000


def atlas_of(log_density, dim, places):
    """The modes at these places, as ascents that begin there find them."""
    search = search_of(log_density, dim)
    search._add(search._climb(np.asarray(places, float)))
    return search


def test_a_density_that_is_nearly_symmetric_has_no_images():
    """One labelling is lower by 10⁻⁵, which is enough."""
    blocks, dim = LAYOUTS["rows"]
    for tilt, images in ((0.0, 1), (1e-5, 0)):
        log_density, places = needle_and_images(blocks, dim, tilt=tilt)
        search = atlas_of(log_density, dim, places[:1])
        hidden = HiddenSymmetries(dim, [])
        assert hidden.complete(search.atlas, search.heights, 1000, 40) == images


def test_what_holds_near_a_round_mode_holds_for_it_alone():
    """Every exchange and flip leaves the wide normal as it is, and none of them the narrow one beside it."""

    def log_density(x):
        narrow = -0.5 * jnp.sum((x - jnp.array([4.0, -3.0, 7.0, 1.0])) ** 2) / 0.04
        return jnp.logaddexp(-0.5 * jnp.sum(x**2), narrow)

    search = atlas_of(log_density, 4, [[0.3, 0.1, 0.2, -0.1], [4.0, -3.0, 7.0, 1.0]])
    assert len(search.atlas.known) == 2
    assert HiddenSymmetries(4, []).complete(search.atlas, search.heights, 1000, 40) == 0


def test_modes_that_hold_nothing_leave_room_for_images():
    """As among the aliases of periods: sixty-one places are known, and one mode counts."""
    blocks, dim = LAYOUTS["rows"]
    log_density, places = needle_and_images(blocks, dim)
    search = atlas_of(log_density, dim, places[:1])
    [mode] = search.atlas.known
    low = np.random.default_rng(0).uniform(-6, 6, (60, dim))
    search.atlas.known += [mode._replace(x=x, log_density=mode.log_density - 15) for x in low]
    assert HiddenSymmetries(dim, []).complete(search.atlas, search.heights, 1000, 40) == 1


def test_two_modes_tell_which_signs_go_together():
    """Three columns of loadings, packed by rows: nothing in the layout says which coordinates belong to a factor."""
    rng = np.random.default_rng(3)
    column = np.array([0, 0, 1, 0, 1, 2, 0, 1, 2, 0, 1, 2])
    loading = rng.uniform(0.7, 1.5, len(column))

    def log_density(x):
        return sum(
            jnp.logaddexp(*(-8 * jnp.sum((x[column == k] - s * loading[column == k]) ** 2) for s in (1, -1)))
            for k in range(3)
        )

    def signs(*of_columns):
        return np.array(of_columns)[column] * loading

    search = atlas_of(log_density, 12, [signs(1, 1, 1), signs(-1, 1, 1), signs(-1, -1, 1), signs(-1, 1, -1)])
    assert len(search.atlas.known) == 4
    hidden = HiddenSymmetries(12, [])
    assert hidden.complete(search.atlas, search.heights, 1000, 40) == 4
    assert len(search.atlas.known) == 8


def test_an_image_looks_as_a_survey_says():
    """Covariance and whitener go along with permutations and signs."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(3, 3))
    precision = root @ root.T + np.eye(3)
    order, sign = np.array([2, 0, 1]), np.array([1.0, -1.0, 1.0])
    here = np.array([4.0, -2.0, 1.0])
    there = sign * here[order]

    def one(x):
        return -0.5 * (x - here) @ precision @ (x - here)

    def log_density(x):  # the image of a point x is y with y = sign · x[order]
        back = jnp.zeros(3).at[order].set(sign * x)
        return jnp.logaddexp(one(x), one(back))

    search = atlas_of(log_density, 3, [here, there])
    first, second = sorted(search.atlas.known, key=lambda mode: np.linalg.norm(mode.x - here))
    image = first.neighbourhood.image(order, sign)
    np.testing.assert_allclose(image.covariance, second.neighbourhood.covariance, rtol=1e-4, atol=1e-6)
    away = rng.normal(size=(20, 3))
    np.testing.assert_allclose(image.distance(away), second.neighbourhood.distance(away), rtol=1e-4)


def test_one_round_mode_costs_next_to_nothing():
    """All its images are itself."""
    search = search_of(lambda x: -0.5 * jnp.sum(x**2), 10)
    search.from_starts(jax.random.key(0), np.zeros((8, 10)))
    assert search.hidden is not None
    assert not any(guess.believed is not None for guess in search.hidden.guesses.values())


def test_guesses_are_bounded():
    hidden = HiddenSymmetries(100, [])
    assert len(hidden.guesses) <= 2000
    empty = Atlas(lambda x: (np.zeros(len(x)), x), 100, dense=True, max_modes=10)
    assert not len(no_ends(100).x)
    assert hidden.complete(empty, lambda x: np.zeros(len(x)), 100, 10) == 0


def wells(x):
    """Seven double wells, 128 modes of one height."""
    return -jnp.sum((x**2 - jnp.arange(2.0, 9.0)) ** 2)


def test_symmetries_of_modes_that_cannot_be_listed():
    search = search_of(wells, 7)
    search.from_starts(jax.random.key(0), np.zeros((8, 7)) + 0.1)
    images = search.symmetries()
    assert images is not None
    single = np.sum(np.asarray(images.sign) < 0, axis=1) == 1
    unmoved = np.all(np.asarray(images.order) == np.arange(7), axis=1)
    flipped = np.argmin(np.asarray(images.sign)[single & unmoved], axis=1)
    assert set(flipped) == set(range(7))


def test_no_symmetry_is_believed_where_there_is_none():
    search = search_of(lambda x: wells(x) + 0.01 * jnp.sum(x) + 0.003 * x[0] * x[1], 7)
    search.from_starts(jax.random.key(0), np.zeros((8, 7)) + 0.1)
    assert search.symmetries() is None
