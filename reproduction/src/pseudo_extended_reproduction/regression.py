"""Figure 6, the prostate figure and the posteriors: logistic regression with the horseshoe on cancer data (4.3)."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pseudo_extended.results.series import standard_error
from pseudo_extended_reproduction import tables
from pseudo_extended_reproduction.benches import CANCERS, ERROR, NUM_SHOWN, bench_of
from pseudo_extended_reproduction.cells import Cell
from pseudo_extended_reproduction.experiment import Budget, Experiment, grid, label
from pseudo_extended_reproduction.figures import colour, new_figure, save
from pseudo_extended_reproduction.ledger import Ledger
from pseudo_extended_reproduction.summaries import mean_with_error, with_error

METHODS = ("hmc", "pe-2", "pe-5", "pe-2-0.25", "pe-2-0.5", "pe-2-0.75", "default")
QUICK = ("hmc", "pe-2", "default")
SCORES = ("log predictive density", "mean log likelihood")
SHOWN = ("hmc", "pe-2", "pe-5", "default")
KEPT = 1000
LEAST_SPAN = 1.5
"""Of an axis: runs of the same method on the same split differ by half of it, and a finer axis would show noise."""


def _methods(budget: Budget) -> tuple[str, ...]:
    return METHODS if budget.is_full else QUICK


def _shown(budget: Budget) -> tuple[str, ...]:
    return SHOWN if budget.is_full else QUICK


def _cells(
    problems: tuple[str, ...], methods: Callable[[Budget], tuple[str, ...]], keep: int, budget: Budget
) -> list[Cell]:
    return [cell for problem in problems for cell in grid(problem, methods(budget), budget, keep)]


def _predictive(
    name: str, problems: tuple[str, ...], title: str, ledger: Ledger, budget: Budget, out: Path
) -> list[Path]:
    # Without draws to keep: a table needs the records only.
    found = {
        problem: {method: ledger.done(grid(problem, [method], budget)) for method in _methods(budget)}
        for problem in problems
    }
    found = {problem: done for problem, done in found.items() if any(done.values())}
    has_errors = any(ERROR in r["scores"] for done in found.values() for records in done.values() for r in records)
    figure, axes = new_figure(1, len(found), 5.5 * len(found) + 1, 4.2)
    made = []
    for axis, problem in zip(axes[0], found, strict=True):
        done = {method: records for method, records in found[problem].items() if records}
        rows = []
        for place, (method, records) in enumerate(done.items()):
            values = np.array([[record["scores"][score] for score in SCORES] for record in records])
            axis.plot(values[:, 0], np.full(len(values), place), "o", alpha=0.6, color=colour(method))
            cells = [mean_with_error(column) for column in values.T]
            if len(values) > 1:
                axis.plot(values[:, 0].mean(), place, "|", color="black", markersize=16)
            else:
                error = _error(records[0])
                axis.errorbar(values[0, 0], place, xerr=2 * np.nan_to_num(error), color=colour(method))
                cells[0] = with_error(values[0, 0], error)
            beside = "" if method == "hmc" else _beyond_hmc(records, done.get("hmc", []))
            cost = [f"{np.mean([record[part] for record in records]):,.0f}" for part in ("evaluations", "seconds")]
            rows.append([label(method), cells[0], beside, cells[1], *cost, str(len(records))])
        axis.set(title=problem, xlabel="log predictive density of held-out data", yticks=range(len(done)))
        axis.set_yticklabels([label(method) for method in done])
        low, high = axis.get_xlim()
        axis.set_xlim(min(low, (low + high - LEAST_SPAN) / 2), max(high, (low + high + LEAST_SPAN) / 2))
        axis.invert_yaxis()
        held_out = len(bench_of(problem).problem.held_out.labels)
        spread = f"one split{' ± Monte Carlo error' * has_errors}"
        spread = spread if budget.runs == 1 else "mean over splits ± its standard error"
        caption = (
            f"{problem}, {held_out} observations held out, {budget.draws:,} iterations of HMC and of our default, and "
            f"that over N of the paper's method, after 1,000 of warm-up at most: {spread}. An iteration of our default "
            "is four leapfrog steps, and one of NUTS a tree of up to a thousand."
        )
        headings = [SCORES[0], "less HMC's, split by split", SCORES[1]]
        made.append(tables.Table(caption, ["", *headings, "densities in the draws", "seconds a run", "splits"], rows))
    splits = f"one split{', ± 2 Monte Carlo errors' * has_errors}"
    splits = splits if budget.runs == 1 else "a point a split, and a bar for their mean"
    figure.suptitle(f"{title}:\n{budget.draws:,} iterations of HMC, {splits}")
    notes = ["The paper has a figure without numbers."]
    return [*save(figure, out / name), *tables.write(made, out / name, title, notes)]


def _error(record: dict[str, Any]) -> float:
    return record["scores"].get(ERROR, np.nan)


def _beyond_hmc(records: list[dict[str, Any]], of_hmc: list[dict[str, Any]]) -> str:
    """Differences of log predictive densities on the same held-out data, which differ by more than the methods do."""
    hmc = {record["run"]: record for record in of_hmc}
    pairs = [(record, hmc[record["run"]]) for record in records if record["run"] in hmc]
    beyond = np.array([ours["scores"][SCORES[0]] - theirs["scores"][SCORES[0]] for ours, theirs in pairs])
    if len(pairs) != 1:
        return mean_with_error(beyond)
    ours, theirs = pairs[0]
    return with_error(float(beyond[0]), float(np.hypot(_error(ours), _error(theirs))))


def _posteriors(ledger: Ledger, budget: Budget, out: Path) -> list[Path]:
    written, made = [], []
    for problem in CANCERS:
        kept = ledger.kept(grid(problem, _shown(budget), budget, KEPT))
        if not kept:
            continue
        figure, axes = new_figure(len(kept), NUM_SHOWN, 12, 1.9 * len(kept) + 0.8, sharex="col")
        draws = {cell.method: x for cell, x in kept.items()}
        for row, (method, x) in zip(axes, draws.items(), strict=True):
            for number, axis in enumerate(row):
                reach = np.quantile(np.abs(np.concatenate([d[:, number] for d in draws.values()])), 0.99) + 1e-6
                axis.hist(
                    x[:, number], bins=np.linspace(-reach, reach, 61).tolist(), density=True, color=colour(method)
                )
                axis.set(yscale="log", yticks=[])
                axis.minorticks_off()
            row[0].set_ylabel(label(method))
        figure.suptitle(
            f"{problem}: posteriors of {NUM_SHOWN} coefficients, chosen at random, on a logarithmic scale;\n"
            f"{budget.draws:,} iterations of HMC"
        )
        written += save(figure, out / f"posteriors_{problem}")
        made.append(_signs(problem, draws))
    return [*written, *tables.write(made, out / "posteriors", "Horseshoe posteriors")] if made else []


def _signs(problem: str, draws: dict[str, np.ndarray]) -> tables.Table:
    """A coefficient that is turned off is positive half of the time, and a slow chain has a large error of that."""
    rows = []
    for method, x in draws.items():
        is_positive = (x > 0).astype(float)[None]
        shares = zip(is_positive.mean(axis=(0, 1)), standard_error(is_positive), strict=True)
        rows.append([label(method), *(with_error(float(share), float(error)) for share, error in shares)])
    caption = f"{problem}: the share of {KEPT:,} draws, equally spaced, in which each coefficient is positive."
    return tables.Table(caption, ["", *map(str, range(1, NUM_SHOWN + 1))], rows)


FULL, SHORT = Budget(1, 10_000), Budget(1, 50, is_full=False)
TWO, ONE = CANCERS[:2], CANCERS[2:]
TITLES = {
    "figure6": "Figure 6: held-out predictive density, colon and leukemia",
    "prostate": "Held-out predictive density, prostate",
    "splits": "Beside the paper: held-out predictive density, ten splits of colon",
}


def _experiment(name: str, problems: tuple[str, ...], full: Budget = FULL, keep: int = KEPT) -> Experiment:
    title = TITLES[name]
    return Experiment(
        title, full, SHORT, partial(_cells, problems, _methods, keep), partial(_predictive, name, problems, title)
    )


EXPERIMENTS = {
    "figure6": _experiment("figure6", TWO),
    "prostate": _experiment("prostate", ONE),
    # The text has one random split, and splits differ by more than methods do; a tenth of the iterations for each.
    "splits": _experiment("splits", CANCERS[:1], Budget(10, 1_000), keep=0),
    "posteriors": Experiment("Horseshoe posteriors", FULL, SHORT, partial(_cells, CANCERS, _shown, KEPT), _posteriors),
}
