"""The modes of a result: their masses with errors, as all chains together and each alone tell them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pseudo_extended import checks
from pseudo_extended.results.modes import Modes
from pseudo_extended.results.plots.given import check_result
from pseudo_extended.results.plots.style import COLUMN, INK, SOFT, colour, single, styled

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

MOST = 20
BELOW = 0.26
"""How far the marks of chains are below the mass of a mode, and those of Laplace and of the pilot above it."""


@styled
def plot_modes(result: "Result", *, modes: Any = None, ax: Any = None) -> Any:
    """Draw the mass of each mode with two standard errors, and beside it what each chain, Laplace and the pilot say.

    Chains that disagree lie apart. The pilot's mark is the share of its ascents that ended in the mode, which tells
    how easily the mode is found, and not how heavy it is.

    Args:
        result: The result.
        modes: What `result.modes()` returned, if it was called with arguments of your own.
        ax: Axes of matplotlib to draw on; new ones unless given.

    Returns:
        The axes.
    """
    check_result("result", result)
    found = result.modes() if modes is None else checks.instance("modes", modes, Modes, "what result.modes() returns")
    count = min(len(found), MOST)
    ax = single(ax, COLUMN, 0.8 + 0.34 * count)
    place = np.arange(count)
    for chain in range(found.share.shape[1]):
        label = "each chain" if chain == 0 else None
        ax.plot(found.share[:count, chain], place + BELOW, "|", color=SOFT, markersize=6, label=label)
    if len(found) > 1 and np.any(np.isfinite(found.laplace)):
        above = place - BELOW
        ax.plot(found.laplace[:count], above, "D", color=INK, fillstyle="none", markersize=3.5, label="Laplace")
    pilot = getattr(found, "pilot", None)
    if pilot is not None and np.sum(pilot.hits):
        share = pilot.hits[:count] / np.sum(pilot.hits)
        ax.plot(share, place - BELOW, "x", color=INK, markersize=3.5, label="ascents of the pilot")
    error = 2 * np.nan_to_num(found.mass.standard_error[:count])
    for k in range(count):
        ax.errorbar(found.mass.value[k], k, xerr=error[k], fmt="o", color=colour(k), markersize=4, capsize=2, zorder=3)
        ax.annotate(
            f"{found.mass.value[k]:.3f} ± {found.mass.standard_error[k]:.3f}",
            (1.02, k),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=7,
        )
    ax.set_yticks(place, [f"mode {k}" for k in place])
    ax.set(xlabel="probability", xlim=(0, min(ax.get_xlim()[1], 1.03)), ylim=(count - 0.4, -0.6))
    if len(found) > count:
        ax.set_title(f"the heaviest {count} of {len(found)} modes")
    ax.get_figure().legend(*ax.get_legend_handles_labels(), loc="outside upper left", ncols=3, handletextpad=0.3)
    return ax
