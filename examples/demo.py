"""The point of pseudo-extended MCMC at a glance: two targets on which NUTS gets stuck and gives no warning.

Samples the paper's one-dimensional illustration (its figures 1 and 3) and the mixture of twenty normals of its section
4.1, with this library's default, with NUTS and with the paper's own sampler, prints their moments beside the truth, and
draws output/demo.png.
"""

from pathlib import Path

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from rich.console import Console
from rich.table import Table

import pseudo_extended as pe
from pseudo_extended.precision import double_precision
from pseudo_extended.problems import Problem

OURS, STUCK, PAPER, TRUTH = "#2e8b57", "#c0392b", "#1f6f8b", "#444444"
DEFAULT, NUTS, PAPERS = "the default", "NUTS", "the paper's sampler"
COLOURS = {DEFAULT: OURS, NUTS: STUCK, PAPERS: PAPER}
WARMUP, CHAINS, SEED = 1000, 2, 1
Runs = dict[tuple[str, str], pe.Result]


def main() -> None:
    """Sample, tabulate, draw."""
    console = Console()
    line, plane = pe.problems.illustration(), pe.problems.twenty_modes("a")
    # The paper's choice for the illustration: q = N(0, 2), with 2 a variance.
    with_normal_q = pe.PseudoExtended(pe.Density(pe.Normal(0.0, np.sqrt(2.0))), pe.NUTS(), num_particles=2)
    tempered = pe.PseudoExtended(pe.Tempered(beta_min=1e-3), pe.NUTS(), num_particles=5)
    runs: Runs = {}
    for name, problem, start, draws, papers in (
        ("two normals on the line", line, np.array([-1.0]), 5_000, with_normal_q),
        ("twenty normals in the plane", plane, np.array([5.0, 5.0]), 4_000, tempered),
    ):
        for label, method in ((DEFAULT, None), (NUTS, pe.Plain(pe.NUTS())), (PAPERS, papers)):
            console.print(f"[bold]{name}[/]: {label}, {CHAINS} chains of {draws:,} draws")
            runs[name, label] = pe.sample(
                problem.target, start, method=method, draws=draws, warmup=WARMUP, chains=CHAINS, seed=SEED
            )

    problems = {"two normals on the line": line, "twenty normals in the plane": plane}
    for name, problem in problems.items():
        console.print(moments(name, problem, {label: runs[name, label] for label in COLOURS}))
    path = Path("output") / "demo.png"
    path.parent.mkdir(exist_ok=True)
    draw(problems, runs, path)
    console.print(f"the figure is [bold]{path}[/]")


def moments(name: str, problem: Problem, results: dict[str, pe.Result]) -> Table:
    """A table of moments against the truth, each with its own estimate of its error."""
    table = Table(title=f"{name} (± is each run's own standard error)", title_justify="left")
    for heading in ("", "truth", *results):
        table.add_column(heading, justify="right")
    for power, truth in ((1, problem.mean), (2, problem.second_moment)):
        answers = [result.expect(lambda x, power=power: x**power) for result in results.values()]
        for i, exact in enumerate(truth):
            cells = [f"{answer.value[i]:.3f} ± {answer.standard_error[i]:.3f}" for answer in answers]
            table.add_row(f"E x{i + 1}{'²' if power == 2 else ''}", f"{exact:.3f}", *cells)
    worst = [f"{np.max(result.summary()['r_hat'].to_numpy()):.2f}" for result in results.values()]
    table.add_row("R-hat", "1.00", *worst, style="dim")
    return table


def draw(problems: dict[str, Problem], runs: Runs, path: Path) -> None:
    """The truth, and the three samplers side by side, for both problems."""
    figure, axes = plt.subplots(2, 4, figsize=(17, 8.2), constrained_layout=True)
    (line_name, line), (plane_name, plane) = problems.items()
    draw_extended(axes[0, 0], line)
    exact = plane.density.draw(np.random.default_rng(0), 2_000)
    draw_plane(axes[1, 0], plane, exact, TRUTH, "twenty normals: exact draws")
    for column, (label, colour) in enumerate(COLOURS.items(), start=1):
        draw_trace(axes[0, column], runs[line_name, label], colour, label)
        points = np.asarray(runs[plane_name, label].resample()).reshape(-1, 2)
        found = np.unique(np.argmin(np.linalg.norm(points[:, None] - plane.density.means, axis=2), axis=1)).size
        draw_plane(axes[1, column], plane, points[::5], colour, f"{label}: {found} of 20 modes")
    figure.suptitle("NUTS hardly leaves its first mode; on the extended target the modes are connected", fontsize=14)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw_extended(axis: Axes, line: Problem) -> None:
    """The extended target of the illustration for N = 2: a corridor joins the modes."""
    extended = pe.ExtendedTarget(line.target, pe.Density(pe.Normal(0.0, np.sqrt(2.0))), 2)
    grid = np.linspace(-3, 3, 200)
    mesh = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    with double_precision():
        density = np.exp(np.asarray(jax.jit(jax.vmap(extended.log_density))(mesh))).reshape(200, 200)
    axis.contourf(grid, grid, np.sqrt(density), levels=12, cmap="Greys")
    axis.set(title="two normals, extended by N = 2: joined", xlabel="x₁", ylabel="x₂", aspect="equal")


def draw_trace(axis: Axes, result: pe.Result, colour: str, title: str) -> None:
    """One chain, draw by draw (resampled, one point a draw), with the number of its jumps between the modes."""
    x = np.asarray(result.resample())[0, :, 0]
    jumps = int(np.sum(x[1:] * x[:-1] < 0))
    axis.plot(x, ".", markersize=1.5, color=colour)
    axis.axhline(0, color=TRUTH, linewidth=0.8)
    axis.set(title=f"{title}: {jumps:,} jumps in {len(x):,} draws", xlabel="draw", ylabel="x", ylim=(-2.6, 2.0))


def draw_plane(axis: Axes, plane: Problem, points: np.ndarray, colour: str, title: str) -> None:
    """Points, and rings around the true modes."""
    axis.plot(*plane.density.means.T, "o", markersize=16, markerfacecolor="none", markeredgecolor="#bbbbbb")
    axis.plot(*points.T, ".", markersize=2.5, color=colour, alpha=0.6)
    axis.set(title=title, xlim=(-0.5, 10.5), ylim=(-0.8, 10.8), aspect="equal", xlabel="x₁", ylabel="x₂")


if __name__ == "__main__":
    main()
