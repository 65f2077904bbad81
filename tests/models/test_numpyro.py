"""NumPyro models: density, split, transforms, plates, deterministics, enumeration, refusals, output."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import pseudo_extended as pe
from pseudo_extended.models import as_target
from tests.unit.sentences import assert_sentence

numpyro = pytest.importorskip("numpyro", reason="NumPyro is not installed: pip install numpyro")
from numpyro import distributions as dist  # noqa: E402
from numpyro.infer.util import log_density  # noqa: E402

pytestmark = pytest.mark.xdist_group("numpyro")
HMC = pe.Plain(pe.HMC(2))
RUN = {"draws": 20, "warmup": 20, "chains": 2, "seed": 0, "progress": False, "method": HMC}
Y = np.array([1.0, 2.0, 4.0])


def model(y=Y, *, sizes=(3,)):
    share = numpyro.sample("share", dist.Dirichlet(jnp.ones(3)))
    low = numpyro.sample("low", dist.Normal(0, 1))
    high = numpyro.sample("high", dist.Uniform(low, low + 10))  # a support that depends on another site
    scale = numpyro.sample("scale", dist.HalfCauchy(1))
    with numpyro.plate("place", sizes[0]):
        effect = numpyro.sample("effect", dist.Normal(0, scale))
        numpyro.sample("y", dist.Normal(low + effect, 1 + share[0]), obs=y)
    numpyro.deterministic("gap", high - low)
    numpyro.factor("penalty", -0.1 * high**2)


@pytest.fixture(scope="module")
def target():
    return pe.from_numpyro(model, Y, sizes=(3,), dims={"share": ["part"]}, coords={"place": ["a", "b", "c"]})


@pytest.fixture(scope="module")
def result(target):
    return pe.sample(target, **RUN)


def test_density_is_numpyros_with_the_jacobians(target, x64):
    position = target.base.sampler(jax.random.key(1))
    u = target.unconstrain(position)
    shown = target.view.show(np.asarray(u)[None], target.constrain)
    joint, _ = log_density(model, (Y,), {}, {name: shown[name][0] for name in target.view.free})
    jacobian = 0.0
    for name in target.view.free:
        way = dist.biject_to(
            {
                "share": dist.constraints.simplex,
                "high": dist.constraints.interval(float(shown["low"][0]), float(shown["low"][0]) + 10),
                "scale": dist.constraints.positive,
            }.get(name, dist.constraints.real)
        )
        jacobian += np.sum(np.asarray(way.log_abs_det_jacobian(position[name], way(position[name]))))
    np.testing.assert_allclose(target.log_target(u), joint + jacobian, rtol=1e-12)
    path = target.path_point(u)
    likelihood = dist.Normal(shown["low"][0] + shown["effect"][0], 1 + shown["share"][0][0]).log_prob(Y).sum()
    np.testing.assert_allclose(path.delta, likelihood - 0.1 * shown["high"][0] ** 2, rtol=1e-10)


@pytest.mark.slow
def test_prior_is_the_base_and_its_draws_fit(target):
    assert target.base.can_sample
    found = pe.check(target, show=False)
    assert found["prior"].verdict == "good", found["prior"]
    assert found["transforms"].verdict == "good", found["transforms"]
    assert any("factors (penalty)" in note for note in target.view.facts.notes)


def test_output_is_named_labelled_and_constrained(result):
    assert list(result.points) == ["share", "low", "high", "scale", "effect", "gap"]
    np.testing.assert_allclose(result.points["share"].sum(axis=-1), 1)
    np.testing.assert_allclose(result.points["gap"], result.points["high"] - result.points["low"], atol=1e-12)
    assert {"effect[a]", "effect[c]", "share[0]"} <= set(result.labels)
    assert result.expect(lambda p: p["gap"]).value > 0


def test_all_groups_of_arviz(result):
    data = result.to_arviz(log_likelihood=True, prior=7)
    assert data["posterior"]["effect"].dims == ("chain", "draw", "place")
    assert data["posterior"]["share"].dims == ("chain", "draw", "part")
    np.testing.assert_array_equal(data["observed_data"]["y"].values, Y)
    assert list(data["observed_data"]["place"].values) == ["a", "b", "c"]
    posterior = data["posterior"]
    mean = posterior["low"].values[..., None] + posterior["effect"].values
    scale = 1 + posterior["share"].values[..., :1]
    expected = -0.5 * ((Y - mean) / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(data["log_likelihood"]["y"].values, expected, rtol=1e-6)
    assert data["prior"]["share"].shape == (1, 7, 3)
    assert "log_weight" in data["sample_stats"]


def test_a_store_shows_what_the_result_shows(target, result, tmp_path):
    """Also after the run was stopped and went on: constrained sites, deterministics and labels, in the file itself."""
    path = tmp_path / "run.zarr"
    pe.sample(target, **RUN, store=path, chunk=8, callback=lambda run: run.num_draws > 0)
    resumed = pe.resume(path, target, progress=False)
    with xr.open_datatree(path, engine="zarr") as tree:
        stored = tree["posterior"].to_dataset().load()
    shown = result.to_arviz()["posterior"]
    assert set(stored.data_vars) == set(shown.data_vars) == set(resumed.to_arviz()["posterior"].data_vars)
    np.testing.assert_array_equal(stored["effect"].coords["place"], ["a", "b", "c"])
    for name in shown.data_vars:
        np.testing.assert_allclose(stored[name], shown[name], rtol=1e-12, err_msg=str(name))


def test_posterior_predictive_by_numpyro_itself(result):
    posterior = {name: values.reshape(-1, *values.shape[2:]) for name, values in result.resample().items()}
    predictive = numpyro.infer.Predictive(model, {name: posterior[name] for name in result.target.view.free})
    assert predictive(jax.random.PRNGKey(0), y=None)["y"].shape == (40, 3)


def test_sample_takes_a_model_without_arguments_as_it_is():
    target, init = as_target(partial(model, Y))
    assert "gap" in {part.name for part in target.shown}
    assert init is None


class TestStarts:
    def test_in_the_models_own_space(self, target):
        start = {"share": [0.2, 0.3, 0.5], "low": 0.5, "high": 2.0, "scale": 1.5, "effect": np.zeros(3)}
        position = target.view.read_start(start)
        shown = target.view.show(np.asarray(target.unconstrain(position))[None], target.constrain)
        for name, value in start.items():
            np.testing.assert_allclose(shown[name][0], value, atol=1e-10)
        batch = target.view.read_start({name: np.stack([value] * 4) for name, value in start.items()})
        assert batch["effect"].shape == (4, 3)

    @pytest.mark.parametrize(
        ("init", "names"),
        [
            ({"low": 1.0}, ["share", "low"]),
            (3.0, ["init", "dict"]),
            ({"share": np.ones(2), "low": 0.0, "high": 1.0, "scale": 1.0, "effect": np.zeros(3)}, ["share", "(3,)"]),
            ({"share": np.ones(3) / 3, "low": 0.0, "high": 99.0, "scale": 1.0, "effect": np.zeros(3)}, ["support"]),
        ],
    )
    def test_refused(self, target, init, names):
        with pytest.raises((TypeError, ValueError)) as error:
            pe.sample(target, init, **RUN)
        assert_sentence(error, *names)


class TestRefusals:
    def test_subsampling(self):
        def subsampled():
            mu = numpyro.sample("mu", dist.Normal())
            with numpyro.plate("row", 10, subsample_size=5):
                numpyro.sample("y", dist.Normal(mu), obs=np.zeros(5))

        with pytest.raises(ValueError, match="subsample") as error:
            pe.sample(subsampled)
        assert_sentence(error, "row")

    def test_discrete_that_cannot_be_enumerated(self):
        def counted():
            numpyro.sample("rate", dist.Exponential(1))
            numpyro.sample("count", dist.Poisson(3))

        with pytest.raises(ValueError, match="Marginalise") as error:
            pe.from_numpyro(counted)
        assert_sentence(error, "count")

    def test_params(self):
        def with_param():
            numpyro.sample("y", dist.Normal(numpyro.param("loc", 0.0), numpyro.sample("s", dist.HalfNormal())), obs=1.0)

        with pytest.raises(ValueError, match="loc"):
            pe.from_numpyro(with_param)

    def test_unknown_dims(self):
        with pytest.raises(ValueError, match="nowhere"):
            pe.from_numpyro(model, dims={"nowhere": ["a"]})


def test_improper_prior_is_no_base(x64):
    def improper():
        mu = numpyro.sample("mu", dist.ImproperUniform(dist.constraints.real, (), ()))
        numpyro.sample("y", dist.Normal(mu), obs=2.0)

    target = pe.from_numpyro(improper)
    assert target.base is None
    np.testing.assert_allclose(target.log_target(np.zeros(1)), -2 - 0.5 * np.log(2 * np.pi))
    assert any("improper" in note for note in target.view.facts.notes)
    assert target.view.facts.start["mu"].shape == ()


@pytest.mark.slow
def test_discrete_sites_are_summed_out(x64):
    pytest.importorskip("funsor", reason="enumeration needs funsor: pip install funsor")

    def mixture():
        mu = numpyro.sample("mu", dist.Normal(0, 5).expand([2]).to_event(1))
        with numpyro.plate("row", 3):
            group = numpyro.sample("group", dist.Bernoulli(0.3), infer={"enumerate": "parallel"})
            numpyro.sample("y", dist.Normal(mu[group], 1), obs=Y)
        numpyro.deterministic("gap", mu[1] - mu[0])
        numpyro.deterministic("first_group", group[..., 0] if group.ndim == 1 else group)

    target = pe.from_numpyro(mixture)
    mu = np.array([0.5, 2.5])
    parts = [w * np.exp(-0.5 * (Y - m) ** 2) for w, m in zip((0.7, 0.3), mu, strict=True)]
    exact = np.sum(np.log(sum(parts))) - 1.5 * np.log(2 * np.pi) + np.sum(dist.Normal(0, 5).log_prob(mu))
    np.testing.assert_allclose(target.log_target(mu), exact, rtol=1e-10)
    assert [part.name for part in target.shown] == ["mu", "gap"]
    assert any("first_group" in note for note in target.view.facts.notes)
    assert pe.sample(target, **RUN).points["gap"].shape == (2, 20, 1)
