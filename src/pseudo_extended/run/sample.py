"""`sample`: the one way to run any method on any target; `start` does the same in the background."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from pseudo_extended import checks
from pseudo_extended.compiled import Device
from pseudo_extended.methods import AbstractMethod, AbstractPreparedMethod
from pseudo_extended.models import as_target
from pseudo_extended.models.dispatch import model_of_context
from pseudo_extended.precision import in_double_precision
from pseudo_extended.results.result import Result
from pseudo_extended.run.control import Callback, Control
from pseudo_extended.run.habits import refuse_other_names, seed_from
from pseudo_extended.run.handle import Run
from pseudo_extended.run.job import carry_out
from pseudo_extended.run.pilots import run_pilots
from pseudo_extended.run.preflight import check_densities
from pseudo_extended.run.preparing import Job
from pseudo_extended.run.resume import as_asked, reopened
from pseudo_extended.run.room import check_room
from pseudo_extended.run.settings import (
    Options,
    ScheduleOptions,
    check_draws,
    check_method,
    check_not_traced,
    check_rule,
    check_schedule,
)
from pseudo_extended.stopping import AbstractStoppingRule
from pseudo_extended.store import Store, has_manifest, store_path
from pseudo_extended.target import Target


def sample(
    target: Target | Callable[..., Any] | Any = None,
    init: Any = None,
    *,
    method: AbstractMethod | None = None,
    draws: int | None = None,
    warmup: int | None = None,
    chains: int = 4,
    pilots: int = 1,
    seed: Any = None,
    target_ess: float | None = None,
    stop: AbstractStoppingRule | None = None,
    time_limit: float | None = None,
    max_evaluations: int | None = None,
    thin: int = 1,
    progress: bool = True,
    cores: int | None = None,
    chunk: int | None = None,
    devices: int | Sequence[Device] | None = None,
    cluster: Any = None,
    callback: Callback | None = None,
    store: str | Path | None = None,
    resume: bool = False,
    **others: Any,
) -> Result:
    """Sample a target, and return weighted points.

    Args:
        target: A `Target`; a JAX or NumPy function that returns the log density of a position; or a model of PyMC,
            NumPyro (one that takes no arguments; else `pe.from_numpyro(model, *args)`), PyStan or BridgeStan. Inside
            `with model:` of PyMC it may be left out.
        init: One position, around which the pseudo-samples start, uniformly within 1 of it on the unconstrained
            scale; a batch of positions, with a leading axis, which are taken in turn as they are (those where the
            density is not finite are passed over); a function of a JAX random key; or None, when the target has a
            base that can be sampled. With a plain function, a vector is one position, a matrix is a batch of vectors,
            and a dict is one position; with a model, a dict of its parameters in its own space. Chains that start far
            apart are the best test of mixing: give a batch or a function if a distance of 1 is small for your
            parameters.
        method: How to sample; `pe.AdaptivePseudoExtended()` unless given: pseudo-samples that travel along a learned
            path.
        draws: Draws to keep of each chain. Unless given, or asked for by a stopping rule, the default method goes on
            until every mean has an effective sample size of 2,000, every R-hat is below 1.01 and, if there are several
            modes, every chain has made ten round trips along the path; or until 10,000 draws (fewer where they would
            take more than half a gigabyte, or four million evaluations of the density for all chains together).
            Other methods make 1,000.
        warmup: Iterations before them, in which step sizes and metric are tuned: 1,000 unless given, and for the
            default method as many as the path found by its pilot needs.
        chains: Independent chains.
        pilots: How many times the default method prepares itself, from starts of its own, each for as many of the
            chains. All chains of one pilot know what that pilot has found, so their agreement says nothing of what it
            has missed; `pilots=2` shows whether another one finds the same. See `result.pilot_agreement()`.
        seed: A non-negative integer, which fixes every draw: draw t of chain c does not depend on `draws`, `chains`,
            `cores` or `chunk`; or a random key of JAX. None takes a seed from the operating system; `result.seed`
            tells which.
        target_ess: Stop when the mean of every coordinate has this effective sample size. It is looked at after 100,
            150, 225, … draws of each chain, so where it stops does not depend on how the run is scheduled.
        stop: A stopping rule, such as `pe.stopping.GoodEnough(ess=500)` or one of your own, which is looked at at the
            same numbers of draws.
        time_limit: Stop after so many seconds of warm-up and draws, with the draws that every chain has.
        max_evaluations: Stop where half as many draws again would take the density beyond so many evaluations, pilot,
            warm-up and draws of all chains counted; a value with its gradient counts once. It is looked at after 100,
            150, 225, … draws of each chain, so where it stops depends on nothing but the draws, and each chain has 100.
        thin: Steps for each draw that is kept.
        progress: Whether to show progress on stderr: a bar in a terminal or notebook, a line now and then in a log.
        cores: Chains that run at the same time; by default as many as the process may use.
        chunk: Draws that one call into the compiled program may make, at most; by default about two megabytes of them.
        devices: How many of JAX's devices to spread the chains over, or which; by default all of an accelerator.
        cluster: A `dask.distributed.Client`, over whose workers the chains are spread.
        callback: Called after every chunk with a `pe.Running`: where the run is, and its draws so far. If it returns
            something true, the run ends with the draws there are.
        store: A directory that does not exist yet, such as "run.zarr", into which draws are written while sampling.
            After a crash `pe.resume` goes on from it, `pe.extend` adds draws, `pe.load` and xarray read it.
        resume: Go on with the run in `store` if there is one, whatever stopped it, and begin it if there is none: the
            one call for a job that a batch system may kill and start again at any time. Target, method and settings
            must be those of the run there. With more `draws` than it was begun with, it makes the rest of them.
        **others: Nothing; names that other libraries have for these arguments are refused with ours.

    Returns:
        A `Result`. After Ctrl-C, the draws that every chain has. After SIGTERM too, without a store; with one, all is
        written to it, and the process ends with status 143 (`SystemExit`), so that nobody takes part of the draws for
        all of them.

    >>> import jax.numpy as jnp, pseudo_extended as pe
    >>> def log_density(x):                                   # two normals, far apart
    ...     return jnp.logaddexp(-0.5 * jnp.sum((x - 4) ** 2), -0.5 * jnp.sum((x + 4) ** 2))
    >>> method = pe.PseudoExtended(pe.Fixed(0.1), pe.HMC(), num_particles=5)      # the paper's; None for the default
    >>> result = pe.sample(log_density, jnp.zeros(1), method=method, draws=500, chains=2, seed=1, progress=False)
    >>> result.weights.shape
    (2, 500, 5)
    """
    options = {
        "method": method,
        "draws": draws,
        "warmup": warmup,
        "chains": chains,
        "seed": seed,
        "target_ess": target_ess,
        "stop": stop,
        "time_limit": time_limit,
        "max_evaluations": max_evaluations,
        "thin": thin,
        "progress": progress,
        "cores": cores,
        "chunk": chunk,
        "devices": devices,
        "cluster": cluster,
        "callback": callback,
        "store": store,
        "resume": resume,
        **others,
    }
    if checks.integer("pilots", pilots, minimum=1) == 1:
        return carry_out(_job(target, init, **options), Control())
    if method is not None and not isinstance(method, AbstractPreparedMethod):
        raise ValueError(f"pilots must be 1 for a method that has no pilot; got {pilots} with {method.describe()}.")
    target = model_of_context() if target is None else target
    target, init = as_target(target, init)
    return run_pilots(pilots, options, partial(_job, target, init), lambda job: carry_out(job, Control()))


def start(target: Target | Callable[[Any], Any] | Any = None, init: Any = None, **options: Unpack[Options]) -> Run:
    """Begin a run and return at once, with a handle to it; the arguments are those of `sample`.

    >>> import jax.numpy as jnp, pseudo_extended as pe
    >>> def log_density(x):
    ...     return -0.5 * jnp.sum(x**2)
    >>> run = pe.start(log_density, jnp.zeros(1), method=pe.Plain(pe.HMC(2)), draws=200, progress=False)
    >>> run.pause()                        # until run.unpause(); run.inspect() gives the draws so far
    >>> run.unpause()
    >>> run.wait().num_draws
    200
    """
    if "pilots" in options:
        raise TypeError("pe.start has no argument pilots; pe.sample has, and waits for all of them.")
    return Run(_job(target, init, **options))


@in_double_precision
def _job(target: Any, init: Any, **options: Unpack[Options]) -> Job:
    """Everything checked, and the store created, or opened, and locked."""
    check_not_traced("pe.sample")
    refuse_other_names({name: value for name, value in options.items() if name not in Options.__annotations__})
    target = model_of_context() if target is None else target
    target, init = as_target(target, init)
    method = check_method(options.get("method"), target)
    rule = check_rule(options.get("stop"), options.get("target_ess"))
    warmup = options.get("warmup")
    until_good = isinstance(method, AbstractPreparedMethod) and method.runs_until_good
    if warmup is None and not until_good:
        warmup = 1000
    draws, rule = check_draws(
        options.get("draws"),
        warmup,
        options.get("chains", 4),
        options.get("thin", 1),
        seed_from(options.get("seed")),
        rule,
        has_limit=options.get("time_limit") is not None,
        until_good=until_good,
        max_evaluations=options.get("max_evaluations"),
    )
    schedule = check_schedule(**{name: options[name] for name in ScheduleOptions.__annotations__ if name in options})
    store, resume = options.get("store"), checks.choice("resume", options.get("resume", False), (True, False))
    if resume and store is None:
        raise ValueError("resume=True must come with store=, the directory of the run to go on with; got None.")
    method.check(target)
    check_room(target, method, draws, schedule.chunk)
    if resume and has_manifest(store_path(store)):
        given = {name for name in ("draws", "warmup", "seed", "target_ess", "stop") if options.get(name) is not None}
        carried: Any = {name: options[name] for name in ScheduleOptions.__annotations__ if name in options}
        return reopened(store_path(store), target, method, partial(as_asked, draws, given), carried, rule=rule)
    doubts = check_densities(target, method)
    opened = None if store is None else Store.create(store)
    return Job(target, method, draws, schedule, opened, rule, init, tuple(doubts))
