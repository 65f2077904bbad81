"""The evidence as it settles, draw by draw."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pseudo_extended import checks
from pseudo_extended.results.evidence import log_evidence
from pseudo_extended.results.plots.given import check_result
from pseudo_extended.results.plots.style import FILL, INK, SOFT, single, styled

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

NUM_PLACES = 40
ROUND_NUMBERS = [step * 10**power for power in range(9) for step in (1, 2, 5)]
"""Of draws, for the ticks: matplotlib's own overlap where the axis has less than a factor of ten."""
MAX_TICKS = 6


@styled
def plot_evidence(result: "Result", *, truth: float | None = None, ax: Any = None) -> Any:
    """Draw log Z from the first draws, against their number: all chains with two standard errors, and each alone.

    Args:
        result: The result of a method that estimates the evidence.
        truth: The true log Z, if it is known.
        ax: Axes of matplotlib to draw on; new ones unless given.

    Returns:
        The axes.
    """
    check_result("result", result)
    final = result.log_evidence  # refuses in a sentence
    top, bottom = (result.statistics[f"evidence_{end}"] for end in ("top", "bottom"))
    num_draws = top.shape[1]
    places = np.unique(np.geomspace(min(20, num_draws), num_draws, NUM_PLACES).astype(int))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = [log_evidence(top[:, :n], bottom[:, :n]) for n in places]
        alone = np.array(
            [[log_evidence(top[[c], :n], bottom[[c], :n]).value for n in places] for c in range(top.shape[0])]
        )
    value, error = (np.array([part[i] for part in found], float) for i in (0, 1))
    ax = single(ax)
    ax.fill_between(places, value - 2 * error, value + 2 * error, color=FILL, linewidth=0, alpha=0.8)
    for number, chain in enumerate(alone):
        ax.plot(places, chain, color=SOFT, linewidth=0.6, label="each chain" if number == 0 else None)
    ax.plot(places, value, color=INK, label="all chains, ± 2 errors")
    if truth is not None:
        ax.axhline(checks.real("truth", truth), color=INK, linestyle=(0, (2, 2)), linewidth=0.9)
    near = np.abs(alone - final.value)
    reach = max(4 * float(np.nanmedian(error)), 1.2 * float(np.nanquantile(near[np.isfinite(near)], 0.9)), 1e-3)
    ax.set(xscale="log", xlabel="draws of each chain", ylabel="log evidence")
    ticks = [tick for tick in ROUND_NUMBERS if places[0] <= tick <= places[-1]]
    ticks = ticks[(len(ticks) - 1) % -(-len(ticks) // MAX_TICKS) :: -(-len(ticks) // MAX_TICKS)] if ticks else []
    ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.set_xticks([], minor=True)
    ax.set_ylim(final.value - reach, final.value + reach)
    doubted = ", not to be trusted" if result.evidence_doubts else ""
    ax.set_title(f"log evidence {final.value:.3f} ± {final.standard_error:.3f}{doubted}")
    ax.legend(loc="best", handlelength=1.6)
    return ax
