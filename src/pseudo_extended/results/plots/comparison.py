"""Two results or more, coordinate by coordinate."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pseudo_extended import checks
from pseudo_extended.results.intervals import highest_density_intervals
from pseudo_extended.results.plots.densities import Names, curve, limits, shown
from pseudo_extended.results.plots.given import check_result
from pseudo_extended.results.plots.style import (
    COLUMN,
    INK,
    PAGE,
    colour,
    grid_shape,
    hide_unused,
    line,
    panels,
    plain,
    styled,
)

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

MOST = 9


@styled
def plot_comparison(
    results: "Mapping[str, Result]",
    var_names: Names = None,
    *,
    filter_vars: str | None = None,
    truths: Any = None,
    hdi_prob: float = 0.94,
    figure: Any = None,
) -> Any:
    """Draw the densities of the coordinates that results share, over each other, with their intervals below.

    Args:
        results: Names of results, and the results.
        var_names: Parameters or coordinates; unless given, up to nine of those that all results have.
        filter_vars: "like" or "regex", as in ArviZ.
        truths: True values: a mapping from names, or a sequence in the order of what is shown.
        hdi_prob: The probability of the intervals of highest density.
        figure: A figure of matplotlib to draw into; a new one unless given.

    Returns:
        The figure.
    """
    if not isinstance(results, Mapping) or not results:
        raise TypeError(f"results must be a mapping from names to results; got {checks.describe(results)}.")
    for name, result in results.items():
        check_result(f"results[{name!r}]", result)
    prob = checks.real("hdi_prob", hdi_prob, low=0, high=1, closed="()")
    parts = list(results.values())
    if var_names is None:
        shared = [label for label in parts[0].labels if all(label in other.labels for other in parts)]
        if not shared:
            raise ValueError("results must share a coordinate; no label is in all of them.")
        var_names = shared[:MOST]
    data = [shown(part, var_names, filter_vars, False, MOST)[0] for part in parts]
    if len({tuple(each.labels) for each in data}) > 1:
        raise ValueError("var_names must name the same coordinates in all results; they do not.")
    true = shown(parts[0], var_names, filter_vars, False, MOST, truths)[1]
    labels = data[0].labels
    rows, columns = grid_shape(len(labels))
    width = COLUMN if columns == 1 else PAGE
    figure, axes = panels(figure, rows, columns, width, 1.65 * rows + 0.25)
    for i, ax in enumerate(axes.ravel()[: len(labels)]):
        ends = np.array([limits(each.values[:, i], each.weights) for each in data])
        curves = [curve(each, i, (ends[:, 0].min(), ends[:, 1].max())) for each in data]
        top = max(found.total.max() for found in curves)
        for number, found in enumerate(curves):
            ax.plot(found.grid, found.total, color=colour(number), linestyle=line(number))
            for low, high in highest_density_intervals(found.grid, found.total, prob):
                height = -0.06 * top * (number + 1)
                ax.plot([low, high], [height] * 2, color=colour(number), linewidth=2.5, solid_capstyle="butt")
        if np.isfinite(true[i]):
            ax.axvline(true[i], color=INK, linestyle=(0, (2, 2)), linewidth=0.9)
        ax.set(yticks=[], xlabel=plain(labels[i], width / columns), ylim=(-0.06 * top * (len(data) + 1), 1.06 * top))
        ax.spines["left"].set_visible(False)
        ax.locator_params(axis="x", nbins=5)
    hide_unused(axes, len(labels))
    first = axes.ravel()[0]
    handles = [
        first.plot([], [], color=colour(number), linestyle=line(number), label=plain(str(name)))[0]
        for number, name in enumerate(results)
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=min(len(handles), 4), handlelength=2.4)
    return figure
