"""Traces: the value of each coordinate draw by draw, chain by chain, with the mode in colour."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pseudo_extended.results.modes import Modes
from pseudo_extended.results.plots.densities import Names, limits, modes_for, shown
from pseudo_extended.results.plots.given import check_result
from pseudo_extended.results.plots.style import (
    COLUMN,
    INK,
    NUM_COLOURS,
    PAGE,
    SOFT,
    colour,
    panels,
    percent,
    plain,
    styled,
)
from pseudo_extended.results.selection import select

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

MOST = 5
"""Coordinates that are shown if the user chose none."""
HEIGHT = 1.15
"""Inches of a row."""
MOST_CHAINS = 8


@styled
def plot_trace(
    result: "Result",
    var_names: Names = None,
    *,
    filter_vars: str | None = None,
    truths: Any = None,
    modes: Any = None,
    seed: int = 0,
    figure: Any = None,
) -> Any:
    """Draw one point of each draw, chosen by its weights, against the number of the draw: a column for each chain.

    A chain that stays in one colour has not moved between modes.

    Args:
        result: The result.
        var_names: Parameters or coordinates; unless given, up to five in which the modes differ most.
        filter_vars: "like" or "regex", as in ArviZ.
        truths: True values: a mapping from names, or a sequence in the order of what is shown.
        modes: What `result.modes()` returned, to colour by; None looks for them, False does not.
        seed: Of the choice of a point of each draw.
        figure: A figure of matplotlib to draw into; a new one unless given.

    Returns:
        The figure.
    """
    check_result("result", result)
    found = modes_for(result, modes)
    data, true = shown(result, var_names, filter_vars, False if found is None else found, MOST, truths)
    chosen = [int(select(result, label)[0]) for label in data.labels]
    index = result.resample_index(seed)[..., None]
    x = np.take_along_axis(result.coordinates, index[..., None], axis=2)[:, :, 0][..., chosen]
    held = np.zeros(x.shape[:2], int) if found is None else np.take_along_axis(found.labels, index, axis=2)[..., 0]
    columns = min(result.num_chains, MOST_CHAINS)
    width = COLUMN if columns == 1 else PAGE
    rows = len(chosen)
    figure, axes = panels(figure, rows, columns, width, HEIGHT * rows + 0.3, sharex=True, sharey="row")
    num_modes = 1 if found is None else len(found)
    for row, ax_row in enumerate(axes):
        for chain, ax in enumerate(ax_row):
            _points(ax, x[chain, :, row], held[chain], num_modes)
            if np.isfinite(true[row]):
                ax.axhline(true[row], color=INK, linestyle=(0, (2, 2)), linewidth=0.9)
        ax_row[0].set_ylabel(plain(data.labels[row], HEIGHT))
        ax_row[0].set_ylim(limits(data.values[:, row], data.weights))
    for chain, ax in enumerate(axes[0]):
        ax.set_title(f"chain {chain}")
    for ax in axes[-1]:
        ax.set_xlabel("draw")
        ax.locator_params(axis="x", nbins=3)
    if found is not None and num_modes > 1:
        _legend(figure, axes[0, 0], found)
    return figure


def _legend(figure: Any, ax: Any, modes: Modes) -> None:
    """Colours and masses of the modes."""
    handles = [
        ax.plot([], [], "o", color=colour(k), markersize=3, label=f"mode {k}: {percent(modes.mass.value[k])}")[0]
        for k in range(min(len(modes), NUM_COLOURS))
    ]
    rest = percent(modes.mass.value[NUM_COLOURS:].sum())
    if len(modes) > NUM_COLOURS:
        label = f"{len(modes) - NUM_COLOURS} more: {rest}"
        handles += ax.plot([], [], "o", color=colour(NUM_COLOURS), markersize=3, label=label)
    columns = min(len(handles), 4 if len(figure.axes) > 1 else 2)
    figure.legend(handles=handles, loc="outside upper left", ncols=columns, handletextpad=0.2)


def _points(ax: Any, values: Any, held: Any, num_modes: int) -> None:
    size = float(np.clip(2500 / len(values), 0.8, 6))
    for k in [-1, *range(num_modes)]:
        here = np.flatnonzero(held == k)
        if len(here):
            shade = SOFT if k < 0 else colour(k)
            ax.scatter(here, values[here], s=size, color=shade, linewidths=0, rasterized=True)
