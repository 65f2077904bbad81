"""Figures 4 and 5, and error × time against N, on Boltzmann machine relaxations (section 4.2)."""

from functools import partial
from pathlib import Path

import numpy as np

from pseudo_extended_reproduction import tables
from pseudo_extended_reproduction.benches import bench_of, moment_errors
from pseudo_extended_reproduction.cells import Cell
from pseudo_extended_reproduction.costs import cost_table, draw_cost
from pseudo_extended_reproduction.experiment import Budget, Experiment, grid, label, summary_of
from pseudo_extended_reproduction.figures import COLOURS, colour, new_figure, plain_log_ticks, save
from pseudo_extended_reproduction.ledger import Ledger
from pseudo_extended_reproduction.setups import fitted_base
from pseudo_extended_reproduction.summaries import with_error

OURS, AUTHORS = "boltzmann-28", "boltzmann-authors"
FIXED = tuple(f"pe-{number}-0.{k}" for number in (2, 5) for k in range(1, 10))
"""The text does not say with which N; the authors' script has 2."""
LONG = ("pe-5-0.1-long", "pe-5-0.2-long")
"""Chains with small β move between modes, but slowly: a short warm-up leaves them near their start."""
METHODS = (
    "hmc", "ais", "ais-equal", "st", "st-equal", "gs", "gs-gibbs",
    "pe-2", "pe-5", "pe-5-wide", *FIXED, *LONG, "default",
)  # fmt: skip
QUICK = ("hmc", "ais", "st", "gs", "pe-2", "pe-2-0.5", "default")
SHOWN = ("hmc", "ais", "st", "gs", "pe-5", "default")
SHOWN_QUICK = ("hmc", "ais", "st", "gs", "pe-2", "default")
NUMBERS = (2, 5, 10, 15, 20)
KEPT = 10_000
MOMENTS = ("E[X]", "E[XXᵀ]")


def _methods(budget: Budget) -> tuple[str, ...]:
    return METHODS if budget.is_full else QUICK


def _problem(budget: Budget, full: str) -> str:
    """A smaller machine of ours for a quick run; the authors' is what it is."""
    return full if budget.is_full or full == AUTHORS else "boltzmann-16"


def _figure_5_cells(full: str, budget: Budget) -> list[Cell]:
    return grid(_problem(budget, full), _methods(budget), budget)


def variational_errors(problem: str) -> dict[str, float]:
    """Of the normal that is the base of AIS, ST and GS, alone and without any sampling."""
    base = fitted_base(problem).base
    cross = base.scale @ base.scale.T + np.outer(base.mean, base.mean)
    return moment_errors(bench_of(problem).problem, base.mean, cross)


def _figure_5(name: str, full: str, ledger: Ledger, budget: Budget, out: Path) -> list[Path]:
    problem = _problem(budget, full)
    methods = [method for method in _methods(budget) if ledger.done(grid(problem, [method], budget))]
    alone = variational_errors(problem)
    figure, axes = new_figure(1, 2, 12, 0.34 * len(methods) + 2.0, sharey=True)
    for axis, moment in zip(axes[0], MOMENTS, strict=True):
        for place, method in enumerate(methods):
            scores = [record["scores"][moment] for record in ledger.done(grid(problem, [method], budget))]
            axis.plot(scores, np.full(len(scores), place), "o", alpha=0.5, color=colour(method), markersize=4)
            axis.plot(np.sqrt(np.mean(np.square(scores))), place, "|", color="black", markersize=14)
        axis.axvline(alone[moment], color=COLOURS["truth"], linestyle=":", linewidth=1)
        axis.set(xscale="log", xlabel=f"RMSE of {moment}", yticks=range(len(methods)))
        axis.set_yticklabels([label(method) for method in methods], fontsize=8)
        axis.grid(axis="x", alpha=0.25, which="both")
        plain_log_ticks(axis)
    axes[0, 0].invert_yaxis()
    figure.suptitle(
        f"{bench_of(problem).title}: {budget.says()}, a point each,\n"
        "and a bar for their root mean square; dotted: the variational normal alone"
    )
    written = save(figure, out / name)
    rows = [["variational normal alone", *(f"{alone[moment]:.3f}" for moment in MOMENTS), "0", "", ""]]
    for method in methods:
        summary = summary_of(ledger, problem, method, budget)
        assert summary is not None
        cells = [with_error(summary.rmse[moment], summary.error[moment]) for moment in MOMENTS]
        rows.append([label(method), *cells, _count(summary.evaluations), f"{summary.seconds:.1f}", str(summary.runs)])
    caption = (
        f"{bench_of(problem).title}: root mean squared error of both moments over runs of {budget.draws:,} draws, ± "
        "its Monte Carlo error. The paper has a figure without numbers."
    )
    table = tables.Table(caption, ["", *MOMENTS, "densities in the draws", "seconds a run", "runs"], rows)
    return [*written, *tables.write([table], out / name, f"Figure 5: {bench_of(problem).title}")]


def _count(number: float) -> str:
    """A number in words where it is large.

    >>> _count(1_234_567), _count(52_000)
    ('1.2 million', '52,000')
    """
    return f"{number / 1e6:.1f} million" if number >= 1e6 else f"{number:,.0f}"


def _figure_4_cells(budget: Budget) -> list[Cell]:
    return grid(_problem(budget, AUTHORS), SHOWN if budget.is_full else SHOWN_QUICK, budget, KEPT)


def _figure_4(ledger: Ledger, budget: Budget, out: Path) -> list[Path]:
    draws = ledger.kept(_figure_4_cells(budget))
    if not draws:
        return []
    bench = bench_of(_problem(budget, AUTHORS))
    truth = bench.problem.density.draw(np.random.default_rng(0), KEPT)
    _, _, axes_of_truth = np.linalg.svd(truth - truth.mean(axis=0), full_matrices=False)
    panels = [("truth", "exact draws", truth)]
    panels += [(cell.method, label(cell.method), kept) for cell, kept in draws.items()]
    rows = -(-len(panels) // 4)
    figure, axes = new_figure(rows, 4, 13, 3.5 * rows)
    ends = (truth - truth.mean(axis=0)) @ axes_of_truth[:2].T
    reach = 1.1 * np.abs(ends).max(axis=0)
    for axis, panel in zip(axes.flat, panels, strict=False):
        method, title, x = panel
        along = (x - truth.mean(axis=0)) @ axes_of_truth[:2].T
        axis.plot(*along.T, ".", markersize=1.0, alpha=0.4, color=colour(method), rasterized=True)
        axis.set(title=title, xlim=(-reach[0], reach[0]), ylim=(-reach[1], reach[1]), xticks=[], yticks=[])
    for axis in list(axes.flat)[len(panels) :]:
        axis.set_visible(False)
    figure.suptitle(f"{bench.title}: {budget.draws:,} draws along the two widest directions of the truth")
    return save(figure, out / "figure4")


def _numbers(budget: Budget) -> tuple[int, ...]:
    return NUMBERS if budget.is_full else NUMBERS[:2]


def _mse_time_cells(budget: Budget) -> list[Cell]:
    return grid(_problem(budget, OURS), [*(f"pe-{number}" for number in _numbers(budget)), "default"], budget)


def _mse_time(ledger: Ledger, budget: Budget, out: Path) -> list[Path]:
    problem = _problem(budget, OURS)
    found = {number: summary_of(ledger, problem, f"pe-{number}", budget) for number in _numbers(budget)}
    found = {number: summary for number, summary in found.items() if summary is not None}
    default = summary_of(ledger, problem, "default", budget)
    figure, axes = new_figure(1, 2, 10, 4.2)
    for axis, unit in zip(axes[0], ("seconds", "evaluations"), strict=True):
        draw_cost(axis, found, default, MOMENTS, unit)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    title = bench_of(problem).title
    figure.suptitle(
        f"{title}: mean squared error × cost of the paper's method\n"
        f"against N, {budget.says()}, ± 2 standard errors; dashed: our default, which chooses its own N"
    )
    rows = {label(f"pe-{number}"): summary for number, summary in found.items()}
    table = cost_table(
        f"{budget.says()}; ± one standard error, of the mean squared error.".capitalize(),
        rows if default is None else rows | {label("default"): default},
        MOMENTS,
    )
    path = out / "mse_time_boltzmann"
    return [*save(figure, path), *tables.write([table], path, f"Mean squared error × cost, {title}")]


FULL, SHORT = Budget(10, 10_000), Budget(2, 200, is_full=False)
EXPERIMENTS = {
    "figure4": Experiment(
        "Figure 4: Boltzmann machine, projections",
        Budget(1, 10_000),
        Budget(1, 200, is_full=False),
        _figure_4_cells,
        _figure_4,
    ),
    "figure5": Experiment(
        "Figure 5: Boltzmann machine, errors",
        FULL,
        SHORT,
        partial(_figure_5_cells, OURS),
        partial(_figure_5, "figure5", OURS),
    ),
    "figure5_authors": Experiment(
        "Figure 5 on the authors' own machine",
        FULL,
        SHORT,
        partial(_figure_5_cells, AUTHORS),
        partial(_figure_5, "figure5_authors", AUTHORS),
    ),
    "mse_time_boltzmann": Experiment(
        "MSE × time against N, Boltzmann machine", FULL, SHORT, _mse_time_cells, _mse_time
    ),
}
