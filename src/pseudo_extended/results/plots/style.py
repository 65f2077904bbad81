"""One look for all plots: widths of a paper's columns, colours of modes, and the canvas on which a plot is drawn.

Modes and results differ in lightness, line style and number as well as in colour, so that a plot can be read in black
and white.
"""

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from pseudo_extended import checks
from pseudo_extended.optional import require

P = ParamSpec("P")
R = TypeVar("R")

COLUMN = 3.4
"""Inches: the width of one column of a paper."""
PAGE = 7.0
"""Inches: the width of both."""

LETTER = 0.07
"""Inches that a letter of a label takes."""
MOST_LINES = 3
"""Of a label."""

INK = "#1f2328"
SOFT = "#8b949e"
FILL = "#c9d1d9"

STYLE: dict[str, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.1,
    "legend.frameon": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.dpi": 130,
    "savefig.dpi": 300,
    "svg.fonttype": "none",
}
"""Settings of matplotlib; `matplotlib.rc_context(pe.plots.STYLE)` gives other pictures the same look."""

COLOURS = ("#2f6fb5", "#e69f00", "#b3417a", "#43b58c", "#7fb8e6", "#8a5a2b", "#9d8fe0")
"""Of modes and results, dark and light in turn; what comes after them is grey."""
LINES = ("-", "--", ":", "-.", (0, (6, 1.5)), (0, (4, 1, 1, 1, 1, 1)), (0, (1, 0.7)))
NUM_COLOURS = len(COLOURS)


def colour(number: int) -> str:
    """Return the colour of a mode or result, by its number."""
    return COLOURS[number] if 0 <= number < NUM_COLOURS else SOFT


def line(number: int) -> Any:
    """The line style of a mode or result."""
    return LINES[number] if 0 <= number < len(LINES) else "-"


def matplotlib(module: str = "matplotlib") -> Any:
    """A module of matplotlib, or a sentence that names the extra."""
    require("matplotlib", "matplotlib", "a plot")
    return require(module, "matplotlib", "a plot")


def styled(plot: Callable[P, R]) -> Callable[P, R]:
    """Decorate a plot so that it is drawn in our style, whatever the user's settings are."""

    @wraps(plot)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with matplotlib().rc_context(STYLE):
            return plot(*args, **kwargs)

    return wrapped


def single(ax: Any, width: float = COLUMN, height: float = 2.3) -> Any:
    """The axes to draw on: those given, or those of a new figure."""
    if ax is None:
        return matplotlib("matplotlib.pyplot").subplots(figsize=(width, height), layout="constrained")[1]
    if not hasattr(ax, "get_figure"):
        raise TypeError(f"ax must be axes of matplotlib, or None for new ones; got {checks.describe(ax)}.")
    return ax


def panels(figure: Any, rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Any, Any]:
    """A figure, given or new, with a grid of axes: an array with a row and a column for each."""
    if figure is None:
        figure = matplotlib("matplotlib.pyplot").figure(figsize=(width, height), layout="constrained")
    elif not hasattr(figure, "subplots"):
        raise TypeError(
            f"figure must be a figure or subfigure of matplotlib, or None for a new one; got {checks.describe(figure)}."
        )
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def percent(mass: float) -> str:
    """A probability for a legend.

    >>> percent(0.3), percent(0.004), percent(0.00012)
    ('30.0 %', '0.4 %', '0.012 %')
    """
    shown = 100 * mass
    return f"{shown:.1f} %" if shown >= 0.1 else f"{shown:.2g} %"


def grid_shape(count: int, most: int = 3) -> tuple[int, int]:
    """Rows and columns for so many panels.

    >>> grid_shape(2), grid_shape(7)
    ((1, 2), (3, 3))
    """
    columns = min(count, most)
    return -(-count // columns), columns


def hide_unused(axes: Any, used: int) -> None:
    """Panels beyond the last that is drawn on."""
    for ax in axes.ravel()[used:]:
        ax.set_visible(False)


def plain(label: str, inches: float = PAGE) -> str:
    """A label as plain text, where a dollar sign would begin mathematics, in lines of so many inches.

    Lines break before a bracket and after a blank, a dot or an underscore; what three lines do not hold is left out.

    >>> print(plain("centre_of_component[the first one]", 1.2))
    centre_of_
    component
    [the first one]
    """
    most, lines = max(int(inches / LETTER), 4), []
    for part in re.split(r"(?=\[)", label) if len(label) > most else [label]:
        lines.append("")
        for piece in re.split(r"(?<=[_ .,])", part):
            if lines[-1] and len(lines[-1]) + len(piece.rstrip(" ")) > most:
                lines.append("")
            lines[-1] += piece
    lines = [line if len(line) <= most else f"{line[: most - 1]}…" for line in lines]
    shown = lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], "…"]
    return "\n".join(line.rstrip(" ") for line in shown).replace("$", r"\$")
