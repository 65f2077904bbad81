"""Boltzmann machines: enumeration against brute force, the relaxation against quadrature, D against its dual."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import dblquad

from pseudo_extended.problems import enumeration
from pseudo_extended.problems.boltzmann import boltzmann_machine, load_boltzmann, log_cosh, relax
from pseudo_extended.problems.diagonal import optimal_diagonal, scalar_shift
from pseudo_extended.problems.enumeration import enumerate_states
from tests.unit.sentences import assert_sentence


def random_machine(units, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    matrix = scale * rng.normal(size=(units, units))
    return matrix + matrix.T, rng.normal(size=units)


def brute_force(matrix, bias):
    states = np.array(list(itertools.product((-1.0, 1.0), repeat=len(bias))))
    exponent = 0.5 * np.einsum("si,ij,sj->s", states, matrix, states) + states @ bias
    log_z = np.logaddexp.reduce(exponent)
    probability = np.exp(exponent - log_z)
    return states, probability, log_z


@pytest.mark.parametrize("units", [1, 2, 3, 6, 9])
@pytest.mark.parametrize("block", [1, 2**4, 2**20])
def test_enumeration_is_brute_force(units, block, monkeypatch):
    monkeypatch.setattr(enumeration, "BLOCK", block)
    matrix, bias = random_machine(units)
    states, probability, log_z = brute_force(matrix, bias)
    exact = enumerate_states(matrix, bias)
    assert exact.log_normaliser == pytest.approx(log_z, abs=1e-10)
    np.testing.assert_allclose(exact.mean, probability @ states, atol=1e-12)
    np.testing.assert_allclose(exact.second_moment, states.T @ (probability[:, None] * states), atol=1e-12)


def test_enumeration_does_not_overflow():
    matrix, bias = random_machine(8, scale=2000.0)
    states, probability, log_z = brute_force(matrix, bias)
    exact = enumerate_states(matrix, bias)
    assert exact.log_normaliser == pytest.approx(log_z, rel=1e-12)
    np.testing.assert_allclose(exact.mean, probability @ states, atol=1e-9)
    assert np.all(np.isfinite(exact.draw(np.random.default_rng(0), 10)))


def test_states_are_drawn_with_their_probabilities():
    """Chi-square over 32 states, 200,000 draws: a false alarm at p = 1e-4; the seed is fixed."""
    matrix, bias = random_machine(5, scale=0.3)
    states, probability, _ = brute_force(matrix, bias)
    drawn = enumerate_states(matrix, bias).draw(np.random.default_rng(3), 200_000)
    code = ((drawn + 1) / 2) @ 2 ** np.arange(4, -1, -1)  # itertools counts with the last unit fastest
    counts = np.bincount(code.astype(int), minlength=32)
    expected = 200_000 * probability
    usual = expected > 5
    chi_square = np.sum((counts - expected)[usual] ** 2 / expected[usual])
    assert chi_square < 71  # the 0.9999 quantile for 31 degrees of freedom
    assert states.shape == (32, 5)


@pytest.mark.slow
def test_relaxation_is_the_mixture_of_normals(x64):
    """In two dimensions: log Z and both moments against quadrature of exp(log γ)."""
    problem = relax(*random_machine(3, seed=5, scale=0.2), diagonal="shift")
    assert problem.target.dim == 2
    log_density = jax.jit(lambda x: problem.target.log_target(x))

    def integral(f):
        g = lambda y, x: np.exp(float(log_density(jnp.array([x, y]))) - problem.log_evidence) * f(x, y)  # noqa: E731
        return dblquad(g, -9, 9, -9, 9, epsabs=1e-5, epsrel=1e-5)[0]

    assert integral(lambda x, y: 1.0) == pytest.approx(1, abs=1e-4)
    assert integral(lambda x, y: x) == pytest.approx(problem.mean[0], abs=1e-4)
    assert integral(lambda x, y: x * y) == pytest.approx(problem.cross_moment[0, 1], abs=1e-4)
    assert integral(lambda x, y: y * y) == pytest.approx(problem.second_moment[1], abs=1e-4)


def test_exact_draws_have_the_exact_moments():
    problem = boltzmann_machine(12, seed=4)
    x = problem.density.draw(np.random.default_rng(0), 40_000)
    error = np.sqrt((problem.second_moment - problem.mean**2) / len(x))
    assert np.all(np.abs(x.mean(axis=0) - problem.mean) < 5 * error)
    products = x[:, :, None] * x[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(x))
    assert np.all(np.abs(products.mean(axis=0) - problem.cross_moment) < 5 * error)


@pytest.mark.parametrize(("units", "seed"), [(2, 0), (5, 1), (12, 2), (28, 3)])
def test_diagonal_is_certified(units, seed):
    weights, _ = random_machine(units, seed)
    np.fill_diagonal(weights, 0)
    best, shift = optimal_diagonal(weights), scalar_shift(weights)
    eigenvalues = np.linalg.eigvalsh(weights + np.diag(best.diagonal))
    assert eigenvalues[0] > -1e-9
    assert eigenvalues[-1] == pytest.approx(best.largest_eigenvalue)
    assert -1e-9 <= best.gap < 1e-7 * best.largest_eigenvalue
    assert shift.lower_bound <= best.largest_eigenvalue + 1e-9 <= shift.largest_eigenvalue + 2e-9


def test_diagonal_beats_every_perturbation():
    """No random feasible D near the optimum is better: the certificate without its algebra."""
    weights, _ = random_machine(6, seed=7)
    np.fill_diagonal(weights, 0)
    best, rng = optimal_diagonal(weights), np.random.default_rng(0)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(200):
            other = best.diagonal + size * rng.normal(size=6)
            eigenvalues = np.linalg.eigvalsh(weights + np.diag(other))
            # moved up until it is feasible
            assert eigenvalues[-1] - min(eigenvalues[0], 0) >= best.lower_bound - 1e-9


def test_relaxation_keeps_the_machine():
    """QQᵀ is W off the diagonal, whatever D."""
    weights, bias = random_machine(7, seed=2)
    np.fill_diagonal(weights, 0)
    for diagonal in ("optimal", "shift"):
        problem = relax(weights, bias, diagonal=diagonal)
        product = problem.density.coupling @ problem.density.coupling.T
        np.testing.assert_allclose(product - np.diag(np.diag(product)), weights, atol=1e-5)
        assert problem.target.dim <= 6


@pytest.mark.parametrize("num_units", [12, pytest.param(28, marks=pytest.mark.slow)])
def test_generator_is_the_papers(num_units):
    problem = boltzmann_machine(num_units, seed=0, exact=False)
    again = boltzmann_machine(num_units, seed=0, exact=False)
    np.testing.assert_array_equal(problem.density.coupling, again.density.coupling)
    assert problem.mean is None
    assert 0.05 < problem.density.bias.std() < 0.15
    assert boltzmann_machine(28, seed=0, exact=False, diagonal="shift").target.dim == 27  # the paper's d
    assert boltzmann_machine(60 if num_units == 28 else 40, seed=0, exact=False).diagonal.gap < 1e-6
    assert not np.allclose(boltzmann_machine(5, seed=1).mean, boltzmann_machine(5, seed=2).mean)


def test_log_cosh_is_stable(x64):
    y = jnp.array([-800.0, -3.0, 0.0, 1e-9, 3.0, 800.0])
    np.testing.assert_allclose(log_cosh(y)[1:5], np.log(np.cosh(y[1:5])), atol=1e-15)
    np.testing.assert_allclose(jax.vmap(jax.grad(log_cosh))(y), np.tanh(y), atol=1e-15)
    assert np.all(np.isfinite(log_cosh(y)))


@pytest.mark.slow
def test_exact_numbers_of_the_first_system(data_directory):
    """log Z_b of baselines.md; and the moments that the authors published, which a rotation of x does not change."""
    problem = load_boltzmann(data_directory, "machine")
    published = np.load(data_directory / "params_and_moms.npz")
    exact = enumerate_states(published["weights"], published["biases"])
    assert exact.log_normaliser == pytest.approx(77.49136883, abs=1e-8)
    assert problem.diagonal.largest_eigenvalue == pytest.approx(11.756, abs=5e-4)
    assert scalar_shift(published["weights"]).largest_eigenvalue == pytest.approx(13.018, abs=5e-4)
    # their solver stopped further from the optimum than ours, so the two differ in the fourth digit
    covariance = problem.cross_moment - np.outer(problem.mean, problem.mean)
    theirs, ours = np.linalg.eigvalsh(published["covar_x"])[-10:], np.linalg.eigvalsh(covariance)[-10:]
    np.testing.assert_allclose(ours, theirs, rtol=2e-3)
    assert np.linalg.norm(problem.mean) == pytest.approx(np.linalg.norm(published["expc_x"]), rel=1e-4)


def test_exact_numbers_of_the_second_system(data_directory):
    problem = load_boltzmann(data_directory)
    assert problem.target.dim == 26
    assert problem.log_evidence == pytest.approx(166.746753, abs=1e-6)


def test_bad_input_is_refused(tmp_path):
    with pytest.raises(ValueError, match="exact must be False") as error:
        boltzmann_machine(29)
    assert_sentence(error.value)
    with pytest.raises(ValueError, match="diagonal must be one of"):
        boltzmann_machine(4, diagonal="sdp")
    with pytest.raises(ValueError, match="symmetric"):
        relax(np.arange(9.0).reshape(3, 3), np.zeros(3))
    with pytest.raises(ValueError, match="couple"):
        relax(np.eye(3), np.zeros(3))
    with pytest.raises(FileNotFoundError, match=r"relaxations\.npz"):
        load_boltzmann(tmp_path)
    (tmp_path / "relaxations.npz").write_bytes(b"something else")
    with pytest.raises(ValueError, match="SHA-256"):
        load_boltzmann(tmp_path)
    with pytest.raises(ValueError, match="exact=False"):
        boltzmann_machine(4, exact=False).density.draw(np.random.default_rng(0), 3)
