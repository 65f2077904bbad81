"""A cell: one run of one method on one problem, which is the unit of work, of resuming and of the records."""

import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pseudo_extended as pe
from pseudo_extended.problems.files import VARIABLE
from pseudo_extended.run.control import Running
from pseudo_extended.run.outcome import NoDrawsError
from pseudo_extended.run.sample import sample
from pseudo_extended_reproduction.benches import bench_of
from pseudo_extended_reproduction.setups import setup_of


class Cell(NamedTuple):
    """What is run; two equal cells give the same numbers beside whatever they run, on the same kind of processor.

    XLA and BLAS compile and choose their loops for the processor they find, and chains amplify the last bit.
    """

    problem: str
    method: str
    run: int
    """Its seed; for the regressions also which data are held out."""
    draws: int
    keep: int = 0
    """Draws to keep for a picture, equally spaced."""


class Outcome(NamedTuple):
    """What came of a cell."""

    record: dict[str, Any]
    """Numbers, for the ledger."""
    kept: np.ndarray | None
    """Draws (draw quantity), for pictures."""


class StoppedError(Exception):
    """A cell was asked to stop before its end; it has no outcome."""


def run_cell(cell: Cell, watch: Callable[[Cell, float], bool] | None = None, data: str | None = None) -> Outcome:
    """Sample, and score the result; `watch` is told now and then how much is done, and says whether to stop.

    `data` names the directory of the data files, for a worker of a cluster, which does not share our environment.
    """
    if data is not None:
        os.environ[VARIABLE] = data
    bench = bench_of(cell.problem, cell.run)
    setup = setup_of(cell.method, cell.problem, bench, cell.draws)

    def callback(running: Running) -> bool:
        return watch is not None and watch(cell, running.status.done / running.status.total)

    began = time.perf_counter()
    try:
        result = sample(
            bench.target if setup.target is None else setup.target,
            bench.start if setup.start is None else setup.start,
            method=setup.method,
            draws=setup.draws,
            warmup=setup.warmup,
            chains=setup.chains,
            cores=1,
            thin=setup.thin,
            seed=cell.run,
            progress=False,
            callback=callback,
        )
    except NoDrawsError as error:
        raise StoppedError(f"{cell} was stopped: {error}") from None
    if result.stopped is not None:
        raise StoppedError(f"{cell} was stopped before its last draw ({result.stopped}).")
    if setup.reweigh is not None:
        result = setup.reweigh(result)
    evaluations = result.statistics["num_evaluations"]
    record = {
        **cell._asdict(),
        "description": result.method,
        "scores": {name: float(score) for name, score in bench.score(result).items()},
        "evaluations": int(np.sum(evaluations)),
        "warmup": setup.warmup * setup.thin,
        "seconds": round(sum(result.seconds.values()) - result.seconds["compile"], 3),
        "compile_seconds": round(result.seconds["compile"], 2),
        "wall_seconds": round(time.perf_counter() - began, 2),
        "notes": [*result.notes],
        "versions": {"pseudo-extended": pe.__version__, "jax": version("jax")},
        "processor": _processor(),
        "day": time.strftime("%Y-%m-%d"),
    }
    kept = None
    if cell.keep:
        drawn = bench.picture(result)
        kept = drawn[np.linspace(0, len(drawn) - 1, min(cell.keep, len(drawn))).astype(int)].astype(np.float32)
    return Outcome(record, kept)


def _processor() -> str:
    """What the numbers may depend on, in the words of its maker where the system tells."""
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
