"""The path's conditionals against quadrature, for slopes of every size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest

from pseudo_extended.tempering.path import Path, cells_given, draw_t, even_lengths, on_path

pytestmark = pytest.mark.usefixtures("x64")

NODES = 9
RNG = np.random.default_rng(0)
BETA = np.sort(np.concatenate([[0.0], RNG.uniform(size=NODES - 2), [1.0]]))
LOG_G = 3 * RNG.normal(size=NODES)
DELTAS = [-1e6, -1e3, -30.0, -1.0, 0.0, 1e-7, 2.0, 40.0, 1e5]


@pytest.fixture
def path():
    return Path(jnp.asarray(BETA), jnp.asarray(LOG_G))


def exact_cells(delta):
    """The logs of the masses of the cells, by the closed form in extended precision."""
    height = np.asarray(BETA, np.longdouble) * delta + LOG_G
    low, high = np.minimum(height[1:], height[:-1]), np.maximum(height[1:], height[:-1])
    gap = np.where(high == low, np.longdouble(1e-18), high - low)
    return high + np.log(-np.expm1(-gap) / gap) - np.log(np.longdouble(NODES - 1))


@pytest.mark.parametrize("delta", DELTAS)
def test_masses(path, delta):
    cells = cells_given(path, jnp.asarray(delta))
    log_mass = exact_cells(delta)
    total = np.logaddexp.reduce(log_mass)
    np.testing.assert_allclose(float(cells.log_mass), float(total), rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(cells.share, np.exp(log_mass - total).astype(float), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(np.sum(cells.share), 1)


@pytest.mark.parametrize("delta", [-300.0, -30.0, 0.0, 2.0, 40.0])
def test_draws(path, delta):
    """By Kolmogorov and Smirnov; a false alarm below 1e-4 in five tests with a constant seed."""
    t = np.linspace(0, 1, 200_001)
    height = np.asarray(on_path(path.beta, jnp.asarray(t))) * delta + np.asarray(on_path(path.log_g, jnp.asarray(t)))
    density = np.exp(height - height.max())
    cdf = np.concatenate([[0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    uniform = jax.random.uniform(jax.random.key(1), (20_000,))
    cells = cells_given(path, jnp.full(uniform.shape, delta))
    drawn = np.asarray(draw_t(uniform, cells))
    assert np.all((drawn >= 0) & (drawn <= 1))
    assert kstest(drawn, lambda q: np.interp(q, t, cdf / cdf[-1])).pvalue > 1e-4
    wrong = np.asarray(draw_t(uniform, cells._replace(slope=-cells.slope)))
    if delta == 40.0:
        assert kstest(wrong, lambda q: np.interp(q, t, cdf / cdf[-1])).pvalue < 1e-4


@pytest.mark.parametrize("uniform", [0.0, 1.0 - 2**-53])
@pytest.mark.parametrize("delta", DELTAS)
def test_extreme_uniforms_stay_on_the_path(path, delta, uniform):
    drawn = float(draw_t(jnp.asarray(uniform), cells_given(path, jnp.asarray(delta))))
    assert 0 <= drawn <= 1


def test_on_path_is_linear_interpolation(path):
    t = np.linspace(0, 1, 101)
    np.testing.assert_allclose(on_path(path.beta, jnp.asarray(t)), np.interp(t, np.linspace(0, 1, NODES), BETA))


def test_a_constant_added_to_the_target_only_tilts_the_path(path):
    """γ → e^c γ adds c to Δ and is undone by g(t) → g(t) e^(-c β(t))."""
    delta = jnp.array([-3.0, 0.5, 7.0])
    tilted = path._replace(log_g=path.log_g - 1000 * path.beta)
    np.testing.assert_allclose(cells_given(tilted, delta + 1000).share, cells_given(path, delta).share, rtol=1e-9)


def test_even_lengths():
    beta, length = jnp.array([0.0, 0.1, 1.0]), jnp.array([0.0, 3.0, 4.0])
    np.testing.assert_allclose(even_lengths(beta, length, 4), [0.0, 0.1 / 3, 0.2 / 3, 0.1, 1.0])
