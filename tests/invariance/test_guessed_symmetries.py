"""Moves by guessed symmetries leave γ_β(x) invariant, whether the guess is right or wrong.

A mixture that a quarter turn and an exchange of coordinates change a little, and a base that they change much. α = 1e-4
for each comparison, with constant seeds; each planted bug must be caught by the very same call.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.kernels.tempered import evaluator
from pseudo_extended.precision import double_precision
from pseudo_extended.problems.mixtures import NormalMixture
from pseudo_extended.target.symmetries import Element
from pseudo_extended.tempering import guessed
from pseudo_extended.tempering.path import Path
from pseudo_extended.testing import check_invariance

from .resampled import at_places

DENSITY = NormalMixture(
    np.array([0.4, 0.3, 0.2, 0.1]), np.array([[2.0, -0.5], [-0.5, 2.0], [-2.0, 0.5], [0.3, -2.0]]), np.full(4, 0.4)
)
TARGET = pe.Target(DENSITY, np.zeros(2))
BASE = pe.NormalMixture([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]], np.array([[1.5, 1.0], [2.0, 1.5], [4.0, 3.0]]))
PATH = Path(jnp.array([0.0, 0.3, 1.0]), jnp.zeros((3, 3)))
T = np.array([0.0, 0.4, 1.0])
"""Of three points, of which the last is at the target."""
TURN = Element(np.array([1, 0]), np.array([1.0, -1.0]))
EXCHANGE = Element(np.array([1, 0]), np.array([1.0, 1.0]))
IMAGES = guessed.Images.of([TURN, EXCHANGE])


def run(images=IMAGES, num_steps=2):
    evaluate = evaluator(TARGET.with_base(BASE), gradient=True)
    beta = jnp.interp(jnp.asarray(T), jnp.array([0.0, 0.5, 1.0]), PATH.beta)

    def step(key, flat):
        points = jax.vmap(evaluate)(flat.reshape(3, 2))
        offered = guessed.offer_images(key, images, points, jnp.array([2, 0, 1]))
        return guessed.take_images(points, beta, offered, jax.vmap(evaluate)(offered.position)).position.ravel()

    def statistics(flat):
        x = flat.reshape(3, 2)
        points = jax.vmap(evaluate)(x)
        return jnp.concatenate([flat, points.delta, points.log_base, x[:, 0] - x[:, 1]])

    return check_invariance(step, at_places(TARGET, DENSITY, BASE, PATH, T), statistics=statistics, num_steps=num_steps)


@pytest.mark.parametrize("most_maps", [1, guessed.MOST_MAPS])
def test_moves_by_guesses(most_maps, monkeypatch):
    monkeypatch.setattr(guessed, "MOST_MAPS", most_maps)
    report = run()
    assert report.passes(min_moved=0.3), report


def test_a_map_comes_with_its_inverse():
    with double_precision():
        images = guessed.Images.of([TURN])
        assert images.order.shape[0] == 2
        x = jnp.array([0.3, -1.2])
        there = images.sign[0] * x[images.order[0]]
        np.testing.assert_allclose(images.sign[1] * there[images.order[1]], x)


def test_a_right_guess_is_always_taken_at_the_target():
    symmetric = pe.Target(lambda x: -jnp.sum((jnp.sort(jnp.abs(x)) - 3) ** 2), np.zeros(4)).with_base(pe.Normal())
    maps = [Element(np.arange(4), np.array([-1.0, 1, 1, 1])), Element(np.array([1, 0, 2, 3]), np.ones(4))]
    with double_precision():
        evaluate = evaluator(symmetric, gradient=True)
        points = jax.vmap(evaluate)(jnp.asarray(np.random.default_rng(0).normal(size=(50, 4))))
        offered = guessed.offer_images(jax.random.key(1), guessed.Images.of(maps), points, jnp.arange(50))
        there = jax.vmap(evaluate)(offered.position)
        after = guessed.take_images(points, jnp.ones(50), offered, there)
        np.testing.assert_array_equal(after.position, offered.position)
        for got, expected in zip(after, there, strict=True):
            np.testing.assert_array_equal(got, expected)


def inverse_forgotten(monkeypatch):
    """With a map at a time: four quarter turns in a row would be none at all."""
    monkeypatch.setattr(guessed, "MOST_MAPS", 1)
    monkeypatch.setattr(guessed, "_inverse", lambda element: element)
    return guessed.Images.of([TURN])


def target_at_its_old_temperature(monkeypatch):
    original = guessed.take_images
    monkeypatch.setattr(guessed, "take_images", lambda points, beta, *rest: original(points, 0.5 * beta, *rest))
    return IMAGES


def taken_for_granted(monkeypatch):
    """As if every guess were right: accepted wherever the target is positive."""
    original = guessed.take_images

    def take(points, beta, offered, there):
        return original(points, beta, offered._replace(uniform=0 * offered.uniform), there)

    monkeypatch.setattr(guessed, "take_images", take)
    return IMAGES


def point_left_behind(monkeypatch):
    """The offer is drawn for one point and given to another."""
    original = guessed.offer_images

    def offer(key, images, points, which):
        return original(key, images, points, which)._replace(which=which[::-1])

    monkeypatch.setattr(guessed, "offer_images", offer)
    return IMAGES


BUGS = [inverse_forgotten, target_at_its_old_temperature, taken_for_granted, point_left_behind]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_bugs_are_caught(bug, monkeypatch):
    report = run(bug(monkeypatch))
    assert report.p_value < 1e-6, report
