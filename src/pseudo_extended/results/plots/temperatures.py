"""Occupancy and acceptance by temperature."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pseudo_extended.results.plots.given import check_result
from pseudo_extended.results.plots.style import FILL, INK, SOFT, colour, single, styled

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result


@styled
def plot_temperatures(result: "Result", *, ax: Any = None) -> Any:
    """Draw how often each temperature was visited, as bars, and the acceptance rates there, as lines.

    A tenth of the visits is in each bar but the last, which is the target itself. Local moves should be accepted at the
    rate of the kernel everywhere; refreshments from the base, only near it.

    Args:
        result: The result of the default method.
        ax: Axes of matplotlib to draw on; new ones unless given.

    Returns:
        The axes.
    """
    check_result("result", result)
    found = result.travel
    if found is None:
        raise ValueError(
            "temperatures needs a method whose pseudo-samples travel along a path, such as the default; "
            f"got {result.method}."
        )
    table = found.by_temperature
    ax = single(ax)
    place = np.arange(len(table))
    ax.bar(place, table["share"], width=0.8, color=FILL, label="share of visits")
    ax.plot(place, table["move_acceptance"], "o-", color=INK, markersize=3, label="local moves accepted")
    ax.plot(place, table["refresh_acceptance"], "s--", color=colour(0), markersize=3, label="base draws accepted")
    ax.axvline(len(table) - 1.5, color=SOFT, linewidth=0.6, linestyle=":")
    names = [f"{beta:.1g}" if beta < 0.095 else f"{beta:.2g}" for beta in table["beta"].iloc[:-1]]
    shown = [*range(0, len(names) - 1, 2), len(names)]  # every second one, or they would overlap in a column
    ax.set_xticks(place[shown], [[*names, "target"][k] for k in shown])
    ax.set(xlabel="inverse temperature β", ylabel="share or rate", ylim=(0, 1.04))
    ax.get_figure().legend(*ax.get_legend_handles_labels(), loc="outside upper left", ncols=2)
    return ax
