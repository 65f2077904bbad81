"""Leave-one-out cross-validation of weighted results: against a model that is solved by hand, and against ArviZ."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import pseudo_extended as pe
from pseudo_extended.results.leave_one_out import smooth
from pseudo_extended.target.views import Facts, View

from ..unit.sentences import assert_sentence
from .made import two_modes

Y = np.random.default_rng(3).normal(0.5, 1.0, size=30)
SCALE = 2.0
"""Of the normal prior of the mean; the observations have scale 1."""


def normal_mean(y=Y, particles=3, **fields):
    """Importance samples of the posterior of a normal's mean: points from a wider normal with the weights they need."""
    rng = np.random.default_rng(0)
    precision = len(y) + SCALE**-2
    mean, sd = y.sum() / precision, precision**-0.5
    x = mean + 1.5 * sd * rng.normal(size=(4, 500, particles, 1))
    # Of all points alike, and not within a draw: the importance of a draw is the mean of its weights.
    log_weight = (norm.logpdf(x, mean, sd) - norm.logpdf(x, mean, 1.5 * sd))[..., 0]
    target = pe.Target(lambda x: -0.5 * jnp.sum((y - x) ** 2) - 0.5 * jnp.sum((x / SCALE) ** 2), np.zeros(1))
    statistics = {
        name: two_modes(draws=500).statistics[name] for name in ("acceptance_rate", "diverging", "non_finite")
    }
    importance = logsumexp(log_weight, axis=2)
    made = two_modes(
        draws=500, target=target, unconstrained=x, log_weights=log_weight, log_importance=importance,
        statistics=statistics, **fields,
    )  # fmt: skip
    return with_pointwise(made, y)


def with_pointwise(result, y):
    """The same result of a model that knows the log likelihood of each observation."""

    def pointwise(x):
        return {"y": -0.5 * (jnp.asarray(y) - x) ** 2 - 0.5 * np.log(2 * np.pi)}

    parameters = result.target.parameters
    view = View(lambda x: {parameters[0].name: x}, parameters, (parameters[0].name,), (), lambda v: v,
                Facts("by hand", pointwise=pointwise))  # fmt: skip
    target = eqx.tree_at(lambda each: each.view, result.target, view, is_leaf=lambda leaf: leaf is None)
    return two_modes(**{name: getattr(result, name) for name in ("unconstrained", "log_weights", "log_importance",
                                                                 "statistics")}, target=target)  # fmt: skip


def by_hand(y=Y):
    """log p(y_i | y_{-i}) of the normal model."""
    found = []
    for i in range(len(y)):
        rest = np.delete(y, i)
        precision = len(rest) + SCALE**-2
        found.append(norm.logpdf(y[i], rest.sum() / precision, np.sqrt(1 + 1 / precision)))
    return np.array(found)


def test_is_that_of_a_model_solved_by_hand():
    found = normal_mean().loo()
    np.testing.assert_allclose(found.pointwise["elpd"], by_hand(), atol=0.02)
    assert abs(found.elpd - by_hand().sum()) < 0.05
    assert found.standard_error == pytest.approx(np.std(by_hand()) * np.sqrt(len(Y)), rel=0.05)
    precision = len(Y) + SCALE**-2
    with_all = norm.logpdf(Y, Y.sum() / precision, np.sqrt(1 + 1 / precision))
    assert found.p_loo == pytest.approx(np.sum(with_all - by_hand()), abs=0.05)
    assert found.pointwise["k"].max() < found.good_k
    assert found.warnings == ()


def test_weights_count():
    """Without its weights the same result is of another posterior."""
    result = normal_mean()
    flat = two_modes(target=result.target, unconstrained=result.unconstrained, statistics=result.statistics,
                     log_weights=np.zeros_like(result.log_weights))  # fmt: skip
    wrong = np.abs(flat.loo().pointwise["elpd"] - by_hand()).max()
    assert wrong > 3 * np.abs(result.loo().pointwise["elpd"] - by_hand()).max()


def test_smoothing_is_that_of_arviz():
    """Of unweighted draws, with the same length of the tail."""
    array_stats = pytest.importorskip("arviz_stats.base", reason="ArviZ 1.x has it").array_stats
    log_ratio = np.random.default_rng(1).standard_t(4, size=2000)
    ours = smooth(log_ratio, int(min(0.2 * 2000, 3 * np.sqrt(2000))))
    theirs, k = array_stats.psislw(-log_ratio, r_eff=1.0, axis=-1)  # it takes log likelihoods
    np.testing.assert_allclose(ours.log_weight, np.asarray(theirs), atol=1e-6)
    assert ours.shape == pytest.approx(float(k), abs=1e-6)


def test_an_outlier_is_named():
    y = np.append(Y[:4], 12.0)
    found = normal_mean(y).loo()
    assert found.pointwise["k"].idxmax() == "y[4]"
    assert "one observation of 5" in found.warnings[0]


def test_models_in_order():
    good, other = normal_mean(), normal_mean()
    worse = with_pointwise(other, Y + 1.0)
    found = pe.compare_predictions({"worse": worse, "good": good})
    assert list(found.table.index) == ["good", "worse"]
    assert found.table["difference"]["good"] == 0
    assert found.table["difference"]["worse"] < -3
    assert 0 < found.table["se_difference"]["worse"] < -found.table["difference"]["worse"]
    assert found.table["weight"].sum() == pytest.approx(1)
    assert found.table["weight"]["good"] > 0.7
    assert "good" in repr(found)


def test_stacking_is_the_best_mixture():
    """Against all mixtures of two."""
    rng = np.random.default_rng(0)
    elpd = rng.normal(size=(2, 40)) - 1
    tables = {}
    for name, row in zip("ab", elpd, strict=True):
        table = pd.DataFrame({"elpd": row, "p_loo": 0.1, "k": 0.1})
        tables[name] = pe.LeaveOneOut(float(row.sum()), 1.0, 1.0, table, 0.7, 1000, ())
    weight = pe.compare_predictions(tables).table["weight"]["a"]
    grid = np.linspace(0, 1, 2001)
    score = np.sum(np.log(grid[:, None] * np.exp(elpd[0]) + (1 - grid[:, None]) * np.exp(elpd[1])), axis=1)
    assert abs(weight - grid[np.argmax(score)]) < 2e-3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: two_modes().loo(), ["loo", "density"]),
        (lambda: normal_mean().loo(var_names="x"), ["var_names", "'y'", "'x'"]),
        (lambda: pe.compare_predictions({}), ["results", "mapping"]),
        (lambda: pe.compare_predictions({"a": 3}), ["results['a']", "3"]),
        (
            lambda: pe.compare_predictions({"a": normal_mean().loo(), "b": normal_mean(Y[:9]).loo()}),
            ["same observations", "9"],
        ),
    ],
)
def test_refusals(call, words):
    with pytest.raises((ValueError, TypeError)) as refusal:
        call()
    assert_sentence(refusal, *words)
