"""`simulation_based_calibration`: many simulations of a model, side by side and resumable, and what their ranks say."""

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import pandas as pd
from jaxtyping import Array, PyTree

from pseudo_extended import checks
from pseudo_extended.calibration.simulation import Model, Quantity, simulate
from pseudo_extended.calibration.table import Calibration
from pseudo_extended.memory import check_fits
from pseudo_extended.run.cluster import check_cluster
from pseudo_extended.run.progress import reporter

FORMAT = 1
BYTES_PER_SIMULATION = 1000
"""Of what is kept of each: its ranks, by name."""


def simulation_based_calibration(
    sample_prior: Callable[[Any], PyTree],
    sample_data: Callable[[Any, PyTree], PyTree],
    log_prior: Callable[[PyTree], Array],
    log_likelihood: Callable[[PyTree, PyTree], Array],
    *,
    bounds: Any = None,
    quantities: Mapping[str, Quantity] | None = None,
    simulations: int = 100,
    num_points: int = 63,
    seed: int = 0,
    jobs: int = 1,
    cluster: Any = None,
    store: str | Path | None = None,
    progress: bool = True,
    **options: Any,
) -> Calibration:
    """Check a sampler on a model: parameters from the prior must be typical of their own posteriors.

    Parameters are drawn from the prior and data from the parameters, and the posterior of the data is sampled. If the
    sampler and the densities are right, the rank of the true value among posterior draws is uniform, for every
    quantity (Talts et al. 2018). Beside every coordinate the log likelihood is ranked, which sees errors that no
    coordinate shows (Modrák et al. 2023); add the indicator of a mode for a model that has some.

    Args:
        sample_prior: A function of a random key that returns a position.
        sample_data: A function of a random key and a position that returns data, arrays of shapes that never change.
        log_prior: The log density of a position.
        log_likelihood: The log density of the data, a function of a position and the data.
        bounds: Bounds of parameters, as for `pe.Target`.
        quantities: More quantities to rank: functions of a position and the data, by name.
        simulations: How many; 100 see an error of a posterior's mean of a third of its width.
        num_points: Posterior draws that a true value is ranked among; a run should have more effective draws.
        seed: It fixes every simulation; more simulations leave the first ones as they are.
        jobs: Simulations at the same time, in threads.
        cluster: A `dask.distributed.Client`, over whose workers they are spread instead.
        store: A file of JSON lines, to which each simulation is written as it ends; a second call goes on with it.
        progress: Whether to show progress on stderr.
        options: What `pe.sample` takes, such as `draws` and `method`.

    >>> import jax, jax.numpy as jnp, pseudo_extended as pe
    >>> calibration = pe.simulation_based_calibration(
    ...     lambda key: jax.random.normal(key, (1,)),
    ...     lambda key, x: x + jax.random.normal(key, (3,)),
    ...     lambda x: -0.5 * jnp.sum(x**2),
    ...     lambda x, y: -0.5 * jnp.sum((y - x) ** 2),
    ...     simulations=3, method=pe.Plain(pe.HMC(4)), draws=100, warmup=100, progress=False,
    ... )
    >>> calibration.ranks.shape, calibration.num_points
    ((3, 2), 63)
    """
    if quantities is not None and not isinstance(quantities, Mapping):
        raise TypeError(f"quantities must map names to functions; got {checks.describe(quantities)}.")
    functions = {
        "sample_prior": sample_prior, "sample_data": sample_data, "log_prior": log_prior,
        "log_likelihood": log_likelihood, **{f"quantities[{name!r}]": f for name, f in (quantities or {}).items()},
    }  # fmt: skip
    for name, function in functions.items():
        checks.function(name, function)
    simulations = checks.integer("simulations", simulations, minimum=1)
    num_points = checks.integer("num_points", num_points, minimum=1)
    check_fits("simulations", simulations, BYTES_PER_SIMULATION * simulations)
    seed, jobs = checks.integer("seed", seed, minimum=0), checks.integer("jobs", jobs, minimum=1)
    client = check_cluster(cluster)
    model = Model(sample_prior, sample_data, log_prior, log_likelihood, bounds, dict(quantities or {}))
    if not (store is None or (isinstance(store, (str, Path)) and str(store) and "\0" not in str(store))):
        raise TypeError(f"store must be the path of a file, or None; got {checks.describe(store)}.")
    path = None if store is None else Path(store)
    plan = {"format": FORMAT, "seed": seed, "num_points": num_points, "quantities": sorted(model.quantities),
            "options": {name: repr(value) for name, value in sorted(options.items())}}  # fmt: skip
    rows = _read(path, plan)
    missing = [number for number in range(simulations) if number not in rows]
    report = reporter(progress)
    try:
        for row in _run(model, missing, seed, num_points, options, jobs, client):
            rows[row["simulation"]] = row
            _append(path, row)
            report.say(f"{len(rows)} of {simulations} simulations")
    finally:
        report.close()
    used = [rows[number] for number in range(simulations)]
    index = pd.RangeIndex(simulations, name="simulation")
    runs = pd.DataFrame({name: [row[name] for row in used] for name in ("ess", "warnings")}, index)
    return Calibration(pd.DataFrame([row["ranks"] for row in used], index), num_points, runs)


def _run(
    model: Model, numbers: list[int], seed: int, num_points: int, options: Mapping[str, Any], jobs: int, client: Any
) -> Iterator[dict[str, Any]]:
    """The simulations as they end."""
    if client is not None:
        from distributed import as_completed as as_they_end

        tasks = client.map(lambda number: simulate(model, number, seed, num_points, options), numbers, pure=False)
        for task in as_they_end(tasks):
            yield task.result()
        return
    with ThreadPoolExecutor(jobs) as pool:
        futures: list[Future[dict[str, Any]]] = [
            pool.submit(simulate, model, number, seed, num_points, options) for number in numbers
        ]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:  # after an error or Ctrl-C, those that have not begun never do
            for future in futures:
                future.cancel()


def _read(path: Path | None, plan: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """The simulations that a file has; a last line that was cut off by a crash is dropped, and made again."""
    if path is None:
        return {}
    try:
        whole = path.read_text() if path.exists() else ""
        lines = whole[: whole.rfind("\n") + 1].splitlines()
        stored, *rows = [json.loads(line) for line in lines] or [plan]
        found = {row["simulation"]: row for row in rows if len(row["ranks"]) > 0}
        differ = [name for name, value in plan.items() if stored.get(name) != value]
    except OSError as error:
        raise ValueError(
            f"store must be a file that can be read and written; {str(path)!r}: {error.strerror}."
        ) from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ValueError(
            f"store must be a file that a calibration wrote, or a new one; {str(path)!r} is none."
        ) from None
    if differ:
        raise ValueError(
            f"store must be a file of the same calibration, or a new one; {str(path)!r} differs in {', '.join(differ)}."
        )
    if not lines or not whole.endswith("\n"):
        _write(path, "".join(line + "\n" for line in lines) or json.dumps(plan) + "\n")
    return found


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise ValueError(
            f"store must be a file that can be read and written; {str(path)!r}: {error.strerror}."
        ) from None


def _unusable(path: Path, error: OSError) -> ValueError:
    return ValueError(f"store must be a file that can be read and written; {str(path)!r}: {error.strerror}.")


def _append(path: Path | None, row: dict[str, Any]) -> None:
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
