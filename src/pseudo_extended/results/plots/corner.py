"""The corner plot: every pair of coordinates, with the modes in colour."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pseudo_extended.results.plots.densities import PLANE, Names, Shown, curve, levels, limits, plane, shown
from pseudo_extended.results.plots.given import check_result
from pseudo_extended.results.plots.style import (
    COLUMN,
    FILL,
    INK,
    NUM_COLOURS,
    PAGE,
    SOFT,
    colour,
    line,
    panels,
    percent,
    plain,
    styled,
)

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

MOST = 6
"""Coordinates that are shown if the user chose none."""
NUMBER_SIZE = 0.1
"""Of the circle around the number of a mode, as a share of a panel."""
ONE_SIGMA, TWO_SIGMA = 0.393, 0.865
"""The share of a normal within one and within two standard deviations, in two dimensions."""


@styled
def plot_corner(
    result: "Result",
    var_names: Names = None,
    *,
    filter_vars: str | None = None,
    truths: Any = None,
    modes: Any = None,
    figure: Any = None,
) -> Any:
    """Draw the densities of all pairs of coordinates, with the outline of each mode in its colour and with its number.

    Grey areas hold 39 % and 86 % of the weight, as one and two standard deviations do of a normal.

    Args:
        result: The result.
        var_names: Parameters or coordinates; unless given, up to six in which the modes differ most.
        filter_vars: "like" or "regex", as in ArviZ.
        truths: True values: a mapping from names, or a sequence in the order of what is shown.
        modes: What `result.modes()` returned, to colour by; None looks for them, False does not.
        figure: A figure of matplotlib to draw into; a new one unless given.

    Returns:
        The figure.
    """
    check_result("result", result)
    data, true = shown(result, var_names, filter_vars, modes, MOST, truths)
    size = len(data.labels)
    side = COLUMN if size <= 3 else max(PAGE, 1.15 * size)
    figure, axes = panels(figure, size, size, side, side, gridspec_kw={"wspace": 0.03, "hspace": 0.03})
    spans = [_span(data, i) for i in range(size)]
    for row in range(size):
        for column in range(size):
            ax = axes[row, column]
            if column > row:
                ax.set_visible(False)
            elif column == row:
                _diagonal(ax, data, row, spans[row], true[row])
            else:
                _pair(ax, data, column, row, (spans[column], spans[row]), true[[column, row]])
            _label(ax, data, row, column, side / size)
    if data.num_modes > 1:
        _legend(figure, axes, data)
    return figure


def _span(data: Shown, i: int) -> tuple[float, float]:
    first, last = limits(data.values[:, i], data.weights)
    return max(first, data.bounds[i][0]), min(last, data.bounds[i][1])


def _diagonal(ax: Any, data: Shown, i: int, span: tuple[float, float], truth: float) -> None:
    found = curve(data, i, span)
    ax.fill_between(found.grid, found.total, color=FILL, linewidth=0)
    ax.plot(found.grid, found.total, color=INK, linewidth=0.8)
    if data.num_modes > 1:
        for k in range(min(data.num_modes, NUM_COLOURS)):
            ax.plot(found.grid, found.by_mode[k], color=colour(k), linestyle=line(k), linewidth=1.0)
    if np.isfinite(truth):
        ax.axvline(truth, color=INK, linestyle=(0, (2, 2)), linewidth=0.9)
    ax.set(xlim=span, yticks=[])
    ax.set_ylim(bottom=0)
    ax.spines["left"].set_visible(False)


def _pair(ax: Any, data: Shown, i: int, j: int, spans: Any, truth: Any) -> None:
    centres = [span[0] + (np.arange(PLANE) + 0.5) * (span[1] - span[0]) / PLANE for span in spans]
    parts = [plane(data, i, j, k, spans) for k in range(data.num_modes)]
    total = np.sum(parts, axis=0)
    heights = levels(total, (ONE_SIGMA, TWO_SIGMA))
    if heights:
        ax.contourf(*centres, total, [*heights, total.max() * 1.001], colors=[FILL, SOFT][-len(heights) :], alpha=0.75)
    numbered: list[Any] = []
    for k in range(min(data.num_modes, NUM_COLOURS) if data.num_modes > 1 else 0):
        outline = levels(parts[k], (TWO_SIGMA,))
        if outline:
            ax.contour(*centres, parts[k], outline, colors=[colour(k)], linestyles=[line(k)], linewidths=1.1)
            here = data.modes == k
            middle = [np.average(data.values[here, part], weights=data.weights[here]) for part in (i, j)]
            width = [np.std(data.values[here, part]) for part in (i, j)]
            numbered.append(_number(ax, middle, width, k, spans, numbered))
    if data.num_modes == 1 and heights:
        ax.contour(*centres, total, heights, colors=[INK], linewidths=0.6)
    for value, draw in zip(truth, (ax.axvline, ax.axhline), strict=True):
        if np.isfinite(value):
            draw(value, color=INK, linestyle=(0, (2, 2)), linewidth=0.9)
    ax.set(xlim=spans[0], ylim=spans[1])


def _number(ax: Any, middle: Any, width: Any, k: int, spans: Any, others: list[Any]) -> Any:
    """The number of a mode, at its mean, or beside the mode if that is small and beside the numbers that are there.

    Returns where it went, as shares of the axes.
    """
    first, last = np.array(spans, float).T
    place = (np.array(middle) - first) / (last - first)
    if np.all(2 * np.array(width) / (last - first) < NUMBER_SIZE):
        place = place + NUMBER_SIZE * np.where(place > 1 - NUMBER_SIZE, -1, 1)
    inside = 0.7 * NUMBER_SIZE, 1 - 0.7 * NUMBER_SIZE
    place = np.clip(place, *inside)
    for step in ([NUMBER_SIZE, 0.0], [0.0, -NUMBER_SIZE], [-NUMBER_SIZE, 0.0], [0.0, NUMBER_SIZE]):
        while np.all(np.abs(place - 0.5) <= 0.5) and any(np.hypot(*(place - other)) < NUMBER_SIZE for other in others):
            place = place + np.array(step)
        place = np.clip(place, *inside)
    box = {"boxstyle": "circle,pad=0.15", "facecolor": "white", "edgecolor": colour(k), "linewidth": 0.8}
    where = {"ha": "center", "va": "center", "transform": ax.transAxes}
    ax.text(*place, str(k), fontsize=5.5, color="black", bbox=box, clip_on=True, **where)
    return place


def _label(ax: Any, data: Shown, row: int, column: int, side: float) -> None:
    ax.locator_params(nbins=4)
    ax.tick_params(axis="x", labelrotation=0)
    if row == len(data.labels) - 1:
        ax.set_xlabel(plain(data.labels[column], side))
    else:
        ax.tick_params(labelbottom=False)
    if column == 0 and row > 0:
        ax.set_ylabel(plain(data.labels[row], side))
    elif column != row:
        ax.tick_params(labelleft=False)


def _legend(figure: Any, axes: Any, data: Shown) -> None:
    """Draw the legend in the empty corner: number, colour, line and mass of each mode."""
    handles = [
        axes[0, 0].plot([], [], color=colour(k), linestyle=line(k), label=f"mode {k}: {percent(data.masses[k])}")[0]
        for k in range(min(data.num_modes, NUM_COLOURS))
    ]
    rest = data.num_modes - len(handles)
    if rest > 0:
        mass = percent(data.masses[NUM_COLOURS:].sum())
        handles += axes[0, 0].plot([], [], color=FILL, linewidth=4, label=f"{rest} more: {mass}")
    title = None if not data.omitted else f"{len(data.labels)} of {len(data.labels) + data.omitted} coordinates"
    spacing = 0.5 if len(handles) < 6 else 0.2  # of the letters' size; more would reach the diagonal
    legend = figure.legend(handles=handles, title=title, loc="upper right", handlelength=2.4, labelspacing=spacing)
    legend.set_in_layout(False)  # there is room above the diagonal
