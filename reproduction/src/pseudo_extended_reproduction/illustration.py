"""Figures 1 and 3: two normals on the line, joined by the extended target of N = 2."""

from pathlib import Path

import jax
import numpy as np

from pseudo_extended.extended import ExtendedTarget
from pseudo_extended.instruments import Density
from pseudo_extended.precision import in_double_precision
from pseudo_extended.target.bases import Normal
from pseudo_extended_reproduction.benches import bench_of
from pseudo_extended_reproduction.cells import Cell
from pseudo_extended_reproduction.experiment import Budget, Experiment, grid, label
from pseudo_extended_reproduction.figures import COLOURS, colour, new_figure, save
from pseudo_extended_reproduction.ledger import Ledger

PROBLEM, METHODS, KEPT = "illustration", ("hmc", "pe-2", "default"), 10_000
GRID = np.linspace(-2.5, 2.0, 301)


@in_double_precision
def _density(x: np.ndarray) -> np.ndarray:
    return np.exp(np.asarray(jax.vmap(bench_of(PROBLEM).problem.density)(x)))


@in_double_precision
def _extended_density(x: np.ndarray) -> np.ndarray:
    q = Density(Normal(0.0, np.sqrt(2.0)))
    extended = ExtendedTarget(bench_of(PROBLEM).target, q, 2)
    return np.exp(np.asarray(jax.jit(jax.vmap(extended.log_density))(x)))


def _figure_1(ledger: Ledger, budget: Budget, out: Path) -> list[Path]:
    del ledger, budget
    figure, axes = new_figure(1, 2, 9.5, 4.2)
    left, right = axes[0]
    left.plot(GRID, _density(GRID[:, None]), color=COLOURS["truth"])
    left.set(title="the target", xlabel="x", ylabel="π(x)")
    mesh = np.stack(np.meshgrid(GRID, GRID), axis=-1).reshape(-1, 2)
    height = _extended_density(mesh).reshape(len(GRID), len(GRID))
    right.contourf(GRID, GRID, np.sqrt(height), levels=14, cmap="Greys")
    right.set(title="extended by N = 2 (square root of the density)", xlabel="x₁", ylabel="x₂", aspect="equal")
    return save(figure, out / "figure1")


def _cells(budget: Budget) -> list[Cell]:
    return grid(PROBLEM, METHODS, budget, KEPT)


def _figure_3(ledger: Ledger, budget: Budget, out: Path) -> list[Path]:
    draws = ledger.kept(_cells(budget))
    if not draws:
        return []
    figure, axes = new_figure(1, len(draws), 4.3 * len(draws), 4.0, sharey=True)
    density = _density(GRID[:, None])
    for axis, (cell, kept) in zip(axes[0], draws.items(), strict=True):
        x = kept[:, 0]
        axis.hist(x, bins=GRID[::3], density=True, color=colour(cell.method), alpha=0.55)
        axis.plot(GRID, density, color=COLOURS["truth"], linewidth=1)
        axis.set(title=f"{label(cell.method)}: {np.mean(x > 0):.0%} at the right mode", xlabel="x")
    figure.suptitle(f"{budget.draws:,} iterations that start near x = -1; half of the mass is at the right mode")
    return save(figure, out / "figure3")


EXPERIMENTS = {
    "figure1": Experiment(
        "Figure 1: the extended target", Budget(1, 1), Budget(1, 1, is_full=False), lambda budget: [], _figure_1
    ),
    "figure3": Experiment(
        "Figure 3: draws of the illustration", Budget(1, 10_000), Budget(1, 2_000, is_full=False), _cells, _figure_3
    ),
}
