"""The parts of a report, as HTML; every text that comes from a model or a user is escaped."""

import json
import platform
from collections.abc import Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pseudo_extended.messages import KINDS
from pseudo_extended.report.pictures import PICTURES, Picture, draw
from pseudo_extended.results.markup import cell
from pseudo_extended.results.modes import Modes
from pseudo_extended.results.plots.masses import plot_modes
from pseudo_extended.results.plots.style import COLOURS, colour

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

LIBRARIES = ("pseudo-extended", "jax", "jaxlib", "numpy", "scipy", "blackjax")
NUM_POINTS = 1500
NUM_COORDINATES = 40
"""Draws and coordinates in the interactive picture."""
MAX_ROWS = 1000
HOW_ENDED = {"enough": "when its estimates were good enough", "running": "not yet"}
CITATION = """@inproceedings{nemeth2019pseudo,
  title     = {Pseudo-Extended {M}arkov chain {M}onte {C}arlo},
  author    = {Nemeth, Christopher and Lindsten, Fredrik and Filippone, Maurizio and Hensman, James},
  booktitle = {Advances in Neural Information Processing Systems 32},
  year      = {2019}
}"""


def verdict(result: "Result", table: pd.DataFrame, modes: Modes | None) -> tuple[str, str]:
    """A class and a few sentences: whether the numbers can be used, and what nobody has looked for."""
    worst, fewest = float(np.max(table["r_hat"])), float(np.min(table["ess"]))
    so_far = f"The run is still going: {result.num_draws * result.thinned} draws of each chain so far. "
    lead = so_far if result.stopped == "running" else ""
    mixing = f"the largest R-hat is {worst:.3f}" if np.isfinite(worst) else "R-hat is not known"
    measured = f"{mixing} and the smallest effective sample size {fewest:,.0f}"
    if not np.isfinite(fewest) or not np.isfinite(table["mean"]).all():
        return "bad", f"{lead}These numbers cannot be used: some could not be estimated; see the diagnostics below."
    if worst > 1.1:
        return "bad", f"{lead}These numbers cannot be used yet: the chains disagree, {measured}."
    severe = [message for message in result.warnings if message.severity == "severe"]
    if severe:
        named = ", ".join(dict.fromkeys(f"{KINDS[each.code].title.lower()} ({each.code})" for each in severe))
        return "bad", f"{lead}These numbers cannot be used yet, for what is said below: {named}; {measured}."
    count = len(result.warnings)
    if count:
        warned = "is one warning" if count == 1 else f"are {count} warnings"
        said = f"{lead}These numbers can be used with care: there {warned} below; {measured}."
        return "doubt", f"{said}{_not_looked_for(result, modes)}"
    return "good", f"{lead}Nothing suspicious was found: {measured}.{_not_looked_for(result, modes)}"


def _not_looked_for(result: "Result", modes: Modes | None) -> str:
    """What diagnostics of the draws cannot have seen."""
    said = ""
    if modes is None:
        said = " Modes were not looked for, which needs the density."
    elif not result.is_part and result.pilot is None and "beta" not in result.statistics:
        looked = modes.second_look
        said = " Nobody has looked for other modes than those that the chains have met."
        if looked is not None:
            ascents = f"{looked.unseen.num_ascents} ascents after the run"
            said = f" The method does not look for other modes; {ascents} found none without draws."
    if result.num_chains == 1:
        said += " There is one chain, so nothing shows whether others would agree with it."
    return said


def facts(result: "Result", modes: Modes | None) -> str:
    """The size of the run, in boxes."""
    shown = {
        "chains": f"{result.num_chains}",
        "draws of each": f"{result.num_draws * result.thinned:,}",
        "points of a draw": f"{result.num_particles}",
        "coordinates": f"{len(result.labels):,}",
    }
    if modes is not None:
        shown["mode" if len(modes) == 1 else "modes"] = f"{len(modes)}"
    if "evidence_top" in result.statistics:
        shown["log evidence"] = result._evidence_line().removeprefix("log evidence: ")
    if result.seconds:
        shown["seconds"] = f"{sum(result.seconds.values()):.0f}"
    boxes = (
        f'<div class="fact"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for name, value in shown.items()
    )
    return f'<div class="facts">{"".join(boxes)}</div>'


def data_table(table: pd.DataFrame, name: str, swatches: bool = False) -> str:
    """A data frame whose columns sort."""
    heads = "".join(f"<th>{escape(str(column))}</th>" for column in [table.index.name or "", *table.columns])
    rows = []
    for place, (label, values) in enumerate(
        zip(table.index[:MAX_ROWS], table.to_numpy(object)[:MAX_ROWS], strict=True)
    ):
        swatch = f'<span class="swatch" style="background:{colour(place)}"></span>' if swatches else ""
        cells = "".join(
            f'<td data-value="{float(value)!r}">{escape(_shown(column, value))}</td>'
            for column, value in zip(table.columns, values, strict=True)
        )
        rows.append(f"<tr><th>{swatch}{escape(str(label))}</th>{cells}</tr>")
    body = f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody>"
    more = f"<p>The first {MAX_ROWS} of {len(table)} rows.</p>" if len(table) > MAX_ROWS else ""
    return f'<div class="scroll"><table class="sorts" id="{name}">{body}</table></div>{more}'


def _shown(column: Any, value: Any) -> str:
    """A number of a table; sizes without an exponent, and R-hat with as many digits as its limit has."""
    if column == "r_hat" and np.isfinite(value):
        return f"{value:.3f}"
    return f"{value:,.0f}" if column == "ess" and np.isfinite(value) else cell(column, value)


def modes_section(result: "Result", modes: Modes | None) -> str:
    """List the modes and their masses."""
    if modes is None:
        return "<p>Modes were not looked for: that needs the target's density.</p>"
    missed = "".join(
        f'<p class="note">Without draws: a mode at {escape(each.where())}, in which ascents ended. Laplace\'s '
        f"approximation gives it a probability of {each.mass:.2g}.</p>"
        for each in modes.missed
    )
    if len(modes) == 1:
        return f"<p>The draws are in one mode: no valley of the density separates them.</p>{missed}"
    columns = [name for name in modes.table().columns if name not in modes.mean.columns]
    table = pd.DataFrame(modes.table(), columns=[*columns, *modes._telling_coordinates(6)])
    crossings = f"Each chain went from mode to mode {', '.join(str(count) for count in modes.crossings)} times."
    if not np.any(modes.crossings):
        crossings = "No chain went from one mode to another."
    masses = Picture("masses", "Masses with two standard errors; a tick for each chain alone.", plot_modes, False)
    found = draw(masses, result, modes=modes)
    marks = "".join(f'<p class="note">{escape(mark[:1].upper() + mark[1:])}</p>' for mark in modes.marks())
    listed = data_table(table, "modes-table", swatches=True)
    return f"<p>{crossings}</p>{missed}{listed}{marks}{figure(masses, found)}"


def figure(picture: Picture, svg: str | None) -> str:
    """A picture with its caption."""
    if svg is None:
        return ""
    wide = ' class="wide"' if picture.is_wide else ""
    said = f"<figcaption>{escape(picture.caption)}</figcaption>"
    return f'<figure id="picture-{picture.name}"><div{wide}>{svg}</div>{said}</figure>'


def pictures_section(result: "Result", modes: Modes | None, truths: Any) -> str:
    """All pictures that the result allows; two narrow ones stand side by side."""
    coloured = {"modes": modes if modes is not None else False, "truths": truths}
    parts, narrow = [], []
    for picture in PICTURES:
        options = coloured if picture.name in ("corner", "marginals", "trace") else {}
        made = figure(picture, draw(picture, result, **options))
        (parts if picture.is_wide else narrow).append(made)
    return "".join([*parts[:4], f'<div class="pair">{"".join(narrow)}</div>', *parts[4:]])


def explorer(result: "Result", modes: Modes | None) -> str:
    """Draws as data for the interactive picture: one point of each draw, of evenly chosen draws."""
    index = result.resample_index(0)[..., None]
    step = max(1, -(-result.num_chains * result.num_draws // NUM_POINTS))
    rows = np.arange(0, result.num_chains * result.num_draws, step)
    chain, draw_number = np.divmod(rows, result.num_draws)
    x = np.take_along_axis(result.coordinates, index[..., None], axis=2)[chain, draw_number, 0]
    held = np.zeros(len(rows), int)
    if modes is not None:
        held = np.take_along_axis(modes.labels, index, axis=2)[chain, draw_number, 0]
    order = list(range(len(result.labels)))
    if modes is not None and len(modes) > 1:
        telling = [result.labels.index(name) for name in modes._telling_coordinates(2)]
        order = [*telling, *(i for i in order if i not in telling)]
    order = [i for i in order if np.isfinite(x[:, i]).all()][:NUM_COORDINATES]
    if not order:
        return "<p>No coordinate is finite in all draws.</p>"
    data = {
        "names": [result.labels[i] for i in order],
        "values": [[float(f"{value:.4g}") for value in x[:, i]] for i in order],
        "modes": held.tolist(),
        "chain": chain.tolist(),
        "draw": draw_number.tolist(),
        "colours": list(COLOURS[: 1 if modes is None else len(modes)]),
    }
    stored = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")
    return (
        '<div class="controls"><label>across <select id="across"></select></label>'
        '<label>up <select id="up"></select></label></div>'
        '<canvas id="explorer" aria-label="two coordinates of the draws"></canvas>'
        '<p id="told">Point at a draw to see its values.</p>'
        f'<script type="application/json" id="points">{stored}</script>'
    )


def diagnostics_section(result: "Result") -> str:
    """What went wrong, each with what to do about it."""
    if not result.warnings:
        return '<p class="note fine">No warnings: the chains agree, and nothing diverged or was stuck.</p>'
    parts = []
    for sentence in result.warnings:
        code = getattr(sentence, "code", "")
        mark = f'<span class="code">{escape(code)}</span> ' if code else ""
        parts.append(f'<p class="note">{mark}{escape(sentence[:1].upper() + sentence[1:])}</p>')
    return "".join(parts)


def check_section(findings: Sequence[tuple[str, str, str]] | None, why_not: str) -> str:
    """The model check, or why there is none."""
    if findings is None:
        return f"<p>{escape(why_not)}</p>"
    marks = {"good": "✓", "doubtful": "!", "bad": "✗"}
    rows = (
        f'<tr><td>{marks[mark]}</td><td class="text">{escape(what)}</td><td class="text">{escape(said)}</td></tr>'
        for what, mark, said in findings
    )
    return f'<div class="scroll"><table><tbody>{"".join(rows)}</tbody></table></div>'


def settings_section(result: "Result") -> str:
    """How the run was made."""
    shown = {"method": result.method, "seed": str(result.seed)}
    shown |= {f"seconds to {name}": f"{seconds:.1f}" for name, seconds in result.seconds.items()}
    if result.stopped is not None:
        shown["ended"] = HOW_ENDED.get(result.stopped, result.stopped)
    if result.store is not None:
        shown["store"] = result.store
    shown["before the run"] = "\n".join(result.notes) or "nothing to tell"
    libraries = []
    for name in LIBRARIES:
        try:
            libraries.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    shown["this report was made with"] = (
        f"{', '.join(libraries)}, Python {platform.python_version()}, {platform.machine()}"
    )
    rows = (
        f"<dt>{escape(name)}</dt><dd>{escape(value).replace(chr(10), '<br>')}</dd>" for name, value in shown.items()
    )
    return f"<dl>{''.join(rows)}</dl>"
