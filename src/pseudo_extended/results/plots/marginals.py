"""The density of each coordinate, mode by mode, with intervals of highest density that may be several."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pseudo_extended import checks
from pseudo_extended.results.intervals import highest_density_intervals
from pseudo_extended.results.plots.densities import Names, Shown, curve, shown
from pseudo_extended.results.plots.given import check_result
from pseudo_extended.results.plots.style import (
    COLUMN,
    FILL,
    INK,
    NUM_COLOURS,
    PAGE,
    colour,
    grid_shape,
    hide_unused,
    line,
    panels,
    percent,
    plain,
    styled,
)

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

MOST = 9
"""Coordinates that are shown if the user chose none."""


@styled
def plot_marginals(
    result: "Result",
    var_names: Names = None,
    *,
    filter_vars: str | None = None,
    truths: Any = None,
    hdi_prob: float = 0.94,
    modes: Any = None,
    figure: Any = None,
) -> Any:
    """Draw the density of each coordinate, with the part of each mode in its colour.

    The bars below are the intervals of highest density: several where the density has several modes.

    Args:
        result: The result.
        var_names: Parameters or coordinates; unless given, up to nine in which the modes differ most.
        filter_vars: "like" or "regex", as in ArviZ.
        truths: True values: a mapping from names, or a sequence in the order of what is shown.
        hdi_prob: The probability of the intervals of highest density.
        modes: What `result.modes()` returned, to colour by; None looks for them, False does not.
        figure: A figure of matplotlib to draw into; a new one unless given.

    Returns:
        The figure.
    """
    check_result("result", result)
    prob = checks.real("hdi_prob", hdi_prob, low=0, high=1, closed="()")
    data, true = shown(result, var_names, filter_vars, modes, MOST, truths)
    rows, columns = grid_shape(len(data.labels))
    width = COLUMN if columns == 1 else PAGE
    figure, axes = panels(figure, rows, columns, width, 1.65 * rows + 0.25)
    for i, ax in enumerate(axes.ravel()[: len(data.labels)]):
        _density(ax, data, i, prob, true[i])
        ax.set_xlabel(plain(data.labels[i], width / columns))
    hide_unused(axes, len(data.labels))
    if data.num_modes > 1:
        _legend(figure, axes.ravel()[0], data)
    return figure


def _density(ax: Any, data: Shown, i: int, prob: float, truth: float) -> None:
    found = curve(data, i)
    top = found.total.max()
    if data.num_modes > 1:
        for k in range(data.num_modes):
            ax.fill_between(found.grid, found.by_mode[k], color=colour(k), alpha=0.35, linewidth=0)
            if k < NUM_COLOURS:
                ax.plot(found.grid, found.by_mode[k], color=colour(k), linestyle=line(k), linewidth=0.9)
    else:
        ax.fill_between(found.grid, found.total, color=FILL, linewidth=0)
    ax.plot(found.grid, found.total, color=INK, linewidth=0.8)
    for low, high in highest_density_intervals(found.grid, found.total, prob):
        ax.plot([low, high], [-0.06 * top] * 2, color=INK, linewidth=2.5, solid_capstyle="butt")
    if np.isfinite(truth):
        ax.axvline(truth, color=INK, linestyle=(0, (2, 2)), linewidth=0.9)
    ax.set(yticks=[], ylim=(-0.12 * top, 1.08 * top))
    ax.spines["left"].set_visible(False)
    ax.locator_params(axis="x", nbins=5)


def _legend(figure: Any, ax: Any, data: Shown) -> None:
    handles = [
        ax.plot([], [], color=colour(k), linestyle=line(k), label=f"mode {k}: {percent(data.masses[k])}")[0]
        for k in range(min(data.num_modes, NUM_COLOURS))
    ]
    if data.num_modes > NUM_COLOURS:
        rest = percent(data.masses[NUM_COLOURS:].sum())
        handles += ax.plot([], [], color=colour(-1), label=f"{data.num_modes - NUM_COLOURS} more: {rest}")
    figure.legend(handles=handles, loc="outside upper left", ncols=min(len(handles), 4), handlelength=2.4)
