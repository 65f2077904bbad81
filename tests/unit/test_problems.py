"""The problems of the paper's experiments: truths against independent computations, gradients, data files."""

import hashlib
import http.client
import http.server
import threading
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import pseudo_extended as pe
from pseudo_extended.problems import files
from pseudo_extended.problems.horseshoe import HorseshoePrior, LogisticLikelihood
from pseudo_extended.problems.mixtures import TWENTY_MEANS
from pseudo_extended.problems.mrna import fluorescence
from tests.unit.sentences import assert_sentence


def toy_regression(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(25, 3))
    return pe.problems.horseshoe_regression(x, (x[:, 0] > 0).astype(float), expected_active=1.0)


class TestMixtures:
    @pytest.mark.parametrize("scenario", ["a", "b"])
    def test_moments_by_quadrature_of_the_formula_in_the_paper(self, scenario):
        """A sum over a fine grid of the density, written down again."""
        distance = np.linalg.norm(TWENTY_MEANS - 5, axis=1)
        weight, variance = (np.ones(20), np.full(20, 0.01)) if scenario == "a" else (1 / distance, distance / 20)
        grid = np.arange(-4, 15, 0.02)
        mass, first, second = 0.0, np.zeros(2), np.zeros(2)
        for w, v, mean in zip(weight, variance, TWENTY_MEANS, strict=True):
            by_axis = [np.exp(-0.5 * (grid - m) ** 2 / v) / np.sqrt(2 * np.pi * v) for m in mean]
            powers = np.array([[np.sum(grid**k * p) * 0.02 for k in range(3)] for p in by_axis])
            mass += w * powers[0, 0] * powers[1, 0]
            first += w * powers[:, 1] * powers[::-1, 0]
            second += w * powers[:, 2] * powers[::-1, 0]
        problem = pe.problems.twenty_modes(scenario)
        np.testing.assert_allclose(problem.mean, first / mass, rtol=1e-6)
        np.testing.assert_allclose(problem.second_moment, second / mass, rtol=1e-6)

    def test_illustration_by_quadrature(self):
        problem = pe.problems.illustration()
        density = lambda x: np.exp(float(problem.density(jnp.array([x]))))  # noqa: E731
        moments = [integrate.quad(lambda x, k=k: x**k * density(x), -4, 4, points=[-1, 1])[0] for k in range(3)]
        np.testing.assert_allclose(moments, [1, problem.mean[0], problem.second_moment[0]], atol=1e-5)


class TestHorseshoe:
    def test_prior_is_the_product_of_its_parts(self, x64):
        prior = HorseshoePrior(3, global_scale=0.2)
        rng = np.random.default_rng(1)
        local, z = np.abs(rng.standard_cauchy(3)), rng.normal(size=3)
        position = {"intercept": 1.5, "z": z, "local": local, "global": 0.3, "slab": 0.8}
        expected = (
            stats.norm(0, 10).logpdf(1.5)
            + stats.norm.logpdf(z).sum()
            + stats.halfcauchy.logpdf(local).sum()
            + stats.halfcauchy(scale=0.2).logpdf(0.3)
            + stats.invgamma(1.5, scale=1.5).logpdf(0.8)
        )
        np.testing.assert_allclose(prior(jax.tree.map(jnp.asarray, position)), expected, rtol=1e-12)

    def test_draws_of_the_prior_follow_it(self, x64):
        """K-S tests with a constant seed; a false alarm had probability 1e-3 in all."""
        prior = HorseshoePrior(2, global_scale=0.2)
        draws = jax.vmap(prior.sample)(jax.random.split(jax.random.key(0), 2000))
        laws = {
            "intercept": stats.norm(0, 10), "z": stats.norm(), "local": stats.halfcauchy(),
            "global": stats.halfcauchy(scale=0.2), "slab": stats.invgamma(1.5, scale=1.5),
        }  # fmt: skip
        for name, law in laws.items():
            assert stats.kstest(np.ravel(draws[name]), law.cdf).pvalue > 2e-4, name

    def test_likelihood_and_coefficients_by_hand(self, x64):
        problem = toy_regression()
        prior = problem.density.prior
        position = prior.sample(jax.random.key(3))
        c2, tau, local = 4 * position["slab"], position["global"], position["local"]
        x = position["z"] * tau * np.sqrt(c2 * local**2 / (c2 + tau**2 * local**2))
        p = 1 / (1 + np.exp(-(position["intercept"] + problem.density.covariates @ x)))
        y = problem.density.labels
        np.testing.assert_allclose(problem.density(position), np.sum(y * np.log(p) + (1 - y) * np.log1p(-p)), rtol=1e-9)
        np.testing.assert_allclose(problem.coefficients(position), x)

    def test_scales_and_split_are_the_papers(self):
        problem = toy_regression()
        np.testing.assert_allclose(problem.density.prior.global_scale, 1 / 2 * 2 / np.sqrt(20))
        assert (len(problem.density.labels), len(problem.held_out.labels)) == (20, 5)
        x, labels = np.eye(10, 2), np.arange(10) % 2
        one_left = pe.problems.horseshoe_regression(x, labels, expected_active=1, held_out=0.9)  # 1 - 0.9 < 0.1
        assert len(one_left.density.labels) == 1
        together = np.concatenate([problem.density.covariates, problem.held_out.covariates])
        rows = {tuple(row) for row in np.random.default_rng(0).normal(size=(25, 3)).round(12)}
        assert {tuple(row) for row in together.round(12)} == rows

    def test_gradient_by_finite_differences(self, x64):
        target = toy_regression().target
        u = np.random.default_rng(2).normal(size=target.dim)

        def log_density(u):
            return target.path_point(u).log_target

        gradient = jax.grad(log_density)(jnp.asarray(u))
        steps = 1e-6 * np.eye(target.dim)
        differences = [(log_density(u + step) - log_density(u - step)) / 2e-6 for step in steps]
        np.testing.assert_allclose(gradient, differences, rtol=1e-4, atol=1e-6)

    @pytest.mark.parametrize(
        ("name", "shape"), [("colon", (62, 2000)), ("leukemia", (72, 7070)), ("prostate", (102, 5966))]
    )
    def test_cancer_data(self, name, shape, data_directory):
        problem = pe.problems.cancer(name, data_directory, seed=1)
        assert problem.target.dim == 2 * shape[1] + 3
        assert len(problem.density.labels) == int(0.8 * shape[0])
        labels = np.concatenate([problem.density.labels, problem.held_out.labels])
        assert len(labels) == shape[0]
        assert 20 <= labels.sum() <= 60
        other = pe.problems.cancer(name, data_directory, seed=2)
        assert not np.array_equal(problem.held_out.labels, other.held_out.labels)

    def test_bad_input(self):
        x = np.zeros((5, 2))
        with pytest.raises((ValueError, OSError)) as error:
            pe.problems.horseshoe_regression(x, np.ones(5), expected_active=1)
        assert_sentence(error, "labels must be 0 and 1")
        with pytest.raises((ValueError, OSError)) as error:
            pe.problems.horseshoe_regression(np.zeros((0, 2)), np.zeros(0), expected_active=1)
        assert_sentence(error, "labels must be 0 and 1")
        with pytest.raises(TypeError) as error:
            pe.problems.mean_field(3)
        assert_sentence(error, "density must be")
        with pytest.raises((ValueError, OSError)) as error:
            pe.problems.horseshoe_regression(x, np.ones(4), expected_active=1)
        assert_sentence(error, "covariates must be a matrix")
        with pytest.raises((ValueError, OSError)) as error:
            pe.problems.horseshoe_regression(x, [0, 1, 0, 1, 0], expected_active=2)
        assert_sentence(error, "expected_active must be")


class TestTransfection:
    def test_curve_is_the_formula_and_its_limit(self, x64):
        t, t0, k, b, d = np.linspace(0, 10, 11), 1.3, 2.0, 0.4, 1.1
        s = np.maximum(t - t0, 0)
        np.testing.assert_allclose(fluorescence(t, t0, k, b, d), k * (np.exp(-b * s) - np.exp(-d * s)) / (d - b))
        near = fluorescence(t, t0, k, b, b * (1 + 1e-9))
        np.testing.assert_allclose(near, k * s * np.exp(-b * s), rtol=1e-8)

    def test_posterior_is_symmetric_in_the_rates(self, x64, data_directory):
        problem = pe.problems.mrna(data_directory)
        position = {"log_t0": 0.3, "log_k": 0.9, "log_b": -0.9, "log_d": -0.2, "log_sigma": 0.1}
        swapped = position | {"log_b": position["log_d"], "log_d": position["log_b"]}
        np.testing.assert_allclose(problem.density(position), problem.density(swapped), rtol=1e-12)
        time, measured = np.genfromtxt(data_directory / "mrna.csv", delimiter=",").T
        curve = fluorescence(time, *(10 ** position[name] for name in ("log_t0", "log_k", "log_b", "log_d")))
        expected = stats.norm(curve, 10**0.1).logpdf(measured).sum()
        np.testing.assert_allclose(problem.density(position), expected, rtol=1e-10)
        assert problem.target.base.can_sample


class TestMeanField:
    def test_each_solution_is_a_bound_and_the_moments_are_near(self):
        problem = pe.problems.boltzmann_machine(10, seed=3, eigenvalue_scale=0.3)  # weakly coupled: nearly independent
        fitted = pe.problems.mean_field(problem.density)
        assert -1 < fitted.log_zeta - problem.log_evidence < 0
        np.testing.assert_allclose(fitted.base.mean, problem.mean, atol=0.1)
        assert fitted.num_solutions >= 1

    def test_independent_units_are_exact(self):
        """With QQᵀ diagonal the machine factorises, and mean field is exact."""
        from pseudo_extended.problems.boltzmann import Relaxation

        coupling, bias = np.diag([0.5, 1.0, 2.0]), np.array([0.3, -0.2, 0.1])
        fitted = pe.problems.mean_field(Relaxation(coupling, bias, None))
        mean = coupling @ np.tanh(bias)
        covariance = coupling @ np.diag(1 - np.tanh(bias) ** 2) @ coupling + np.eye(3)
        np.testing.assert_allclose(fitted.base.mean, mean, rtol=1e-8)
        np.testing.assert_allclose(fitted.base.scale @ fitted.base.scale.T, covariance, rtol=1e-8)
        integral = [
            integrate.quad(lambda x, q=q, b=b: np.exp(-0.5 * x**2) * np.cosh(q * x + b), -30, 30)[0]
            for q, b in zip(np.diag(coupling), bias, strict=True)
        ]
        np.testing.assert_allclose(fitted.log_zeta, np.log(integral).sum(), rtol=1e-9)

    def test_the_fit_of_the_authors(self, data_directory):
        """Its errors are those of baselines.md: 0.238 for E[X] and 2.55 for E[XXᵀ]."""
        problem = pe.problems.load_boltzmann(data_directory)
        fitted = pe.problems.load_mean_field(data_directory)
        cross = fitted.base.scale @ fitted.base.scale.T + np.outer(fitted.base.mean, fitted.base.mean)
        np.testing.assert_allclose(np.sqrt(np.mean((fitted.base.mean - problem.mean) ** 2)), 0.238, atol=5e-4)
        np.testing.assert_allclose(np.sqrt(np.mean((cross - problem.cross_moment) ** 2)), 2.55, atol=5e-3)
        np.testing.assert_allclose(fitted.log_zeta, 167.21, atol=5e-3)


GRADIENTS = {
    "illustration": lambda _: pe.problems.illustration(),
    "mixture (b)": lambda _: pe.problems.twenty_modes("b"),
    "machine": lambda _: pe.problems.boltzmann_machine(8, seed=0),
    "mRNA": lambda data: pe.problems.mrna(data),
    "toy": lambda _: pe.problems.theta_and_x(),
    "shared": lambda _: pe.problems.with_shared_theta(2, 0.75),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_against_differences(name, x64, data_directory):
    target = GRADIENTS[name](data_directory).target
    log_density = jax.jit(lambda u: target.log_target(u))
    x = 0.5 * np.random.default_rng(0).normal(size=target.dim)
    steps = 1e-5 * np.eye(target.dim)
    differences = [(log_density(x + step) - log_density(x - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(jax.grad(lambda u: target.log_target(u))(x), differences, rtol=2e-5, atol=1e-6)


class TestSharedParameters:
    def test_means_by_a_sum_over_a_grid_in_two_dimensions(self):
        """θ and x on a grid, with the extended target written down for N = 2 and its second x summed out by force."""
        theta, x = np.linspace(-4, 4, 321)[:, None], np.linspace(-25, 25, 2001)[None, :]
        prior = stats.norm.pdf(theta) * stats.norm.pdf(x, scale=np.exp(theta))
        likelihood = stats.norm.pdf(2 - x, scale=0.5)
        posterior = np.sum(prior * likelihood, axis=1)
        truth = np.sum(theta[:, 0] * posterior) / posterior.sum()
        np.testing.assert_allclose(pe.problems.theta_and_x().mean_theta, truth, atol=2e-4)
        q = np.sum(stats.norm.pdf(x, scale=np.exp(theta)) * likelihood**0.75, axis=1)
        shared = np.sum(theta[:, 0] * posterior * q) / np.sum(posterior * q)
        np.testing.assert_allclose(pe.problems.with_shared_theta(2, 0.75).mean_theta, shared, atol=2e-4)


class TestDataFiles:
    CONTENT = b"some numbers"

    @pytest.fixture
    def server(self, tmp_path, monkeypatch):
        """A file on a server of our own, and an empty cache."""
        (tmp_path / "served").mkdir()
        (tmp_path / "served" / "colon.mat").write_bytes(self.CONTENT)

        class Quiet(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *arguments):
                del arguments

        handler = partial(Quiet, directory=str(tmp_path / "served"))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.delenv(files.VARIABLE, raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

        def serve(digest, name="colon.mat"):
            address = f"http://127.0.0.1:{server.server_address[1]}/{name}"
            monkeypatch.setitem(files.FILES, "colon.mat", files.DataFile(address, digest))

        yield serve
        server.shutdown()

    def test_downloaded_once_and_kept(self, server):
        server(hashlib.sha256(self.CONTENT).hexdigest())
        path = files.data_file("colon.mat")
        assert path.read_bytes() == self.CONTENT
        server(hashlib.sha256(self.CONTENT).hexdigest(), "gone.mat")
        assert files.data_file("colon.mat") == path  # from the cache

    def test_wrong_checksum_of_a_download_keeps_nothing(self, server, tmp_path):
        server("0" * 64)
        with pytest.raises((ValueError, OSError)) as error:
            files.data_file("colon.mat")
        assert_sentence(error, "must be the file of SHA-256")
        assert not list((tmp_path / "cache").rglob("*"))

    def test_no_network_says_what_to_do(self, server):
        server("0" * 64, "gone.mat")
        with pytest.raises((ValueError, OSError)) as error:
            files.data_file("colon.mat")
        assert_sentence(error, "could not be downloaded from")

    def test_an_answer_that_is_cut_off(self, server, monkeypatch):
        server("0" * 64)

        def cut_off(answer, *arguments):
            raise http.client.IncompleteRead(b"some")

        monkeypatch.setattr(http.client.HTTPResponse, "read", cut_off)
        with pytest.raises((ValueError, OSError)) as error:
            files.data_file("colon.mat")
        assert_sentence(error, "could not be downloaded from")

    def test_nobody_listens(self, server, monkeypatch):
        server("0" * 64)
        monkeypatch.setitem(files.FILES, "colon.mat", files.DataFile("http://127.0.0.1:9/colon.mat", "0" * 64))
        with pytest.raises((ValueError, OSError)) as error:
            files.data_file("colon.mat")
        assert_sentence(error, "could not be downloaded from")

    def test_missing_and_damaged_files_of_a_directory(self, tmp_path, monkeypatch):
        with pytest.raises((ValueError, OSError)) as error:
            files.data_file("colon.mat", tmp_path)
        assert_sentence(error, "directory must hold colon.mat")
        monkeypatch.setenv(files.VARIABLE, str(tmp_path))
        with pytest.raises((ValueError, OSError)) as error:
            pe.problems.cancer("colon")
        assert_sentence(error, "PSEUDO_EXTENDED_DATA) must hold colon.mat")
        (tmp_path / "colon.mat").write_bytes(b"nothing")
        with pytest.raises((ValueError, OSError)) as error:
            pe.problems.cancer("colon")
        assert_sentence(error, "must be the published file")
        with pytest.raises((ValueError, OSError)) as error:
            pe.problems.cancer("lung")
        assert_sentence(error, "name must be")

    @pytest.mark.parametrize(
        "load", [pe.problems.mrna, pe.problems.load_boltzmann, partial(pe.problems.cancer, "colon")]
    )
    def test_a_directory_that_is_no_path(self, load):
        with pytest.raises(TypeError) as error:
            load(3)
        assert_sentence(error, "directory must be a path; got 3")


def test_pointwise_likelihood_sums_to_the_whole(x64):
    problem = toy_regression()
    assert isinstance(problem.held_out, LogisticLikelihood)
    position = problem.density.prior.sample(jax.random.key(0))
    np.testing.assert_allclose(problem.density.pointwise(position).sum(), problem.density(position))
