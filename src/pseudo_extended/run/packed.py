"""Records of draws with all their numbers of one type in one array, as the loop over draws writes them.

A record has a dozen arrays, and to put each of them into a buffer of its own takes a kernel in every draw, which has to
be compiled. So the loop writes one row for each type of numbers, and they are taken apart when the loop is over.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class Record(NamedTuple):
    """What is kept of a draw; in a chunk, with a leading axis of its capacity."""

    x: Float[Array, "*batch particle d"]
    log_weight: Float[Array, "*batch particle"]
    statistics: dict[str, Array]
    log_importance: Float[Array, "*batch"] | None


class Packed(eqx.Module):
    """A record, or many with an axis before the last, in one array for each type."""

    rows: dict[str, Array]
    """By type; the last axis has the numbers of a draw."""
    layout: tuple[tuple[str, str, tuple[int, ...]], ...] = eqx.field(static=True)
    """Name, type and shape of each array, in the order in which they lie."""


def packed(record: Record, num_axes: int) -> Packed:
    """The record of a draw, or of as many as there are leading axes, in one row for each type."""
    named: dict[str, Any] = {"x": record.x, "log_weight": record.log_weight}
    named |= {f"statistics/{name}": value for name, value in sorted(record.statistics.items())}
    if record.log_importance is not None:
        named["log_importance"] = record.log_importance
    arrays = {name: jnp.asarray(array) for name, array in named.items()}
    layout = tuple((name, array.dtype.name, array.shape[num_axes:]) for name, array in arrays.items())
    kinds: dict[str, list[Array]] = {}
    for array in arrays.values():
        kinds.setdefault(array.dtype.name, []).append(array.reshape(*array.shape[:num_axes], -1))
    return Packed({kind: jnp.concatenate(parts, axis=-1) for kind, parts in kinds.items()}, layout)


def unpacked(many: Packed) -> Record:
    """The records again, as views of the rows on the host.

    >>> record = Record(jnp.ones((3, 2)), jnp.zeros(3), {"lp": jnp.asarray(2.0), "carrier": jnp.asarray(1)}, None)
    >>> again = unpacked(packed(record, 0))
    >>> again.x.shape, float(again.statistics["lp"]), int(again.statistics["carrier"]), again.log_importance
    ((3, 2), 2.0, 1, None)
    """
    rows, begun = {kind: np.asarray(row) for kind, row in many.rows.items()}, dict.fromkeys(many.rows, 0)
    arrays: dict[str, Any] = {}
    for name, kind, shape in many.layout:
        row, first, size = rows[kind], begun[kind], int(np.prod(shape))
        arrays[name] = row[..., first : first + size].reshape((*row.shape[:-1], *shape))
        begun[kind] = first + size
    statistics = {name.partition("/")[2]: array for name, array in arrays.items() if name.startswith("statistics/")}
    return Record(arrays["x"], arrays["log_weight"], statistics, arrays.get("log_importance"))
