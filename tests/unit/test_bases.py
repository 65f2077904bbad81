"""Base densities: against SciPy, and draws against moments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

import pseudo_extended as pe
from pseudo_extended.target.bases import NormalShells

from .sentences import assert_sentence

FACTOR = np.array([[1.5, 0.0], [-0.7, 0.4]])
NORMALS = {
    "standard": (pe.Normal(), np.zeros(2), np.eye(2)),
    "number": (pe.Normal(1.0, 2.0), np.ones(2), 4 * np.eye(2)),
    "vector": (pe.Normal([1.0, -3.0], [0.5, 2.0]), np.array([1.0, -3.0]), np.diag([0.25, 4.0])),
    "cholesky": (pe.Normal([1.0, -3.0], FACTOR), np.array([1.0, -3.0]), FACTOR @ FACTOR.T),
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", NORMALS)
def test_normal_log_density_is_normalised(name):
    """Against SciPy; a handful of operations, so 1e-12. Bounds do not concern it: it lives where `u` does."""
    base, mean, covariance = NORMALS[name]
    u = np.array([0.3, -1.2])
    expected = multivariate_normal(mean, covariance).logpdf(u)
    np.testing.assert_allclose(base.log_density(jnp.asarray(u), None, jnp.asarray(17.0)), expected, rtol=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", NORMALS)
def test_normal_draws(name):
    """Mean and covariance of 20,000 draws within 5 standard errors: a false alarm once in 10⁵ such tests."""
    base, mean, covariance = NORMALS[name]
    size = 20_000
    keys = jax.random.split(jax.random.key(0), size)
    draws = np.asarray(jax.vmap(lambda key: base.draw(key, 2, None))(keys))
    deviation = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5 * deviation / np.sqrt(size))
    spread = np.sqrt((np.outer(deviation, deviation) ** 2 + covariance**2) / size)
    assert np.all(np.abs(np.cov(draws.T) - covariance) < 5 * spread)
    assert base.can_sample


@pytest.mark.parametrize(
    ("arguments", "kind", "name"),
    [
        (("a",), TypeError, "mean"),
        ((None,), TypeError, "mean"),
        (([[0.0]],), ValueError, "mean"),
        ((np.nan,), ValueError, "mean"),
        ((0.0, "a"), TypeError, "scale"),
        ((0.0, 0.0), ValueError, "scale"),
        ((0.0, -1.0), ValueError, "scale"),
        ((0.0, [1.0, 0.0]), ValueError, "scale"),
        ((0.0, []), ValueError, "scale"),
        ((0.0, np.inf), ValueError, "scale"),
        ((0.0, np.ones((2, 3))), ValueError, "scale"),
        ((0.0, np.ones((2, 2))), ValueError, "scale"),
        ((0.0, np.ones((2, 2, 2))), ValueError, "scale"),
        ((0.0, np.array([[1.0, 0.0], [1.0, -1.0]])), ValueError, "scale"),
    ],
)
def test_normal_refuses(arguments, kind, name):
    with pytest.raises(kind) as error:
        pe.Normal(*arguments)
    assert_sentence(error, f"{name} of Normal")


@pytest.mark.parametrize("base", [pe.Normal([0.0, 0.0]), pe.Normal(0.0, [1.0, 1.0]), pe.Normal(0.0, np.eye(2))])
def test_a_normal_of_another_dimension_does_not_fit(base):
    with pytest.raises(ValueError, match="length 3") as error:
        pe.Target(lambda x: -jnp.sum(x**2), np.zeros(3), base=base)
    assert_sentence(error, "base")


@pytest.mark.usefixtures("x64")
def test_base_takes_the_jacobian_with_it():
    base = pe.Base(lambda x: -jnp.sum(x))
    value = base.log_density(jnp.zeros(1), jnp.array([2.0]), jnp.asarray(0.7))
    assert float(value) == -2.0 + 0.7


@pytest.mark.usefixtures("x64")
def test_base_draws_in_the_users_space():
    """A draw is mapped by the bounds: the log of an exponential draw, exactly."""
    sampler = lambda key: jax.random.exponential(key, (2,), float)  # noqa: E731
    target = pe.Target(
        lambda x: -jnp.sum(x), np.ones(2), bounds=(0, None), base=pe.Base(lambda x: -jnp.sum(x), sampler)
    )
    key = jax.random.key(3)
    np.testing.assert_allclose(target.draw_base(key), np.log(sampler(key)), rtol=1e-15)


def test_base_without_a_sampler_cannot_draw():
    base = pe.Base(lambda x: -jnp.sum(x**2))
    assert not base.can_sample
    with pytest.raises(ValueError, match="sampler") as error:
        base.draw(jax.random.key(0), 1, lambda x: x)
    assert_sentence(error)


@pytest.mark.parametrize(
    ("arguments", "name"), [((3,), "log_density"), ((None,), "log_density"), ((abs, 3), "sampler")]
)
def test_base_refuses(arguments, name):
    with pytest.raises(TypeError) as error:
        pe.Base(*arguments)
    assert_sentence(error, f"{name} of Base")


class TestNormalShells:
    """A normal with wider copies around it is the mixture of them."""

    factors, shares = np.array([1.0, 2.5, 6.0]), np.array([0.8, 0.15, 0.05])

    @pytest.mark.parametrize("dim", [3, 12])
    @pytest.mark.parametrize("dense", [False, True])
    def test_it_is_the_mixture(self, x64, dense, dim):
        rng = np.random.default_rng(0)
        mean = rng.normal(size=dim)
        scale = np.tril(0.3 * rng.normal(size=(dim, dim))) + np.eye(dim) * 2 if dense else rng.uniform(1, 2, dim)
        if dense:
            scale[np.diag_indices(dim)] = np.abs(np.diagonal(scale)) + 0.5
        base = NormalShells(mean, scale, self.factors, self.shares)
        mixture = pe.NormalMixture(np.tile(mean, (3, 1)), np.multiply.outer(self.factors, scale), self.shares)
        for u in rng.normal(size=(5, dim)) * 4:
            np.testing.assert_allclose(base.log_density(u, None, 0.0), mixture.log_density(u, None, 0.0), rtol=1e-10)

    def test_draws_have_its_moments(self, x64):
        base = NormalShells(np.array([1.0, -2.0]), np.array([[1.0, 0.0], [0.5, 0.7]]), self.factors, self.shares)
        draws = jax.vmap(lambda key: base.draw(key, 2, lambda u: u))(jax.random.split(jax.random.key(0), 40_000))
        spread = np.sum(self.shares * self.factors**2)
        expected = spread * base.scale @ base.scale.T
        np.testing.assert_allclose(np.mean(draws, axis=0), base.mean, atol=0.05)
        np.testing.assert_allclose(np.cov(np.asarray(draws).T), expected, rtol=0.1)

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ((np.zeros((2, 2)), np.ones(2)), ("mean", "vector")),
            ((np.zeros(2), np.ones(3)), ("scale", "(3,)")),
            ((np.zeros(2), -np.ones(2)), ("scale", "positive")),
            ((np.zeros(2), np.ones(2), [1.0], [0.5, 0.5]), ("factors", "shares")),
        ],
    )
    def test_bad_settings(self, settings, words):
        with pytest.raises(ValueError, match="NormalShells") as caught:
            NormalShells(*settings)
        assert_sentence(caught, *words)
