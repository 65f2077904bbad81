"""Mean squared error × cost against N: a picture and a table."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pseudo_extended_reproduction.summaries import Summary, with_error
from pseudo_extended_reproduction.tables import Table

UNITS = {"seconds": "seconds", "evaluations": "densities in the draws"}


def cost_of(summary: Summary, moment: str, unit: str) -> tuple[float, float]:
    """MSE × cost and its standard error, by the delta method; the cost is taken as known.

    >>> summary = Summary({"E[X]": 0.1}, {"E[X]": 0.01}, runs=20, seconds=3.0, evaluations=100.0)
    >>> [round(number, 4) for number in cost_of(summary, "E[X]", "seconds")]
    [0.03, 0.006]
    """
    rmse, cost = summary.rmse[moment], getattr(summary, unit)
    return rmse**2 * cost, 2 * rmse * summary.error[moment] * cost


def draw_cost(axis: Any, found: dict[int, Summary], default: Summary | None, moments: Sequence[str], unit: str) -> None:
    """Against N, with bars of two standard errors, and dashed for our default; `unit` is a key of `UNITS`."""
    for moment in moments:
        value, error = np.array([cost_of(summary, moment, unit) for summary in found.values()]).reshape(-1, 2).T
        down = np.minimum(2 * error, 0.9 * value)  # zero has no place on a log scale
        bars = axis.errorbar(list(found), value, np.array([down, 2 * error]), fmt="o-", capsize=2, label=moment)
        if default is not None:
            axis.axhline(
                cost_of(default, moment, unit)[0], color=bars.lines[0].get_color(), linestyle="--", linewidth=1
            )
    axis.set(yscale="log", xlabel="N", ylabel=f"MSE × {UNITS[unit]}", xticks=list(found))


def cost_table(caption: str, found: dict[str, Summary], moments: Sequence[str]) -> Table:
    """A row for each of the summaries by their labels."""
    units = {"seconds": ("seconds", 1.0), "1,000 densities": ("evaluations", 1e-3)}
    headings = ["", *(f"{moment} × {name}" for name in units for moment in moments), "runs"]
    rows = []
    for name, summary in found.items():
        costs = [
            scale * np.array(cost_of(summary, moment, unit)) for unit, scale in units.values() for moment in moments
        ]
        rows.append([name, *(with_error(*cost) for cost in costs), str(summary.runs)])
    return Table(caption, headings, rows)
