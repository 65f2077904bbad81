"""The journey of pseudo-samples between base and target: their temperatures, draw by draw."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pseudo_extended import checks
from pseudo_extended.results.plots.given import check_result
from pseudo_extended.results.plots.style import INK, PAGE, SOFT, colour, line, single, styled
from pseudo_extended.results.travel import travel

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

WINDOW = 120
"""Draws that are shown unless the user says otherwise: more lines than that cannot be told apart."""
TICKS = (0.0, 0.01, 0.1, 0.3, 0.6, 1.0)


@styled
def plot_journey(
    result: "Result", *, chain: int = 0, draws: tuple[int, int] | None = None, highlighted: int = 2, ax: Any = None
) -> Any:
    """Draw the inverse temperature β of every pseudo-sample of a chain against the draw.

    The vertical scale has as much room for every tenth of the visited temperatures. The pseudo-samples that travelled
    most are in colour; a dot marks the one that carried the target.

    Args:
        result: The result of a method with temperatures.
        chain: Which chain.
        draws: The first draw and the one after the last; the last 120 unless given.
        highlighted: How many pseudo-samples are in colour.
        ax: Axes of matplotlib to draw on; new ones unless given.

    Returns:
        The axes.
    """
    check_result("result", result)
    beta = result.statistics.get("beta")
    if beta is None or np.ndim(beta) != 3:
        raise ValueError(
            "journey needs the temperatures of the pseudo-samples, as in a run of the default; "
            f"the statistics of this result are {sorted(result.statistics)}."
        )
    chain = checks.integer("chain", chain, minimum=0, maximum=result.num_chains - 1)
    highlighted = checks.integer("highlighted", highlighted, minimum=0, maximum=beta.shape[2])
    first, last = _window(draws, beta.shape[1])
    ax = single(ax, PAGE, 2.4)
    place, inside = _ranks(beta), beta[chain, first:last]
    height = place(inside)
    when = np.arange(first, last)
    moved = np.argsort(-np.nansum(np.abs(np.diff(height, axis=0)), axis=0))
    for i in moved[highlighted:]:
        ax.plot(when, height[:, i], color=SOFT, linewidth=0.5, alpha=0.5)
    for number, i in enumerate(moved[:highlighted]):
        ax.plot(when, height[:, i], color=colour(number), linestyle=line(number), linewidth=1.2)
    carrier = result.statistics.get("carrier")
    if carrier is not None:
        carried = carrier[chain, first:last]
        for number, i in enumerate(moved[:highlighted]):
            at_target = np.flatnonzero(carried == i)
            ax.scatter(when[at_target], height[at_target, i], s=7, color=colour(number), zorder=3, linewidths=0)
    ticks = [tick for tick in TICKS if np.nanmin(beta) <= tick <= np.nanmax(beta)]
    kept = [k for k, tick in enumerate(ticks) if k == 0 or place(np.array(tick)) - place(np.array(ticks[k - 1])) > 0.03]
    ax.set_yticks(place(np.array(ticks))[kept], [f"{ticks[k]:g}" for k in kept])
    ax.set(xlabel="draw", ylabel="inverse temperature β", xlim=(first, max(last - 1, first + 1)), ylim=(-0.03, 1.04))
    found = travel(result.statistics)
    trips = "" if found is None else f": {found.round_trips[chain]} round trips in {beta.shape[1]} draws"
    ax.set_title(f"chain {chain}{trips}", color=INK)
    return ax


def _window(draws: Any, num_draws: int) -> tuple[int, int]:
    if draws is None:
        return max(num_draws - WINDOW, 0), num_draws
    if not isinstance(draws, (tuple, list)) or len(draws) != 2:
        raise TypeError(
            f"draws must be a pair, the first draw and the one after the last; got {checks.describe(draws)}."
        )
    first = checks.integer("the first of draws", draws[0], minimum=0, maximum=num_draws - 1)
    return first, checks.integer("the second of draws", draws[1], minimum=first + 1, maximum=num_draws)


def _ranks(beta: np.ndarray) -> Any:
    """A scale on which the visited temperatures below the target's are spread evenly."""
    ordered = np.sort(beta[beta < np.nanmax(beta)], axis=None)
    if not ordered.size:
        return lambda values: np.ones(np.shape(values))
    grid = np.unique(np.quantile(ordered, np.linspace(0, 1, 200)))
    upto = np.searchsorted(ordered, grid, side="right") / ordered.size
    ends = np.append(grid, np.nanmax(beta)), np.append(0.97 * upto, 1.0)
    return lambda values: np.interp(values, *ends)
