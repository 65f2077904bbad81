"""HMC with a delayed second trajectory leaves a funnel invariant, into whose neck the usual steps do not go."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.kernels import Metric, delayed
from pseudo_extended.kernels.leapfrog import leapfrog
from pseudo_extended.kernels.tempered import tempered_point
from pseudo_extended.testing import check_invariance

WIDTH = 1.5
STEP, NUM_STEPS = 1.1, 3


def funnel(x):
    return -0.5 * (x[0] / WIDTH) ** 2 - 0.5 * x[0] - 0.5 * x[1] ** 2 * jnp.exp(-x[0])


TARGET = pe.Target(funnel, np.zeros(2))


def exact(rng, size):
    log_variance = WIDTH * rng.normal(size=size)
    return np.stack([log_variance, np.exp(0.5 * log_variance) * rng.normal(size=size)], axis=1)


def move(key, x, step=STEP):
    point = tempered_point(TARGET, x, gradient=True)
    metric = Metric.from_factor(jnp.array([0.8, 1.2]))
    return delayed.move_with_delay(key, TARGET, jnp.ones(()), point, jnp.asarray(step), metric, jnp.asarray(NUM_STEPS))


def statistics(x):
    inside = x[1] * jnp.exp(-0.5 * x[0])
    return jnp.stack([x[0], x[1], inside, x[0] ** 2, jnp.abs(inside), funnel(x)])


def run(num_steps=2):
    return check_invariance(lambda key, x: move(key, x)[0].position, exact, statistics=statistics, num_steps=num_steps)


def test_it_leaves_a_funnel_invariant():
    report = run()
    assert report.passes(), report


@pytest.mark.usefixtures("x64")
def test_the_second_trajectory_is_accepted_in_the_neck():
    neck = jnp.array([-4.0, 0.05])
    points, info = jax.vmap(lambda key: move(key, neck))(jax.random.split(jax.random.key(0), 200))
    failed = info.acceptance_rate[:, 0] < delayed.FAILED
    moved = jnp.any(points.position != neck, axis=1)
    assert jnp.mean(failed) > 0.3
    assert jnp.mean(moved[failed]) > 0.5
    assert set(np.unique(info.num_evaluations)) <= {NUM_STEPS, 9 * NUM_STEPS, 10 * NUM_STEPS}


def way_back_forgotten(monkeypatch):
    """As if the usual steps could not be accepted at the second end."""
    original = delayed._delayed_rate
    monkeypatch.setattr(delayed, "_delayed_rate", lambda gained, first, back: original(gained, first, 0.0 * back))


def delay_forgotten(monkeypatch):
    """The second end is accepted as if it had been the first proposal."""
    monkeypatch.setattr(delayed, "_delayed_rate", lambda gained, first, back: delayed._rate(gained))


def small_steps_without_the_test(monkeypatch):
    monkeypatch.setattr(delayed, "_delayed_rate", lambda gained, first, back: 0 * first + 1.0)


def momentum_not_reversed(monkeypatch):
    """The third trajectory goes on, and not back."""

    def follow(*given):
        end, momentum = leapfrog(*given)
        return end, -momentum

    monkeypatch.setattr(delayed, "leapfrog", follow)


def steps_by_place(monkeypatch):
    """Smaller steps in the neck, from whose end larger ones would lead back."""
    original = delayed.move_with_delay

    def move(key, target, beta, point, step_size, *rest):
        return original(key, target, beta, point, jnp.where(point.position[0] < -1.0, 0.3, step_size), *rest)

    monkeypatch.setattr(delayed, "move_with_delay", move)


@pytest.mark.parametrize(
    "bug", [steps_by_place, way_back_forgotten, delay_forgotten, small_steps_without_the_test, momentum_not_reversed]
)
def test_bugs_are_caught(bug, monkeypatch):
    bug(monkeypatch)
    report = run(num_steps=4)
    assert report.p_value < 1e-6, report
