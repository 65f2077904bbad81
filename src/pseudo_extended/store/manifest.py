"""The manifest: what a run is, in JSON, twice, each with its own checksum."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from pseudo_extended.results.stop_reason import StopReason
from pseudo_extended.store.codec import up_to_date
from pseudo_extended.store.files import BrokenFileError, flush_directory, read_file, replace_file
from pseudo_extended.store.layout import Layout
from pseudo_extended.store.migrations import from_version_1, from_version_2
from pseudo_extended.store.typed import Code, typed
from pseudo_extended.version import __version__

VERSION = 3
"""Of the format; raised when an older library could not read, or would misread, what is written: a new field counts."""

MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: from_version_1, 2: from_version_2}
"""From each older format to the next."""

COPIES = ("manifest.json", "manifest.backup.json")
MAX_BYTES = 2**26
"""Of a copy; a method with large arrays keeps them in other files."""


class StoreVersionError(ValueError):
    """The store was written in a format that this library does not know."""


class Draws(NamedTuple):
    """What fixes the draws, besides target, method and start; it is stored."""

    draws: int
    """Of each chain, at most."""
    warmup: int | None
    """None until the method has said how many iterations it needs."""
    chains: int
    thin: int
    seed: int
    stop: Code = None
    """The stopping rule, encoded, with which a run may end before its last draw; None if it may not."""
    is_unasked: bool = False
    """Whether nobody said how long the run is to be, so that memory may limit its draws."""
    max_evaluations: int | None = None
    """Of the density, in the draws of all chains: the run ends at the last milestone that keeps within it."""
    counts_all: bool = False
    """Whether these are the evaluations of pilot and warm-up as well, as where a user gave the number."""

    @property
    def num_warmup(self) -> int:
        """Iterations of warm-up, once the method has said how many it needs."""
        assert self.warmup is not None
        return self.warmup


class Prepared(NamedTuple):
    """What is known of a run when its method has learned what there is to learn."""

    method: Code
    """As it is then; its arrays are in learned.npz."""
    description: str
    notes: tuple[str, ...]
    layout: Layout
    report: Code = None
    """What the method found on the way; its arrays are in learned.npz."""
    num_evaluations: int | None = None
    """Of the density, to prepare the method; None if an older version did not count them."""


@dataclass(frozen=True)
class Manifest:
    """What a run is. Its fields are those of the file; one that is added has a default, and raises `VERSION`."""

    run: str
    """A name that no other run has."""
    created: str
    machine: str
    fingerprint: dict[str, str]
    """Of the target."""
    versions: dict[str, str | None]
    values: list[float]
    """The log density at the starting points of the first chain."""
    plan: Draws
    method: Code
    """As the user gave it; its arrays are in start.npz."""
    functions: str | None
    """A fingerprint of the user's functions in the method."""
    description: str
    example: Code
    """The structure of a position."""
    position: tuple[tuple[str, tuple[int, ...]], ...]
    """Names and shapes of the parameters."""
    doubts: tuple[str, ...]
    prepared: Prepared | None = None
    stopped: str | None = "running"
    num_draws: int | None = None
    """Of each chain, when the run ended last."""
    warmup_evaluations: int = 0
    """Of the density, in the warm-up of all chains."""
    evidence: dict[str, float | str] | None = None
    """What the draws say of the evidence, for readers without this library."""
    sealed: bool = True
    """Whether all chunks were sealed when they were written; format 2 had no seals."""
    notes: tuple[str, ...] = ()
    """Of what happened to the store since."""
    revision: int = 0
    """Counts what was written, so that of two copies the newer is known."""
    version: int = field(default=VERSION)
    library: str = field(default_factory=lambda: __version__)
    format: str = "pseudo-extended run"

    @property
    def has_chains(self) -> bool:
        """Whether the store has the state of the chains; not if `Result.save` wrote it, after its run."""
        return self.method is not None

    def check(self) -> None:
        """`ValueError` if the fields contradict each other, as they do in no store of ours."""
        plan = self.plan
        counts = (plan.warmup or 0, plan.seed, self.num_draws or 0, self.warmup_evaluations)
        if min(plan.draws, plan.chains, plan.thin) < 1 or min(counts) < 0:
            raise ValueError(f"plan has impossible numbers: {tuple(plan)}"[:200])
        if self.stopped is not None and self.stopped not in set(StopReason):
            raise ValueError(f"stopped is {self.stopped[:40]!r}, which no run says")
        if any(size < 0 for _, shape in self.position for size in shape):
            raise ValueError(f"position has a shape that is none: {str(self.position)[:80]}")
        if self.prepared is not None:
            self.prepared.layout.check()
            if plan.warmup is None:
                raise ValueError("plan has no warm-up, although the method is prepared")
            if self.prepared.layout.num_chains != plan.chains:
                raise ValueError(f"layout has {self.prepared.layout.num_chains} chains, and the run {plan.chains}")


def write_manifest(directory: Path, manifest: Manifest) -> Manifest:
    """Both copies, one after the other, so that one of them is whole at any moment; what was written."""
    manifest = replace(manifest, revision=manifest.revision + 1, version=VERSION, library=__version__)
    text = json.dumps(_json(manifest), indent=1)
    sealed = json.dumps({"sha256": _digest(text), "manifest": text}, indent=1)
    for copy in COPIES:
        replace_file(directory / copy, sealed.encode())
        flush_directory(directory)
    return manifest


def read_manifest(directory: Path) -> tuple[Manifest, list[str]]:
    """The manifest, brought up to this version, and sentences about a copy that is broken."""
    found, broken = [], []
    for copy in COPIES:
        try:
            found.append(_read(directory / copy))
        except BrokenFileError as error:
            broken.append(f"{error}")
    if not found:
        raise BrokenFileError(f"both copies of the manifest are unusable: {'; '.join(broken)}")
    if any(content.get("run") != found[0].get("run") for content in found):
        raise BrokenFileError(f"the two copies of the manifest, {' and '.join(COPIES)}, are of different runs")
    newest = max(found, key=_revision)
    if any(_revision(content) < _revision(newest) - 1 for content in found):  # by one, if it was killed between them
        broken.append(f"one copy of the manifest in {directory} is older than the other, and was left aside")
    content = _migrated(directory.parent, newest)
    try:
        manifest = typed(Manifest, content, "manifest")
        manifest.check()
    except (ValueError, RecursionError) as error:
        raise BrokenFileError(f"its manifest is none of ours: {error}") from None
    return manifest, broken


def _json(manifest: Manifest) -> dict[str, Any]:
    content = asdict(manifest) | {"plan": manifest.plan._asdict()}
    if manifest.prepared is not None:
        layout = manifest.prepared.layout
        columns = [column._asdict() for column in layout.columns]
        content["prepared"] = manifest.prepared._asdict() | {"layout": layout._asdict() | {"columns": columns}}
    return content


def _read(path: Path) -> dict[str, Any]:
    try:
        sealed = json.loads(read_file(path, most=MAX_BYTES))
        text, digest = sealed["manifest"], sealed["sha256"]
        if _digest(text) == digest:
            content = json.loads(text)
            if isinstance(content, dict):
                return content
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise BrokenFileError(f"{path} is damaged: its SHA-256 does not match its contents")


def _revision(content: dict[str, Any]) -> int:
    revision = content.get("revision", 0)
    return revision if type(revision) is int else 0


def _migrated(store: Path, content: dict[str, Any]) -> dict[str, Any]:
    found, library = content.get("version"), str(content.get("library"))[:40]
    if type(found) is not int:
        raise BrokenFileError(f"its manifest is none of ours: version should be int, and is {str(found)[:40]!r}")
    if found > VERSION:
        raise StoreVersionError(
            f"store {str(store)!r} has format {found}, written by pseudo-extended {library}; this is "
            f"{__version__}, which knows formats up to {VERSION}: upgrade to resume it."
        )
    while content["version"] < VERSION:
        migrate = MIGRATIONS.get(content["version"])
        if migrate is None:
            raise StoreVersionError(
                f"store {str(store)!r} has format {found}, written by pseudo-extended {library}, which this version "
                f"({__version__}, format {VERSION}) cannot go on with: resume it with "
                f"pseudo-extended {library}; xarray opens its draws as ever."
            )
        try:
            content = migrate(content)
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise BrokenFileError(f"its manifest is none of ours: {type(error).__name__} {error}") from None
    try:
        return _codes_up_to_date(content)
    except RecursionError:
        raise BrokenFileError("its manifest is none of ours: its values lie in one another too deep") from None


def _codes_up_to_date(content: dict[str, Any]) -> dict[str, Any]:
    content = content | {"method": up_to_date(content.get("method"))}
    plan = content.get("plan")
    if isinstance(plan, dict):
        content["plan"] = _plan_up_to_date(plan)
    prepared = content.get("prepared")
    if isinstance(prepared, dict):
        codes = {name: up_to_date(prepared.get(name)) for name in ("method", "report")}
        content["prepared"] = prepared | codes
    return content


def _plan_up_to_date(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan with its stopping rule as an object; before, it had numbers that stood for one."""
    if "target_ess" not in plan:
        return plan | {"stop": up_to_date(plan.get("stop"))}
    names = ("target_ess", "max_r_hat", "min_round_trips")
    ess, r_hat, round_trips = (plan.get(name) for name in names)
    kept = {name: value for name, value in plan.items() if name not in names}
    if ess is None:
        return kept
    fields = {"ess": ess, "r_hat": r_hat, "round_trips": round_trips}
    return kept | {"stop": {"class": "stop/good-enough", "fields": fields}, "is_unasked": r_hat is not None}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
