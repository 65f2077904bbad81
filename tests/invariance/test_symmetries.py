"""Moves by declared symmetries leave γ_β(x) g(t, a(x)) alone, whatever the base, and always move the target's point.

A mixture that does not change when its two coordinates are exchanged, or both change sign, and a base that has neither
symmetry. α = 1e-4 for each comparison, with constant seeds; each planted bug must be caught by the very same call.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.kernels.tempered import evaluator
from pseudo_extended.precision import double_precision
from pseudo_extended.problems.mixtures import NormalMixture
from pseudo_extended.tempering import symmetric
from pseudo_extended.tempering.labelled import Rows
from pseudo_extended.tempering.path import Path
from pseudo_extended.testing import check_invariance

from .resampled import at_places

DENSITY = NormalMixture(
    np.full(4, 0.25), np.array([[2.0, -0.5], [-0.5, 2.0], [-2.0, 0.5], [0.5, -2.0]]), np.full(4, 0.3)
)
TARGET = pe.Target(DENSITY, np.zeros(2), symmetries=[pe.permutation(), pe.sign_flip()])
BASE = pe.NormalMixture(
    [[2.0, 0.0], [-1.0, 1.5], [0.5, 0.0], [0.5, 0.0]], np.array([[1.0, 0.6], [0.7, 1.0], [2.0, 1.5], [4.0, 3.0]])
)
PATH = Path(jnp.array([0.0, 0.3, 1.0]), jnp.array([[1.0, -1.0, 0.0], [-0.5, 1.5, 0.0], [0.0, 0.0, 0.0]]))
T = np.array([0.0, 0.4, 1.0])
"""Of three points, of which the last carries the target."""
CARRIER = jnp.array([False, False, True])


def run(path=PATH, num_steps=2):
    own = TARGET.with_base(BASE)
    evaluate = evaluator(own, gradient=True)
    beta = jnp.interp(jnp.asarray(T), jnp.array([0.0, 0.5, 1.0]), path.beta)
    has_rows = path.log_g.ndim == 2

    def sited(x):
        label = jax.vmap(BASE.label)(x) if has_rows else None
        return symmetric.Sited(jax.vmap(evaluate)(x), label, jnp.asarray(T), CARRIER, beta)

    def step(key, flat):
        return symmetric.move_by_symmetry(key, own, sited(flat.reshape(3, 2)), path)[0].position.ravel()

    def statistics(flat):
        x = flat.reshape(3, 2)
        points = jax.vmap(evaluate)(x)
        return jnp.concatenate([flat, points.delta, points.log_base, x[:, 0] - x[:, 1]])

    all_rows = path if has_rows else path._replace(log_g=jnp.zeros((3, 3)))
    return check_invariance(
        step, at_places(TARGET, DENSITY, BASE, all_rows, T), statistics=statistics, num_steps=num_steps
    )


@pytest.mark.parametrize("has_rows", [False, True])
def test_moves_by_symmetry(has_rows):
    report = run(PATH if has_rows else PATH._replace(log_g=PATH.log_g[:, -1]))
    assert report.passes(min_moved=0.5), report


def test_what_is_known_at_the_image_is_what_it_would_be_found_to_be():
    own = TARGET.with_base(BASE)
    with double_precision():
        evaluate = evaluator(own, gradient=True)
        x = jnp.asarray(np.random.default_rng(0).normal(size=(3, 2)))
        now = symmetric.Sited(jax.vmap(evaluate)(x), None, jnp.asarray(T), CARRIER, jnp.ones(3))
        points, _ = symmetric.move_by_symmetry(jax.random.key(3), own, now, PATH)
        assert np.sum(np.any(points.position != x, axis=1)) >= 2  # the identity is one of four elements
        for got, expected in zip(points, jax.vmap(evaluate)(points.position), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)


def base_forgotten(monkeypatch):
    """As if the base had the symmetry: the ratio is that of the target alone."""
    original = symmetric.move_by_symmetry

    def move(key, target, now, path):
        return original(key, target, now._replace(beta=jnp.ones_like(now.beta)), path)

    monkeypatch.setattr(symmetric, "move_by_symmetry", move)


def base_upside_down(monkeypatch):
    original = symmetric.move_by_symmetry

    def move(key, target, now, path):
        return original(key, target, now._replace(beta=2 - now.beta), path)

    monkeypatch.setattr(symmetric, "move_by_symmetry", move)


def g_forgotten(monkeypatch):
    monkeypatch.setattr(Rows, "log_ratio", lambda rows, new, old: jnp.zeros(new.shape))


@pytest.mark.parametrize("bug", [base_forgotten, base_upside_down, g_forgotten], ids=lambda bug: bug.__name__)
def test_bugs_are_caught(bug, monkeypatch):
    bug(monkeypatch)
    report = run()
    assert report.p_value < 1e-6, report
