"""A result that was kept in memory, written to a store after the fact."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax
import numpy as np

from pseudo_extended.precision import in_double_precision
from pseudo_extended.results.doubts import evidence_for_store
from pseudo_extended.results.result import Result
from pseudo_extended.run.program import Record
from pseudo_extended.run.stored import Stored, columns_for, values_of
from pseudo_extended.store import (
    Draws,
    Manifest,
    Prepared,
    Store,
    StoreWriteError,
    UnwritableError,
    encode,
    fingerprint_target,
    fingerprint_versions,
    machine,
)
from pseudo_extended.target.labels import made_up_axes


@in_double_precision
def save(result: Result, path: str | Path) -> Path:
    """Write a result to a new store; see `Result.save`."""
    store = Store.create(path)
    try:
        _describe(result, store)
        recorder = Stored(store, result.target, num_warmup=0)
        for chain in range(result.num_chains):
            record = _record(result, slice(chain, chain + 1), slice(None))
            recorder.writer.append(chain, values_of(record))
        recorder.writer.publish(durable=True)
        recorder.writer.disk.wait()
        stopped = None if result.stopped is None else str(result.stopped)
        store.write(num_draws=result.num_draws, stopped=stopped, evidence=evidence_for_store(result))
    except UnwritableError as error:
        raise StoreWriteError(
            f"store {str(store.root)!r} could not be written: {error.strerror}. The result is still in memory: save it "
            "elsewhere, and delete that directory."
        ) from error
    finally:
        store.close()
    return store.root


def _describe(result: Result, store: Store) -> None:
    """The manifest: all that `pe.load` asks for, and no method, so that nothing goes on from it."""
    target = result.target
    arrays: dict[str, np.ndarray] = {}
    report = encode(result.pilot, arrays, "report")
    store.write_arrays("learned.npz", arrays)
    layout = columns_for(target, result.num_chains, 1, _record(result, 0, 0), _axes(result))
    counted = result.evaluations
    store.begin(
        Manifest(
            run=store.run,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            machine=machine(),
            fingerprint=fingerprint_target(target),
            versions={**fingerprint_versions()},
            values=[],
            plan=Draws(result.num_draws, 0, result.num_chains, 1, result.seed, None),
            method=None,
            functions=None,
            description=result.method,
            example=encode(jax.tree.unflatten(target.treedef, list(target.example)), {}, "example"),
            position=tuple((parameter.name, parameter.shape) for parameter in target.parameters),
            doubts=tuple(str(doubt) for doubt in result.doubts),
            prepared=Prepared(
                None,
                result.method,
                tuple(str(note) for note in result.notes),
                layout,
                report,
                None if counted is None else counted.pilot,
            ),
            warmup_evaluations=0 if counted is None else counted.warmup,
        )
    )


def _axes(result: Result) -> dict[str, tuple[str, ...]]:
    """Names of the axes of each statistic, as the result has them or made up."""
    named = dict(result.statistic_axes)
    for name, values in result.statistics.items():
        named.setdefault(name, made_up_axes(name, values.ndim - 2))
    return named


def _record(result: Result, chain: int | slice, draw: int | slice) -> Record:
    """Some draws of the result, as the run's program would have given them."""
    importance: Any = None if result.log_importance is None else np.asarray(result.log_importance[chain, draw])
    statistics: dict[str, Any] = {name: np.asarray(values[chain, draw]) for name, values in result.statistics.items()}
    x: Any = result.unconstrained[chain, draw]
    log_weight: Any = result.log_weights[chain, draw]
    return Record(x, log_weight, statistics, importance)
