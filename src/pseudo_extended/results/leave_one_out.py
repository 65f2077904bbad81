"""Leave-one-out cross-validation from weighted points, and models ranked by it.

    p(y_i | y_{-i}) = 1 / E[1 / p(y_i | θ)],        E under the posterior,

so with weighted points w_s the importance of a point without observation i is r_si = w_s / p(y_i | θ_s), up to a
constant. The largest of them are smoothed by a generalised Pareto distribution (PSIS, Vehtari et al. 2017, 2024), which
makes no difference between weights of the posterior itself and weights of an approximation to it (Magnusson et al.
2019): no resampling is needed, and all points count.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import logsumexp

from pseudo_extended import checks
from pseudo_extended.precision import in_double_precision
from pseudo_extended.results import estimates
from pseudo_extended.results.markup import page_table, paragraph
from pseudo_extended.results.pareto import MIN_TAIL, fit_tail, with_prior
from pseudo_extended.target.views import Facts, map_in_batches

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

MAX_VALUES = 2**24
"""Log likelihoods that are held at once; of more, every second draw is taken, or third, and so on."""
NEGLIGIBLE = 1e-9
"""Points with less than this share of the weight of a draw are left out."""
NUM_SWEEPS = 1000


class Smoothed(NamedTuple):
    """The importance of points, after smoothing."""

    log_weight: Float[np.ndarray, " point"]
    """They sum to one."""
    shape: float
    """Pareto's k of the largest of them; inf if too few differ."""


@dataclass(frozen=True, eq=False, repr=False)
class LeaveOneOut:
    """How well a model predicts each observation from the others; `print` shows the sums and the warnings."""

    elpd: float
    """The sum over observations of log p(y_i | y_{-i}): larger is better."""
    standard_error: float
    """From how much the observations differ; not Monte Carlo error."""
    p_loo: float
    """The effective number of parameters: what each observation adds to its own prediction, summed up."""
    pointwise: pd.DataFrame
    """A row for each observation: `elpd`, `p_loo`, and Pareto's `k` of its importance weights."""
    good_k: float
    """The k up to which a term of the sum can be relied on, which depends on the number of effective draws."""
    num_points: int
    """Weighted points that were used."""
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        lines = [
            f"Leave-one-out cross-validation of {len(self.pointwise)} observations, from {self.num_points} weighted "
            "points (Pareto-smoothed)",
            f"elpd {self.elpd:.2f} ± {self.standard_error:.2f}, p_loo {self.p_loo:.2f}; "
            f"k is {self.pointwise['k'].max():.2f} at most, and good up to {self.good_k:.2f}",
        ]
        return "\n".join([*lines, *(f"! {sentence}" for sentence in self.warnings)])

    def _repr_html_(self) -> str:
        return "".join(paragraph(line) for line in repr(self).splitlines())


@dataclass(frozen=True, eq=False, repr=False)
class PredictiveComparison:
    """Models in the order in which they predict, the best first; `print` shows the table and the warnings."""

    table: pd.DataFrame
    """A row for each model: `elpd` and its error, `difference` to the best and its error over the same observations,
    `p_loo`, and `weight` in the mixture of models that predicts best (stacking)."""
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        shown = self.table.map(lambda number: f"{number:.4g}").to_string()
        return "\n".join([shown, *(f"! {sentence}" for sentence in self.warnings)])

    def _repr_html_(self) -> str:
        return page_table(self.table) + "".join(paragraph(f"! {sentence}") for sentence in self.warnings)


def leave_one_out(result: "Result", var_names: str | list[str] | None = None) -> LeaveOneOut:
    """Cross-validate by leaving out each observation, as `Result.loo` describes."""
    thin, values = _pointwise(result, var_names)
    weights = result.weights[:, ::thin].ravel()
    kept = weights > NEGLIGIBLE * weights.max()
    log_weight = np.log(weights[kept] / weights[kept].sum())
    names = list(values)
    if len(values) == 1:
        columns = values[names[0]].reshape(len(kept), -1)[kept]
        labels = [f"{names[0]}[{i}]" for i in range(columns.shape[1])]
    else:
        parts = {name: each.reshape(len(kept), -1)[kept] for name, each in values.items()}
        columns = np.concatenate(list(parts.values()), axis=1)
        labels = [f"{name}[{i}]" for name, part in parts.items() for i in range(part.shape[1])]
    if not np.all(np.isfinite(columns)):
        raise ValueError(
            "loo needs a finite log likelihood of every observation at every point with weight; it is not finite at "
            f"{np.sum(~np.isfinite(columns).all(axis=1))} of {len(columns)} points."
        )
    kish = float(np.exp(-_log_sum(2 * log_weight)))
    size = min(kish, float(np.mean(estimates.mean(result.unconstrained, result.weights).ess)) / thin)
    tail = int(min(0.2 * kish, 3 * kish / np.sqrt(max(size, 1.0))))
    rows = [_of_observation(log_weight, column, tail) for column in columns.T]
    pointwise = pd.DataFrame(rows, index=pd.Index(labels, name="observation"), columns=["elpd", "p_loo", "k"])
    elpd = pointwise["elpd"].to_numpy()
    good_k = float(min(1 - 1 / np.log10(max(size, 10.0)), 0.7))
    return LeaveOneOut(
        float(np.sum(elpd)),
        float(np.std(elpd) * np.sqrt(len(elpd))),
        float(np.sum(pointwise["p_loo"])),
        pointwise,
        good_k,
        int(np.sum(kept)),
        _warnings(result, pointwise["k"].to_numpy(), good_k),
    )


def compare_predictions(results: "Mapping[str, Result | LeaveOneOut]") -> PredictiveComparison:
    """Rank models by how well they predict each observation from the others (leave-one-out cross-validation).

    `pe.compare` ranks by the evidence, which asks how well prior and likelihood together predicted all data, and
    depends on the width of priors; this asks how well the fitted model predicts one more observation.

    Args:
        results: Names of models, and results of them, or what `result.loo()` returned. The observations must be the
            same, in the same order.

    >>> import numpy as np, pandas as pd, pseudo_extended as pe
    >>> def made(elpd):
    ...     table = pd.DataFrame({"elpd": elpd, "p_loo": 0.0, "k": 0.1})
    ...     return pe.LeaveOneOut(sum(elpd), 0.0, 0.0, table, 0.7, 4000, ())
    >>> found = pe.compare_predictions({"one": made([-1.0, -1.0, -1.2]), "two": made([-2.0, -2.0, -2.1])})
    >>> list(found.table.index), float(found.table["difference"]["two"].round(6))
    (['one', 'two'], -2.9)
    """
    if not isinstance(results, Mapping) or not results:
        raise TypeError(f"results must be a mapping from names to results; got {checks.describe(results)}.")
    found = {name: _as_loo(name, each) for name, each in results.items()}
    sizes = {name: len(each.pointwise) for name, each in found.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"results must be of the same observations; they have {sizes} of them.")
    elpd = np.stack([each.pointwise["elpd"].to_numpy() for each in found.values()])
    total, number = elpd.sum(axis=1), elpd.shape[1]
    apart = elpd - elpd[np.argmax(total)]
    table = pd.DataFrame(
        {
            "elpd": total,
            "se_elpd": [each.standard_error for each in found.values()],
            "difference": apart.sum(axis=1),
            "se_difference": np.std(apart, axis=1) * np.sqrt(number),
            "p_loo": [each.p_loo for each in found.values()],
            "weight": _stack(elpd),
        },
        index=pd.Index(list(found), name="model"),
    ).sort_values("elpd", ascending=False, kind="stable")
    return PredictiveComparison(
        table, tuple(f"{name}: {sentence}" for name, each in found.items() for sentence in each.warnings)
    )


def smooth(log_ratio: Float[np.ndarray, " point"], tail: int) -> Smoothed:
    """Replace the largest ratios by quantiles of the Pareto distribution that fits them, and normalise.

    >>> rng = np.random.default_rng(0)
    >>> smoothed = smooth(0.5 * rng.normal(size=4000), 190)
    >>> bool(abs(np.exp(smoothed.log_weight).sum() - 1) < 1e-12), smoothed.shape < 0.5
    (True, True)
    """
    log_ratio = log_ratio - np.max(log_ratio)
    order = np.argsort(log_ratio, kind="stable")
    largest, shape = order[len(order) - tail :], np.inf
    if MIN_TAIL <= tail < len(order):
        cutoff = max(log_ratio[order[-tail - 1]], np.log(np.finfo(float).tiny))
        exceedances = np.exp(log_ratio[largest]) - np.exp(cutoff)
        if exceedances[0] <= 0:
            above = exceedances > 0
            largest, exceedances = largest[above], exceedances[above]
        if len(largest) >= MIN_TAIL:
            fitted = fit_tail(exceedances)
            shape = with_prior(fitted.shape, len(largest))
            middle = (np.arange(len(largest)) + 0.5) / len(largest)
            quantiles = fitted._replace(shape=shape).quantile(middle)
            log_ratio = log_ratio.copy()
            log_ratio[largest] = np.minimum(np.log(quantiles + np.exp(cutoff)), 0.0)
        else:  # all of the largest are one value: nothing is heavy about them
            shape = -np.inf
    return Smoothed(log_ratio - _log_sum(log_ratio), shape)


def _of_observation(
    log_weight: Float[np.ndarray, " point"], log_likelihood: Float[np.ndarray, " point"], tail: int
) -> tuple[float, float, float]:
    """Its log predictive density without itself, what it adds to its own prediction, and Pareto's k."""
    smoothed = smooth(log_weight - log_likelihood, tail)
    without = _log_sum(smoothed.log_weight + log_likelihood)
    return without, _log_sum(log_weight + log_likelihood) - without, smoothed.shape


@in_double_precision
def _pointwise(result: "Result", var_names: str | list[str] | None) -> tuple[int, dict[str, np.ndarray]]:
    """The log likelihood of every observation, (chain, draw, particle, …), at every so-manieth draw."""
    target = result.target
    facts: Facts | None = None if target.view is None else target.view.facts
    if facts is not None and facts.pointwise is not None:
        pointwise = facts.pointwise

        def at(u: np.ndarray) -> dict[str, np.ndarray]:
            flat = map_in_batches(lambda one: pointwise(target.constrain(one)), u.reshape(-1, target.dim))
            return {name: np.asarray(leaf).reshape(*u.shape[:3], -1) for name, leaf in flat.items()}

        known = at(result.unconstrained[:1, :1])
        chosen = _choose(list(known), var_names)
        size = sum(known[name].shape[-1] for name in chosen) * result.weights.size
        thin = max(-(-size // MAX_VALUES), 1)
        values = known if result.weights.shape[:2] == (1, 1) else at(result.unconstrained[:, ::thin])
        return thin, {name: values[name] for name in chosen}
    names = () if facts is None else facts.pointwise_names
    if not names:
        raise ValueError(
            "loo needs the log likelihood of each observation, which models of PyMC (those that JAX can run) and "
            "NumPyro (without discrete variables) with observed variables know, and Stan programs with a generated "
            f"quantity log_lik; a target made of {_origin(result)} gives their sum only."
        )
    return 1, {name: np.asarray(result.points[name], float) for name in _choose(list(names), var_names)}


def _origin(result: "Result") -> str:
    view = result.target.view
    if view is not None:
        return f"this model ({view.facts.origin})"
    return "a density" if result.target.log_likelihood is None else "log_prior and log_likelihood"


def _choose(names: list[str], var_names: Any) -> list[str]:
    """The observed variables to use."""
    if var_names is None:
        return names
    chosen = [var_names] if isinstance(var_names, str) else checks.entries("var_names of loo", var_names)
    for name in chosen:
        if name not in names:
            raise ValueError(f"var_names of loo must be out of the observed variables {names}; got {name!r}.")
    return chosen


def _warnings(result: "Result", k: Float[np.ndarray, " observation"], good_k: float) -> tuple[str, ...]:
    said = []
    bad = int(np.sum(k > good_k))
    if bad:
        share = "one observation" if bad == 1 else f"{bad} observations"
        said.append(
            f"k is above {good_k:.2f} for {share} of {len(k)}: without it the posterior is another one (it may be "
            "that a mode loses its weight), and its term is not known; fit the model again without it."
        )
    severe = dict.fromkeys(message.code for message in result.warnings if message.severity == "severe")
    if severe:
        said.append(f"the run has severe warnings ({', '.join(severe)}): see result.warnings.")
    return tuple(said)


def _as_loo(name: str, given: Any) -> LeaveOneOut:
    if isinstance(given, LeaveOneOut):
        return given
    if callable(getattr(given, "loo", None)):
        return given.loo()
    raise TypeError(f"results[{name!r}] must be a result, or what result.loo() returns; got {checks.describe(given)}.")


def _stack(elpd: Float[np.ndarray, "model observation"]) -> Float[np.ndarray, " model"]:
    """Weights that maximise Σ_i log Σ_k w_k exp(elpd_ki) (Yao et al. 2018), by expectation and maximisation."""
    density = np.exp(elpd - elpd.max(axis=0))
    weight = np.full(len(elpd), 1 / len(elpd))
    for _ in range(NUM_SWEEPS):
        part = weight[:, None] * density
        weight = np.mean(part / part.sum(axis=0), axis=1)
    return weight


def _log_sum(values: Float[np.ndarray, " point"]) -> float:
    return float(np.asarray(logsumexp(values)))
