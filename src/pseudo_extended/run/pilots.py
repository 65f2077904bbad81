"""Independent pilots: runs of some of the chains each, with a pilot and starts of its own, joined into one result.

A store of such a run is a directory with a store for each pilot, `pilot-0`, `pilot-1` and so on, and a small file that
says how many there are to be.
"""

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pseudo_extended import checks
from pseudo_extended.results.pooling import pool
from pseudo_extended.results.result import Result
from pseudo_extended.run.habits import seed_from
from pseudo_extended.run.preparing import Job
from pseudo_extended.run.progress import reporter
from pseudo_extended.run.settings import code_of_rule
from pseudo_extended.store import StoreError, store_path
from pseudo_extended.store.parts import Parts, begun_parts, has_parts, is_empty, read_parts, seed_of, write_parts

Carry = Callable[[Job], Result]


def run_pilots(pilots: int, options: dict[str, Any], make_job: Callable[..., Job], carry_out: Carry) -> Result:
    """Run them, one after the other.

    The first run says how many draws there are where a rule does, and the others make as many.
    """
    chains = checks.integer("chains", options.get("chains", 4), minimum=1)
    if chains % pilots:
        raise ValueError(f"chains must be a multiple of pilots, {pilots}, so that each has as many; got {chains}.")
    seed = seed_from(options.get("seed"))
    seed = None if seed is None else checks.integer("seed", seed, minimum=0)
    root = None
    if options.get("store") is not None:
        root, seed = _begin(options["store"], pilots, options.get("resume") is True, seed)
    seed = secrets.randbits(32) if seed is None else seed
    ends = None if options.get("time_limit") is None else time.monotonic() + options["time_limit"]
    report = reporter(options.get("progress", True))
    found: list[Result] = []
    for number in range(pilots):
        mine = options | {"chains": chains // pilots, "seed": seed_of(seed, number)}
        if root is not None:
            mine["store"] = root / f"pilot-{number}"
        if ends is not None:
            mine["time_limit"] = max(ends - time.monotonic(), 1e-3) / (pilots - number)
        if options.get("max_evaluations") is not None:
            mine["max_evaluations"] = max(options["max_evaluations"] // pilots, 1)
        if found:
            mine |= {"draws": found[0].num_draws * found[0].thinned, "target_ess": None, "stop": None}
        report.note(f"pilot {number + 1} of {pilots}")
        job = make_job(**mine)
        if job.rule is not None and job.is_new:
            job.rule = job.rule.for_part(pilots)
            job.draws = job.draws._replace(stop=code_of_rule(job.rule))
        try:
            found.append(carry_out(job))
        except KeyboardInterrupt:
            if not found:
                raise
            break
        if found[-1].interrupted:
            break
    report.close()
    result = pool(found, seed, pilots)
    return result if root is None else _with_store(result, root)


def parts_of(store: Any) -> list[Path]:
    """The stores of the pilots that have begun, if a store is a directory of such."""
    if not isinstance(store, (str, Path)) or not has_parts(Path(store)):
        return []
    return begun_parts(Path(store))


def join(store: Any, parts: Sequence[Path], of_part: Callable[[Path], Result], *, needs_all: bool = False) -> Result:
    """The results of the parts, as `of_part` gives them, joined; parts without draws are left out."""
    root = Path(store)
    plan = read_parts(root)
    if needs_all and len(parts) < plan.pilots:
        raise StoreError(
            f"store {str(root)!r} has {len(parts)} of {plan.pilots} pilots, and only pe.sample can begin the "
            "others: call it as before, with resume=True."
        )
    found = []
    for path in parts:
        try:
            found.append(of_part(path))
        except StoreError as error:
            if needs_all or "has no draws yet" not in str(error):
                raise
    if not found:
        raise StoreError(f"store {str(root)!r} has no draws yet: all its pilots are in warm-up, or were stopped in it.")
    return _with_store(pool(found, plan.seed, plan.pilots), root)


def _with_store(result: Result, root: Path) -> Result:
    return replace(result, store=str(root))


def _begin(store: Any, pilots: int, resume: bool, seed: int | None) -> tuple[Path, int]:
    """The directory, and the seed of the run: without one given, that of the run there."""
    root = store_path(store)
    if resume and has_parts(root):
        before = read_parts(root)
        if before.pilots != pilots or seed not in (None, before.seed):
            raise StoreError(
                f"store {str(root)!r} was begun with {before.pilots} pilots and seed {before.seed}; pilots and seed "
                f"must be the same to go on; got {pilots} and {seed}."
            )
        return root, before.seed
    if not is_empty(root):
        raise StoreError(f"store must name a directory that does not exist yet; {str(root)!r} does.")
    seed = secrets.randbits(32) if seed is None else seed
    try:
        write_parts(root, Parts(pilots, seed))
    except OSError as error:
        raise StoreError(f"store must name a directory that can be made; {str(root)!r} cannot: {error}.") from None
    return root, seed
