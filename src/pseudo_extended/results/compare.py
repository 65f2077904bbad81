"""Models by their evidence: Bayes factors and posterior probabilities, with their Monte Carlo errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
import pandas as pd
from scipy.special import logsumexp

from pseudo_extended import checks
from pseudo_extended.pilot.prior_mass import log_ratios, prior_mass
from pseudo_extended.precision import in_double_precision
from pseudo_extended.results.markup import page_table, paragraph, text_table
from pseudo_extended.results.result import Result

LARGE_ERROR = 0.5
"""A standard error of a log evidence that leaves a factor of e open, at two of them."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Models in the order of their evidence, the best first; `print` shows the table and the warnings."""

    table: pd.DataFrame
    """A row for each model: `log_evidence` and its error, `log_bayes_factor` (of the best model over this one) and its
    error, `probability` and its error."""
    warnings: tuple[str, ...]
    """What makes the evidences incomparable, or uncertain."""

    def bayes_factor(self, one: str, other: str) -> float:
        """How many times as probable the data are under model `one` as under the other."""
        for name in (one, other):
            if not isinstance(name, str) or name not in self.table.index:
                raise ValueError(
                    f"bayes_factor needs models out of {list(self.table.index)}; got {checks.describe(name)}."
                )
        return float(np.exp(self.table["log_evidence"][one] - self.table["log_evidence"][other]))

    def __repr__(self) -> str:
        shown = text_table(self.table)
        return "\n".join([shown, *(f"! {sentence}" for sentence in self.warnings)])

    def _repr_html_(self) -> str:
        return page_table(self.table) + "".join(paragraph(f"! {sentence}") for sentence in self.warnings)


def compare(results: Mapping[str, Result], prior: Mapping[str, float] | None = None) -> Comparison:
    """Compare models by their evidence: how probable each is given the data.

    The posterior probability of model k is p_k Z_k / Σ p_j Z_j. Errors of the evidences are independent between runs
    and go into those of factors and probabilities by the delta method.

    Args:
        results: Names of models, and the results of methods that estimate the evidence.
        prior: Prior probabilities of the models, up to a constant; equal unless given.

    >>> import jax.numpy as jnp, pseudo_extended as pe
    >>> def run(mean):
    ...     target = pe.Target(lambda x: -0.5 * jnp.sum((x - mean) ** 2), jnp.zeros(1), base=pe.Normal(0.0, 2.0))
    ...     method = pe.ParallelTempering(betas=[0.0, 0.3, 1.0], kernel=pe.HMC(4))
    ...     return pe.sample(target, jnp.zeros(1), method=method, draws=200, warmup=200, seed=1, progress=False)
    >>> found = pe.compare({"one": run(0.0), "two": run(1.0)})
    >>> bool(abs(found.table.loc["one", "probability"] - 0.5) < 4 * found.table.loc["one", "mcse_probability"])
    True
    """
    if not isinstance(results, Mapping) or not results:
        raise TypeError(f"results must be a mapping from names to results; got {checks.describe(results)}.")
    names = list(results)
    for name in names:
        checks.instance(f"results[{name!r}]", results[name], Result, "a result of pe.sample")
        if "evidence_top" not in results[name].statistics:
            raise ValueError(f"results[{name!r}] must estimate the evidence; {results[name].method} does not.")
    log_z = np.array([float(results[name].log_evidence.value) for name in names])
    error = np.array([float(results[name].log_evidence.standard_error) for name in names])
    log_odds = log_z + np.log(_prior(prior, names))
    probability = np.exp(log_odds - logsumexp(log_odds))
    # ∂P_k/∂log Z_j = P_k (1[j = k] - P_j)
    slopes = np.diag(probability) - np.outer(probability, probability)
    best = int(np.argmax(log_z))
    factor_error = np.hypot(error, error[best])
    factor_error[best] = 0.0
    table = pd.DataFrame(
        {
            "log_evidence": log_z,
            "mcse_log_evidence": error,
            "log_bayes_factor": log_z[best] - log_z,
            "mcse_log_bayes_factor": factor_error,
            "probability": probability,
            "mcse_probability": np.sqrt(slopes**2 @ error**2),
        },
        index=pd.Index(names, name="model"),
    ).sort_values("log_evidence", ascending=False, kind="stable")
    return Comparison(table, tuple(sentence for name in names for sentence in _doubts(name, results[name])))


def _prior(prior: Any, names: list[str]) -> np.ndarray:
    if prior is None:
        return np.full(len(names), 1 / len(names))
    if not isinstance(prior, Mapping) or set(prior) != set(names):
        raise ValueError(f"prior must give a probability for each of {names}; got {checks.describe(prior)}.")
    given = np.array([checks.real(f"prior of {name!r}", prior[name], low=0, closed="()") for name in names])
    return given / given.sum()


@in_double_precision
def _doubts(name: str, result: Result) -> list[str]:
    """What about a result makes its evidence no evidence, or an uncertain one."""
    target, said = result.target, []
    facts = None if target.view is None else target.view.facts
    notes = " ".join((*result.notes, *(facts.notes if facts is not None else ())))
    if "improper" in notes:
        said.append(f"{name}: the prior is improper, so the evidence has an arbitrary factor and cannot be compared.")
    elif facts is not None and "pystan" in facts.origin:
        said.append(
            f"{name}: PyStan drops constants of the density, which differ between models: write the model with "
            "`target += …_lpdf(…)`, or give it to BridgeStan, which keeps them."
        )
    elif facts is None and target.log_likelihood is None:
        said.append(
            f"{name}: the target is one density, and nothing here can tell whether its prior and likelihood are "
            "normalised: if a constant was left out, the evidence lacks it too."
        )
    elif facts is None and target.base is not None and target.base.can_sample:
        mass = prior_mass(*jax.jit(partial(log_ratios, target))(jax.random.key(0, impl="threefry2x32")))
        if not mass.is_known:
            said.append(f"{name}: what the prior integrates to is not known; if it is not one, the evidence is off.")
        elif abs(mass.log) > 0.02 + 4 * mass.error:
            said.append(
                f"{name}: the prior integrates to exp({mass.log:.2f}) and not to one: constants are missing, and the "
                "evidence has that factor in it."
            )
    elif facts is None:
        said.append(
            f"{name}: the prior cannot be drawn from, so nothing here can tell whether its constants are all there; "
            "give the target sample_prior."
        )
    error = float(result.log_evidence.standard_error)
    if not error < LARGE_ERROR:
        said.append(f"{name}: the standard error of log_evidence is {error:.2g}: run longer before comparing.")
    result._shown_modes()  # a mode without draws speaks against the evidence
    codes = ", ".join(dict.fromkeys(doubt.code for doubt in result.evidence_doubts))
    if codes:
        said.append(f"{name}: log_evidence is NOT TO BE TRUSTED ({codes}): see result.evidence_doubts.")
    return said
