"""Models by their evidence: numbers against arithmetic, and warnings about evidences that are none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe

from ..unit.sentences import assert_sentence
from .made import two_modes


def with_evidence(log_z, error=0.05, **fields):
    """A result whose log evidence is about `log_z`."""
    made = two_modes(**fields)
    noise = np.random.default_rng(0).normal(size=made.statistics["evidence_top"].shape)
    top = log_z + error * np.sqrt(noise.size) * noise / np.std(noise)
    top = np.log1p(np.clip(top - log_z, -0.9, None)) + log_z
    statistics = made.statistics | {"evidence_top": top}
    return two_modes(statistics=statistics, **fields)


def normal_prior(constant=0.0):
    """A target whose prior integrates to the exponential of `constant`."""
    return pe.Target(
        log_prior=lambda x: -0.5 * jnp.sum(x**2) - 1.5 * jnp.log(2 * jnp.pi) + constant,
        log_likelihood=lambda x: -jnp.sum((x - 1) ** 2),
        sample_prior=lambda key: jax.random.normal(key, (3,), float),
        example=np.zeros(3),
    )


def test_probabilities_and_factors():
    results = {name: with_evidence(value) for name, value in (("a", -3.0), ("b", -1.0), ("c", -2.0))}
    found = pe.compare(results)
    assert list(found.table.index) == ["b", "c", "a"]
    log_z = found.table["log_evidence"]
    share = np.exp(log_z) / np.exp(log_z).sum()
    np.testing.assert_allclose(found.table["probability"], share)
    np.testing.assert_allclose(found.table["log_bayes_factor"], log_z["b"] - log_z)
    assert found.bayes_factor("b", "a") == pytest.approx(float(np.exp(log_z["b"] - log_z["a"])))


def test_errors_are_those_of_independent_runs():
    """Against a simulation: evidences with these errors, ten thousand times."""
    results = {"a": with_evidence(-3.0, 0.02), "b": with_evidence(-2.5, 0.03)}
    table = pe.compare(results).table
    rng = np.random.default_rng(0)
    drawn = table["log_evidence"].to_numpy() + table["mcse_log_evidence"].to_numpy() * rng.normal(size=(10_000, 2))
    share = np.exp(drawn) / np.exp(drawn).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(table["mcse_probability"], share.std(axis=0), rtol=0.05)
    factor = drawn[:, 0] - drawn[:, 1]
    assert table["mcse_log_bayes_factor"]["a"] == pytest.approx(factor.std(), rel=0.05)
    assert table["mcse_log_bayes_factor"]["b"] == 0


def test_prior_probabilities():
    results = {"a": with_evidence(0.0), "b": with_evidence(0.0)}
    table = pe.compare(results, prior={"a": 3, "b": 1}).table
    assert table["probability"]["a"] == pytest.approx(0.75)


class TestWarnings:
    def test_a_prior_without_its_constant(self):
        unconstrained = np.random.default_rng(0).normal(size=(4, 200, 6, 3))
        results = {
            name: with_evidence(0.0, target=normal_prior(constant), unconstrained=unconstrained)
            for name, constant in (("whole", 0.0), ("without", 2.0))
        }
        [warning] = pe.compare(results).warnings
        assert warning.startswith("without: the prior integrates to exp(2.0")

    def test_one_density_may_lack_anything(self):
        [warning] = pe.compare({"one": with_evidence(0.0)}).warnings
        assert_sentence(warning, "one", "constant")

    def test_an_improper_prior(self):
        notes = ("the prior is improper (Flat), so it cannot be the base of the path; one is learned.",)
        [warning] = pe.compare({"flat": with_evidence(0.0, notes=notes)}).warnings
        assert_sentence(warning, "flat", "improper")

    def test_a_large_error(self):
        statistics = two_modes().statistics
        wild = statistics | {"evidence_top": 5 * np.random.default_rng(0).standard_normal((4, 200, 1))}
        warnings = pe.compare({"wild": two_modes(statistics=wild)}).warnings
        assert any("standard error" in sentence for sentence in warnings)


@pytest.mark.parametrize(
    ("results", "options", "words"),
    [
        ({}, {}, ["results"]),
        ({"a": 3}, {}, ["results['a']", "3"]),
        ({"a": "no evidence"}, {}, ["results['a']", "evidence"]),
        ({"a": None}, {"prior": {"b": 1.0}}, ["prior", "'a'"]),
        ({"a": None}, {"prior": {"a": 0.0}}, ["prior", "'a'"]),
    ],
)
def test_refusals(results, options, words):
    made = {None: with_evidence(0.0), "no evidence": two_modes(statistics={"beta": np.ones((4, 200, 6))})}
    given = {name: made.get(value, value) for name, value in results.items()}
    with pytest.raises((TypeError, ValueError)) as refusal:
        pe.compare(given, **options)
    assert_sentence(refusal, *words)


def test_shown_as_text_and_as_a_page():
    found = pe.compare({"<b>": with_evidence(0.0), "b": with_evidence(-1.0)})
    assert "! <b>: the target is one density" in repr(found)
    page = found._repr_html_()
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
