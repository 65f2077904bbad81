"""Tags: the names under which a store keeps classes. They belong to the format, and do not follow the code about.

A class may be renamed or moved: its entry here changes, its tag never does. Reading a store makes objects of the
classes in this table, and of those that the user has registered, and imports nothing that a file names.
"""

import importlib
import re
from typing import Any

import equinox as eqx

from pseudo_extended import checks

TAGS = {
    "base/given": "pseudo_extended:Base",
    "base/normal": "pseudo_extended:Normal",
    "base/normal-shells": "pseudo_extended.target.bases:NormalShells",
    "base/normal-mixture": "pseudo_extended:NormalMixture",
    "instrument/density": "pseudo_extended:Density",
    "instrument/fixed": "pseudo_extended:Fixed",
    "instrument/ladder": "pseudo_extended:Ladder",
    "instrument/per-particle": "pseudo_extended:PerParticle",
    "instrument/stratified": "pseudo_extended:Stratified",
    "instrument/tempered": "pseudo_extended:Tempered",
    "kernel/cycle": "pseudo_extended:Cycle",
    "kernel/hmc": "pseudo_extended:HMC",
    "kernel/mala": "pseudo_extended:MALA",
    "kernel/mixture": "pseudo_extended:Mixture",
    "kernel/nuts": "pseudo_extended:NUTS",
    "kernel/random-walk": "pseudo_extended:RandomWalk",
    "method/annealed-importance": "pseudo_extended:AnnealedImportance",
    "method/continuous-tempering": "pseudo_extended:ContinuousTempering",
    "method/equi-energy": "pseudo_extended:EquiEnergy",
    "method/index-gibbs": "pseudo_extended:AdaptivePseudoExtended",
    "method/parallel-tempering": "pseudo_extended:ParallelTempering",
    "method/plain": "pseudo_extended:Plain",
    "method/pseudo-extended": "pseudo_extended:PseudoExtended",
    "method/repelling-attracting": "pseudo_extended:RepellingAttracting",
    "method/simulated-tempering": "pseudo_extended:SimulatedTempering",
    "part/energy-ladder": "pseudo_extended.methods.energy_ladder:EnergyLadder",
    "part/images": "pseudo_extended.tempering.guessed:Images",
    "part/index-parameters": "pseudo_extended.methods.adaptive.parameters:AdaptiveParameters",
    "part/modes": "pseudo_extended.pilot.modes:Modes",
    "part/pilot-candidate": "pseudo_extended.pilot.report:CandidateReport",
    "part/pilot-report": "pseudo_extended.pilot.report:PilotReport",
    "part/path": "pseudo_extended.tempering.path:Path",
    "part/low-rank": "pseudo_extended.kernels.metric:LowRank",
    "part/target-moves": "pseudo_extended.methods.adaptive.target_moves:TargetMoves",
    "part/target-parameters": "pseudo_extended.methods.adaptive.target_moves:TargetParameters",
    "part/windowed-warmup": "pseudo_extended.warmup.windows:WindowedWarmup",
    "stop/good-enough": "pseudo_extended.stopping:GoodEnough",
}
"""Where each class is now."""

RENAMED_FIELDS: dict[str, dict[str, str]] = {}
"""For each tag, fields that older stores have under another name: old name -> new name."""

ADDED_FIELDS: dict[str, dict[str, Any]] = {
    "base/normal-mixture": {"labels": None},
    "part/index-parameters": {"target": None},
    "kernel/hmc": {"jitter": 0.0},
    "method/index-gibbs": {"leaps": False, "target_moves": None, "shared_metric": None, "images": None},
}
"""For each tag, fields that older stores do not have, and the value that they stood for, as `encode` writes it."""

ADDED_IN_PARTS: dict[str, dict[str, dict[str, dict[str, Any]]]] = {
    # The adaptive method jittered the trajectories of its HMC by itself, as no other method did.
    "method/index-gibbs": {"kernel": {"kernel/hmc": {"jitter": 0.4}}},
}
"""For a tag, and the tag of one of its fields, added fields that stood for something else there."""

DROPPED_FIELDS: dict[str, tuple[str, ...]] = {}
"""For each tag, fields that older stores have and that mean nothing any more."""

RENAMED_STATE: dict[str, str] = {
    ".state.points.x": ".state.points.position",
    ".state.points.gradient_base": ".state.points.grad_base",
    ".state.points.gradient_delta": ".state.points.grad_delta",
}
"""Parts of the paths of a chain's arrays that older snapshots have, such as `.state.path.grad_base`: old -> new."""

DROPPED_STATE = (".state.points.grad_base", ".state.points.grad_delta")
"""Arrays that older snapshots have also for methods that have none of them: zeros where no gradient was used."""

OURS = frozenset(tag.partition("/")[0] for tag in TAGS)
_registered: dict[str, type] = {}


class UnknownTagError(ValueError):
    """A store names a class that is neither in the table nor registered."""


def register_class(tag: str, kind: type) -> None:
    """Let stores keep objects of your own class, a kernel say, under `tag`, so that `pe.resume` can make them again.

    Call it before `pe.sample` and before `pe.resume`, for instance in the module that defines the class. The class is
    an `equinox.Module` whose fields can be stored: numbers, text, arrays, lists, tuples, dicts and other classes with
    a tag. Without a tag a run of such a method is stored all the same, and `pe.resume` asks for `method=` again.

    >>> import equinox as eqx, pseudo_extended as pe
    >>> class Scaled(eqx.Module):
    ...     factor: float
    >>> pe.register_class("my-lab/scaled", Scaled)
    """
    if not (isinstance(tag, str) and re.fullmatch(r"[a-z0-9][a-z0-9.-]*/[a-z0-9][a-z0-9.-]*", tag)):
        raise ValueError(f"tag must look like 'my-lab/my-kernel', in lower case; got {checks.describe(tag)}.")
    if tag.partition("/")[0] in OURS:
        raise ValueError(f"tag must not begin with {tag.partition('/')[0]}/, which is this library's; got {tag!r}.")
    if not _can_be_stored(kind):
        raise TypeError(f"kind must be an equinox.Module or a NamedTuple class; got {kind!r}.")
    before = _registered.get(tag)
    if before is not None and (before.__module__, before.__qualname__) != (kind.__module__, kind.__qualname__):
        raise ValueError(f"tag {tag!r} is registered for {before.__qualname__} already; got {kind.__qualname__}.")
    _registered[tag] = kind  # the same name again is a module that was loaded again


def class_of(tag: Any) -> type:
    """The class that a tag stands for; `UnknownTagError` if there is none."""
    if isinstance(tag, str):
        if tag in _registered:
            return _registered[tag]
        if tag in TAGS:
            return _resolve(TAGS[tag])
    raise UnknownTagError(
        f"it holds an object of class {tag!r}, which this version does not know; if the class is yours, call "
        "pe.register_class before"
    )


def tag_of(kind: type) -> str | None:
    """The tag of a class; None if it has none."""
    for tag, registered in _registered.items():
        if registered is kind:
            return tag
    if not (kind.__module__.startswith("pseudo_extended.") and _can_be_stored(kind)):
        return None
    return next((tag for tag, place in TAGS.items() if _resolve(place) is kind), None)


def _can_be_stored(kind: Any) -> bool:
    return isinstance(kind, type) and (
        issubclass(kind, eqx.Module) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
    )


def _resolve(place: str) -> type:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
