"""The command `pseudo-extended`: sample and check models; inspect, plot, report, resume and extend stored runs.

Every command imports what it needs when it runs, so that --help answers at once.
"""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from pseudo_extended.user_file import TargetNameError, load_target
from pseudo_extended.version import __version__

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

StorePath = Annotated[Path, typer.Argument(help="The directory of the run, such as run.zarr.")]
TargetName = Annotated[
    str,
    typer.Argument(
        help="Where the target is: module:name, or path/to/file.py:name; a function of no arguments "
        "named with a trailing () is called to make it."
    ),
]
TimeLimit = Annotated[float | None, typer.Option(help="Stop after so many seconds of warm-up and draws.")]
Cores = Annotated[int | None, typer.Option(help="Chains that run at the same time.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
OtherVersions = Annotated[
    bool, typer.Option("--other-versions", help="Go on although JAX or another package has changed since.")
]
OptionalTarget = Annotated[
    str | None,
    typer.Argument(help="Where the target is, as for resume; without it there are no modes, and no weights."),
]
Init = Annotated[
    str | None,
    typer.Option(help="Where to start: numbers such as 0,0.5, or module:name or path/to/file.py:name of a position."),
]
VarNames = Annotated[list[str] | None, typer.Option(help="A parameter or coordinate to show; may be repeated.")]
KINDS = ("corner", "marginals", "trace", "journey", "temperatures", "pilot", "weights", "modes", "evidence")
REPRODUCTION = "pseudo_extended_reproduction.command"


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pseudo-extended {__version__}")
        raise typer.Exit


@app.callback(help="Sample posteriors with many modes; inspect, plot, report, resume and extend stored runs.")
def main(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Options of the command itself."""
    del show_version


@app.command()
def resume(
    store: StorePath,
    target: TargetName,
    time_limit: TimeLimit = None,
    cores: Cores = None,
    quiet: Quiet = False,
    other_versions: OtherVersions = False,
) -> None:
    """Go on with a run that was stopped."""
    from pseudo_extended.run.resume import resume as resume_run

    _run(
        resume_run, store, target, time_limit=time_limit, cores=cores, progress=not quiet, other_versions=other_versions
    )


@app.command()
def extend(
    store: StorePath,
    target: TargetName,
    draws: Annotated[int, typer.Argument(help="Draws to add to each chain.")],
    time_limit: TimeLimit = None,
    cores: Cores = None,
    quiet: Quiet = False,
    other_versions: OtherVersions = False,
) -> None:
    """Add draws to a run."""
    from pseudo_extended.run.resume import extend as extend_run

    _run(
        extend_run,
        store,
        target,
        draws,
        time_limit=time_limit,
        cores=cores,
        progress=not quiet,
        other_versions=other_versions,
    )


@app.command()
def info(store: StorePath) -> None:
    """What a store holds, in a few lines."""
    from pseudo_extended.results.stop_reason import StopReason, has_enough, stop_reason
    from pseudo_extended.store import Store

    with _refusing():
        opened = Store.open(store)
    manifest = opened.manifest
    plan, prepared = manifest.plan, manifest.prepared
    shapes = ", ".join(f"{name}: {shape}" for name, shape in manifest.position)
    versions = ", ".join(f"{name} {value}" for name, value in manifest.versions.items() if value)
    description = manifest.description if prepared is None else prepared.description
    typer.echo(f"{description}, begun {manifest.created}, format {manifest.version}")
    typer.echo(f"position: {shapes}")
    num_draws, notes = _shown(opened)
    typer.echo(f"{plan.chains} chains, {num_draws} of {plan.draws} draws each, warm-up {plan.warmup}", nl=False)
    typer.echo(f", thin {plan.thin}, seed {plan.seed}")
    state = stop_reason(manifest.stopped)
    state = "running, or stopped before it could say so" if state is StopReason.RUNNING else state
    typer.echo(f"state: {'finished' if has_enough(manifest.stopped) else state}")
    typer.echo(f"made with {versions} on {manifest.machine}")
    evidence = manifest.evidence
    if evidence is not None:
        typer.echo(f"log evidence: {evidence['log_evidence']:.3f} ± {evidence['log_evidence_error']:.3f}", nl=False)
        doubts = str(evidence["log_evidence_doubts"])
        typer.echo(f", NOT TO BE TRUSTED ({', '.join(doubts.split())})" if doubts else "")
    for sentence in (*(() if prepared is None else prepared.notes), *manifest.notes, *notes, *opened.broken):
        typer.echo(sentence)


@app.command()
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Delete all of them.")] = False,
) -> None:
    """Compiled programs that are kept on this machine: where, how many and how large."""
    from pseudo_extended.kept_programs import VARIABLE, forget_kept_programs, kept_programs

    kept = kept_programs()
    if kept.directory is None:
        typer.echo(f"no compiled programs are kept: {VARIABLE} is off, or its directory is not yours alone")
        return
    typer.echo(f"{kept.directory}: {kept.num_programs} programs, {kept.num_bytes / 2**20:.1f} MiB")
    if clear:
        typer.echo(f"deleted {forget_kept_programs()} files")


@app.command()
def verify(store: StorePath) -> None:
    """Check that every file of a store is what the run wrote, and at its place: one line for each that is not."""
    from pseudo_extended.store import verify as verify_store

    with _refusing():
        faults = verify_store(store)
    for fault in faults:
        typer.echo(fault)
    if faults:
        raise typer.Exit(1)
    typer.echo(f"{store}: everything is as it was written")


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
    short_help="Run the paper's experiments (a project of its own).",
)
def reproduce(context: typer.Context) -> None:
    """Run the paper's experiments, with the arguments that the project `pseudo-extended-reproduction` takes."""
    try:
        command = importlib.import_module(REPRODUCTION)
    except ModuleNotFoundError as error:
        if error.name != REPRODUCTION.partition(".")[0]:
            raise
        typer.echo(
            "pseudo-extended: reproduce needs the project reproduction/ of the repository; install it from a "
            "clone with: pip install ./reproduction",
            err=True,
        )
        raise typer.Exit(1) from None
    command.app(args=context.args, prog_name="pseudo-extended reproduce")


def _shown(store: Any) -> tuple[int, tuple[str, ...]]:
    """Draws of each chain that a reader may take, and what to know of them."""
    from pseudo_extended.store import StoreError, draws_shown

    if store.manifest.prepared is None or not (store.root / "zarr.json").exists():
        return 0, ()
    try:
        shown = draws_shown(store)
    except StoreError as error:
        return 0, (str(error),)
    return shown.num_draws, shown.notes


@app.command()
def sample(
    target: TargetName,
    init: Init = None,
    draws: Annotated[int | None, typer.Option(help="Draws to keep of each chain; 1,000 unless given.")] = None,
    warmup: Annotated[int | None, typer.Option(help="Iterations before them; the method's own unless given.")] = None,
    chains: Annotated[int, typer.Option(help="Independent chains.")] = 4,
    pilots: Annotated[int, typer.Option(help="Independent pilots, each for as many of the chains.")] = 1,
    seed: Annotated[int | None, typer.Option(help="A number that fixes every draw.")] = None,
    target_ess: Annotated[float | None, typer.Option(help="Stop at this effective sample size.")] = None,
    store: Annotated[Path | None, typer.Option(help="A new directory for the draws, such as run.zarr.")] = None,
    time_limit: TimeLimit = None,
    cores: Cores = None,
    quiet: Quiet = False,
) -> None:
    """Sample a target with the default method, and print the result."""
    import pseudo_extended as pe

    options = {"draws": draws, "warmup": warmup, "chains": chains, "seed": seed, "target_ess": target_ess}
    options |= {"pilots": pilots, "store": store, "time_limit": time_limit, "cores": cores, "progress": not quiet}
    with _refusing():
        result = pe.sample(load_target(target), _position(init), **options)
    _tell(result)


@app.command()
def check(target: TargetName, init: Init = None) -> None:
    """Look at a model before sampling it; the exit status is 1 if something is bad."""
    import pseudo_extended as pe

    with _refusing():
        found = pe.check(load_target(target), _position(init), show=True)
    raise typer.Exit(0 if found.ok else 1)


@app.command()
def summary(
    store: StorePath,
    target: OptionalTarget = None,
    var_names: VarNames = None,
    hdi_prob: Annotated[float | None, typer.Option(help="Add the shortest interval with this probability.")] = None,
) -> None:
    """Print the table of a stored run; without a target, of one unweighted point of each draw."""
    with _refusing():
        table = _load(store, target).summary(var_names, hdi_prob=hdi_prob)
    typer.echo(table.map(lambda number: f"{number:.4g}").to_string())
    for sentence in table.attrs["warnings"]:
        typer.echo(f"! {sentence}")


@app.command()
def modes(store: StorePath, target: TargetName) -> None:
    """Print the modes of a stored run: masses, places, and visits by each chain."""
    with _refusing():
        typer.echo(repr(_load(store, target).modes()))


@app.command()
def plot(
    store: StorePath,
    target: OptionalTarget = None,
    kind: Annotated[str, typer.Option(help=f"Which plot: {', '.join(KINDS)}.")] = "corner",
    out: Annotated[Path | None, typer.Option(help="The picture: .png, .pdf or .svg; KIND.png unless given.")] = None,
    var_names: VarNames = None,
) -> None:
    """Draw a plot of a stored run into a file."""
    path = Path(f"{kind}.png") if out is None else out
    with _refusing():
        if kind not in KINDS:
            raise TargetNameError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}.")
        if not path.parent.is_dir():
            raise TargetNameError(f"out must be in a directory that exists; {str(path.parent)!r} does not.")
        names = {"var_names": var_names} if kind in ("corner", "marginals", "trace") else {}
        result = _load(store, target)
        importlib.import_module("matplotlib").use("Agg")
        drawn = getattr(importlib.import_module("pseudo_extended.plots"), kind)(result, **names)
        figure = drawn if hasattr(drawn, "savefig") else drawn.get_figure()
        figure.savefig(path)
    typer.echo(path)


@app.command()
def report(
    store: StorePath,
    target: OptionalTarget = None,
    out: Annotated[Path | None, typer.Option(help="The file; the store's name with .html unless given.")] = None,
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    check: Annotated[bool, typer.Option("--check/--no-check", help="Whether to check the model too.")] = True,
) -> None:
    """Write a stored run, finished or still going, as one HTML file that needs no network."""
    path = Path(f"{store.name.removesuffix('.zarr') or 'run'}.html") if out is None else out
    with _refusing():
        result = _load(store, target)
        importlib.import_module("matplotlib").use("Agg")
        typer.echo(result.report(path, title=str(store) if title is None else title, check=check))


def _load(store: Path, target: str | None) -> Any:
    """The draws of a store, with the target if it is named."""
    if target is not None:
        from pseudo_extended.run.resume import load

        return load(store, load_target(target))
    from pseudo_extended.run.without_target import load_without_target

    return load_without_target(store)


def _position(text: str | None) -> Any:
    """A start: numbers with commas between them, or the name of one in a module or a file."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return load_target(text)


def _run(function: Any, store: Path, name: str, *arguments: Any, **options: Any) -> None:
    with _refusing():
        result = function(store, load_target(name), *arguments, **options)
    _tell(result)


def _tell(result: Any) -> None:
    """The result; after Ctrl-C with the exit status of a process that it ended."""
    typer.echo(repr(result))
    if result.interrupted:
        raise typer.Exit(130)


@contextmanager
def _refusing() -> Iterator[None]:
    """What cannot be done is one sentence and the exit status 1, and no traceback."""
    try:
        yield
    except (ValueError, TypeError, TimeoutError, ImportError, OSError, RuntimeError) as error:
        if isinstance(error, typer.Exit):
            raise
        typer.echo(f"pseudo-extended: {error}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt as error:
        typer.echo(f"pseudo-extended: {error or 'interrupted'}", err=True)
        raise typer.Exit(130) from None
