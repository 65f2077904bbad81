"""What leaves the library has its weights: every other library computes the means and covariances that we do."""

import sys

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import pseudo_extended as pe
from pseudo_extended.results.exports import PANDAS_TOO_NEW, log_densities

from ..unit.sentences import assert_sentence
from .made import two_modes

LABELS = ["tau", "theta[left]", "theta[right_one]"]


@pytest.fixture(scope="module")
def result():
    return two_modes()


@pytest.fixture(scope="module", params=["all draws alike", "by importance", "of one mode"])
def weighted(request, result):
    """Weights of every kind: the covariance of each must be right in every other library."""
    if request.param == "all draws alike":
        return result
    if request.param == "by importance":
        return two_modes(log_importance=np.random.default_rng(1).normal(size=result.log_weights.shape[:2]))
    return result.at(1)


def moments(result):
    return result.mean().value, np.asarray(result.covariance().value)


class TestDataFrame:
    def test_columns_and_order(self, result):
        frame = result.to_dataframe()
        assert list(frame.columns) == ["chain", "draw", "particle", "weight", "log_density", *LABELS]
        assert len(frame) == result.weights.size
        row = frame[(frame.chain == 2) & (frame.draw == 17) & (frame.particle == 3)].iloc[0]
        assert row["theta[left]"] == result.points["theta"][2, 17, 3, 0]
        assert row["tau"] == result.points["tau"][2, 17, 3]
        assert row["weight"] == pytest.approx(result.weights[2, 17, 3] / (4 * 200))

    def test_weighted_moments(self, weighted):
        frame = weighted.to_dataframe()
        assert frame["weight"].sum() == pytest.approx(1)
        covariance = np.cov(frame[LABELS].T, aweights=frame["weight"], ddof=0)
        np.testing.assert_allclose(covariance, weighted.covariance().value, rtol=1e-10)

    def test_log_density_is_that_of_the_users_space(self, result, x64):
        here = {name: jnp.asarray(leaf[0, 0, 0]) for name, leaf in result.points.items()}
        assert result.to_dataframe()["log_density"][0] == pytest.approx(float(result.target.log_density(here)))

    def test_chosen_columns(self, result):
        frame = result.to_dataframe(var_names=["thet"], filter_vars="like", log_density=False)
        assert list(frame.columns) == ["chain", "draw", "particle", "weight", *LABELS[1:]]

    def test_a_parameter_that_has_the_name_of_a_column(self):
        target = pe.Target(lambda p: -jnp.sum(p["weight"] ** 2), {"weight": np.zeros(3)}, names=["weight"])
        scalar = pe.Target(lambda p: -(p["weight"] ** 2), {"weight": 0.0})
        made = two_modes()
        assert "weight[0]" in two_modes(target=target).to_dataframe()
        one = two_modes(target=scalar, unconstrained=made.unconstrained[..., :1])
        frame = one.to_dataframe()
        assert frame["weight"].sum() == pytest.approx(1)
        np.testing.assert_array_equal(frame["weight_"], made.unconstrained[..., 0].ravel())

    def test_a_density_in_python_is_not_called_unless_asked_for(self, result):
        calls = []

        def density(position):
            calls.append(1)
            return -float(np.sum(position["theta"] ** 2)) - float(position["tau"])

        target = pe.Target(pe.from_numpy(density), {"theta": np.zeros(2), "tau": 1.0}, bounds={"tau": (0, None)})
        slow = two_modes(target=target, draws=3)
        assert "log_density" not in slow.to_dataframe()
        assert not calls
        assert "log_density" in slow.to_dataframe(log_density=True)
        assert calls

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"var_names": "sigma"}, ["var_names", "'sigma'"]),
            ({"var_names": ["~tau", "theta"]}, ["var_names", "~"]),
            ({"var_names": "(", "filter_vars": "regex"}, ["var_names", "regular"]),
            ({"var_names": "tau", "filter_vars": "fuzzy"}, ["filter_vars", "'fuzzy'"]),
            ({"var_names": ["~tau", "~theta"]}, ["var_names", "excludes"]),
        ],
    )
    def test_bad_names(self, result, options, words):
        with pytest.raises((ValueError, TypeError)) as refusal:
            result.to_dataframe(**options)
        assert_sentence(refusal, *words)


TOO_NEW = tuple(map(int, pd.__version__.split(".")[:2])) >= PANDAS_TOO_NEW


@pytest.mark.skipif(not TOO_NEW, reason="anesthetic works with this pandas")
def test_anesthetic_is_not_imported_where_it_breaks_pandas(result):
    with pytest.raises(ImportError) as refusal:
        result.to_anesthetic()
    assert_sentence(refusal, "to_anesthetic", "pandas", "pip install")
    assert "anesthetic" not in sys.modules


@pytest.mark.skipif(TOO_NEW, reason="anesthetic breaks the printing of data frames with pandas 3.1 and later")
def test_anesthetic_has_our_moments(weighted):
    pytest.importorskip("anesthetic")
    samples = weighted.to_anesthetic()
    mean, covariance = samples[LABELS].mean().to_numpy(), samples[LABELS].cov(ddof=0).to_numpy()
    np.testing.assert_allclose(mean, [weighted.mean().value["tau"], *weighted.mean().value["theta"]], rtol=1e-10)
    np.testing.assert_allclose(covariance, weighted.covariance().value, rtol=1e-10)
    frame = weighted.to_dataframe()
    kept = (frame["weight"] > 0).to_numpy()
    np.testing.assert_array_equal(samples["logL"].to_numpy(), frame["log_density"][kept])
    np.testing.assert_array_equal(samples["chain"].to_numpy(), frame["chain"][kept])


class TestGetdist:
    def test_object_has_our_moments(self, weighted):
        pytest.importorskip("getdist")
        samples = weighted.to_getdist()
        np.testing.assert_allclose(
            samples.getMeans(), [weighted.mean().value["tau"], *weighted.mean().value["theta"]], rtol=1e-10
        )
        np.testing.assert_allclose(samples.getCov(3), weighted.covariance().value, rtol=1e-8)
        assert samples.ranges.getLower("tau") == 0
        assert samples.ranges.getUpper("tau") is None

    def test_files_are_read_back(self, weighted, tmp_path):
        getdist = pytest.importorskip("getdist")
        paths = weighted.save_getdist(tmp_path / "run")
        assert {path.name for path in paths} >= {"run_1.txt", "run_4.txt", "run.paramnames", "run.ranges"}
        samples = getdist.loadMCSamples(str(tmp_path / "run"), no_cache=True, settings={"ignore_rows": 0})
        assert [name.name for name in samples.getParamNames().names] == LABELS
        np.testing.assert_allclose(samples.getCov(3), weighted.covariance().value, rtol=1e-6)
        mean = np.average(log_densities(weighted), weights=weighted.weights)  # getdist drops the lightest points
        np.testing.assert_allclose(-samples.mean(samples.loglikes), mean, rtol=1e-6)
        assert samples.ranges.getLower("tau") == 0

    def test_files_need_a_directory(self, result, tmp_path):
        with pytest.raises(ValueError, match="root") as refusal:
            result.save_getdist(tmp_path / "nowhere" / "run")
        assert_sentence(refusal, "root", "nowhere")


def test_chainconsumer_has_our_points(weighted):
    library = pytest.importorskip("chainconsumer")
    chain = weighted.to_chainconsumer("ours")
    assert isinstance(chain, library.Chain)
    mean = np.average(chain.samples[LABELS], axis=0, weights=chain.weights)
    np.testing.assert_allclose(mean, [weighted.mean().value["tau"], *weighted.mean().value["theta"]], rtol=1e-10)
    assert chain.log_posterior is not None


def test_documented_line_for_corner(result):
    corner = pytest.importorskip("corner")
    frame = result.to_dataframe()
    figure = corner.corner(frame[result.labels].to_numpy(), weights=frame["weight"].to_numpy(), labels=result.labels)
    assert len(figure.axes) == 9


def test_missing_library_is_one_sentence(result, monkeypatch):
    for module in ("anesthetic", "getdist", "chainconsumer"):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError) as refusal:
            getattr(result, f"to_{module}")()
        assert_sentence(refusal, f"to_{module}", "pip install")


class TestSummary:
    def test_as_arviz_users_expect(self, result):
        table = result.summary(var_names=["theta"], hdi_prob=0.94, round_to=3)
        assert list(table.index) == LABELS[1:]
        assert {"hdi_3%", "hdi_97%"} <= set(table.columns)
        whole = result.summary()
        assert list(whole.columns)[-2:] == ["ess", "r_hat"]
        np.testing.assert_array_equal(table["mean"], whole["mean"][1:].round(3))

    def test_shortest_interval(self, result):
        """Of an exponential it begins at zero and ends at its quantile."""
        row = result.summary("tau", hdi_prob=0.9).loc["tau"]
        assert abs(row["hdi_5%"]) < 0.05
        assert abs(row["hdi_95%"] - np.log(10)) < 0.3

    def test_names_may_be_left_out(self, result):
        assert list(result.summary("~theta").index) == ["tau"]
        assert list(result.summary("^th.*left", filter_vars="regex").index) == ["theta[left]"]
        assert list(result.summary(["theta[right_one]", "tau"]).index) == ["theta[right_one]", "tau"]

    @pytest.mark.parametrize(
        ("options", "word"),
        [({"hdi_prob": 1.0}, "hdi_prob"), ({"hdi_prob": 94}, "hdi_prob"), ({"round_to": -1}, "round_to")],
    )
    def test_bad_options(self, result, options, word):
        with pytest.raises(ValueError, match=word) as refusal:
            result.summary(**options)
        assert_sentence(refusal, word)
