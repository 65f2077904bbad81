"""Stan models: PyStan's module for real where it is installed, BridgeStan by its documented calls."""

import json

import jax
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.models.stan_engines import as_variables, check_data, seed_of
from tests.unit.sentences import assert_sentence

RUN = {"draws": 20, "warmup": 20, "chains": 2, "seed": 0, "progress": False, "method": pe.Plain(pe.HMC(2))}


class FakeRng:
    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)


class FakeBridgeStan:
    """A normal with unknown mean and scale, with the calls of bridgestan.StanModel and no others."""

    data = json.dumps({"N": 2, "y": [1.0, 3.0]})

    def param_unc_num(self):
        return 2

    def param_num(self, *, include_tp=False, include_gq=False):
        return 2 + 2 * include_tp + 3 * include_gq

    def param_names(self, *, include_tp=False, include_gq=False):
        assert include_tp
        assert include_gq
        return ["mu", "sigma", "pair.1", "pair.2", "log_lik.1", "log_lik.2", "y_new"]

    def new_rng(self, seed):
        return FakeRng(seed)

    def param_constrain(self, theta_unc, *, include_tp=False, include_gq=False, out=None, rng=None):
        mu, sigma = theta_unc[0], np.exp(theta_unc[1])
        if sigma > 1e10:
            raise RuntimeError("no such scale")
        log_lik = -0.5 * ((np.array([1.0, 3.0]) - mu) / sigma) ** 2 - np.log(sigma)
        return np.array([mu, sigma, mu - sigma, mu + sigma, *log_lik, mu + sigma * rng.generator.normal()])

    def param_unconstrain_json(self, theta_json, *, out=None):
        values = theta_json if isinstance(theta_json, dict) else json.loads(theta_json)
        return np.array([values["mu"], np.log(values["sigma"])])

    def log_density_gradient(self, theta_unc, *, propto=True, jacobian=True, out=None):
        assert jacobian
        assert not propto
        mu, log_sigma = theta_unc
        if log_sigma > 20:
            raise RuntimeError("Exception: Scale parameter is inf.")
        z = (np.array([1.0, 3.0]) - mu) / np.exp(log_sigma)
        value = -0.5 * np.sum(z**2) - 2 * log_sigma - 0.5 * log_sigma**2 + log_sigma - 0.5 * mu**2
        return value, np.array([np.sum(z) / np.exp(log_sigma) - mu, np.sum(z**2) - 2 - log_sigma + 1])


@pytest.fixture(scope="module")
def bridged():
    return pe.sample(FakeBridgeStan(), **RUN)


class TestBridgeStan:
    def test_output_has_transformed_parameters_and_generated_quantities(self, bridged):
        assert list(bridged.points) == ["mu", "sigma", "pair", "log_lik", "y_new"]
        assert np.all(bridged.points["sigma"] > 0)
        np.testing.assert_allclose(bridged.points["pair"].mean(axis=-1), bridged.points["mu"])
        assert len(np.unique(bridged.points["y_new"])) > 2

    def test_log_lik_becomes_a_group(self, bridged):
        data = bridged.to_arviz(log_likelihood=True)
        assert data["log_likelihood"]["log_lik"].shape == (2, 20, 2)
        assert "log_lik" not in data["posterior"]
        assert "log_lik" in bridged.to_arviz()["posterior"]
        np.testing.assert_array_equal(data["observed_data"]["y"].values, [1, 3])
        with pytest.raises(ValueError, match="prior must be 0") as error:
            bridged.to_arviz(prior=5)
        assert_sentence(error, "prior")

    def test_start_and_check(self):
        target = pe.from_stan(FakeBridgeStan(), dims={"pair": ["end"]}, coords={"end": ["low", "high"]})
        np.testing.assert_allclose(target.view.read_start({"mu": 1.0, "sigma": 2.0}), [1.0, np.log(2.0)])
        found = pe.check(target, show=False)
        assert found.ok, str(found)
        assert found["differences"].verdict == "good"
        assert target.shown_coords == (("end", ("low", "high")),)

    def test_data_of_its_own(self):
        with pytest.raises(ValueError, match="data") as error:
            pe.from_stan(FakeBridgeStan(), {"N": 2})
        assert_sentence(error)


def test_indices_in_any_order_become_arrays():
    names = ["m.1.1", "m.2.1", "m.1.2", "m.2.2", "s", "t:1.1", "t:1.2"]
    made = as_variables(names, np.arange(14.0).reshape(2, 7))
    np.testing.assert_array_equal(made["m"][0], [[0, 2], [1, 3]])
    np.testing.assert_array_equal(made["s"], [4, 11])
    np.testing.assert_array_equal(made["t:1"][1], [12, 13])


def test_data_are_checked():
    info = {"inputs": {"N": {"type": "int", "dimensions": 0}, "y": {"type": "real", "dimensions": 1}}}
    assert check_data(info, {"N": np.int64(2), "y": (1, 2), "unused": "?"}) == {"N": 2, "y": [1.0, 2.0]}
    for data, name in (({"N": 2}, "y"), ({"N": 2.5, "y": [1.0]}, "N"), ({"N": 1, "y": 2.0}, "y"), ({"N": "a"}, "y")):
        with pytest.raises((TypeError, ValueError)) as error:
            check_data(info, data)
        assert_sentence(error, name)


def test_a_point_has_a_seed_of_its_own():
    assert seed_of(np.zeros(2)) == seed_of(np.zeros(2)) != seed_of(np.ones(2))


@pytest.mark.parametrize("model", [3, "no_such_file.stan", object()])
def test_what_is_no_stan_model(model):
    with pytest.raises((TypeError, ValueError)) as error:
        pe.from_stan(model)
    assert_sentence(error, "model")


PROGRAM = """
data { int<lower=1> N; vector[N] y; }
parameters { simplex[3] w; vector[2] mu; real<lower=0> sigma; }
transformed parameters { real gap = mu[2] - mu[1]; }
model {
  mu ~ normal(0, 5);
  sigma ~ exponential(1);
  for (n in 1:N) target += log_mix(0.5, normal_lpdf(y[n] | mu[1], sigma), normal_lpdf(y[n] | mu[2], sigma));
}
generated quantities {
  vector[N] log_lik;
  real noise = normal_rng(0, 1);
  matrix[2, 3] m;
  for (n in 1:N) log_lik[n] = normal_lpdf(y[n] | mu[1], sigma);
  for (i in 1:2) for (j in 1:3) m[i, j] = 10 * i + j;
}
"""
DATA = {"N": 6, "y": np.array([-1.9, -2.2, 2.1, 1.8, 2.3, -2.0])}


@pytest.mark.slow
class TestPystan:
    """g++ needs half a minute for the program; Stan keeps what it has compiled."""

    @pytest.fixture(scope="class")
    def target(self):
        pytest.importorskip("httpstan", reason="PyStan is not installed: pip install pystan")
        return pe.from_stan(PROGRAM, DATA)

    def test_density_gradient_and_constraints(self, target, x64):
        assert target.dim == 5
        u = np.random.default_rng(0).normal(size=(6, 5))
        shown = target.view.show(u, target.constrain)
        np.testing.assert_allclose(shown["w"].sum(axis=-1), 1)
        np.testing.assert_allclose(shown["gap"], shown["mu"][:, 1] - shown["mu"][:, 0])
        np.testing.assert_array_equal(shown["m"][0], [[11, 12, 13], [21, 22, 23]])
        found = pe.check(target, show=False)
        assert found["differences"].verdict == "good", found
        assert found["transforms"].verdict == "good", found
        mu, sigma = shown["mu"], shown["sigma"]
        parts = -0.5 * ((DATA["y"][:, None] - mu[:, None, :]) / sigma[:, None, None]) ** 2
        exact = np.sum(np.logaddexp(parts[..., 0], parts[..., 1]), axis=1) - 6 * np.log(sigma)
        exact += -0.5 * np.sum((mu / 5) ** 2, axis=1) - sigma + np.log(sigma) + np.sum(np.log(shown["w"]), axis=1)
        gap = np.asarray(jax.vmap(target.log_target)(u)) - exact
        np.testing.assert_allclose(gap, gap[0], atol=1e-9)

    def test_random_quantities_are_random_and_belong_to_their_point(self, target):
        u = np.random.default_rng(1).normal(size=(200, 5))
        noise = target.view.show(u, target.constrain)["noise"]
        np.testing.assert_array_equal(noise[:5], target.view.show(u[:5], target.constrain)["noise"])
        # Mean and variance of 200 standard normals, five standard errors: one false alarm in a million.
        assert abs(noise.mean()) < 5 / np.sqrt(200)
        assert abs(noise.var() - 1) < 5 * np.sqrt(2 / 200)

    def test_both_labellings_are_found_from_one_start(self, target):
        start = {"w": [0.3, 0.3, 0.4], "mu": [-2.0, 2.0], "sigma": 0.3}
        result = pe.sample(target, start, draws=500, chains=2, seed=0, progress=False)
        first = result.expect(lambda p: p["mu"][0] < 0)
        assert abs(first.value - 0.5) < 5 * first.standard_error < 0.3
        assert result.to_arviz(log_likelihood=True)["log_likelihood"]["log_lik"].shape == (2, 500, 6)

    def test_a_program_that_is_none(self):
        pytest.importorskip("httpstan", reason="PyStan is not installed: pip install pystan")
        with pytest.raises(ValueError, match="stanc says"):
            pe.from_stan("parameters { real x }")
