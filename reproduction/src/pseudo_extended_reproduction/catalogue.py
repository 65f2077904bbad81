"""All experiments by name, and running them."""

from pathlib import Path
from typing import Any

from rich.console import Console

from pseudo_extended import checks
from pseudo_extended.problems.files import DamagedFileError
from pseudo_extended_reproduction import boltzmann, illustration, mixture, regression, sharing
from pseudo_extended_reproduction.cells import Cell
from pseudo_extended_reproduction.conduct import conduct
from pseudo_extended_reproduction.experiment import Budget, Experiment
from pseudo_extended_reproduction.figures import check_matplotlib
from pseudo_extended_reproduction.ledger import Ledger

EXPERIMENTS: dict[str, Experiment] = {
    **illustration.EXPERIMENTS,
    **mixture.EXPERIMENTS,
    **boltzmann.EXPERIMENTS,
    **regression.EXPERIMENTS,
    **sharing.EXPERIMENTS,
}


def reproduce(
    names: list[str],
    out: str | Path,
    *,
    quick: bool = False,
    runs: int | None = None,
    draws: int | None = None,
    jobs: int = 1,
    cluster: Any = None,
    run: bool = True,
    console: Console | None = None,
) -> list[Path]:
    """Run experiments, and write their tables and figures into `out`; what its ledger has is not run again.

    Args:
        names: Of experiments, or "all".
        out: A directory, which is made if need be.
        quick: A small budget for each, and not the paper's; tables and figures go into `out`/quick.
        runs: Independent runs of each row, instead of the budget's.
        draws: Draws of each run, instead of the budget's.
        jobs: Runs at the same time. No number depends on it, except for seconds.
        cluster: A `dask.distributed.Client` to run them on.
        run: If not, only write what the records there give.
        console: Where progress goes; stderr unless given.
    """
    known = (*EXPERIMENTS, "all")
    chosen = [checks.choice("name", name, known) for name in names]
    chosen = list(EXPERIMENTS) if "all" in chosen else chosen
    budgets = {name: _budget(EXPERIMENTS[name], quick, runs, draws) for name in chosen}
    console = Console(stderr=True) if console is None else console
    check_matplotlib()  # now, and not after hours
    ledger, written, missing = Ledger(out), [], {}
    place = Path(out) / "quick" if quick else Path(out)  # or it would write over what took hours
    cells_of = {name: EXPERIMENTS[name].cells(budgets[name]) for name in chosen}
    keeping = {cell._replace(keep=0): cell for cells in cells_of.values() for cell in cells if cell.keep}
    for name in chosen:
        experiment, budget = EXPERIMENTS[name], budgets[name]
        cells = [keeping.get(cell, cell) for cell in cells_of[name]]  # or a picture would run them again for its draws
        try:
            if run:
                _run(experiment, cells, ledger, jobs, cluster, console)
            if not cells or ledger.done([cell._replace(keep=0) for cell in cells]):  # tables need no draws
                written += experiment.render(ledger, budget, place)
        except (FileNotFoundError, DamagedFileError) as error:  # data of one experiment; the others need not wait
            missing[name] = error
    if missing:
        others = f" The others are in {str(place)!r}." if written else ""
        raise FileNotFoundError(
            f"not run for want of data: {', '.join(missing)}. {next(iter(missing.values()))}{others}"
        )
    if not written:
        raise ValueError(
            "out must hold the records, and for pictures the draws, of what is to be written without a run; got "
            f"{str(out)!r}, which does not."
        )
    return written


def _budget(experiment: Experiment, quick: bool, runs: int | None, draws: int | None) -> Budget:
    budget = experiment.quick if quick else experiment.full
    if runs is not None:
        budget = budget._replace(runs=checks.integer("runs", runs, minimum=1))
    if draws is not None:
        budget = budget._replace(draws=checks.integer("draws", draws, minimum=1))
    return budget


def _run(experiment: Experiment, cells: list[Cell], ledger: Ledger, jobs: int, cluster: Any, console: Console) -> None:
    todo = sum(cell not in ledger for cell in cells)
    line = f"[bold]{experiment.title}[/]: {len(cells)} runs, {len(cells) - todo} of them done before"
    console.print(line, soft_wrap=True)
    conduct(cells, ledger, jobs=jobs, cluster=cluster, console=console)
