"""Leaps between the modes of a mixture leave γ_β(x) g(t, a(x)) alone, and γ itself for the target's pseudo-sample.

In two dimensions, where components differ in shape and direction, with a base that is the target's own mixture but for
its weights and widths: exact draws at each β come from importance resampling of a proposal that covers everything.
α = 1e-4 for each comparison, with constant seeds; each planted bug must be caught by the very same call.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.kernels.tempered import evaluator
from pseudo_extended.precision import double_precision
from pseudo_extended.problems.mixtures import NormalMixture
from pseudo_extended.target.bases import NormalMixture as Mixture
from pseudo_extended.tempering import leaps
from pseudo_extended.tempering.labelled import Labelled, Rows
from pseudo_extended.tempering.path import Path
from pseudo_extended.testing import check_invariance

from .resampled import at_places

MEANS = np.array([[-2.0, 0.0], [2.5, 1.0], [0.0, -3.0]])
DENSITY = NormalMixture(np.array([0.5, 0.3, 0.2]), MEANS, np.array([0.5, 0.2, 0.8]))
TARGET = pe.Target(DENSITY, np.zeros(2))
FACTORS = np.array([[[0.8, 0.0], [0.3, 0.6]], [[0.4, 0.0], [-0.2, 0.7]], [[1.1, 0.0], [0.5, 0.9]]])
BROAD = np.array([np.eye(2) * 2, np.eye(2) * 5])
WEIGHTS = [0.1, 0.25, 0.1, 0.4, 0.15]
LEARNED = {
    "dense": pe.NormalMixture([*MEANS + 0.3, [0.0, -0.5], [0.0, -0.5]], np.concatenate([FACTORS, BROAD]), WEIGHTS),
    "diagonal": pe.NormalMixture(
        [*MEANS + 0.3, [0.0, -0.5], [0.0, -0.5]],
        np.concatenate([FACTORS, BROAD])[:, [0, 1], [0, 1]],
        WEIGHTS,
    ),
}
PATH = Path(
    jnp.array([0.0, 0.3, 1.0]), jnp.array([[1.0, -1.0, 0.5, 0.0], [-1.0, 1.5, -0.5, 0.0], [0.0, 0.0, 0.0, 0.0]])
)
T = np.array([0.0, 0.4, 1.0])
"""Of three points, of which the last carries the target."""


def run(base, num_steps=3):
    evaluate = evaluator(TARGET.with_base(base), gradient=True)
    rows = Rows(PATH, jnp.asarray(T), jnp.array([False, False, True]))
    beta = jnp.interp(jnp.asarray(T), jnp.array([0.0, 0.5, 1.0]), PATH.beta)

    def step(key, flat):
        x = flat.reshape(3, 2)
        now = Labelled(jax.vmap(evaluate)(x), jax.vmap(base.label)(x))
        key_leap, key_noise = jax.random.split(key)
        offered = leaps.offer_leaps(key_leap, base, PATH.log_g.shape[1] - 1, now, jnp.array([2, 0, 1]))
        places = jax.vmap(evaluate)(offered.position)
        after, _ = leaps.take_leaps(
            base, rows, now, beta, offered, Labelled(places, jax.vmap(base.label)(places.position))
        )
        # A little random walk beside it: leaps alone go back and forth between a few places.
        moved = after.points.position + 0.3 * jax.random.normal(key_noise, x.shape)
        there = Labelled(jax.vmap(evaluate)(moved), jax.vmap(base.label)(moved))
        gained = there.points.log_density(beta) - after.points.log_density(beta)
        gained = gained + rows.log_ratio(there.label, after.label)
        accepted = jnp.log(jax.random.uniform(jax.random.fold_in(key_noise, 1), (3,))) < gained
        return jnp.where(accepted[:, None], moved, after.points.position).ravel()

    def statistics(flat):
        x = flat.reshape(3, 2)
        label = jax.vmap(base.label)(x).astype(float)
        points = jax.vmap(evaluate)(x)
        return jnp.concatenate([flat, label, points.delta, points.log_base, x[:, 0] * label])

    return check_invariance(step, at_places(TARGET, DENSITY, base, PATH, T), statistics=statistics, num_steps=num_steps)


@pytest.mark.parametrize("name", LEARNED)
def test_leaps(name):
    report = run(LEARNED[name])
    assert report.passes(min_moved=0.5), report


def test_a_leap_and_the_leap_back():
    """In the mixture of three normals the map to another mode and back is the identity, and most leaps are possible."""
    base = LEARNED["dense"]
    with double_precision():
        x = jnp.array([-1.5, 0.4])
        for end in (1, 2):
            there = base.leap(x, jnp.asarray(0), jnp.asarray(end))
            np.testing.assert_allclose(base.leap(there, jnp.asarray(end), jnp.asarray(0)), x, atol=1e-12)
            np.testing.assert_allclose(base._whiten(there)[end], base._whiten(x)[0], atol=1e-12)


def test_offers_are_by_weight_and_never_to_where_one_is():
    weight = jnp.array([0.2, 0.0, 0.5, 0.3])
    uniform = (np.arange(4000) + 0.5) / 4000
    for start, expected in ((2, [0.4, 0, 0, 0.6]), (3, [2 / 7, 0, 5 / 7, 0])):
        ends = jax.vmap(lambda u, start=start: leaps._another(u, weight, jnp.asarray(start)))(jnp.asarray(uniform))
        np.testing.assert_allclose(np.bincount(ends, minlength=4) / 4000, expected, atol=1e-3)
        for end in (0, 2, 3):
            if end != start:
                np.testing.assert_allclose(
                    jnp.exp(leaps.log_offer(weight, jnp.asarray(start), jnp.asarray(end))), expected[end], rtol=1e-6
                )


def test_who_leaps():
    keys = jax.random.split(jax.random.key(0), 500)
    which = np.asarray(jax.vmap(lambda key: leaps.leapers(key, jnp.asarray(2), 4))(keys))
    assert np.all(which[:, 0] == 2)
    np.testing.assert_array_equal(np.bincount(which[:, 1], minlength=4) > 100, [True, True, False, True])


def jacobian_forgotten(monkeypatch):
    monkeypatch.setattr(Mixture, "log_volume", property(lambda base: jnp.zeros(base.num_components)))


def g_forgotten(monkeypatch):
    original = leaps.take_leaps

    def take(base, rows, *rest):
        flat = rows.path._replace(log_g=0 * rows.path.log_g)
        return original(base, rows._replace(path=flat), *rest)

    monkeypatch.setattr(leaps, "take_leaps", take)


def offers_forgotten(monkeypatch):
    monkeypatch.setattr(leaps, "log_offer", lambda weight, start, end: jnp.zeros(start.shape))


def start_is_any_component(monkeypatch):
    """A leap from where the point is not: whatever its label, it is taken to be in the first mode."""
    offer, take = leaps.offer_leaps, leaps.take_leaps

    def offer_leaps(key, base, num_modes, now, which):
        return offer(key, base, num_modes, now._replace(label=0 * now.label), which)

    def take_leaps(base, rows, now, *rest):
        return take(base, rows, now._replace(label=0 * now.label), *rest)

    monkeypatch.setattr(leaps, "offer_leaps", offer_leaps)
    monkeypatch.setattr(leaps, "take_leaps", take_leaps)


def taken_wherever_it_ends(monkeypatch):
    """Also where the leap back would begin in another mode."""
    monkeypatch.setattr(leaps, "has_way_back", lambda start, arrived, end: start >= 0)


def target_at_its_old_temperature(monkeypatch):
    original = leaps.take_leaps

    def take(base, rows, now, beta, *rest):
        return original(base, rows, now, 0.5 * beta, *rest)

    monkeypatch.setattr(leaps, "take_leaps", take)


BUGS = [
    jacobian_forgotten,
    g_forgotten,
    offers_forgotten,
    start_is_any_component,
    taken_wherever_it_ends,
    target_at_its_old_temperature,
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_bugs_are_caught(bug, monkeypatch):
    bug(monkeypatch)
    report = run(LEARNED["dense"])
    assert report.p_value < 1e-6, report
