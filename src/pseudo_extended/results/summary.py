"""The table of a result: weighted moments, quantiles and intervals of every coordinate, with Monte Carlo errors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from jaxtyping import Float

from pseudo_extended import checks
from pseudo_extended.results import estimates
from pseudo_extended.results.doubts import evidence_attributes
from pseudo_extended.results.intervals import narrowest_interval
from pseudo_extended.results.selection import chosen_labels, select, values_of

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result


def summarise(
    result: "Result",
    r_hat: Float[np.ndarray, " d"],
    var_names: str | Sequence[str] | None,
    filter_vars: str | None,
    hdi_prob: float | None,
    round_to: int | None,
) -> pd.DataFrame:
    """Summarise a result in a table, as `Result.summary` describes."""
    chosen = select(result, var_names, filter_vars)
    values, weights = values_of(result, chosen), result.weights
    mean, variance = estimates.mean(values, weights), estimates.variance(values, weights)
    deviation = np.sqrt(variance.value)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation_error = variance.standard_error / (2 * deviation)
    low, middle, high = (estimates.quantile(values, weights, p) for p in (0.05, 0.5, 0.95))
    columns = {
        "mean": mean.value,
        "mcse_mean": mean.standard_error,
        "sd": deviation,
        "mcse_sd": deviation_error,
        "q5": low.value,
        "q50": middle.value,
        "q95": high.value,
        "mcse_q5": low.standard_error,
        "mcse_q50": middle.standard_error,
        "mcse_q95": high.standard_error,
    }
    if hdi_prob is not None:
        prob = checks.real("hdi_prob", hdi_prob, low=0, high=1, closed="()")
        ends = [narrowest_interval(values[..., i].ravel(), weights.ravel(), prob) for i in range(len(chosen))]
        for name, column in zip(hdi_names(prob), zip(*ends, strict=True), strict=True):
            columns[name] = np.array(column)
    columns |= {"ess": mean.ess, "r_hat": r_hat[chosen]}
    table = pd.DataFrame(columns, index=pd.Index(chosen_labels(result, chosen), name="parameter"))
    if round_to is not None:
        table = table.round(checks.integer("round_to", round_to, minimum=0, maximum=100))
    table.attrs["warnings"] = list(result.warnings)
    if "evidence_top" in result.statistics:
        table.attrs["log_evidence"] = evidence_attributes(result.log_evidence, result.evidence_doubts)
    return table


def hdi_names(prob: float) -> tuple[str, str]:
    """What ArviZ calls the ends of an interval.

    >>> hdi_names(0.94)
    ('hdi_3%', 'hdi_97%')
    """
    tail = 50 * (1 - prob)
    return f"hdi_{tail:.4g}%", f"hdi_{100 - tail:.4g}%"
