"""`resume`, `extend` and `load`: what can be done with a store."""

import contextlib
import math
from collections import defaultdict
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import jax
import numpy as np

from pseudo_extended import checks
from pseudo_extended.memory import free_memory
from pseudo_extended.messages import Message, kinds
from pseudo_extended.methods import AbstractMethod
from pseudo_extended.models.dispatch import library_target
from pseudo_extended.precision import in_double_precision
from pseudo_extended.results.result import Evaluations, Result
from pseudo_extended.results.stop_reason import StopReason, has_enough, stop_reason
from pseudo_extended.run.control import Control
from pseudo_extended.run.job import carry_out
from pseudo_extended.run.pilots import join, parts_of
from pseudo_extended.run.preparing import Job, check_same_values, method_functions
from pseudo_extended.run.settings import (
    Draws,
    ScheduleOptions,
    check_method,
    check_not_traced,
    check_schedule,
    code_of_rule,
)
from pseudo_extended.run.stored import read_record, statistics_by_name
from pseudo_extended.stopping import AbstractStoppingRule
from pseudo_extended.store import (
    BrokenFileError,
    CodeError,
    NotStoredError,
    Store,
    StoreError,
    UnknownTagError,
    decode,
    differences,
    draws_shown,
    encode,
    fingerprint_target,
    fingerprint_versions,
)
from pseudo_extended.target import Target


def resume(
    store: str | Path,
    target: Target | Callable[[Any], Any],
    *,
    method: AbstractMethod | None = None,
    stop: AbstractStoppingRule | None = None,
    other_versions: bool = False,
    **schedule: Unpack[ScheduleOptions],
) -> Result:
    """Go on with a run that was stopped, by whatever, and return what it would have returned.

    On the same machine and versions the draws are those of a run that was never stopped, bit for bit.

    Args:
        store: The directory that `pe.sample(…, store=)` was given.
        target: The same target, or the same function; another, or changed data, is refused.
        method: Only if it holds a function of yours, such as the density of `pe.Density`: functions are not stored.
        stop: Only if its stopping rule is a class of yours without a tag (`pe.register_class`): that is not stored.
        other_versions: Go on although JAX or another package has changed since. The draws are right, but not those
            that the old versions would have made; and of the density only its values at the starting points are
            compared.
        **schedule: `time_limit`, `progress`, `cores`, `chunk`, `devices`, `cluster`, `callback`, as in `pe.sample`.

    >>> import jax.numpy as jnp, pseudo_extended as pe, tempfile
    >>> def log_density(x):
    ...     return -0.5 * jnp.sum(x**2)
    >>> path = tempfile.mkdtemp() + "/run.zarr"
    >>> run = dict(method=pe.Plain(pe.HMC(2)), draws=300, chains=2, seed=1, progress=False)
    >>> stopped = pe.sample(log_density, jnp.zeros(1), callback=lambda run: run.num_draws > 0, store=path, **run)
    >>> resumed = pe.resume(path, log_density, progress=False)
    >>> whole = pe.sample(log_density, jnp.zeros(1), **run)
    >>> bool((resumed.points == whole.points).all())
    True
    """
    parts = parts_of(store)
    if parts:
        again = partial(resume, target=target, method=method, stop=stop, other_versions=other_versions, **schedule)
        return join(store, parts, again, needs_all=True)
    return carry_out(reopened(store, target, method, _as_planned, schedule, other_versions, stop), Control())


def extend(
    store: str | Path,
    target: Target | Callable[[Any], Any],
    draws: int,
    *,
    method: AbstractMethod | None = None,
    other_versions: bool = False,
    **schedule: Unpack[ScheduleOptions],
) -> Result:
    """Add `draws` to each chain of a run, finished or not: the result is that of one longer run.

    The other arguments are those of `pe.resume`. The stopping rule that the run was given no longer counts.
    """
    more = checks.integer("draws", draws, minimum=1)
    parts = parts_of(store)
    if parts:
        again = partial(extend, target=target, draws=more, method=method, other_versions=other_versions, **schedule)
        return join(store, parts, again, needs_all=True)
    return carry_out(reopened(store, target, method, partial(_longer, more), schedule, other_versions), Control())


@in_double_precision
def load(store: str | Path, target: Target | Callable[[Any], Any], *, draws: int | None = None) -> Result:
    """The draws in a store as a `Result`; of a run on its way too, in this process or another.

    A result holds 100 MiB of draws at most. Of more, every second draw is taken, or every third, and so on, evenly;
    `draws` asks for so many of each chain at most.
    """
    check_not_traced("pe.load")
    parts = parts_of(store)
    if parts:
        return join(store, parts, partial(load, target=target, draws=draws))
    opened = Store.open(store)
    target = _target(opened, target)
    _check_target(opened, target)
    manifest, prepared = opened.manifest, opened.prepared
    num_draws, seals, notes = draws_shown(opened)
    if not num_draws:
        raise StoreError(f"store {str(opened.root)!r} has no draws yet: it is in warm-up, or was stopped in it.")
    least = 1 if draws is None else -(-num_draws // checks.integer("draws", draws, minimum=1))
    try:
        found = read_record(opened.arrays, num_draws, seals, least_thin=least)
    except BrokenFileError as error:
        raise StoreError(f"{error}: {opened.mended('makes the draws')}.") from None
    except OSError as error:
        raise StoreError(f"store {str(opened.root)!r} cannot be read: {error}.") from None
    evaluations = None
    if prepared.num_evaluations is not None:
        in_draws = int(np.sum(found.statistics["num_evaluations"])) * found.thinned
        evaluations = Evaluations(prepared.num_evaluations, manifest.warmup_evaluations, in_draws)
    return Result(
        target=target,
        unconstrained=found.x,
        log_weights=found.log_weight,
        log_importance=found.log_importance,
        statistics=found.statistics,
        statistic_axes=statistics_by_name(
            {c.path: c.dims for c in prepared.layout.columns if c.group == "sample_stats"}, prepared.layout
        ),
        method=prepared.description,
        seed=manifest.plan.seed,
        seconds={},
        stopped=stop_reason(manifest.stopped),
        doubts=manifest.doubts,
        notes=(*prepared.notes, *manifest.notes, *notes),
        store=str(opened.root),
        pilot=_report(opened),
        evaluations=evaluations,
        thinned=found.thinned,
    )


def _report(store: Store) -> Any:
    """What the pilot found; None if the store does not have it, or not any more."""
    try:
        return decode(store.prepared.report, store.read_arrays("learned.npz"))
    except (BrokenFileError, CodeError, NotStoredError, UnknownTagError):
        return None


@in_double_precision
def reopened(
    path: str | Path,
    target: Any,
    method: Any,
    plan: Callable[[Store], Draws],
    options: ScheduleOptions,
    other_versions: bool = False,
    rule: AbstractStoppingRule | None = None,
) -> Job:
    """The job of a store, with everything checked, and the store locked; `plan` says what it is to have."""
    check_not_traced("a run")
    schedule = check_schedule(**options)
    checks.choice("other_versions", other_versions, (True, False))
    store = Store.open(path)
    store.lock()
    try:
        store.reread()
        if not store.manifest.has_chains:
            raise StoreError(
                f"store {str(store.root)!r} was saved after its run, without the state of the chains, so nothing can "
                "go on from it; pe.load reads it. A run with store= can be resumed and extended."
            )
        target = _target(store, target)
        changed = _changed_versions(store, other_versions)
        _check_target(store, target)
        check_same_values(store, target)
        method = _method(store, target, method)
        draws = plan(store)
        rule, doubts = _rule(store, draws, rule), (*store.manifest.doubts, *changed)
        made_with = {"fingerprint": fingerprint_target(target), "versions": fingerprint_versions()}
        store.write(plan=draws, stopped=StopReason.RUNNING.value, doubts=doubts, **made_with)
    except BaseException:
        store.close()
        raise
    return Job(target, method, draws, schedule, store, rule, doubts=doubts)


def _as_planned(store: Store) -> Draws:
    return store.manifest.plan


def _longer(more: int, store: Store) -> Draws:
    manifest = store.manifest
    had = manifest.num_draws if manifest.stopped is not None and has_enough(manifest.stopped) else None
    total = (manifest.plan.draws if had is None else had) + more
    return manifest.plan._replace(draws=total, stop=None, is_unasked=False, max_evaluations=None, counts_all=False)


def as_asked(wanted: Draws, given: Collection[str], store: Store) -> Draws:
    """The plan of a store, with as many draws as are wanted if that is more; what else is `given` must be the same."""
    plan = store.manifest.plan
    for name in ("warmup", "chains", "thin", "stop", "seed"):
        stored, asked = getattr(plan, name), getattr(wanted, name)
        if name == "stop":
            if not {"stop", "target_ess"} & set(given) or _without_round_trips(asked) == stored:
                continue
            name, stored, asked = "the stopping rule", _said(stored), _said(asked)
        if stored != asked and (name not in ("warmup", "seed") or name in given):
            raise StoreError(
                f"{name} must be that of the run in store {str(store.root)!r} to go on with it, {stored}; got {asked}. "
                "Give it as it was, or name another store."
            )
    if "draws" not in given or (store.manifest.stopped is not None and has_enough(store.manifest.stopped)):
        return plan
    return plan._replace(draws=max(plan.draws, wanted.draws))


def _without_round_trips(code: Any) -> Any:
    """The code of a rule after a pilot that found one mode."""
    try:
        rule = decode(code, {})
    except (CodeError, NotStoredError, UnknownTagError):
        return code
    return code if rule is None else code_of_rule(rule.without_round_trips())


def _said(code: Any) -> str:
    """A stored rule in words."""
    try:
        return str(decode(code, {}))
    except (CodeError, NotStoredError, UnknownTagError):
        return str(code.get("of", "a rule that cannot be read"))


def _rule(store: Store, plan: Draws, given: Any) -> AbstractStoppingRule | None:
    """The rule of the plan; where the store could not keep it, the one that was given."""
    try:
        rule = decode(plan.stop, {})
        if rule is None or isinstance(rule, AbstractStoppingRule):
            return rule
        raise StoreError(f"store {str(store.root)!r} has a stopping rule that is none: {type(rule).__name__}.")
    except NotStoredError as error:
        if given is None:
            raise StoreError(
                f"stop must be given again: store {str(store.root)!r} has no more than the name of its stopping rule, "
                f"{error.args[-1]}; pass stop= as it was, and next time give its class a tag with pe.register_class."
            ) from None
        return checks.instance("stop", given, AbstractStoppingRule, "a stopping rule")
    except (CodeError, UnknownTagError) as error:
        raise StoreError(f"store {str(store.root)!r} has a stopping rule that cannot be made again: {error}.") from None


def _target(store: Store, target: Any) -> Target:
    """The target, made of a plain function with the stored position if need be."""
    of_library = library_target(target)
    if of_library is not None:
        return of_library
    checks.function("target", target)
    try:
        # The numbers of an example do not matter, so the manifest has its structure and shapes alone.
        zeros = [np.zeros(shape) for shape in _shapes_in_memory(store)]
        structure = jax.tree.structure(decode(store.manifest.example, defaultdict(lambda: np.zeros(()))))
        example = jax.tree.unflatten(structure, zeros)
    except (NotStoredError, ValueError):
        raise StoreError(
            "target must be a pe.Target: the structure of its position cannot be read from the store; got a function."
        ) from None
    return Target(target, example)


def _shapes_in_memory(store: Store) -> list[tuple[int, ...]]:
    """Return the shapes of the parameters, if arrays of them have room: the manifest may be somebody else's."""
    shapes = [shape for _, shape in store.manifest.position]
    if 8 * sum(math.prod(shape) for shape in shapes) > free_memory() / 4:
        raise StoreError(f"store {str(store.root)!r} has a position too large for the memory of this machine.")
    return shapes


def _method(store: Store, target: Target, given: Any) -> AbstractMethod:
    """Return the method as it is stored; what was given must be the same."""
    code, stored = _stored_method(store)
    if given is None:
        try:
            return decode(code, stored)
        except NotStoredError as error:
            raise StoreError(_explain_missing(*error.args)) from None
        except (CodeError, UnknownTagError) as error:
            raise StoreError(f"store {str(store.root)!r} has a method that cannot be made again: {error}.") from None
    given = check_method(given, target)
    arrays: dict[str, np.ndarray] = {}
    found = differences(code, stored, encode(given, arrays, "method"), arrays)
    functions = store.manifest.functions
    if not found and functions is not None and functions != method_functions(given, target):
        found = ["the function that it holds is another"]
    if found:
        raise StoreError(
            f"method differs from that of store {str(store.root)!r}: {'; '.join(found)}. Leave it out, and the stored "
            "one is used, if it holds no functions."
        )
    return given


def _explain_missing(place: str, kind: str | None = None) -> str:
    """Why a method must be given again: it holds a function, or an object of a class without a tag."""
    where = place.replace("/", ".")
    if kind is None:
        return (
            f"method must be given again: it holds a function ({where}), which no store holds; pass method= to resume."
        )
    return (
        f"method must be given again: {where} is an object of your class {kind}, which has no tag; pass method= to "
        "resume, and call pe.register_class before the next run."
    )


def _stored_method(store: Store) -> tuple[Any, dict[str, np.ndarray]]:
    """Return the method as the user gave it, or, if that file is broken, as it is after learning."""
    try:
        return store.manifest.method, store.read_arrays("start.npz")
    except BrokenFileError as error:
        if store.manifest.prepared is not None:
            with contextlib.suppress(BrokenFileError):
                return store.manifest.prepared.method, store.read_arrays("learned.npz")
        raise StoreError(f"store {str(store.root)!r} cannot be resumed: {error}.") from None


def _changed_versions(store: Store, other_versions: bool) -> list[Message]:
    """Refuse other versions, unless they are allowed; then a sentence about them."""
    stored, here = store.manifest.versions, fingerprint_versions()
    changed = [
        f"{name} was {stored.get(name) or 'none'} and is {here.get(name) or 'none'}"
        for name in sorted(stored.keys() | here.keys())
        if stored.get(name) != here.get(name)
    ]
    if changed and not other_versions:
        raise StoreError(
            f"store {str(store.root)!r} was made by other versions: {'; '.join(changed)}. The draws would not be those "
            "of an uninterrupted run; pass other_versions=True to go on nevertheless."
        )
    return [kinds.OTHER_VERSIONS(changed="; ".join(changed))] if changed else []


def _check_target(store: Store, target: Target) -> None:
    """Refuse another target; the formula tells only as long as JAX is the same."""
    where = f"target differs from that of store {str(store.root)!r}: "
    try:
        stored, here = store.manifest.fingerprint, fingerprint_target(target)
    except Exception as error:  # whatever a model says that is called with another's position
        first = next(iter(str(error).splitlines()), "")
        raise StoreError(
            f"{where}at a position of {_shapes(target)} it raises {type(error).__name__}: {first.rstrip('.')}."
        ) from error
    if stored.get("position") != here["position"]:
        before = ", ".join(f"{name}: {tuple(shape)}" for name, shape in store.manifest.position)
        raise StoreError(f"{where}its position is {_shapes(target)}, and was {before}.")
    if stored.get("symmetries") != here.get("symmetries"):
        raise StoreError(f"{where}the symmetries that are declared are others.")
    if store.manifest.versions != fingerprint_versions():
        return
    if stored.get("density") != here["density"]:
        also = "" if stored.get("data") == here["data"] else ", and so are the arrays in it (the data)"
        raise StoreError(
            f"{where}the formula of its density, or a number or a shape in it, is another{also}; the same model and "
            "data are needed to go on."
        )
    if stored.get("data") != here["data"]:
        raise StoreError(
            f"{where}the formula of its density is the same, but the arrays in it (the data) have changed."
        )


def _shapes(target: Target) -> str:
    return ", ".join(f"{parameter.name}: {parameter.shape}" for parameter in target.parameters)
