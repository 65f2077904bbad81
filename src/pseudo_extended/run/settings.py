"""What the user asked for, checked."""

import secrets
from typing import Any, NamedTuple, TypedDict

from pseudo_extended import checks
from pseudo_extended.methods import AbstractMethod
from pseudo_extended.run.cluster import check_cluster
from pseudo_extended.run.control import Callback
from pseudo_extended.run.defaults import default_method
from pseudo_extended.run.workers import available_cores, check_devices
from pseudo_extended.target import Target

MOST_DRAWS = 1_000_000
"""Of each chain, where a stopping rule and not the user says how many."""


class Draws(NamedTuple):
    """What fixes the draws, besides target, method and start; it is stored."""

    draws: int
    warmup: int
    chains: int
    thin: int
    seed: int
    target_ess: float | None


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
    warmup: int
    chains: int
    seed: int | None
    target_ess: float | None
    thin: int
    store: Any


def check_method(method: Any, target: Target) -> AbstractMethod:
    """The default for the target, or what was given if it is a method."""
    return checks.instance(
        "method",
        default_method(target) if method is None else method,
        AbstractMethod,
        "a method: pe.IndexGibbs(), pe.PseudoExtended(instrument, kernel) or pe.Plain(kernel)",
    )


def check_draws(
    draws: Any, warmup: Any, chains: Any, thin: Any, seed: Any, target_ess: Any, *, has_rule: bool
) -> Draws:
    """A million draws are the most where a rule, and not `draws`, says how many."""
    num_draws = (MOST_DRAWS if has_rule else 1000) if draws is None else checks.integer("draws", draws, minimum=1)
    if target_ess is not None:
        target_ess = checks.real("target_ess", target_ess, low=1)
    return Draws(
        num_draws,
        checks.integer("warmup", warmup, minimum=0),
        checks.integer("chains", chains, minimum=1),
        checks.integer("thin", thin, minimum=1),
        secrets.randbits(32) if seed is None else checks.integer("seed", seed, minimum=0),
        target_ess,
    )


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
