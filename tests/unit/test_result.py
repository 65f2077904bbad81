"""The result of a run: shapes, labels, estimates, and what leaves the library.

One short run serves most tests; exact ones build a Result from numbers of their own.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

import pseudo_extended as pe
from pseudo_extended.results import estimates

from .sentences import assert_sentence

pytestmark = pytest.mark.xdist_group("result")  # one worker, one run

CHAINS, DRAWS, PARTICLES = 2, 100, 3
SCHOOLS = ["Choate", "Deerfield"]


def log_density(p):
    return -0.5 * jnp.sum((p["theta"] - 1) ** 2) / p["tau"] - p["tau"] - 0.5 * jnp.sum(p["noise"] ** 2)


@pytest.fixture(scope="module")
def target():
    return pe.Target(
        log_density,
        {"theta": np.zeros((2, 3)), "tau": 1.0, "noise": np.zeros(2)},
        bounds={"tau": (0, None), "noise": (-3, 3)},
        dims={"theta": ["school", "year"]},
        coords={"school": SCHOOLS, "year": [2001, 2002, 2003]},
    )


@pytest.fixture(scope="module")
def result(target):
    method = pe.PseudoExtended(pe.Tempered(0.2), pe.HMC(num_steps=4), PARTICLES)
    init = {"theta": np.zeros((2, 3)), "tau": 1.0, "noise": np.zeros(2)}
    return pe.sample(target, init, method=method, draws=DRAWS, warmup=100, chains=CHAINS, seed=5, progress=False)


LEADING = (CHAINS, DRAWS, PARTICLES)


class TestOutput:
    def test_points(self, result):
        assert result.points.keys() == {"theta", "tau", "noise"}
        assert result.points["theta"].shape == (*LEADING, 2, 3)
        assert result.points["tau"].shape == LEADING
        assert result.points["noise"].shape == (*LEADING, 2)
        for leaf in result.points.values():
            assert isinstance(leaf, np.ndarray)
            assert leaf.dtype == np.float64
            assert np.all(np.isfinite(leaf))

    def test_points_are_in_the_users_space(self, result):
        assert np.all(result.points["tau"] > 0)
        assert np.all(np.abs(result.points["noise"]) < 3)
        # In the order of the flat vector: noise, tau, theta; tau = exp(u).
        np.testing.assert_allclose(result.points["tau"], np.exp(result.unconstrained[..., 2]), rtol=1e-14)
        np.testing.assert_array_equal(result.points["theta"].reshape(*LEADING, 6), result.unconstrained[..., 3:])

    def test_weights(self, result):
        assert result.weights.shape == LEADING
        assert result.weights.dtype == np.float64
        assert np.all(result.weights >= 0)
        np.testing.assert_allclose(result.weights.sum(axis=2), 1.0, rtol=1e-14)

    def test_weights_are_those_of_the_points(self, result):
        """w ∝ exp{(1-β)Δ}, with Δ from the user's function and the Jacobians by hand."""
        tau, noise, theta = (result.points[name] for name in ("tau", "noise", "theta"))
        value = -0.5 * np.sum((theta - 1) ** 2, axis=(3, 4)) / tau - tau - 0.5 * np.sum(noise**2, axis=3)
        u, v = result.unconstrained[..., :2], result.unconstrained[..., 2]  # noise = -3 + 6σ(u), tau = exp(v)
        value = value + v + np.sum(np.log(6) - np.logaddexp(0, u) - np.logaddexp(0, -u), axis=3)
        log_weight = (1 - result.statistics["beta"]) * value
        weight = np.exp(log_weight - log_weight.max(axis=2, keepdims=True))
        np.testing.assert_allclose(result.weights, weight / weight.sum(axis=2, keepdims=True), rtol=1e-8)

    def test_counts(self, result):
        assert (result.num_chains, result.num_draws, result.num_particles) == LEADING
        assert result.seed == 5
        assert not result.interrupted
        assert set(result.seconds) == {"compile", "prepare", "run"}

    def test_statistics(self, result):
        assert result.statistics["beta"].shape == LEADING
        assert np.all((result.statistics["beta"] > 0.2) & (result.statistics["beta"] < 1))
        for name in ("acceptance_rate", "diverging", "non_finite", "num_evaluations", "lp"):
            assert result.statistics[name].shape == (CHAINS, DRAWS), name
        assert result.statistics["diverging"].dtype == bool
        assert np.all(result.statistics["num_evaluations"] == 4 * LEADING[2])
        assert np.all((result.statistics["acceptance_rate"] >= 0) & (result.statistics["acceptance_rate"] <= 1))

    def test_same_seed_same_draws(self, result, target):
        method = pe.PseudoExtended(pe.Tempered(0.2), pe.HMC(num_steps=4), PARTICLES)
        init = {"theta": np.zeros((2, 3)), "tau": 1.0, "noise": np.zeros(2)}
        options = {"method": method, "warmup": 100, "chains": 1, "progress": False}
        again = pe.sample(target, init, draws=10, seed=result.seed, **options)
        np.testing.assert_array_equal(again.unconstrained, result.unconstrained[:1, :10])
        other = pe.sample(target, init, draws=10, seed=6, **options)
        assert not np.any(other.unconstrained == again.unconstrained)


def test_precision_of_the_users_own_code_is_left_alone(result):
    """Double precision is inside; outside a JAX user finds what the user had."""
    result.expect(lambda p: p["tau"])
    result.summary()
    result.to_arviz()
    pe.problems.illustration()
    assert jax.config.jax_enable_x64 is False
    assert jnp.ones(1).dtype == jnp.float32
    assert jax.jit(lambda x: x * 2)(1.0).dtype == jnp.float32


class TestTables:
    def test_labels(self, result):
        expected = ["noise[0]", "noise[1]", "tau"]
        expected += [f"theta[{school}, {year}]" for school in SCHOOLS for year in (2001, 2002, 2003)]
        assert result.labels == expected

    def test_summary(self, result):
        table = result.summary()
        assert list(table.index) == result.labels
        columns = "mean mcse_mean sd mcse_sd q5 q50 q95 mcse_q5 mcse_q50 mcse_q95 ess r_hat"
        assert list(table.columns) == columns.split()
        assert np.all(np.isfinite(table.to_numpy()))
        assert np.all((table["q5"] < table["q50"]) & (table["q50"] < table["q95"]))
        assert table.attrs["warnings"] == list(result.warnings)

    def test_rows_are_in_the_order_of_the_labels(self, result):
        """Against the weighted mean and spread of one coordinate, from the points themselves."""
        values, share = result.points["theta"][..., 1, 2], result.weights / (CHAINS * DRAWS)
        row = result.summary().loc["theta[Deerfield, 2003]"]
        mean = np.sum(share * values)
        np.testing.assert_allclose(row["mean"], mean, rtol=1e-12)
        np.testing.assert_allclose(row["sd"], np.sqrt(np.sum(share * (values - mean) ** 2)), rtol=1e-12)

    def test_repr(self, result):
        text = repr(result)
        assert "2 chains × 100 draws × 3 weighted points, seed 5" in text
        assert "theta[Choate, 2001]" in text
        for sentence in result.warnings:
            assert f"! {sentence.line()}" in text
        assert "log evidence" not in text

    def test_repr_has_the_evidence(self, result):
        terms = np.random.default_rng(0).normal(size=(CHAINS, DRAWS, 1))
        statistics = result.statistics | {"evidence_top": terms, "evidence_bottom": 0 * terms}
        with_evidence = dataclasses.replace(result, statistics=statistics)
        value, error, _ = with_evidence.log_evidence
        assert f"log evidence: {value:.3f} ± {error:.3f}" in repr(with_evidence)

    def test_covariance_is_in_the_order_of_the_labels(self, result):
        covariance = result.covariance()
        assert covariance.value.shape == (9, 9)
        np.testing.assert_allclose(np.sqrt(np.diag(covariance.value)), result.summary()["sd"], rtol=1e-12)

    def test_estimates_have_the_structure_of_a_position(self, result):
        for estimate in (result.mean(), result.variance(), result.quantile(0.3)):
            for part in estimate:
                assert {name: np.shape(leaf) for name, leaf in part.items()} == {
                    "theta": (2, 3),
                    "tau": (),
                    "noise": (2,),
                }
        np.testing.assert_allclose(result.mean().value["tau"], result.summary().loc["tau", "mean"], rtol=1e-14)
        assert result.quantile(0.5).value["tau"] == result.summary().loc["tau", "q50"]


class TestExpect:
    def test_a_function_that_returns_a_number(self, result):
        estimate = result.expect(lambda p: jnp.sum(p["theta"]) * p["tau"])
        values = result.points["theta"].sum(axis=(3, 4)) * result.points["tau"]
        expected = estimates.mean(values, result.weights)
        for seen, wanted in zip(estimate, expected, strict=True):
            np.testing.assert_allclose(seen, wanted, rtol=1e-12)

    def test_a_function_that_returns_an_array(self, result):
        estimate = result.expect(lambda p: jnp.exp(p["theta"]))
        assert np.shape(estimate.value) == np.shape(estimate.standard_error) == np.shape(estimate.ess) == (2, 3)

    def test_a_function_that_returns_a_pytree(self, result):
        estimate = result.expect(lambda p: {"big": p["tau"] > 1, "pair": (p["noise"], 2)})
        big = np.mean(np.sum(result.weights * (result.points["tau"] > 1), axis=2))
        np.testing.assert_allclose(estimate.value["big"], big, rtol=1e-12)
        np.testing.assert_allclose(estimate.value["pair"][0], result.mean().value["noise"], rtol=1e-12)
        np.testing.assert_allclose(estimate.value["pair"][1], 2.0, rtol=1e-12)
        assert not estimate.standard_error["pair"][1] > 1e-12  # zero, or nan: a constant has none

    def test_an_array_of_values(self, result):
        by_function = result.expect(lambda p: p["theta"])
        for array in (result.points["theta"], jnp.asarray(result.points["theta"])):
            np.testing.assert_allclose(result.expect(array).value, by_function.value, rtol=1e-5)
        np.testing.assert_allclose(
            result.expect(result.points["tau"] > 1).value,
            np.mean(np.sum(result.weights * (result.points["tau"] > 1), axis=2)),
            rtol=1e-12,
        )

    @pytest.mark.parametrize(
        "f", [None, 3.0, "abc", np.zeros((CHAINS, DRAWS)), np.zeros((CHAINS, DRAWS, 4)), [], {}, {"a": 1}]
    )
    def test_what_is_no_function_nor_array_of_points(self, result, f):
        with pytest.raises((TypeError, ValueError)) as error:
            result.expect(f)
        assert_sentence(error, "f ")

    @pytest.mark.parametrize(
        "f",
        [
            lambda p: float(p["tau"]),
            lambda p: np.asarray(p["tau"]) ** 2,
            lambda p: 1.0 if p["tau"] > 1 else 0.0,
            lambda p: None,
            lambda p: {},
            lambda p: "a",
            lambda p: object(),
        ],
        ids=["float", "numpy", "if", "None", "empty", "string", "object"],
    )
    def test_what_is_no_jax_function(self, result, f):
        with pytest.raises((TypeError, ValueError)) as error:
            result.expect(f)
        assert_sentence(error, "f ")


def make(log_weights, values=None, names="x", seed=0, statistics=None, **options):
    """A Result of given weights, with one coordinate a point unless `values` says otherwise."""
    log_weights = np.asarray(log_weights, float)
    values = np.zeros((*log_weights.shape, 1)) if values is None else values
    example = np.zeros(values.shape[3:])
    blank = {name: np.zeros(log_weights.shape[:2], bool) for name in ("diverging", "non_finite")}
    blank["acceptance_rate"] = np.full(log_weights.shape[:2], 0.8)
    return pe.Result(
        target=pe.Target(lambda x: -jnp.sum(x**2), example, names=names, **options),
        unconstrained=values.reshape(*log_weights.shape, -1),
        log_weights=log_weights,
        statistics=blank | (statistics or {}),
        statistic_axes={"beta": ("particle",)},
        method="by hand",
        seed=seed,
        seconds={"compile": 0.0, "run": 0.0},
        stopped=None,
        doubts=(),
    )


class TestResample:
    def test_frequency_follows_the_weights(self):
        """20,000 draws with one vector of weights; chi-square, a false alarm once in 10⁴."""
        weight = np.array([0.05, 0.25, 0.7])
        result = make(np.broadcast_to(np.log(weight), (2, 10_000, 3)))
        counts = np.bincount(result.resample_index().ravel(), minlength=3)
        assert chisquare(counts, 20_000 * weight).pvalue > 1e-4

    def test_takes_the_point_of_the_index(self, result):
        index = result.resample_index(seed=3)
        points = result.resample(seed=3)
        assert points["theta"].shape == (CHAINS, DRAWS, 2, 3)
        assert points["tau"].shape == (CHAINS, DRAWS)
        for c, t in ((0, 0), (1, 7), (1, DRAWS - 1)):
            np.testing.assert_array_equal(points["theta"][c, t], result.points["theta"][c, t, index[c, t]])
            assert points["tau"][c, t] == result.points["tau"][c, t, index[c, t]]

    def test_seeds(self, result):
        np.testing.assert_array_equal(result.resample_index(3), result.resample_index(3))
        assert np.any(result.resample_index(3) != result.resample_index(4))

    def test_unweighted_points_pass_through(self):
        values = np.random.default_rng(0).normal(size=(2, 10, 1, 4))
        np.testing.assert_array_equal(make(np.zeros((2, 10, 1)), values).resample(), values[:, :, 0])

    @pytest.mark.parametrize("seed", [-1, 1.5, "a", None, True])
    def test_bad_seed(self, result, seed):
        with pytest.raises((TypeError, ValueError)) as error:
            result.resample(seed=seed)
        assert_sentence(error, "seed")


@pytest.fixture(scope="module")
def data(result):
    return result.to_arviz(seed=3)


class TestArviz:
    def test_posterior(self, data, result):
        posterior = data["posterior"]
        assert set(posterior.data_vars) == {"theta", "tau", "noise"}
        assert posterior["theta"].dims == ("chain", "draw", "school", "year")
        assert posterior["tau"].dims == ("chain", "draw")
        assert posterior["noise"].dims == ("chain", "draw", "noise_dim_0")
        assert posterior["school"].values.tolist() == SCHOOLS
        assert posterior["year"].values.tolist() == [2001, 2002, 2003]
        for variable in posterior.data_vars.values():
            assert variable.dtype == np.float64
        np.testing.assert_array_equal(posterior["theta"].values, result.resample(seed=3)["theta"])

    def test_sample_stats(self, data, result):
        stats = data["sample_stats"]
        assert stats["log_weight"].dims == stats["beta"].dims == ("chain", "draw", "particle")
        np.testing.assert_allclose(np.exp(stats["log_weight"].values), result.weights, rtol=1e-12)
        np.testing.assert_array_equal(stats["index"].values, result.resample_index(seed=3))
        assert stats["diverging"].dtype == bool
        assert stats["index"].dtype.kind == "i"
        assert stats["lp"].dims == ("chain", "draw")

    def test_attributes(self, data):
        attributes = data["posterior"].attrs
        assert attributes["inference_library"] == "pseudo_extended"
        assert "resampled" in attributes["note"]

    def test_weight_zero_is_minus_infinity(self):
        data = make([[[0.0, -np.inf]] * 4]).to_arviz()
        np.testing.assert_array_equal(data["sample_stats"]["log_weight"].values[0, 0], [0.0, -np.inf])

    def test_index_is_the_resampled_one_where_a_method_has_a_statistic_of_that_name(self):
        own = np.array([[1, 0, 1, 1]])
        result = make([[[0.0, -np.inf]] * 4], statistics={"index": own})
        stats = result.to_arviz()["sample_stats"]
        np.testing.assert_array_equal(stats["index"].values, [[0, 0, 0, 0]])
        np.testing.assert_array_equal(stats["method_index"].values, own)

    def test_an_axis_that_happens_to_be_as_long_as_there_are_particles_keeps_its_name(self):
        result = make(np.zeros((1, 4, 2)), statistics={"energy": np.zeros((1, 4, 2))})
        assert result.to_arviz()["sample_stats"]["energy"].dims == ("chain", "draw", "energy_dim_0")

    @pytest.mark.parametrize("name", ["beta", "log_weight", "index", "lp"])
    @pytest.mark.parametrize("shape", [(), (3,), (2,)])
    def test_a_parameter_may_have_the_name_of_a_statistic(self, name, shape):
        """β is the favourite name of regression coefficients."""
        statistics = {"beta": np.full((1, 4, 2), 0.5), "lp": np.zeros((1, 4))}
        values = np.random.default_rng(0).normal(size=(1, 4, 2, *shape))
        result = make(np.zeros((1, 4, 2)), values, names=name, statistics=statistics)
        data = result.to_arviz()
        assert data["posterior"][name].dims == ("chain", "draw", *(f"{name}_dim_{i}" for i in range(len(shape))))
        np.testing.assert_array_equal(data["posterior"][name].values, result.resample())
        assert data["sample_stats"]["beta"].dims == ("chain", "draw", "particle")
        assert data["sample_stats"]["lp"].dims == ("chain", "draw")

    def test_a_named_axis_of_such_a_parameter(self):
        statistics = {"beta": np.full((1, 4, 2), 0.5)}
        result = make(
            np.zeros((1, 4, 2)),
            np.zeros((1, 4, 2, 2)),
            names="beta",
            statistics=statistics,
            dims={"beta": ["covariate"]},
            coords={"covariate": ["a", "b"]},
        )
        posterior = result.to_arviz()["posterior"]
        assert posterior["beta"].dims == ("chain", "draw", "covariate")


class TestWarnings:
    """What a user should know, in sentences; each appears for its reason and not without it."""

    def independent(self, chains=4, draws=1000):
        return np.random.default_rng(0).normal(size=(chains, draws, 1, 1))

    def test_nothing_to_say(self):
        assert make(np.zeros((4, 1000, 1)), self.independent()).warnings == ()

    def test_divergences_and_walls(self):
        marked = np.zeros((4, 1000), bool)
        marked[0, :3] = True
        for name, word in (("diverging", "diverged"), ("non_finite", "not finite")):
            [sentence] = make(np.zeros((4, 1000, 1)), self.independent(), statistics={name: marked}).warnings
            assert "3 of" in sentence or "3 draws" in sentence or " 3 " in sentence
            assert word in sentence
            assert sentence.endswith(".")

    def test_chains_that_disagree(self):
        values = self.independent()
        values[0] += 3
        sentences = make(np.zeros((4, 1000, 1)), values, names="mu").warnings
        assert any("R-hat" in sentence and "mu" in sentence for sentence in sentences)

    def test_chains_that_never_moved(self):
        values = np.broadcast_to(np.arange(4.0).reshape(4, 1, 1, 1), (4, 1000, 1, 1)).copy()
        sentences = make(np.zeros((4, 1000, 1)), values).warnings
        assert any("never moved" in sentence for sentence in sentences)
        assert any("R-hat" in sentence for sentence in sentences)

    def test_a_step_size_that_did_not_settle(self):
        rates = {"acceptance_rate": np.full((4, 1000), 0.01)}
        [sentence] = make(np.zeros((4, 1000, 1)), self.independent(), statistics=rates).warnings
        assert "acceptance rate is 0.01" in sentence

    def test_a_pseudo_sample_that_drifts_away(self):
        log_weights = np.zeros((4, 1000, 2))
        log_weights[..., 1] = -50.0
        values = np.concatenate([self.independent(), 1e9 * self.independent()], axis=2)
        assert any("improper" in sentence for sentence in make(log_weights, values).warnings)

    def test_few_effective_draws(self):
        sentences = make(np.zeros((4, 50, 1)), self.independent(draws=50)).warnings
        assert any("effective sample size" in sentence for sentence in sentences)

    def test_one_pseudo_sample_holds_all_the_weight(self):
        log_weights = np.zeros((4, 1000, 3))
        log_weights[..., 0] = 50.0
        values = np.repeat(self.independent(), 3, axis=2)
        [sentence] = make(log_weights, values).warnings
        assert "3 pseudo-samples held all the weight" in sentence

    @pytest.mark.parametrize("draws", [1, 2, 3, 4, 5, 7])
    @pytest.mark.parametrize("chains", [1, 2])
    @pytest.mark.filterwarnings("error::RuntimeWarning")
    def test_very_short_runs_warn_in_words_only(self, chains, draws):
        """No NumPy warning about degrees of freedom: that is nothing the user did."""
        values = np.random.default_rng(0).normal(size=(chains, draws, 2, 1))
        result = make(np.zeros((chains, draws, 2)), values)
        assert np.isfinite(result.summary()["mean"].iloc[0])
        assert any("too few" in sentence for sentence in result.warnings)
        assert repr(result)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_values_that_are_not_finite_where_the_weight_is_zero():
    """As a function or as an array, they count for nothing."""
    log_weights = np.zeros((2, 40, 2))
    log_weights[..., 1] = -np.inf
    values = np.random.default_rng(0).uniform(1, 2, size=(2, 40, 2, 1))
    values[:, :, 1] = -1.0
    result = make(log_weights, values)
    by_function = result.expect(lambda x: jnp.log(x[0]))
    expected = np.log(values[:, :, 0, 0]).mean()
    np.testing.assert_allclose(by_function.value, expected, rtol=1e-12)
    with np.errstate(invalid="ignore"):
        array = np.log(values[..., 0])
    assert np.isnan(array).any()
    np.testing.assert_allclose(result.expect(array).value, expected, rtol=1e-12)
