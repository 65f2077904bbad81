"""The factor that makes a target round, and the metric that shares it."""

import jax.numpy as jnp
import numpy as np
import pytest

from pseudo_extended.kernels import Metric
from pseudo_extended.pilot.modes import Modes
from pseudo_extended.pilot.whitening import Whitening, from_modes, from_points

DIM = 20
CORRELATION = 0.95 ** np.abs(np.subtract.outer(np.arange(DIM), np.arange(DIM)))
SCALES = np.geomspace(1e-3, 1e3, DIM)
COVARIANCE = CORRELATION * np.outer(SCALES, SCALES)


def roundness(whitening: Whitening) -> float:
    """The condition number of the normal in whitened coordinates; one if it is round."""
    values = np.linalg.eigvalsh(whitening.inverse @ COVARIANCE @ whitening.inverse.T)
    return values[-1] / values[0]


def test_the_curvature_at_one_mode_makes_a_normal_round():
    modes = Modes(np.zeros((1, DIM)), np.zeros(1), COVARIANCE[None], np.ones(1, int))
    whitening = from_modes(modes)
    assert roundness(whitening) < 1 + 1e-6
    np.testing.assert_allclose(whitening.factor @ whitening.inverse, np.eye(DIM), atol=1e-9)


def test_points_and_scores_make_a_normal_about_round():
    """128 draws have a covariance of condition number five by themselves; that of the normal is some 10^15."""
    x = np.random.default_rng(0).multivariate_normal(np.zeros(DIM), COVARIANCE, 128)
    score = -x @ np.linalg.inv(COVARIANCE)
    assert roundness(from_points(x, score)) < 10


def test_nothing_changes_nothing():
    assert roundness(Whitening.nothing(DIM)) == pytest.approx(np.linalg.cond(COVARIANCE), rel=1e-3)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("dense", [False, True])
def test_a_metric_is_its_factor_applied(x64, dense, shared):
    """A velocity is the factor times a momentum, a force the transposed factor times a gradient."""
    rng = np.random.default_rng(1)
    local = np.tril(rng.normal(size=(3, 4, 4))) if dense else rng.uniform(1, 2, size=(3, 4))
    factor = rng.normal(size=(4, 4))
    common = jnp.asarray(factor) if shared else None
    metrics = [Metric.from_factor(jnp.asarray(each), common) for each in local]
    vectors = rng.normal(size=(3, 4))
    whole = [(factor if shared else np.eye(4)) @ (each if dense else np.diag(each)) for each in local]
    for metric, f, vector in zip(metrics, whole, vectors, strict=True):
        np.testing.assert_allclose(metric.velocity(jnp.asarray(vector)), f @ vector)
        np.testing.assert_allclose(metric.force(jnp.asarray(vector)), f.T @ vector)
        if not shared:
            expected = f @ f.T if dense else np.diagonal(f @ f.T)
            np.testing.assert_allclose(metric.inverse_mass, expected)
            again = Metric.from_inverse_mass(metric.inverse_mass)
            np.testing.assert_allclose(again.velocity(again.force(jnp.asarray(vector))), f @ f.T @ vector)
