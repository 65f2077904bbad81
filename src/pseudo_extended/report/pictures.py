"""The pictures of a report: SVG inside the page, in the page's own colours, so that they suit light and dark."""

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from pseudo_extended.results import plots
from pseudo_extended.results.plots.style import FILL, INK, SOFT, STYLE, matplotlib

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

PIXELS = 130
"""For an inch of a picture: its letters are then about as large as those of the page."""
THEMED = {INK: "currentColor", FILL: "var(--fill)", SOFT: "var(--soft)"}


class Picture(NamedTuple):
    """A picture and what to say of it."""

    name: str
    caption: str
    plot: Callable[..., Any]
    is_wide: bool = True


PICTURES = (
    Picture(
        "corner",
        "Pairs of parameters. Grey areas hold 39 % and 86 % of the weight; each mode has its outline and its number.",
        plots.corner,
    ),
    Picture(
        "marginals",
        "Densities, with the part of each mode. The bars are the shortest sets that hold 94 %: several intervals where "
        "there are several modes.",
        plots.marginals,
    ),
    Picture(
        "trace",
        "One point of each draw, in the colour of its mode. A chain that keeps one colour has not moved between modes.",
        plots.trace,
    ),
    Picture(
        "journey",
        "The way of pseudo-samples between the base (below) and the target (above); a dot carries the target.",
        plots.journey,
    ),
    Picture(
        "temperatures",
        "Visits and acceptance rates along the path, the target at the right.",
        plots.temperatures,
        False,
    ),
    Picture(
        "evidence",
        "The log evidence as it settles: all chains with two standard errors, and each alone.",
        plots.evidence,
        False,
    ),
    Picture("weights", "How the weight of a draw is spread over its pseudo-samples.", plots.weights),
    Picture(
        "pilot",
        "The bases that the pilot tried: the length of the path from each, and the evidence that each found. The "
        "dashed line is the evidence of the whole run.",
        plots.pilot,
    ),
)


def draw(picture: Picture, result: "Result", **options: Any) -> str | None:
    """The picture as SVG, or None where the result has not what it shows."""
    mpl, pyplot = matplotlib(), matplotlib("matplotlib.pyplot")
    with mpl.rc_context(STYLE | {"svg.hashsalt": picture.name}):
        try:
            drawn = picture.plot(result, **options)
        except ValueError:  # no temperatures, evidence or pilot: a sentence for who asks, and no picture here
            return None
        figure = drawn if hasattr(drawn, "savefig") else drawn.get_figure()
        width = round(PIXELS * figure.get_figwidth())
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
    return themed(text.getvalue(), width)


def themed(svg: str, width: int) -> str:
    """An SVG document as a part of a page: without its head, in the page's colours, and at most so many pixels wide.

    Larger, its letters would be larger than those of the page.
    """
    svg = svg[svg.index("<svg") :].replace("<svg", f'<svg style="max-width:{width}px"', 1)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for colour, variable in THEMED.items():
        svg = svg.replace(colour, variable)
    return svg
