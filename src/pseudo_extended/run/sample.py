"""`sample`: the one way to run any method on any target."""

import os
import secrets
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from pseudo_extended import checks
from pseudo_extended.analysis import estimates
from pseudo_extended.analysis.result import Result
from pseudo_extended.compiled import seconds_compiling
from pseudo_extended.methods import AbstractMethod, AbstractPreparedMethod
from pseudo_extended.models import as_target
from pseudo_extended.precision import in_double_precision
from pseudo_extended.run.defaults import default_method, notes_about
from pseudo_extended.run.loop import Finished, Keys, Lane, NoDrawsError, Plan, run_lanes
from pseudo_extended.run.preflight import check_densities, complaints
from pseudo_extended.run.program import Programs, Record, build_programs, capacity_for
from pseudo_extended.run.progress import Reporter, reporter
from pseudo_extended.run.starts import starting_points
from pseudo_extended.target import Target
from pseudo_extended.weights import whole_weights

MOST_DRAWS = 1_000_000
"""Of each chain, where a stopping rule and not the user says how many."""


@in_double_precision
def sample(
    target: Target | Callable[..., Any] | Any,
    init: Any = None,
    *,
    method: AbstractMethod | None = None,
    draws: int | None = None,
    warmup: int = 1000,
    chains: int = 4,
    seed: int | None = None,
    target_ess: float | None = None,
    time_limit: float | None = None,
    thin: int = 1,
    progress: bool = True,
    cores: int | None = None,
    chunk: int | None = None,
) -> Result:
    """Sample a target, and return weighted points.

    Args:
        target: A `Target`; a JAX or NumPy function that returns the log density of a position; or a model of PyMC,
            NumPyro (one that takes no arguments; else `pe.from_numpyro(model, *args)`), PyStan or BridgeStan.
        init: One position, around which the pseudo-samples start, uniformly within 1 of it on the unconstrained
            scale; a batch of positions, with a leading axis, which are taken in turn as they are (those where the
            density is not finite are passed over); a function of a JAX random key; or None, when the target has a
            base that can be sampled. With a plain function, a vector is one position, a matrix is a batch of vectors,
            and a dict is one position; with a model, a dict of its parameters in its own space. Chains that start far
            apart are the best test of mixing: give a batch or a function if a distance of 1 is small for your
            parameters.
        method: How to sample; `pe.IndexGibbs()` unless given: pseudo-samples that travel along a learned path.
        draws: Draws to keep of each chain: 1,000 unless given, or as many as a stopping rule asks for.
        warmup: Iterations before them, in which step sizes and metric are tuned.
        chains: Independent chains.
        seed: A non-negative integer, which fixes every draw: draw t of chain c does not depend on `draws`, `chains`,
            `cores` or `chunk`. None takes a seed from the operating system; `result.seed` tells which.
        target_ess: Stop when the mean of every coordinate has this effective sample size. It is looked at after 100,
            150, 225, … draws of each chain, so where it stops does not depend on how the run is scheduled.
        time_limit: Stop after so many seconds of warm-up and draws, with the draws that every chain has.
        thin: Steps for each draw that is kept.
        progress: Whether to show progress on stderr: a bar in a terminal or notebook, a line now and then in a log.
        cores: Chains that run at the same time; by default as many as the process may use.
        chunk: Draws that one call into the compiled program may make, at most; by default about two megabytes of them.

    Returns:
        A `Result`. After Ctrl-C, the draws that every chain has.

    >>> import jax.numpy as jnp, pseudo_extended as pe
    >>> def log_density(x):                                   # two normals, far apart
    ...     return jnp.logaddexp(-0.5 * jnp.sum((x - 4) ** 2), -0.5 * jnp.sum((x + 4) ** 2))
    >>> method = pe.PseudoExtended(pe.Fixed(0.1), pe.HMC(), num_particles=5)      # the paper's; None for the default
    >>> result = pe.sample(log_density, jnp.zeros(1), method=method, draws=500, chains=2, seed=1, progress=False)
    >>> result.weights.shape
    (2, 500, 5)
    """
    target, init = as_target(target, init)
    method = checks.instance(
        "method",
        default_method(target) if method is None else method,
        AbstractMethod,
        "a method: pe.IndexGibbs(), pe.PseudoExtended(instrument, kernel) or pe.Plain(kernel)",
    )
    rules = target_ess is not None or time_limit is not None
    num_draws = (MOST_DRAWS if rules else 1000) if draws is None else checks.integer("draws", draws, minimum=1)
    if target_ess is not None:
        target_ess = checks.real("target_ess", target_ess, low=1)
    if time_limit is not None:
        time_limit = checks.real("time_limit", time_limit, low=0, closed="()")
    num_warmup = checks.integer("warmup", warmup, minimum=0)
    num_chains = checks.integer("chains", chains, minimum=1)
    thin = checks.integer("thin", thin, minimum=1)
    checks.choice("progress", progress, (True, False))
    num_cores = _available_cores() if cores is None else checks.integer("cores", cores, minimum=1)
    if chunk is not None:
        chunk = checks.integer("chunk", chunk, minimum=1)
    seed = secrets.randbits(32) if seed is None else checks.integer("seed", seed, minimum=0)

    method.check(target)
    doubts = check_densities(target, method)
    root = jax.random.key(seed, impl="threefry2x32")
    keys = Keys(*(jax.random.fold_in(root, i) for i in range(len(Keys._fields))))
    clock, compiling = time.perf_counter(), seconds_compiling()
    report = reporter(progress)
    try:
        x = starting_points(target, method, init, keys.start, num_chains)
        notes = ()
        if isinstance(method, AbstractPreparedMethod):
            method, x, notes = method.prepare(keys.prepare, target, x, report.say)
        report.say("compiling")
        lanes = _lanes(x, method.width)
        capacity = capacity_for(target, method) if chunk is None else chunk
        programs = build_programs(target, method, capacity=capacity, thin=thin, x=lanes[0].x)
        ready, compiling = time.perf_counter(), seconds_compiling() - compiling
        is_enough = None if target_ess is None else partial(_has_ess, target_ess, num_chains)
        plan = Plan(num_warmup, num_draws, capacity, num_cores, is_enough, time_limit)
        finished = _run(programs, lanes, plan, keys, report)
    finally:
        report.close()
    record = jax.tree.map(lambda leaf: leaf[:num_chains], finished.record)
    return Result(
        target=target,
        unconstrained=record.x,
        log_weights=record.log_weight,
        log_importance=record.log_importance,
        statistics=record.statistics,
        method=method.describe(),
        seed=seed,
        seconds={
            "compile": compiling,
            "prepare": ready - clock - compiling,
            "run": time.perf_counter() - ready,
        },
        stopped=finished.stopped,
        doubts=(*doubts, *complaints(target)),
        notes=(*notes_about(target), *notes),
    )


def _run(programs: Programs, lanes: list[Lane], plan: Plan, keys: Keys, report: Reporter) -> Finished:
    """The loop; without a single draw there is nothing to return, and the user is told so."""
    try:
        return run_lanes(programs, lanes, plan, keys, report)
    except NoDrawsError as error:
        if error.args == ("time_limit",):
            raise TimeoutError(
                f"time_limit must leave time for warm-up and a draw of every chain; {plan.time_limit:g} s did not."
            ) from None
        raise KeyboardInterrupt("interrupted before every chain had a draw: there is nothing to return") from None


def _has_ess(target_ess: float, num_chains: int, record: Record) -> bool:
    """Whether the mean of every coordinate, on the unconstrained space, has the effective sample size asked for."""
    kept = jax.tree.map(lambda leaf: leaf[:num_chains], record)
    weights = whole_weights(kept.log_weight, kept.log_importance)
    return bool(np.all(estimates.mean(kept.x, weights).ess >= target_ess))


def _available_cores() -> int:
    """The cores this process may use, which a container or batch system may have limited."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _lanes(x: np.ndarray, num_lanes: int) -> list[Lane]:
    """Chains in groups of `num_lanes`; a last group that is not full gets copies of the last chain, dropped later."""
    if num_lanes == 1:  # without an axis for the one lane
        return [Lane(np.asarray(c), points) for c, points in enumerate(x)]
    numbers = np.arange(-(-len(x) // num_lanes) * num_lanes)
    padded = x[np.minimum(numbers, len(x) - 1)]
    return [Lane(numbers[i : i + num_lanes], padded[i : i + num_lanes]) for i in range(0, len(numbers), num_lanes)]
