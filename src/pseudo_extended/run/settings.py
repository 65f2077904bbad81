"""What the user asked for, checked."""

import secrets
from typing import Any, NamedTuple, TypedDict

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from pseudo_extended import checks
from pseudo_extended.methods import AbstractMethod
from pseudo_extended.methods.abstract import Prepared
from pseudo_extended.run.cluster import check_cluster
from pseudo_extended.run.control import Callback
from pseudo_extended.run.defaults import default_method
from pseudo_extended.run.workers import available_cores, check_devices
from pseudo_extended.stopping import AbstractStoppingRule, GoodEnough
from pseudo_extended.store import Draws as Draws
from pseudo_extended.store import encode, holds_functions
from pseudo_extended.target import Target

MOST_DRAWS = 1_000_000
"""Of each chain, where a stopping rule of the user's, and not `draws`, says how many."""
MOST_DRAWS_UNASKED = 10_000
"""Of each chain, where the user says nothing."""
MOST_BYTES_UNASKED = 2**29
"""Of the points of all chains, where the user says nothing; a run never makes fewer than 1,000 draws for it."""
MOST_EVALUATIONS_UNASKED = 4_000_000
"""Of the density in the draws of all chains, where the user says nothing."""


class Schedule(NamedTuple):
    """How the run is carried out, which no draw depends on; it is not stored."""

    progress: bool
    cores: int
    chunk: int | None
    devices: list[Any]
    cluster: Any
    time_limit: float | None
    callback: Callback | None


class ScheduleOptions(TypedDict, total=False):
    """The keywords of `pe.sample` that `pe.resume` and `pe.extend` take too: no draw depends on them."""

    time_limit: float | None
    progress: bool
    cores: int | None
    chunk: int | None
    devices: Any
    cluster: Any
    callback: Callback | None


class Options(ScheduleOptions, total=False):
    """All keywords of `pe.sample`, which `pe.start` takes."""

    method: AbstractMethod | None
    draws: int | None
    warmup: int | None
    chains: int
    seed: Any
    target_ess: float | None
    stop: AbstractStoppingRule | None
    max_evaluations: int | None
    thin: int
    store: Any
    resume: bool


def check_not_traced(name: str) -> None:
    """Refuse to run inside a function that JAX traces, where there are no numbers."""
    if isinstance(jnp.asarray(np.zeros(())), Tracer):
        raise TypeError(
            f"{name} must not be called inside jax.jit, jax.lax.scan or another transformation of JAX, which traces a "
            "function without numbers; call it outside, it compiles by itself."
        )


def check_method(method: Any, target: Target) -> AbstractMethod:
    """The default for the target, or what was given if it is a method."""
    return checks.instance(
        "method",
        default_method(target) if method is None else method,
        AbstractMethod,
        "a method: pe.AdaptivePseudoExtended(), pe.PseudoExtended(instrument, kernel) or pe.Plain(kernel)",
    )


def check_rule(stop: Any, target_ess: Any) -> AbstractStoppingRule | None:
    """The stopping rule that the user gave, in one of two ways."""
    if target_ess is not None:
        if stop is not None:
            raise ValueError(f"target_ess must not be given with stop, which is the rule then; got {target_ess!r}.")
        return GoodEnough(checks.real("target_ess", target_ess, low=1), None, None)
    if stop is not None:
        checks.instance("stop", stop, AbstractStoppingRule, "a stopping rule such as pe.stopping.GoodEnough(ess=500)")
    return stop


def code_of_rule(rule: AbstractStoppingRule | None) -> Any:
    """A rule as a manifest keeps it; one that holds arrays or functions is marked as missing."""
    arrays: dict[str, np.ndarray] = {}
    code = encode(rule, arrays, "stop")
    return {"missing": "stop", "of": type(rule).__qualname__} if arrays or holds_functions(code) else code


def check_draws(
    draws: Any,
    warmup: Any,
    chains: Any,
    thin: Any,
    seed: Any,
    rule: AbstractStoppingRule | None,
    *,
    has_limit: bool,
    until_good: bool,
    max_evaluations: Any = None,
) -> tuple[Draws, AbstractStoppingRule | None]:
    """The plan, and its stopping rule; a million draws are the most where a rule or a limit of time says how many.

    Where nothing says how many, a method that runs until its estimates are good goes on until they are.
    """
    until_good = until_good and draws is None and rule is None and not has_limit
    most = MOST_DRAWS_UNASKED if until_good else MOST_DRAWS if rule is not None or has_limit else 1000
    rule = GoodEnough() if until_good else rule
    budget = None if max_evaluations is None else checks.integer("max_evaluations", max_evaluations, minimum=1)
    plan = Draws(
        most if draws is None else checks.integer("draws", draws, minimum=1),
        None if warmup is None else checks.integer("warmup", warmup, minimum=0),
        checks.integer("chains", chains, minimum=1),
        checks.integer("thin", thin, minimum=1),
        secrets.randbits(32) if seed is None else checks.integer("seed", seed, minimum=0),
        code_of_rule(rule),
        until_good,
        MOST_EVALUATIONS_UNASKED if until_good and budget is None else budget,
        budget is not None,
    )
    return plan, rule


def settled(draws: Draws, prepared: Prepared, dim: int) -> Draws:
    """The plan, once the method has said how long its warm-up is and what else the run needs."""
    if draws.warmup is None:
        draws = draws._replace(warmup=prepared.num_warmup)
    if not draws.is_unasked:
        return draws
    num_points = prepared.method.num_points
    room = MOST_BYTES_UNASKED // (8 * draws.chains * num_points * (dim + 4))
    return draws._replace(draws=int(min(max(room, 1000), draws.draws)))


def check_schedule(
    *,
    time_limit: Any = None,
    progress: Any = True,
    cores: Any = None,
    chunk: Any = None,
    devices: Any = None,
    cluster: Any = None,
    callback: Any = None,
) -> Schedule:
    """A cluster has its own cores and devices."""
    if time_limit is not None:
        time_limit = checks.real("time_limit", time_limit, low=0, closed="()")
    checks.choice("progress", progress, (True, False))
    if cluster is not None and (cores is not None or devices is not None):
        raise ValueError("cores and devices must not be given with a cluster, whose workers have their own.")
    num_cores = available_cores() if cores is None else checks.integer("cores", cores, minimum=1)
    if chunk is not None:
        chunk = checks.integer("chunk", chunk, minimum=1)
    if callback is not None:
        checks.function("callback", callback)
    return Schedule(progress, num_cores, chunk, check_devices(devices), check_cluster(cluster), time_limit, callback)
