"""Beside the paper: what sharing hyper-parameters between pseudo-samples does, where the answer is known."""

from pathlib import Path

import numpy as np

from pseudo_extended import problems
from pseudo_extended_reproduction import tables
from pseudo_extended_reproduction.cells import Cell
from pseudo_extended_reproduction.experiment import Budget, Experiment, grid
from pseudo_extended_reproduction.ledger import Ledger
from pseudo_extended_reproduction.summaries import mean_with_error

BETA = 0.75
TITLE = "Shared hyper-parameters bias the answer"


def _rows() -> list[tuple[str, str, str, float]]:
    """What it is, problem, method, and E θ under what it samples."""
    truth = problems.theta_and_x().mean_theta
    rows = [("HMC (NUTS) on the posterior", "toy", "hmc", truth)]
    rows += [(f"θ and x extended, N = {n}", "toy", f"pe-{n}-{BETA}", truth) for n in (2, 5)]
    for n in (2, 5):
        sampled = problems.with_shared_theta(n, BETA).mean_theta
        rows.append((f"only x extended, θ shared, N = {n}", f"toy-shared-{n}", "hmc", sampled))
    return rows


def _cells(budget: Budget) -> list[Cell]:
    return [cell for _, problem, method, _ in _rows() for cell in grid(problem, [method], budget)]


def _table(ledger: Ledger, budget: Budget, out: Path) -> list[Path]:
    truth = problems.theta_and_x().mean_theta
    lines = []
    for what, problem, method, sampled in _rows():
        records = ledger.done(grid(problem, [method], budget))
        if not records:
            continue
        means = truth + np.array([record["scores"]["E[θ]"] for record in records])
        lines.append([what, mean_with_error(means), f"{sampled:.4f}", f"{truth:.4f}", str(len(means))])
    caption = (
        f"E θ for θ ~ N(0, 1), x ~ N(0, exp(2θ)), y = 2 ~ N(x, 1/4), β = {BETA}: from {budget.draws:,} draws a run, by "
        "quadrature under what is sampled, and the truth."
    )
    headings = ["", "sampled", "quadrature", "truth", "runs"]
    return tables.write([tables.Table(caption, headings, lines)], out / "sharing", TITLE)


EXPERIMENTS = {
    "sharing": Experiment(TITLE, Budget(10, 20_000), Budget(2, 1_000, is_full=False), _cells, _table),
}
