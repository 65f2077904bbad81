"""Tables 1 and 2, figure 2, and error × time against N, on the 20-mode mixture (section 4.1)."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from pseudo_extended_reproduction import tables
from pseudo_extended_reproduction.benches import bench_of
from pseudo_extended_reproduction.cells import Cell
from pseudo_extended_reproduction.comparison import COMPARED, LEAST_RUNS, compare
from pseudo_extended_reproduction.costs import cost_table, draw_cost
from pseudo_extended_reproduction.experiment import Budget, Experiment, grid, label, summary_of
from pseudo_extended_reproduction.figures import COLOURS, colour, new_figure, save
from pseudo_extended_reproduction.ledger import Ledger
from pseudo_extended_reproduction.published import DRAWS, MOMENTS, TABLE_1, TABLE_2
from pseudo_extended_reproduction.summaries import summarise

PROBLEMS = ("mixture-a", "mixture-b")
AS_PUBLISHED = ("pe-2-box", "pe-5-box", "pe-2-authors", "pe-5-authors")
FREE = ("pe-2", "pe-5", "pe-10", "pe-20")
LONG = tuple(f"{method}-0.1-long" for method in FREE)
"""With β = 0.1 chains move between the modes of (a), but slowly: a short warm-up leaves them near their start."""
OTHER_WEIGHTS = ("pe-5-0.1-authors", "pe-20-0.1-authors")
"""What the published program does with fixed temperatures differs in (b)."""
ONLY_IN = dict.fromkeys(LONG, "mixture-a") | dict.fromkeys(OTHER_WEIGHTS, "mixture-b")
SHOWN = ("hmc", "pe-2", "default")
KEPT = 10_000


def _table_1_methods(budget: Budget) -> list[str]:
    quick = ("ram", "ee", "pt", "hmc", "pe-2", "pe-5", "pe-2-box", "default")
    return [*TABLE_1, "hmc-stan", *AS_PUBLISHED, "default"] if budget.is_full else list(quick)


def _table_2_methods(budget: Budget) -> list[str]:
    if budget.is_full:
        return [*FREE, *TABLE_2, *LONG, *OTHER_WEIGHTS, "hmc", "hmc-stan", "default"]
    return ["pe-2", "pe-5", "pe-2-0.1", "pe-2-0.5", "pe-5-0.1", "pe-5-0.5", "hmc", "default"]


def _cells_of(methods: Sequence[str], budget: Budget) -> list[Cell]:
    cells = [cell for problem in PROBLEMS for cell in grid(problem, methods, budget)]
    return [cell for cell in cells if ONLY_IN.get(cell.method, cell.problem) == cell.problem]


def _render_table(methods: Sequence[str], ledger: Ledger, budget: Budget, path: Path, title: str) -> list[Path]:
    made, notes, few = [], [], False
    published = TABLE_1 | TABLE_2 if budget.draws == DRAWS else {}
    for problem in PROBLEMS:
        rows, marks, marks_elsewhere = [], [], []
        for method in methods:
            records = ledger.done(grid(problem, [method], budget))
            if not records:
                continue
            printed = published.get(re.sub("-(authors|long|stan)$", "", method))
            row = compare(
                records, None if printed is None else printed.of(problem), _beyond_standard_deviations(problem)
            )
            if not method.endswith("-authors"):  # which are another method
                marks, marks_elsewhere = marks + row.marks, marks_elsewhere + row.marks_elsewhere
            few |= printed is not None and not row.marks
            summary = summarise(records)
            evaluations = summary.evaluations / budget.draws
            cost = [f"{evaluations:.0f}" if evaluations >= 10 else f"{evaluations:.1f}", f"{summary.seconds:.1f}"]
            rows.append([label(method), *row.text, *cost, str(summary.runs)])
        caption = (
            f"Scenario ({problem[-1]}): root mean squared error over runs of {budget.draws:,} draws, ± its Monte Carlo "
            f"error{COMPARED if published else ''}."
        )
        made.append(tables.Table(caption, ["", *MOMENTS, "densities a draw", "seconds a run", "runs"], rows))
        if marks:
            notes.append(
                f"({problem[-1]}): {sum(marks)} of {len(marks)} cells are marked, those of the authors' program aside."
            )
        if marks_elsewhere != marks:
            notes[-1] += (
                f" If errors were measured against the second moments of a mixture with standard deviations, and not "
                f"variances, of distance/20, it would be {sum(marks_elsewhere)}."
            )
    if notes:
        notes.append("One in twenty would be by chance.")
        if few:
            notes.append(f"Rows of fewer than {LEAST_RUNS} runs are not marked.")
    if not published:
        notes.append(f"Not the paper's budget, which is {DRAWS:,} draws: its numbers are not beside ours.")
    return tables.write(made, path, title, notes)


def _beyond_standard_deviations(problem: str) -> np.ndarray:
    """The moments less those of a mixture with standard deviations of distance/20 in (b), where those are variances."""
    if problem == "mixture-a":
        return np.zeros(len(MOMENTS))
    density = bench_of(problem).problem.density
    second = density.weights @ (density.variances - density.variances**2)
    return np.array([0.0, 0.0, second, second])


def _figure_2_cells(budget: Budget) -> list[Cell]:
    return [cell for problem in PROBLEMS for cell in grid(problem, SHOWN, budget, KEPT)]


def _figure_2(ledger: Ledger, budget: Budget, out: Path) -> list[Path]:
    draws = ledger.kept(_figure_2_cells(budget))
    if not draws:
        return []
    figure, axes = new_figure(2, 3, 12, 8.2)
    for row, problem in zip(axes, PROBLEMS, strict=True):
        means = bench_of(problem).problem.density.means
        for axis, cell in zip(row, grid(problem, SHOWN, budget._replace(runs=1), KEPT), strict=True):
            x, method = draws.get(cell), cell.method
            if x is None:
                axis.set_visible(False)
                continue
            axis.plot(*x.T, ".", markersize=1.2, alpha=0.5, color=colour(method), rasterized=True)
            axis.plot(*means.T, "+", markersize=6, color=COLOURS["truth"])
            title = f"({problem[-1]}) {label(method)}"
            axis.set(title=title, xlim=(-2, 12), ylim=(-2, 12), aspect="equal", xlabel="x₁", ylabel="x₂")
    figure.suptitle(f"Draws from the mixture of twenty normals, {budget.draws:,} iterations; + marks the means")
    return save(figure, out / "figure2")


def _free(budget: Budget) -> tuple[str, ...]:
    return FREE if budget.is_full else FREE[:2]


def _mse_time(ledger: Ledger, budget: Budget, out: Path) -> list[Path]:
    figure, axes = new_figure(2, 2, 10, 7.5, sharex=True)
    made = []
    for column, problem in enumerate(PROBLEMS):
        found = {
            method: summary
            for method in (*_free(budget), "default")
            if (summary := summary_of(ledger, problem, method, budget)) is not None
        }
        made.append(cost_table(f"Scenario ({problem[-1]}).", {label(name): s for name, s in found.items()}, MOMENTS))
        default = found.pop("default", None)
        by_number = {int(method.partition("-")[2]): summary for method, summary in found.items()}
        for axis, unit in zip(axes[:, column], ("seconds", "evaluations"), strict=True):
            draw_cost(axis, by_number, default, MOMENTS, unit)
            axis.set_title(f"({problem[-1]})")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.suptitle(
        f"Mean squared error × cost of the paper's method against N, {budget.says()}, ± 2 standard errors;\n"
        "dashed: our default, which chooses its own N"
    )
    title = "Mean squared error × cost, 20-mode mixture"
    notes = [f"{budget.says()}; ± one standard error, of the mean squared error.".capitalize()]
    return [*save(figure, out / "mse_time_mixture"), *tables.write(made, out / "mse_time_mixture", title, notes)]


FULL, QUICK = Budget(20, 50_000), Budget(2, 2_000, is_full=False)


def _table(name: str, title: str, methods: Callable[[Budget], list[str]]) -> Experiment:
    return Experiment(
        title,
        FULL,
        QUICK,
        lambda budget: _cells_of(methods(budget), budget),
        lambda ledger, budget, out: _render_table(methods(budget), ledger, budget, out / name, title),
    )


TITLE_1 = "Table 1: moments of the 20-mode mixture"
TITLE_2 = "Table 2: temperatures fixed or free"

EXPERIMENTS = {
    "table1": _table("table1", TITLE_1, _table_1_methods),
    "table2": _table("table2", TITLE_2, _table_2_methods),
    "figure2": Experiment(
        "Figure 2: draws from the mixture",
        Budget(1, 10_000),
        Budget(1, 2_000, is_full=False),
        _figure_2_cells,
        _figure_2,
    ),
    "mse_time_mixture": Experiment(
        "MSE × time against N, mixture",
        FULL,
        QUICK,
        lambda budget: _cells_of([*_free(budget), "default"], budget),
        _mse_time,
    ),
}
