"""One HTML file with everything about a run: text, tables, pictures and a little JavaScript, and no network."""

from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import PyTree

from pseudo_extended import checks
from pseudo_extended.checkup import check as check_model
from pseudo_extended.report import sections
from pseudo_extended.results.result import Result
from pseudo_extended.target.host import said

NUM_CHECKED = 64
"""Draws at which the model check looks."""


def report(
    result: Result, path: str | Path, *, title: str = "A run of pseudo-extended", truths: Any = None, check: bool = True
) -> Path:
    """Write a report of the run as one HTML file, and return its path.

    The file needs no network and nothing beside it: send it to a colleague. A verdict comes first, then modes, a
    summary that sorts and filters, pictures, what went wrong and what to do, the model check, settings and how to cite.
    Of a run that is still going, `pe.load(store, target).report(path)` shows what there is so far.

    Args:
        result: The result.
        path: Where to write, such as "run.html"; a file that is there is replaced.
        title: The title of the page.
        truths: True values for the pictures: a mapping from names, or a sequence for what is shown.
        check: Whether to run `pe.check` on the model, which takes some seconds.

    >>> import jax.numpy as jnp, pseudo_extended as pe, tempfile
    >>> result = pe.sample(lambda x: -jnp.sum(x**2), jnp.zeros(2), method=pe.Plain(), draws=50, progress=False)
    >>> path = result.report(tempfile.mkdtemp() + "/run.html", check=False)
    >>> path.read_text().startswith("<!doctype html>")
    True
    """
    checks.choice("check", check, (True, False))
    checks.instance("title", title, str, "a string")
    path = checks.path_to_write("path", path)
    if path.is_dir():
        raise ValueError(f"path must name a file, such as 'run.html'; {str(path)!r} is a directory.")
    modes, table = result._shown_modes(), result.summary()
    kind, sentence = sections.verdict(result, table, modes)
    findings, why_not = _check(result) if check else (None, "The model was not checked.")
    parts = {
        "Modes": sections.modes_section(result, modes),
        "Summary": _summary(table),
        "Draws": sections.explorer(result, modes),
        "Pictures": sections.pictures_section(result, modes, truths),
        "Diagnostics": sections.diagnostics_section(result),
        "Model check": sections.check_section(findings, why_not),
        "Settings": sections.settings_section(result),
        "How to cite": f"<p>The method:</p><pre>{escape(sections.CITATION)}</pre>",
    }
    head = f'<p class="verdict {kind}">{escape(sentence)}</p>{sections.facts(result, modes)}'
    path.write_text(_page(title, head, parts), encoding="utf-8")
    return path


def _summary(table: Any) -> str:
    controls = (
        '<div class="controls"><input id="filter" type="search" placeholder="filter by name" '
        'aria-label="filter by name"><span id="filtered"></span></div>'
    )
    shown = pd.DataFrame(table, columns=["mean", "mcse_mean", "sd", "q5", "q50", "q95", "ess", "r_hat"])
    return controls + sections.data_table(shown, "summary-table")


def _check(result: Result) -> tuple[Any, str]:
    """The findings of `pe.check` at the places of some draws, or a sentence that says why there are none."""
    target = result.target
    if any(getattr(function, "is_missing", False) for function in target.host_functions):
        return None, "The model was not checked: the report was made from the store alone, without the target."
    has_start = target.view is not None or (target.base is not None and target.base.can_sample)
    try:
        return check_model(target, None if has_start else _positions(result), show=False).findings, ""
    except Exception as error:  # a report is made of what there is
        return None, f"The model could not be checked: {said(error)}."


def _positions(result: Result) -> PyTree:
    """Some of the draws as a batch of starts."""
    flat = result.unconstrained[:, :, 0].reshape(-1, result.target.dim)
    return result.show(flat[np.linspace(0, len(flat) - 1, min(NUM_CHECKED, len(flat))).astype(int)])


def _page(title: str, head: str, parts: dict[str, str]) -> str:
    here = Path(__file__)
    style, script = (here.with_name(f"report.{suffix}").read_text(encoding="utf-8") for suffix in ("css", "js"))
    ids = {name: name.lower().replace(" ", "-") for name in parts}
    links = "".join(f'<a href="#{ids[name]}">{escape(name)}</a>' for name in parts)
    body = "".join(f'<section id="{ids[name]}"><h2>{escape(name)}</h2>{part}</section>' for name, part in parts.items())
    made = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{style}</style></head><body><main><header><h1>{escape(title)}</h1>"
        f'<button id="theme" type="button">light / dark</button></header>{head}<nav>{links}</nav>{body}'
        f"<footer>Made {escape(made)} by pseudo-extended.</footer></main><script>{script}</script></body></html>\n"
    )
