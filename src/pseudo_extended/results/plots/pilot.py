"""The pilot: the bases that were tried, how long the paths from them are, and the evidence that each found."""

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pseudo_extended.results.plots.given import check_result
from pseudo_extended.results.plots.style import FILL, INK, PAGE, SOFT, colour, panels, plain, styled

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

NOTE = re.compile(r"^(?P<name>.+?): path of length (?P<length>[\d.]+)(?P<rest>.*)$")
LOG_Z = re.compile(r"log Z (?P<value>-?[\d.]+) ± (?P<error>[\d.]+|inf)")


class Candidate(NamedTuple):
    """A base that was annealed."""

    name: str
    length: float
    log_z: float
    log_z_error: float
    finished: bool


def candidates_of(result: "Result") -> tuple[list[Candidate], str | None]:
    """The bases that the pilot tried, and the name of the one it chose; of an older result, as its notes tell."""
    report: Any = getattr(result, "pilot", None)
    if report is not None:
        made = [
            Candidate(part.name, part.length, part.log_z, part.log_z_error, part.finished) for part in report.candidates
        ]
        return made, report.chosen
    found, chosen = [], None
    for note in result.notes:
        match, z = NOTE.match(note), LOG_Z.search(note)
        if match is not None:
            value, error = (float(z[part]) for part in ("value", "error")) if z else (np.nan, np.nan)
            length, finished = float(match["length"]), "did not reach" not in match["rest"]
            found.append(Candidate(match["name"], length, value, error, finished))
        elif note.startswith("chosen: "):
            chosen = note.removeprefix("chosen: ").rstrip(".")
    return found, chosen


@styled
def plot_pilot(result: "Result", *, figure: Any = None) -> Any:
    """Draw the length of the path from each base that the pilot tried, and the log Z that it found with two errors.

    A base with a smaller log Z than the others has missed something. Of those that did not, the shortest path wins; it
    is the dark one. A hatched bar is a path that did not reach the target. The dashed line is log Z of the whole run.

    Args:
        result: The result of the default method.
        figure: A figure of matplotlib to draw into; a new one unless given.

    Returns:
        The figure.
    """
    check_result("result", result)
    candidates, chosen = candidates_of(result)
    if not candidates:
        raise ValueError(f"pilot needs a run of the default method, which tries several bases; got {result.method}.")
    place, winners = np.arange(len(candidates)), (chosen or "").split("; ")  # one of each pilot
    figure, axes = panels(figure, 1, 2, PAGE, 0.75 + 0.22 * len(candidates), sharey=True)
    lengths, heights = axes[0]
    for k, candidate in enumerate(candidates):
        won = candidate.name in winners
        shade = colour(0) if won else FILL
        hatch = None if candidate.finished else "////"
        lengths.barh(k, candidate.length, color=shade, edgecolor=INK, linewidth=0.5, height=0.65, hatch=hatch)
        if np.isfinite(candidate.log_z):
            error = 2 * candidate.log_z_error if np.isfinite(candidate.log_z_error) else 0.0
            style = {"color": colour(0) if won else INK, "markersize": 4, "capsize": 2}
            heights.errorbar(candidate.log_z, k, xerr=error, fmt="o" if candidate.finished else "x", **style)
    if "evidence_top" in result.statistics:
        heights.axvline(result.log_evidence.value, color=SOFT, linestyle="--", linewidth=0.9)
    names = [f"{candidate.name}{' (chosen)' if candidate.name in winners else ''}" for candidate in candidates]
    lengths.set_yticks(place, [plain(name) for name in names])
    lengths.set(xlabel="length of the path", ylim=(len(candidates) - 0.4, -0.6))
    heights.set_xlabel("log evidence")
    heights.tick_params(left=False)
    return figure
