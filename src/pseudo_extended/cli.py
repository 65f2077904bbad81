"""The command `pseudo-extended`: inspect, resume and extend a stored run."""

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from pseudo_extended.kept_programs import VARIABLE, forget_kept_programs, kept_programs
from pseudo_extended.results.stop_reason import StopReason, has_enough, stop_reason
from pseudo_extended.run.resume import extend as extend_run
from pseudo_extended.run.resume import resume as resume_run
from pseudo_extended.store import Store, StoreError, StoreInUseError, StoreVersionError, draws_shown
from pseudo_extended.store import verify as verify_store
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
REPRODUCTION = "pseudo_extended_reproduction.command"
REFUSALS = (StoreError, StoreInUseError, StoreVersionError, TimeoutError)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pseudo-extended {__version__}")
        raise typer.Exit


@app.callback(help=__doc__)
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
    try:
        opened = Store.open(store)
    except REFUSALS as error:
        _refuse(error)
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
    try:
        faults = verify_store(store)
    except REFUSALS as error:
        _refuse(error)
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


def _shown(store: Store) -> tuple[int, tuple[str, ...]]:
    """Draws of each chain that a reader may take, and what to know of them."""
    if store.manifest.prepared is None or not (store.root / "zarr.json").exists():
        return 0, ()
    try:
        shown = draws_shown(store)
    except StoreError as error:
        return 0, (str(error),)
    return shown.num_draws, shown.notes


def _run(function: Any, store: Path, name: str, *arguments: Any, **options: Any) -> None:
    try:
        result = function(store, load_target(name), *arguments, **options)
    except REFUSALS as error:
        _refuse(error)
    except KeyboardInterrupt as error:
        typer.echo(f"pseudo-extended: {error or 'interrupted'}", err=True)
        raise typer.Exit(130) from None
    typer.echo(repr(result))
    if result.interrupted:
        raise typer.Exit(130)


def _refuse(error: Exception) -> NoReturn:
    typer.echo(f"pseudo-extended: {error}", err=True)
    raise typer.Exit(1)


def load_target(name: str) -> Any:
    """The object that `module:name` or `path/to/file.py:name` names; with a trailing () what it returns.

    >>> load_target("math:exp")(0.0)
    1.0
    """
    place, _, attribute = name.rpartition(":")
    calls, attribute = attribute.endswith("()"), attribute.removesuffix("()")
    if not (place and attribute):
        raise StoreError(f"target must be module:name or path/to/file.py:name; got {name!r}.")
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise StoreError(f"target must name a file that exists; there is no {place!r}.")
        spec = importlib.util.spec_from_file_location(Path(place).stem, place)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(spec.name, module)
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, str(Path.cwd()))  # as python -m does
        try:
            module = importlib.import_module(place)
        except ModuleNotFoundError:
            raise StoreError(f"target must name a module that can be imported; there is no {place!r}.") from None
    if not hasattr(module, attribute):
        raise StoreError(f"target must name something in {place!r}; it has no {attribute!r}.")
    found = getattr(module, attribute)
    return found() if calls else found
