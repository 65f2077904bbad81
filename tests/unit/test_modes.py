"""The bases made of modes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import pseudo_extended as pe
from pseudo_extended.pilot.learned_base import (
    SHELLS,
    as_mixture,
    broad_base,
    mixed,
    mode_base,
    moments_base,
    pad_components,
    refit,
)
from pseudo_extended.pilot.modes import Modes

pytestmark = pytest.mark.usefixtures("x64")


def log_density_of(base, x):
    return jax.vmap(lambda u: base.log_density(u, None, jnp.zeros(())))(jnp.asarray(x))


def draw(base, key):
    return base.draw(key, 2, lambda position: position)


def test_half_of_each_base():
    one, other = (pe.NormalMixture([[centre, 0.0]], [np.eye(2)], [1.0]) for centre in (-1.0, 2.0))
    x = np.random.default_rng(0).normal(size=(5, 2))
    expected = np.logaddexp(log_density_of(one, x), log_density_of(other, x)) - np.log(2)
    np.testing.assert_allclose(log_density_of(mixed(one, other), x), expected)


TWO = Modes(
    np.array([[-5.0, 0.0], [5.0, 0.0]]),
    np.zeros(2),
    np.array([np.eye(2), 0.25 * np.eye(2)]),
    np.array([10, 10]),
)


@pytest.mark.parametrize("dense", [True, False])
def test_learned_bases_are_normalised_and_draw_from_themselves(dense):
    modes = TWO if dense else TWO._replace(covariance=np.array([np.ones(2), np.full(2, 0.25)]))
    points = np.random.default_rng(0).normal(size=(500, 2)) * 0.7 + TWO.x[np.arange(500) % 2]
    broad = broad_base(modes)
    mixture = mode_base(modes, broad, 40)
    learned = [broad, mixture, moments_base(points, broad), refit(mixture, points, broad)]
    for base in learned:
        place = np.linspace(-7.5, 7.5, 501)
        grid, step = np.sinh(place), np.cosh(place) * (place[1] - place[0])  # fine at the modes, and a thousand wide
        x = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
        mass = step @ np.exp(np.asarray(log_density_of(base, x))).reshape(501, 501) @ step
        np.testing.assert_allclose(mass, 1.0, atol=2e-3)
        keys = jax.random.split(jax.random.key(0), 20_000)
        drawn = np.asarray(jax.vmap(partial(draw, base))(keys))
        whole = as_mixture(base)
        mean = np.exp(whole.log_weights) @ whole.means
        np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=5 * drawn.std(axis=0).max() / np.sqrt(20_000))


def test_refit_moves_weight_to_where_the_points_are():
    points = np.random.default_rng(0).normal(size=(400, 2)) * 0.5 + TWO.x[1]
    broad = broad_base(TWO)
    refitted = refit(mode_base(TWO, broad, 40), points, broad)
    assert isinstance(refitted, pe.NormalMixture)
    weights = np.exp(refitted.log_weights)
    assert weights[1] > 100 * weights[0] > 0


def test_refit_gives_a_plateau_components_of_its_own():
    """Points far from the modes, along a ridge: the density there rises, and few are left to the broad part."""
    rng = np.random.default_rng(0)
    ridge = np.c_[rng.uniform(5, 30, 150), rng.normal(0, 0.1, 150)]
    points = np.concatenate([rng.normal(0, 0.1, (150, 2)), ridge])
    covariance = 0.01 * np.array([np.eye(2)] * 2)
    modes = Modes(np.array([[0.0, 0.0], [0.0, 2.0]]), np.zeros(2), covariance, np.ones(2, int))
    broad = broad_base(modes)
    before = mode_base(modes, broad, 40)
    after = refit(before, points, broad)
    assert isinstance(before, pe.NormalMixture)
    assert isinstance(after, pe.NormalMixture)
    assert after.num_components > before.num_components
    gain = np.asarray(log_density_of(after, ridge)) - np.asarray(log_density_of(before, ridge))
    assert np.mean(gain) > 0.5
    again = refit(after, points, broad)
    assert isinstance(again, pe.NormalMixture)
    assert again.num_components == after.num_components  # nobody is left out


def test_only_so_many_modes_are_kept():
    rng = np.random.default_rng(0)
    many = Modes(rng.normal(size=(60, 2)), rng.normal(size=60), np.array([np.eye(2)] * 60), np.ones(60, int))
    base = mode_base(many, broad_base(many), 40)
    assert isinstance(base, pe.NormalMixture)
    assert base.num_components == 40 + len(SHELLS)


def test_padding_changes_nothing():
    base = mode_base(TWO, broad_base(TWO), 40)
    assert isinstance(base, pe.NormalMixture)
    padded = pad_components(base)
    assert padded.num_components == 8
    x = np.random.default_rng(1).normal(size=(50, 2)) * 5
    np.testing.assert_allclose(log_density_of(padded, x), log_density_of(base, x), rtol=1e-12)


def test_broad_base_has_heavy_tails():
    """Up to forty of its standard deviations away it is above a Student t with three degrees of freedom, over four."""
    base = broad_base(TWO)
    scale = base.scale
    away = np.linspace(0.0, 40.0, 81)[:, None] * np.array([1.0, 0.0])
    student = scipy.stats.multivariate_t([0.0, 0.0], np.eye(2), df=3).logpdf(away)
    found = log_density_of(base, base.mean + away @ scale.T) + np.log(np.linalg.det(scale))
    assert np.all(found > student - np.log(4))
