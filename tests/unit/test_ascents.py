"""Ascents by L-BFGS from a queue of starts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.pilot import ascents
from pseudo_extended.pilot.ascents import MAX_EVALUATIONS, ascend

pytestmark = pytest.mark.usefixtures("x64")


def climb(log_density, starts):
    both = jax.jit(jax.vmap(jax.value_and_grad(log_density)))

    def evaluate(x):
        value, gradient = both(x)
        return np.asarray(value), np.asarray(gradient)

    found = ascend(evaluate, np.asarray(starts, float))
    return found.x, found.log_density


def test_each_ascent_of_a_long_queue_ends_at_the_mode_of_its_own_start(monkeypatch):
    monkeypatch.setattr(ascents, "MAX_LANES", 32)
    problem = pe.problems.twenty_modes("a")
    means = np.tile(problem.density.means, (7, 1))
    assert len(means) > 2 * ascents.MAX_LANES
    starts = means + np.random.default_rng(0).uniform(-0.1, 0.1, means.shape)
    ends, values = climb(problem.target.log_target, starts)
    np.testing.assert_allclose(ends, means, atol=0.02)
    np.testing.assert_allclose(values, jax.vmap(problem.target.log_target)(jnp.asarray(ends)))


def test_a_queue_shorter_than_the_lanes():
    ends, values = climb(lambda x: -jnp.sum((x - 3) ** 2), np.zeros((2, 4)))
    np.testing.assert_allclose(ends, 3.0, atol=1e-3)
    np.testing.assert_allclose(values, 0.0, atol=1e-6)


def test_a_wall_is_backed_away_from():
    ends, values = climb(lambda x: jnp.sum(jnp.where(x > 0, jnp.log(x) - x, jnp.nan)), [[0.1, 5.0]])
    np.testing.assert_allclose(ends, 1.0, atol=1e-2)  # the ascent ends where a step gains less than 1e-6
    np.testing.assert_allclose(values, -2.0, atol=1e-4)


def test_a_start_outside_the_support_is_told_and_does_not_stop_the_others():
    ends, values = climb(lambda x: jnp.where(x[0] < 10, -jnp.sum(x**2), -jnp.inf), [[20.0], [1.0]])
    assert np.isneginf(values[0])
    np.testing.assert_allclose([ends[1, 0], values[1]], 0.0, atol=1e-3)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_any_scale(scale):
    unit = scale * np.logspace(0, 2, 5)
    ends, _ = climb(lambda x: -0.5 * jnp.sum((x / unit) ** 2), 30 * unit * np.ones((1, 5)))
    np.testing.assert_allclose(ends / unit, 0.0, atol=0.01)


def test_a_tail_that_is_convex_is_crossed():
    """Where the log density is convex no pair can be learned from, and the steps grow instead."""
    _, values = climb(lambda x: -2 * jnp.sum(jnp.log1p(x**2 / 3)), 1e4 * np.ones((1, 10)))
    np.testing.assert_allclose(values, 0.0, atol=1e-4)


def test_a_curved_ridge_is_followed():
    ends, _ = climb(lambda x: -100 * (x[1] - x[0] ** 2) ** 2 - (1 - x[0]) ** 2, [[-1.2, 1.0]])
    np.testing.assert_allclose(ends, 1.0, atol=0.01)


def test_a_density_without_a_mode_ends():
    """Growing for ever, or finite nowhere: an end is reached all the same."""
    _, values = climb(lambda x: jnp.sum(x), np.zeros((1, 2)))
    assert values > MAX_EVALUATIONS
    _, values = climb(lambda x: jnp.nan * jnp.sum(x), np.zeros((1, 2)))
    assert np.isneginf(values)
