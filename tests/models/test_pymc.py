"""PyMC models: density, split, transforms, dims, deterministics, refusals, output."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import pseudo_extended as pe
from tests.unit.sentences import assert_sentence

pm = pytest.importorskip("pymc", reason="PyMC is not installed: pip install pymc")

pytestmark = pytest.mark.xdist_group("pymc")
RUN = {"draws": 20, "warmup": 20, "chains": 2, "seed": 0, "progress": False, "method": pe.Plain(pe.HMC(2))}
Y = np.array([1.0, 2.0, 4.0])


@pytest.fixture(scope="module")
def model():
    with pm.Model(coords={"part": ["x", "y", "z"], "place": ["a", "b", "c"]}) as model:
        shift = pm.Data("shift", np.array([0.0, 1.0, 2.0]), dims="place")
        share = pm.Dirichlet("share", np.ones(3), dims="part")
        low = pm.Normal("low", 0, 1)
        high = pm.Uniform("high", low, low + 10)  # a transform that depends on another variable
        scale = pm.HalfCauchy("scale", 1)
        effect = pm.Normal("effect", 0, scale, dims="place")
        pm.Deterministic("gap", high - low)
        pm.Normal("y", low + effect + shift, 1 + share[0], observed=Y, dims="place")
        pm.Potential("penalty", -0.1 * high**2)
    return model


@pytest.fixture(scope="module")
def target(model):
    return pe.from_pymc(model)


@pytest.fixture(scope="module")
def result(target):
    return pe.sample(target, **RUN)


def test_density_and_its_parts_are_pymcs(model, target, x64):
    position = target.base.sampler(jax.random.key(1))
    u = target.unconstrain(position)
    point = {model.rvs_to_values[rv].name: np.asarray(position[rv.name]) for rv in model.free_RVs}
    quick = {"inputs": model.value_vars, "mode": "FAST_COMPILE", "on_unused_input": "ignore"}
    for ours, theirs in (
        (target.path_point(u).log_base, model.varlogp),
        (target.path_point(u).delta, model.datalogp),
        (target.log_target(u), model.logp()),
    ):
        np.testing.assert_allclose(ours, model.compile_fn(theirs, **quick)(point), rtol=1e-8)


@pytest.mark.slow
def test_prior_is_the_base_and_its_draws_fit(target):
    found = pe.check(target, show=False)
    assert found["prior"].verdict == "good", found["prior"]
    assert found["transforms"].verdict == "good", found["transforms"]
    assert any("Potentials (penalty)" in note for note in target.view.facts.notes)


def test_output_is_named_labelled_and_constrained(result):
    assert list(result.points) == ["share", "low", "high", "scale", "effect", "gap"]
    np.testing.assert_allclose(result.points["share"].sum(axis=-1), 1)
    np.testing.assert_allclose(result.points["gap"], result.points["high"] - result.points["low"], atol=1e-12)
    assert {"effect[a]", "share[z]"} <= set(result.labels)


def test_all_groups_of_arviz_and_posterior_predictive_by_pymc_itself(model, result):
    data = result.to_arviz(log_likelihood=True, prior=7)
    posterior = data["posterior"]
    assert posterior["effect"].dims == ("chain", "draw", "place")
    np.testing.assert_array_equal(data["observed_data"]["y"].values, Y)
    np.testing.assert_array_equal(data["constant_data"]["shift"].values, [0, 1, 2])
    assert list(data["observed_data"]["place"].values) == ["a", "b", "c"]
    mean = posterior["low"].values[..., None] + posterior["effect"].values + np.arange(3)
    scale = 1 + posterior["share"].values[..., :1]
    expected = -0.5 * ((Y - mean) / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(data["log_likelihood"]["y"].values, expected, rtol=1e-6)
    assert data["prior"]["share"].shape == (1, 7, 3)
    assert "log_weight" in data["sample_stats"]
    found = result.loo().pointwise
    assert list(found.index) == ["y[0]", "y[1]", "y[2]"]
    assert np.all(found["p_loo"] > 0)
    with model, pytest.warns(UserWarning, match="Potentials"):
        predicted = pm.sample_posterior_predictive(data, random_seed=0, progressbar=False)
    assert predicted["posterior_predictive"]["y"].shape == (2, 20, 3)


def test_a_start_in_the_models_own_space(target):
    start = {"share": [0.2, 0.3, 0.5], "low": 0.5, "high": 2.0, "scale": 1.5, "effect": np.zeros(3)}
    position = target.view.read_start(start)
    shown = target.view.show(np.asarray(target.unconstrain(position))[None], target.constrain)
    for name, value in start.items():
        np.testing.assert_allclose(shown[name][0], value, atol=1e-10)


class TestRefusals:
    def test_discrete_variables_are_named_with_the_way_out(self):
        with pm.Model() as model:
            pm.Normal("y", pm.Poisson("count", 3) + pm.Normal("mu"), 1, observed=2.0)
        with pytest.raises(ValueError, match="Marginalise") as error:
            pe.sample(model)
        assert_sentence(error, "'count'")

    def test_minibatch(self):
        with pm.Model() as model:
            part = pm.Minibatch(np.arange(100.0), batch_size=10)
            pm.Normal("y", pm.Normal("mu"), 1, observed=part, total_size=100)
        with pytest.raises(ValueError, match="Minibatch") as error:
            pe.from_pymc(model)
        assert_sentence(error)

    def test_something_else(self):
        with pytest.raises(TypeError) as error:
            pe.from_pymc(3)
        assert_sentence(error, "model")

    def test_nothing_free(self):
        with pm.Model() as model:
            pm.Normal("y", 0, 1, observed=1.0)
        with pytest.raises(ValueError, match="free variable"):
            pe.from_pymc(model)


def test_where_the_split_does_not_exist():
    with pm.Model() as flat:
        pm.Normal("y", pm.Flat("mu"), 1, observed=2.0)
    target = pe.from_pymc(flat)
    assert target.base is None
    assert any("improper" in note for note in target.view.facts.notes)
    with pm.Model() as prior_only:
        pm.HalfNormal("sigma")
    assert pe.from_pymc(prior_only).base is None


@pytest.mark.slow
def test_draws_that_do_not_fit_a_transform_are_not_used():
    with pm.Model() as model:
        ordered = pm.distributions.transforms.ordered
        mu = pm.Normal("mu", 0, 1, shape=3, transform=ordered, initval=[-1.0, 0.0, 1.0])
        pm.Normal("y", mu.sum(), 1, observed=2.0)
    target = pe.from_pymc(model)
    assert not target.base.can_sample
    shown = target.view.show(np.random.default_rng(0).normal(size=(5, 3)), target.constrain)
    assert np.all(np.diff(shown["mu"], axis=-1) > 0)


@pytest.mark.slow
def test_an_operation_without_jax_or_gradient_is_called_in_python():
    from pytensor.compile.ops import wrap_py
    from pytensor.tensor import dscalar

    @wrap_py(itypes=[dscalar], otypes=[dscalar])
    def odd(x):
        return np.asarray(-0.5 * (abs(x) - 3) ** 2)

    with pm.Model() as model:
        x = pm.Normal("x", 0, 5)
        pm.Deterministic("square", x**2)
        pm.Potential("likelihood", odd(x))
    result = pe.sample(model, draws=500, chains=2, seed=0, progress=False)
    assert any("called in Python" in note for note in result.notes)
    np.testing.assert_allclose(result.points["square"], result.points["x"] ** 2)
    right = result.expect(lambda p: p["x"] > 0)
    assert abs(right.value - 0.5) < 5 * right.standard_error < 0.3


@pytest.mark.parametrize("flags", ["--xla_backend_optimization_level=0", pytest.param(None, marks=pytest.mark.slow)])
def test_import_leaves_flags_and_precision_alone(flags):
    code = (
        "import os, jax, pymc as pm, pseudo_extended as pe\n"
        "with pm.Model() as model: pm.Normal('y', pm.Normal('mu'), 1, observed=1.0)\n"
        "pe.from_pymc(model)\n"
        "print(os.environ.get('XLA_FLAGS'), jax.config.read('jax_enable_x64'), len(jax.devices()))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    environment |= {} if flags is None else {"XLA_FLAGS": flags}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(flags), "False", "1"]
