"""The command `pseudo-extended reproduce`, to which the library's own command hands its arguments."""

import os
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from pseudo_extended.problems.files import VARIABLE
from pseudo_extended.run.cluster import connect
from pseudo_extended.store import StoreError, StoreInUseError, StoreVersionError
from pseudo_extended_reproduction.catalogue import EXPERIMENTS
from pseudo_extended_reproduction.catalogue import reproduce as reproduce_paper
from pseudo_extended_reproduction.cells import StoppedError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
REFUSALS = (ValueError, TypeError, OSError, ImportError, StoppedError, StoreError, StoreInUseError, StoreVersionError)


@app.command(name="pseudo-extended reproduce")
def reproduce(
    names: Annotated[
        list[str], typer.Argument(help="Experiments, such as table1 or figure5, or all; list prints their names.")
    ],
    out: Annotated[Path, typer.Option(help="The directory for records, tables and figures.")] = Path("results"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Use a small budget instead of the paper's, and write into OUT/quick.")
    ] = False,
    runs: Annotated[int | None, typer.Option(help="Independent runs of each row, instead of the budget's.")] = None,
    draws: Annotated[int | None, typer.Option(help="Draws of each run, instead of the budget's.")] = None,
    jobs: Annotated[int, typer.Option(help="Runs at the same time.")] = 1,
    data: Annotated[
        Path | None,
        typer.Option(
            exists=True, file_okay=False, help="The directory of the data files; without it they are downloaded."
        ),
    ] = None,
    cluster: Annotated[str | None, typer.Option(help="The address of a Dask scheduler to run on.")] = None,
    no_run: Annotated[
        bool, typer.Option("--no-run", help="Write tables and figures from existing records only.")
    ] = False,
) -> None:
    """Run the paper's experiments; a second call continues where the first was stopped."""
    if names == ["list"]:
        for name, experiment in EXPERIMENTS.items():
            full = experiment.full
            budget = f"{len(experiment.cells(full))} runs of {full.draws:,} draws" if full.draws > 1 else "no sampling"
            typer.echo(f"{name:20} {experiment.title} ({budget})")
        return
    if data is not None:
        os.environ[VARIABLE] = str(data)
    try:
        client = None if cluster is None else connect(cluster)
        options = {"quick": quick, "runs": runs, "draws": draws, "jobs": jobs, "cluster": client, "run": not no_run}
        written = reproduce_paper(names, out, **options)
    except REFUSALS as error:
        _refuse(error)
    except KeyboardInterrupt:
        typer.echo(f"interrupted; finished runs are in {out}, and the same command continues", err=True)
        raise typer.Exit(130) from None
    for path in written:
        typer.echo(path)


def _refuse(error: Exception) -> NoReturn:
    typer.echo(f"pseudo-extended: {error}", err=True)
    raise typer.Exit(1)
