"""Modes that are one but for a permutation or signs, and modes that ascents have found and the draws have not."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.results.laplace import approximate
from pseudo_extended.results.second_look import GoodTuring, hot_starts
from pseudo_extended.results.symmetries import Shapes, group_modes
from pseudo_extended.target.labels import Parameter

from .landscapes import CASES, exact_result, mixture


def labellings(means, log_scales, order="C"):
    """A density of (mean, log scale) of three components with no order, and exact draws of it."""
    rows = np.array([np.ravel([means, log_scales], order=order)])
    places = []
    for permutation in itertools.permutations(range(3)):
        parts = np.array([means, log_scales])[:, list(permutation)]
        places.append(parts.ravel(order=order))
    return mixture(np.array(places), np.full(6, 0.2), np.full(6, 1 / 6)), rows


@pytest.mark.parametrize("order", ["C", "F"])
def test_labellings_of_a_vector_are_one_group(order):
    """With two components whose scales are the same: matching coordinate by coordinate would mix them up."""
    case, _ = labellings([-3.0, 0.0, 4.0], [0.5, 0.5, 2.0], order)
    modes = exact_result(case.log_density, case.draw(np.random.default_rng(0), 3000)).modes()
    assert len(modes) == 6
    assert len(np.unique(modes.group)) == 1
    assert modes.has_groups
    assert modes.group_mass.value == pytest.approx([1])
    assert "5 more by symmetry" in modes.lines()[0]


def test_labellings_of_named_parameters_are_one_group():
    places = np.array([[-2.0, 2.0], [2.0, -2.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])

    def log_density(p):
        apart = jnp.sum((p["mu"] - places[0]) ** 2, axis=1) + jnp.sum((jnp.log(p["tau"]) - places[1]) ** 2, axis=1)
        return jax.nn.logsumexp(-0.5 * apart / 0.1**2) - jnp.sum(jnp.log(p["tau"])) - 0.5 * (p["z"] - 2) ** 2

    target = pe.Target(log_density, {"mu": np.zeros(2), "tau": np.ones(2), "z": 0.0}, bounds={"tau": (0, None)})
    rng = np.random.default_rng(0)
    k = rng.integers(2, size=2000)
    noise = 0.1 * rng.normal(size=(2000, 4))
    x = np.concatenate([places[0][k] + noise[:, :2], places[1][k] + noise[:, 2:], 2 + rng.normal(size=(2000, 1))], 1)
    modes = exact_result(target, x).modes()
    np.testing.assert_array_equal(modes.group, [0, 0])


def test_modes_of_unequal_mass_are_no_group():
    modes = exact_result(CASES["two normals"].log_density, CASES["two normals"].draw(np.random.default_rng(0), 2000))
    assert not modes.modes().has_groups


def test_signs_of_factors_are_one_group():
    """Columns of a loading with free signs: four modes, and one of them is another density's."""
    column = np.array([2.0, -1.0, 3.0])

    def log_density(x):
        first, second = x[:3], x[3:]
        return sum(
            jnp.logaddexp(
                -0.5 * jnp.sum((part - s * column) ** 2) / 0.04, -0.5 * jnp.sum((part + s * column) ** 2) / 0.04
            )
            for part, s in ((first, 1.0), (second, 2.0))
        )

    rng = np.random.default_rng(0)
    signs = rng.choice([-1, 1], size=(3000, 2))
    x = np.concatenate([signs[:, :1] * column, 2 * signs[:, 1:] * column], axis=1) + 0.2 * rng.normal(size=(3000, 6))
    modes = exact_result(log_density, x).modes()
    assert len(modes) == 4
    np.testing.assert_array_equal(modes.group, np.zeros(4))


def test_a_symmetry_of_places_that_the_density_does_not_have():
    def log_density(x):
        return np.logaddexp(-np.sum((x - [1, 4]) ** 2, axis=1), 0.1 - np.sum((x - [4, 1]) ** 2, axis=1))

    shapes = Shapes(np.array([[1.0, 4.0], [4.0, 1.0]]), np.ones((2, 2)), [Parameter("x", (2,), ("i",))])
    np.testing.assert_array_equal(
        group_modes(shapes, log_density, np.random.default_rng(0).normal(size=(20, 2))), [0, 1]
    )


def test_laplace_is_exact_for_normals():
    case = mixture([[4, 4, 0], [-4, -4, 0]], [1, 0.5], [0.7, 0.3])
    target = pe.Target(case.log_density, np.zeros(3))
    found = approximate(target, np.array([[4.0, 4.0, 0.0], [-4.0, -4.0, 0.0]]))
    np.testing.assert_allclose(np.exp(found.log_mass), [0.7, 0.3], rtol=1e-6)
    np.testing.assert_allclose(found.covariance[1], 0.25 * np.eye(3), atol=1e-9)
    modes = exact_result(case.log_density, case.draw(np.random.default_rng(0), 2000)).modes()
    np.testing.assert_allclose(modes.laplace, [0.7, 0.3], rtol=1e-3)


def test_laplace_of_a_plateau_is_not_known():
    modes = exact_result(
        CASES["a plateau"].log_density, CASES["a plateau"].draw(np.random.default_rng(0), 1000)
    ).modes()
    assert np.isnan(modes.laplace).all()


def with_hot_points(case, seen, seed=0, size=2000):
    """A result whose draws have only the seen modes, with a second pseudo-sample that goes everywhere."""
    rng = np.random.default_rng(seed)
    x = case.draw(rng, 20 * size)
    x = x[seen(x)][:size]
    result = exact_result(case.log_density, x)
    hot = 6 * rng.normal(size=result.unconstrained.shape)
    log_weights = np.zeros((*result.weights.shape[:2], 2))
    log_weights[..., 1] = -np.inf
    beta = np.broadcast_to(np.array([1.0, 0.05]), log_weights.shape)
    return dataclasses.replace(
        result,
        unconstrained=np.concatenate([result.unconstrained, hot], axis=2),
        log_weights=log_weights,
        statistics=result.statistics | {"beta": beta},
    )


class TestSecondLook:
    def test_a_mode_without_draws_is_found(self):
        result = with_hot_points(CASES["two normals"], lambda x: x[:, 0] > 0)
        modes = result.modes()
        assert len(modes) == 1
        [missed] = modes.missed
        # Half of what there is as the draws see it: 0.3 beside 0.7.
        assert missed.mass == pytest.approx(0.3, abs=0.01)
        assert missed.sampled == 0
        assert missed.found_by == "second look"
        np.testing.assert_allclose(missed.place, [-4, -4], atol=0.01)
        assert "x[0] = -4" in missed.where()

    def test_nothing_is_missed_where_nothing_is(self):
        result = with_hot_points(CASES["two normals"], lambda x: x[:, 0] > -99)
        modes = result.modes()
        assert modes.missed == ()
        assert modes.second_look is not None
        assert modes.second_look.hits.sum() == 256
        assert np.all(modes.second_look.hits > 50)
        assert modes.second_look.unseen == GoodTuring(256, 0, 0.0, 3 / 256)
        assert list(modes.table()["hot_hits"]) == list(modes.second_look.hits)

    @pytest.mark.parametrize("name", ["a ring", "a banana", "Cauchy's tails", "a plateau", "a funnel"])
    def test_of_one_mode_nothing_is_missed(self, name):
        result = with_hot_points(CASES[name], lambda x: np.ones(len(x), bool))
        modes = result.modes()
        assert len(modes) == 1
        assert modes.missed == ()

    def test_a_run_without_hot_points_has_none(self):
        result = exact_result(CASES["a ring"].log_density, CASES["a ring"].draw(np.random.default_rng(0), 1000))
        second_look = result.modes().second_look
        assert second_look is not None
        assert second_look.starts == "wide"
        assert len(hot_starts(result, 10)) == 0


def test_good_and_turing_cover():
    """The share of the law of starts that was not seen is within the bound in 95 of 100 cases or more."""
    inside = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        law = rng.dirichlet(np.full(60, 0.3))
        hits = rng.multinomial(200, law)
        found = GoodTuring.of(hits[hits > 0])
        inside += law[hits == 0].sum() <= found.bound
        assert found.num_ascents == 200
    assert inside >= 190
