"""How the weight of a draw is spread over its pseudo-samples."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pseudo_extended.results.plots.given import check_result
from pseudo_extended.results.plots.style import FILL, INK, PAGE, colour, panels, styled
from pseudo_extended.weights import effective_number, normalise

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result


@styled
def plot_weights(result: "Result", *, figure: Any = None) -> Any:
    """Draw the mean of the ordered weights within a draw, the effective number of points, and what single draws count.

    The last panel is there where draws do not count alike: the share of the weight that the heaviest draws hold.

    Args:
        result: The result.
        figure: A figure of matplotlib to draw into; a new one unless given.

    Returns:
        The figure.
    """
    check_result("result", result)
    within = normalise(result.log_weights)
    counts = 3 if result.log_importance is not None else 2
    figure, axes = panels(figure, 1, counts, PAGE, 2.1)
    ordered, spread = axes[0, :2]
    mean = np.sort(within, axis=2)[..., ::-1].mean(axis=(0, 1))
    ordered.bar(np.arange(1, len(mean) + 1), mean, color=FILL, edgecolor=INK, linewidth=0.5)
    ordered.set(xlabel="pseudo-sample, heaviest first", ylabel="mean weight")
    ordered.locator_params(axis="x", integer=True)
    number = effective_number(within).ravel()
    spread.hist(number, np.linspace(1, max(len(mean), 2), 31), color=FILL, edgecolor=INK, linewidth=0.4)
    spread.axvline(number.mean(), color=colour(0), linestyle="--")
    spread.set(xlabel="effective number of points in a draw", yticks=[], title=f"mean {number.mean():.2f}")
    spread.spines["left"].set_visible(False)
    if result.log_importance is not None:
        total = np.sort(result.weights.sum(axis=2).ravel())[::-1]
        axes[0, 2].plot(np.arange(1, len(total) + 1) / len(total), np.cumsum(total) / total.sum(), color=INK)
        axes[0, 2].plot([0, 1], [0, 1], color=INK, linestyle=":", linewidth=0.7)
        worth = total.sum() ** 2 / np.sum(total**2)
        axes[0, 2].set(xlabel="share of draws, heaviest first", ylabel="share of weight", xlim=(0, 1), ylim=(0, 1.02))
        axes[0, 2].set_title(f"{len(total)} draws are worth {worth:.0f}")
    return figure
