"""The pilot: it finds log Z of any size, along the path and at its end, and leaves points of the target."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.kernels import Metric as KernelMetric
from pseudo_extended.kernels import leapfrog, tempered_point
from pseudo_extended.pilot import annealer
from pseudo_extended.pilot.annealing import Metric, Moves, anneal, metric, path_from, tuning_at, tuning_from
from pseudo_extended.pilot.density import Density
from pseudo_extended.pilot.host_bases import host_base
from pseudo_extended.pilot.moves import mover_for
from pseudo_extended.target.bases import NormalMixture, NormalShells

pytestmark = pytest.mark.usefixtures("x64")

NUM_POINTS = 256


def run(target, kernel=None, dense=False, beta_min=0.0, seed=0, reserve=None):
    kernel, rng = kernel or pe.HMC(6), np.random.default_rng(seed)
    gradient = kernel.uses_gradient
    base, density = host_base(target), Density(target, gradient=gradient)
    x = base.draw(rng, NUM_POINTS)
    evaluate = partial(annealer.evaluate_path, base, density)
    mover = mover_for(kernel, target, evaluate, NUM_POINTS, dense=dense, shared=None)
    return anneal(
        rng,
        Moves(mover, 3 if gradient else 15, 5, float(kernel.target_acceptance[0])),
        evaluate,
        x,
        x if reserve is None else reserve,
        beta_min=beta_min,
        num_islands=4,
        metrics=Metric(dense, gradient),
    )


def normal_target(dim, mean, scale, shift=0.0):
    def log_density(x):
        return -0.5 * jnp.sum(((x - mean) / scale) ** 2) + shift

    target = pe.Target(log_density, np.zeros(dim), base=pe.Normal(0.0, 3.0))
    return target, dim * (0.5 * np.log(2 * np.pi) + np.log(scale)) + shift


@pytest.mark.parametrize("half_width", [0.3, 0.001])
def test_a_target_that_vanishes_at_most_draws_of_the_base(half_width):
    """A tenth of the draws are of use, and islands could have none; or none at all are, and it starts elsewhere."""
    target = pe.Target(
        lambda x: jnp.sum(jnp.where(jnp.abs(x) < half_width, -0.5 * x**2, -jnp.inf)),
        np.zeros(1),
        base=pe.Normal(0.0, 3.0),
    )
    annealed = run(target, reserve=np.array([[0.0005], [-0.0002]]), seed=3)
    assert bool(annealed.finished)
    assert np.all(np.isfinite(annealed.log_z))
    assert np.all(np.abs(annealed.population.position) < half_width)
    assert np.all(np.isfinite(path_from(annealed, 8).log_g))
    if half_width == 0.3:
        assert 0.02 < annealed.covered < 0.2
        # Three standard errors of the log of a share of 0.08 among 256 draws.
        np.testing.assert_allclose(np.mean(annealed.log_z[-1]), np.log(0.6), atol=0.6)
    else:
        assert annealed.covered == 0


@pytest.mark.parametrize(("dim", "scale", "shift"), [(1, 1.0, 1000.0), (5, 1e-3, -1e4), (100, 1.0, 0.0)])
def test_log_z_and_points(dim, scale, shift):
    target, log_z = normal_target(dim, 1.0, scale, shift)
    annealed = run(target, dense=dim < 10, seed=3)
    assert bool(annealed.finished)
    islands = np.asarray(annealed.log_z)[-1]
    # Five standard errors of four islands, t with 3 degrees of freedom: false alarm 2 %, and seeds are constants.
    assert abs(islands.mean() - log_z) < 5 * islands.std(ddof=1) / 2 + 0.05
    x = np.asarray(annealed.population.position)
    np.testing.assert_allclose(x.mean(axis=0), 1.0, atol=0.5 * scale)
    np.testing.assert_allclose(x.std(axis=0), scale, rtol=0.5)
    beta = np.asarray(annealed.beta)[: int(annealed.num_levels)]
    assert beta[0] == 0
    assert beta[-1] == 1
    assert np.all(np.diff(beta) > 0)


def test_without_gradients():
    target, log_z = normal_target(2, 1.0, 0.5)
    annealed = run(target, pe.RandomWalk())
    assert abs(float(annealed.log_z[-1].mean()) - log_z) < 0.5


def test_path_is_even_in_length_and_g_is_one_over_z():
    """Z(β) of a normal on the path to a normal is known."""
    target, _ = normal_target(3, 1.0, 0.2)
    path = path_from(run(target), 16)
    beta = np.asarray(path.beta)
    assert beta[0] == 0
    assert beta[-1] == 1
    precision = beta / 0.04 + (1 - beta) / 9
    centre = beta / 0.04 / precision
    log_z = 3 * (
        -(1 - beta) * (0.5 * np.log(2 * np.pi) + np.log(3))
        + 0.5 * np.log(2 * np.pi / precision)
        - 0.5 * (beta / 0.04 - precision * centre**2)
    )
    np.testing.assert_allclose(path.log_g, log_z[-1] - log_z, atol=0.6)
    # Thermodynamic length by the variance of Δ in closed form: the cells differ little.
    fine = np.linspace(0, 1, 20_001)
    precision = fine / 0.04 + (1 - fine) / 9
    spread = np.sqrt(
        3
        * (
            0.5 * ((1 / 0.04 - 1 / 9) / precision) ** 2
            + (1 / 0.04 - fine / 0.04 * (25 - 1 / 9) / precision) ** 2 / precision
        )
    )
    length = np.concatenate([[0], np.cumsum(0.5 * (spread[1:] + spread[:-1]) * np.diff(fine))])
    cells = np.diff(np.interp(beta, fine, length))
    assert cells.max() < 3 * np.median(cells)


def test_tuning():
    target, _ = normal_target(3, 1.0, 0.2)
    annealed = run(target)
    log_step, scale = tuning_from(annealed, 9)
    assert log_step.shape == (9,)
    assert scale.shape == (9, 3)
    # The metric is the local scale: that of the base at one end and of the target at the other.
    np.testing.assert_allclose(scale[0], 3.0, rtol=0.3)
    np.testing.assert_allclose(scale[-1], 0.2, rtol=0.3)
    at_ends, _ = tuning_at(annealed, np.array([0.0, 1.0]))
    np.testing.assert_allclose(at_ends, log_step[jnp.array([0, -1])])
    # On a path that ends at β = 0.1, where the scale is some 0.6, only the last knot is the target's.
    _, scale = tuning_from(annealed, 9, 0.1)
    assert np.all(scale[:-1] > 0.45)
    np.testing.assert_allclose(scale[-1], 0.2, rtol=0.3)


def test_metric_does_not_see_how_far_modes_are_apart():
    target = pe.Target(
        lambda x: jnp.logaddexp(-0.5 * jnp.sum((x - 20) ** 2), -0.5 * jnp.sum((x + 20) ** 2)), np.zeros(2)
    )
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 2)) + 20 * rng.choice([-1, 1], size=(1000, 1))
    population = annealer.evaluate_path(host_base(target), Density(target, gradient=True), x)
    np.testing.assert_allclose(metric(population, 1.0, Metric(dense=False)), 1.0, rtol=0.1)


def test_dense_metric_is_the_covariance_of_a_normal():
    covariance = np.array([[4.0, 1.9], [1.9, 1.0]])
    precision = np.linalg.inv(covariance)
    target = pe.Target(lambda x: -0.5 * x @ precision @ x, np.zeros(2))
    x = np.random.default_rng(0).multivariate_normal(np.zeros(2), covariance, size=20_000)
    population = annealer.evaluate_path(host_base(target), Density(target, gradient=True), x)
    factor = np.asarray(metric(population, 1.0, Metric(dense=True)))
    whitened = np.linalg.solve(factor, np.linalg.solve(factor, covariance).T)
    # Shrunk by a twentieth towards the diagonal: the worst direction is off by no more than two.
    assert 0.3 < np.linalg.eigvalsh(whitened).min() <= np.linalg.eigvalsh(whitened).max() < 3


@pytest.mark.parametrize("kernel", [pe.HMC(3), pe.MALA()])
def test_moves_on_the_host_leave_a_density_alone(kernel):
    """Ten moves of draws of a normal with a strong correlation: mean and covariance stay within Monte Carlo error."""
    covariance = np.array([[4.0, 1.9], [1.9, 1.0]])
    precision = np.linalg.inv(covariance)
    target = pe.Target(lambda x: -0.5 * x @ precision @ x, np.zeros(2), base=pe.Normal(0.0, 3.0))
    rng, size = np.random.default_rng(3), 20_000
    evaluate = partial(annealer.evaluate_path, host_base(target), Density(target, gradient=True))
    beta = 0.7
    inverse = beta * precision + (1 - beta) * np.eye(2) / 9
    there = np.linalg.inv(inverse)
    points = evaluate(rng.multivariate_normal(np.zeros(2), there, size=size))
    mover = mover_for(kernel, target, evaluate, size, dense=True, shared=None)
    rates = []
    for _ in range(10):
        points, rate, _ = mover(rng, points, beta, 0.45, np.diag([1.5, 0.8]), np.eye(2))
        rates.append(rate)
    assert 0.3 < np.mean(rates) < 0.99  # a step so long that without the test of acceptance the law would change
    unit = np.sqrt(np.diagonal(there))
    np.testing.assert_allclose(points.position.mean(axis=0) / unit, 0.0, atol=5 / np.sqrt(size))
    np.testing.assert_allclose(
        np.cov((points.position / unit).T), there / np.outer(unit, unit), atol=5 * np.sqrt(2 / size)
    )


@pytest.mark.parametrize("dense", [False, True])
def test_learned_bases_on_the_host_are_those_of_the_chains(dense):
    """Density, gradient and draws of the two bases that a pilot learns."""
    rng, dim = np.random.default_rng(1), 3
    scale = np.linalg.cholesky(np.cov(rng.normal(size=(dim, 20)))) if dense else rng.uniform(0.5, 2.0, dim)
    scales = np.stack([scale, 2 * scale])
    for base in (
        NormalMixture(rng.normal(size=(2, dim)), scales, weights=[0.2, 0.8]),
        NormalShells(rng.normal(size=dim), scale, factors=[1.0, 3.0], shares=[0.7, 0.3]),
    ):
        target = pe.Target(lambda x: jnp.sum(x), np.zeros(dim), base=base)
        here = host_base(target)
        x = here.draw(rng, 4000)
        values, gradients = here(x)
        point = jax.vmap(lambda u, target=target: target.path_gradients(u))(jnp.asarray(x))
        np.testing.assert_allclose(values, point[0].log_base, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(gradients, point[1].log_base, rtol=1e-8, atol=1e-10)
        others = np.asarray(jax.vmap(target.draw_base)(jax.random.split(jax.random.key(0), 4000)))
        error = np.sqrt(2 / 4000) * others.std(axis=0)
        assert np.all(np.abs(x.mean(axis=0) - others.mean(axis=0)) < 5 * error)
        np.testing.assert_allclose(x.std(axis=0), others.std(axis=0), rtol=0.15)


class Given:
    """A generator whose numbers are given, so that the pilot and the kernel make the same move."""

    def __init__(self, momentum, uniform):
        self.momentum, self.numbers = momentum, uniform

    def normal(self, size):
        return self.momentum.reshape(size)

    def uniform(self, size):
        return self.numbers.reshape(size)


@pytest.mark.parametrize("kernel", [pe.HMC(4), pe.HMC(3, jitter=0), pe.MALA()])
@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("kind", ["diagonal", "dense", "shared"])
def test_the_pilot_moves_points_as_the_kernel_does(monkeypatch, kernel, beta, kind):
    """Its leapfrog in NumPy and that of `move_tempered` end in the same place, and accept with the same probability."""
    target = pe.Target(lambda x: -jnp.sum((x**2 - 1) ** 2), np.zeros(2), base=pe.Normal(0.5, 2.0))
    rng, size = np.random.default_rng(4), 30
    x, momentum, uniform = rng.normal(size=(size, 2)), rng.normal(size=(size, 2)), rng.uniform(size=(2, size))
    factor = np.array([[0.7, 0.0], [0.3, 0.9]]) if kind == "dense" else np.array([0.6, 1.3])
    shared = np.array([[1.0, 0.2], [-0.4, 0.8]]) if kind == "shared" else None
    evaluate = partial(annealer.evaluate_path, host_base(target), Density(target, gradient=True))
    mover = mover_for(kernel, target, evaluate, size, dense=kind == "dense", shared=shared)
    moved = mover(Given(momentum, uniform), evaluate(x), beta, 0.5, factor, shared)

    def one(x, momentum, uniform):
        monkeypatch.setattr(leapfrog, "normals_and_uniforms", lambda *_: (momentum, uniform))
        point = tempered_point(target, x, gradient=True)
        metric = KernelMetric.from_factor(jnp.asarray(factor), None if shared is None else jnp.asarray(shared))
        step_size = jnp.array([0.5])
        return kernel.move_tempered(jax.random.key(0), target, jnp.asarray(beta), point, step_size, metric)

    ends, info = jax.vmap(one)(jnp.asarray(x), jnp.asarray(momentum), jnp.asarray(uniform.T))
    np.testing.assert_allclose(moved.population.position, ends.position, rtol=1e-9)
    np.testing.assert_allclose(moved.acceptance_rate, np.mean(info.acceptance_rate), rtol=1e-9)
    assert 0 < np.sum(np.any(ends.position != x, axis=1)) < size or moved.acceptance_rate > 0.9
    assert moved.num_evaluations == int(np.sum(info.num_evaluations))
