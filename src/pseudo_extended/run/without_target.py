"""A store read without its target: one unweighted point of each draw, as the store shows it to other tools."""

from pathlib import Path
from typing import Any

import numpy as np

from pseudo_extended.precision import in_double_precision
from pseudo_extended.results.result import Result
from pseudo_extended.results.stop_reason import stop_reason
from pseudo_extended.run.stored import NAMES, RESULT_BYTES, statistics_by_name
from pseudo_extended.store import BrokenFileError, Store, StoreError, draws_shown
from pseudo_extended.store.arrays import require_store
from pseudo_extended.target import Target
from pseudo_extended.target.host import HostFunction

NO_TARGET = "the target was not given: these numbers are of one unweighted point of each draw."


class MissingDensity(HostFunction):
    """The density of a target that is not here; it is never evaluated."""

    name = "the density"
    is_differentiable = False
    is_missing = True

    def __call__(self, position: Any) -> Any:
        """A refusal, before anything is compiled."""
        raise StoreError("the density is not known: the store was read without its target; name the target.")

    def compute(self, points: np.ndarray, like: Any, *, gradient: bool) -> np.ndarray:
        """There is nothing to compute with."""
        return self(points)


@in_double_precision
def load_without_target(store: str | Path) -> Result:
    """The draws of a store in the user's space, one point of each draw with weight one, and all statistics.

    Modes and everything else that needs the density are left out; `pe.load(store, target)` has all weighted points.
    """
    opened = Store.open(store)
    manifest, prepared = opened.manifest, opened.prepared
    arrays = opened.arrays
    num_draws, seals, notes = draws_shown(opened)
    if not num_draws:
        raise StoreError(f"store {str(opened.root)!r} has no draws yet: it is in warm-up, or was stopped in it.")
    columns = [column for column in arrays.layout.columns if column.group == "posterior"]
    if not columns:
        raise StoreError(
            f"store {str(opened.root)!r} cannot be read without its target: its draws do not count alike, so it holds "
            "weighted points only; name the target."
        )
    size = arrays.layout.num_chains * num_draws * (arrays.layout.bytes_per_draw("posterior") + 8)
    thin = max(-(-size // RESULT_BYTES), 1)
    skipped = set(NAMES.values()) | {"sample_stats/resampled_particle"}
    kept = [c for c in arrays.layout.columns if c.group == "sample_stats" and c.path not in skipped]
    try:
        values = {
            c.path: arrays.read_draws(c, num_draws, thin, (num_draws - 1) % thin, seals) for c in (*columns, *kept)
        }
    except BrokenFileError as error:
        raise StoreError(f"{error}: pe.resume makes the draws again.") from None
    shape = values[columns[0].path].shape[:2]
    return Result(
        target=_stand_in(opened, columns),
        unconstrained=np.concatenate([values[c.path].reshape(*shape, 1, -1) for c in columns], axis=-1),
        log_weights=np.zeros((*shape, 1)),
        statistics=statistics_by_name({c.path: values[c.path] for c in kept}, arrays.layout),
        statistic_axes=statistics_by_name({c.path: c.dims for c in kept}, arrays.layout),
        method=prepared.description,
        seed=manifest.plan.seed,
        seconds={},
        stopped=stop_reason(manifest.stopped),
        doubts=(*manifest.doubts, NO_TARGET),
        notes=(*prepared.notes, *manifest.notes, *notes),
        store=str(opened.root),
        thinned=thin,
    )


def _stand_in(store: Store, columns: list[Any]) -> Target:
    """A target with the names, dims and coords of the output, in its order, and no density."""
    names = [column.name for column in columns]
    return Target(
        MissingDensity(),
        tuple(np.zeros(column.shape) for column in columns),
        names=names,
        dims={column.name: list(column.dims) for column in columns},
        coords=_coords(store, {dim for column in columns for dim in column.dims}),
    )


def _coords(store: Store, dims: set[str]) -> dict[str, Any]:
    """The labels that the store has along the axes of the posterior."""
    group = require_store("zarr").open_group(store.root / "posterior", mode="r")
    labels = {dim: group[dim] for dim in dims if dim in group}
    return {
        dim: [entry.item() if hasattr(entry, "item") else entry for entry in array[:]] for dim, array in labels.items()
    }
