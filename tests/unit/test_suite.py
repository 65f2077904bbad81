"""The answers of the benchmark suite against published numbers and independent computations."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import suite
from suite import fields, kepler, one_planet, slow
from suite.answer import Answer, record
from suite.importance import reference
from suite.on_host import OnHost
from suite.priors import Box, Gaussian
from suite.problem import Problem, masses, moments
from suite.score import score

PUBLISHED = {
    "many-well-50": 40.8112,
    "many-well-100": 86.7581,
    "many-well-200": 178.6520,
    "spike-in-slab": -11.5339,
    "eggbox": 235.856,
    "shells-2": -1.75,
    "shells-5": -5.67,
    "shells-10": -14.59,
    "shells-20": -36.09,
    "shells-30": -60.13,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_evidence_is_the_published_one(name: str) -> None:
    known = suite.load(name).log_evidence
    digits = len(str(PUBLISHED[name]).split(".")[1])
    assert known is not None
    assert abs(known - PUBLISHED[name]) < 0.51 * 10.0**-digits


def test_transfer_matrix_against_a_sum_over_a_grid() -> None:
    problem = fields.phi_four(2)
    ticks = np.linspace(-3, 3, 301)
    points = np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)
    with jax.enable_x64(True):
        log = np.asarray(jax.vmap(problem.log_gamma)(jnp.asarray(points)))
    weights = np.exp(log - log.max())
    log_evidence = np.log(weights.sum()) + log.max() + 2 * np.log(ticks[1] - ticks[0])
    assert problem.log_evidence is not None
    assert abs(log_evidence - problem.log_evidence) < 1e-6
    weights /= weights.sum()
    mean, right = weights @ points, float(weights @ (points[:, 1] > 0) + 0.5 * weights @ (points[:, 1] == 0))
    np.testing.assert_allclose(mean, problem.asked["mean"].truth, atol=1e-6)
    np.testing.assert_allclose(right, problem.asked["mass"].truth[0], atol=1e-5)


def test_masses_of_twenty_modes_against_exact_draws() -> None:
    problem = suite.load("twenty-b")
    draws = problem.log_density.draw(np.random.default_rng(5), 40_000)  # pyright: ignore
    modes = np.asarray(jax.vmap(problem.asked["mass"].function)(jnp.asarray(draws)))
    error = np.sqrt(problem.asked["mass"].truth / len(draws))
    assert np.max(np.abs(modes.mean(axis=0) - problem.asked["mass"].truth) / error) < 4.5  # false alarm in 10⁻⁴


def test_amplitudes_and_angle_are_integrated() -> None:
    gram, product = np.array([[3.0, 0.4], [0.4, 2.0]]), np.array([2.5, -4.0])

    def inner(angle: float) -> float:
        ray = np.array([np.cos(angle), np.sin(angle)])
        slope, curvature = product @ ray, ray @ gram @ ray
        return integrate.quad(lambda k: np.exp(slope * k - 0.5 * curvature * k**2) / (1 + k), 0, 30, epsabs=1e-10)[0]

    angles = 2 * np.pi * np.arange(200) / 200
    whole = np.log(np.mean([inner(angle) for angle in angles]) / np.log(1000.0))
    with jax.enable_x64(True):
        found = float(one_planet.log_amplitudes(jnp.asarray(gram), jnp.asarray(product)))
    assert abs(found - whole) < 1e-5


def test_kepler() -> None:
    with jax.enable_x64(True):
        mean_anomaly, eccentricity = jnp.linspace(-7, 7, 101), jnp.array(0.9)
        cosine, sine = kepler.anomaly(mean_anomaly, eccentricity)
        half = np.arctan2(np.asarray(sine), np.asarray(cosine)) / 2
        e_anomaly = 2 * np.arctan(np.sqrt(0.1 / 1.9) * np.tan(half))
        back = e_anomaly - 0.9 * np.sin(e_anomaly) - np.asarray(mean_anomaly)
    turns = back / (2 * np.pi)
    np.testing.assert_allclose(turns, np.round(turns), atol=1e-9)


@pytest.mark.parametrize("prior", [Box(np.array([-1.0]), np.array([3.0])), Gaussian(np.array([1.0]), np.array([2.0]))])
def test_priors_agree_with_themselves(prior: Box | Gaussian) -> None:
    ticks = np.linspace(-12, 12, 2401)[:, None]
    with jax.enable_x64(True):
        latent = np.exp(np.asarray(jax.vmap(prior.log_density_latent)(jnp.asarray(ticks))))
        x = np.asarray(jax.vmap(prior.from_latent)(jnp.asarray(ticks)))[:, 0]
        direct = np.exp(np.asarray(jax.vmap(prior.log_density)(jnp.asarray(x)[:, None])))
        cube = np.asarray(jax.vmap(prior.from_cube)(jnp.linspace(0.005, 0.995, 100)[:, None]))[:, 0]
    width = ticks[1, 0] - ticks[0, 0]
    mean = np.sum(latent * x) * width
    assert abs(np.sum(latent) * width - 1) < 1e-4
    assert abs(mean - 1.0) < 1e-3
    assert abs(cube.mean() - 1.0) < 1e-2
    # the density of the image, by the change of variables
    np.testing.assert_allclose((direct * np.gradient(x, width))[200:-200], latent[200:-200], rtol=2e-3, atol=1e-9)


def _toy() -> Problem:
    return Problem(
        "none",
        Box.cube(1, -8, 8),
        {
            "mass": masses(lambda x: jnp.where(x > 0, 1.0, 0.0), [0.5]),
            "mean": moments(lambda x: x, np.zeros(1), np.ones(1)),
        },
        log_density=lambda x: -0.5 * jnp.sum(x**2) - 0.5 * np.log(2 * np.pi),
        log_evidence=0.0,
    )


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_score_sees_a_shift_and_nothing_else(shift: float) -> None:
    problem, rng = _toy(), np.random.default_rng(3)
    x = rng.normal(size=(4, 500, 1)) + shift
    values = np.stack([(x > 0).astype(float), x], axis=-1)
    answer = Answer(values, np.ones((4, 500, 1)), 2000, log_evidence=shift, log_evidence_error=0.1)
    scored = score(problem, record(problem, answer))
    assert (scored.covered == 1.0) == (shift == 0)
    assert (scored.moment is not None and scored.moment > 0.3) == (shift > 0)
    assert scored.evidence_z == pytest.approx(10 * shift)
    assert (scored.found, scored.modes) == (1, 1)


def test_calls_are_counted_and_padding_is_not() -> None:
    host = OnHost(_toy())
    values = host.many(np.linspace(-1, 1, 5)[:, None])
    np.testing.assert_allclose(np.diff(values, n=2), -0.25, rtol=1e-5)
    host.one(np.zeros(1))
    assert host.count == 6


@pytest.mark.parametrize("name", slow.NAMES)
def test_numpy_versions_are_the_same_densities(name: str) -> None:
    problem, function = suite.load(name), slow.host(name)
    x = np.random.default_rng(2).normal(size=problem.dim) + 1.0
    with jax.enable_x64(True):
        value, gradient = jax.value_and_grad(problem.log_gamma)(jnp.asarray(x))
    np.testing.assert_allclose(function.value(x), float(value), rtol=1e-6)
    np.testing.assert_allclose(function.gradient(x), np.asarray(gradient), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["needles-circular-0", "needles-eccentric-3"])
def test_numpy_version_of_needles_is_the_same_density(name: str) -> None:
    problem = suite.load(name)
    assert problem.in_numpy is not None
    cube = np.random.default_rng(4).uniform(0.05, 0.95, (20, problem.dim))
    with jax.enable_x64(True):
        points = jax.vmap(problem.prior.from_cube)(jnp.asarray(cube))
        values = np.asarray(jax.vmap(problem.log_gamma)(points))
    np.testing.assert_allclose(problem.in_numpy(np.asarray(points)), values, rtol=1e-9)


def test_importance_sampling_goes_round_a_circle_and_meets_a_wall() -> None:
    """A mode across the seam of an angle, times a normal cut at its centre; four errors are a false alarm in 10⁻⁴."""
    problem = Problem(
        "none",
        Box(np.array([0.0, 0.0]), np.array([2 * np.pi, 1.0])),
        {"mass": masses(lambda x: jnp.stack([jnp.where(x[0] < np.pi, 1.0, 0.0)]), [0.5])},
        log_likelihood=lambda x: 8.0 * jnp.cos(x[0]) - 50.0 * x[1] ** 2,
        periodic=(0,),
    )
    with jax.enable_x64(True):
        found = reference(problem, np.array([[0.5, 0.3]]), 0, rounds=(2000, 4000, 8000))
    exact = np.log(special.i0(8.0)) + np.log(0.5 * np.sqrt(2 * np.pi) * 0.1)
    assert found.log_evidence_error < 0.03
    assert abs(found.log_evidence - exact) < 4 * found.log_evidence_error
    assert abs(found.value[0] - 0.5) < 4 * found.error[0]
