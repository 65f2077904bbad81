"""Results as HTML for notebooks: small tables and sentences, with every text of the user escaped.

Nothing here has colours of its own but a tint that suits light and dark pages.
"""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from pseudo_extended.results.modes import Modes
    from pseudo_extended.results.result import Result

MAX_ROWS = 30
CELL = "text-align:right;padding:1px 8px"
NOTE = "margin:4px 0;padding:2px 8px;border-left:3px solid #d08700"


def number(value: Any, digits: int = 4) -> str:
    """A number for a table.

    >>> number(0.123456), number(float("nan")), number(12)
    ('0.1235', 'nan', '12')
    """
    return f"{value:.{digits}g}" if isinstance(value, (float, np.floating)) else str(value)


def cell(column: Any, value: Any) -> str:
    """A number of a table; of logarithms, whose differences matter, three decimals.

    >>> cell("mean", -326.0412), cell("log_evidence", -326.0412), cell("mcse_log_evidence", 0.007)
    ('-326', '-326.041', '0.007')
    """
    is_log = str(column).startswith(("log_", "mcse_log_")) and isinstance(value, (float, np.floating))
    return f"{value:.3f}" if is_log else number(value)


def text_table(table: pd.DataFrame) -> str:
    """A data frame as text."""
    rows = [
        [cell(name, value) for name, value in zip(table.columns, row, strict=True)] for row in table.to_numpy(object)
    ]
    return pd.DataFrame(rows, table.index, table.columns).to_string()


def page_table(table: pd.DataFrame, max_rows: int = MAX_ROWS) -> str:
    """A data frame, the first rows of it if there are many."""
    heads = "".join(f'<th style="{CELL}">{escape(str(name))}</th>' for name in ["", *table.columns])
    rows = []
    for name, values in zip(table.index[:max_rows], table.to_numpy(dtype=object)[:max_rows], strict=True):
        shown = (cell(column, value) for column, value in zip(table.columns, values, strict=True))
        cells = "".join(f'<td style="{CELL}">{escape(each)}</td>' for each in shown)
        rows.append(f'<tr><th style="{CELL}">{escape(str(name))}</th>{cells}</tr>')
    more = len(table) - max_rows
    if more > 0:
        rows.append(f'<tr><td colspan="{len(table.columns) + 1}">and {more} more rows</td></tr>')
    body = "".join(rows)
    return f'<table style="border-collapse:collapse"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def paragraph(text: str, style: str = "") -> str:
    """A sentence; one that begins with an exclamation mark is a warning, and has a bar beside it."""
    if text.startswith("! "):
        text, style = text[2:], NOTE
    return f'<p style="{style or "margin:4px 0"}">{escape(text)}</p>'


def result_html(result: "Result") -> str:
    """What `print` shows of a result."""
    shown = ["mean", "mcse_mean", "sd", "q5", "q50", "q95", "ess", "r_hat"]
    size = f"{result.num_chains} chains × {result.num_draws} draws × {result.num_particles} weighted points"
    parts = [
        paragraph(f"Result of {result.method}: {size}, seed {result.seed}"),
        page_table(pd.DataFrame(result.summary(), columns=shown)),
    ]
    modes = result._shown_modes()
    if "evidence_top" in result.statistics:
        parts.append(paragraph(result._evidence_line()))
    if modes is not None and len(modes) > 1:
        parts += [paragraph(line) for line in modes.lines()]
    agreement = result._agreement(modes)
    if agreement is not None:
        parts.append(paragraph(agreement.line()))
    return "".join([*parts, *(paragraph(f"! {message.line()}") for message in result.warnings)])


def modes_html(modes: "Modes") -> str:
    """What `print` shows of modes."""
    count = "1 mode" if len(modes) == 1 else f"{len(modes)} modes"
    crossings = ", ".join(str(each) for each in modes.crossings)
    named = modes._telling_coordinates(8)
    columns = [name for name in modes.table().columns if name not in modes.mean.columns]
    table = pd.DataFrame(modes.table(), columns=[*columns, *named])
    marks = "".join(paragraph(f"! {sentence}") for sentence in modes.marks())
    return paragraph(f"{count}; crossings by chain: {crossings}") + page_table(table) + marks


def estimate_html(estimate: Any, names: Sequence[str] = ("value", "standard error", "ess")) -> str:
    """An estimate: a line for one number, and a row for each of several, by its name and place."""
    rows = dict(_entries(estimate.value, ""))
    errors, sizes = dict(_entries(estimate.standard_error, "")), dict(_entries(estimate.ess, ""))
    if list(rows) == [""]:
        value, error, ess = (number(part[""], 6) for part in (rows, errors, sizes))
        return paragraph(f"{value} ± {error} (effective sample size {ess})")
    table = {name: [rows[name], errors.get(name, np.nan), sizes.get(name, np.nan)] for name in rows}
    return page_table(pd.DataFrame.from_dict(table, orient="index", columns=list(names)))


def travel_html(travel: Any) -> str:
    """What pseudo-samples did: a row for each chain, and a row for each temperature."""
    chains = pd.DataFrame(
        {
            "switch rate": travel.switch_rates,
            "round trips": travel.round_trips,
            "lowest β": travel.lowest_betas,
        },
        index=[f"chain {chain}" for chain in range(len(travel.round_trips))],
    )
    by_temperature = travel.by_temperature.rename(columns=lambda name: name.replace("_", " ").replace("beta", "β"))
    return page_table(chains) + paragraph("by temperature, the target last:") + page_table(by_temperature)


def _entries(value: Any, name: str) -> list[tuple[str, float]]:
    """The numbers of an array or a pytree of arrays, by name and place."""
    if isinstance(value, dict):
        return [entry for key, part in value.items() for entry in _entries(part, f"{name}.{key}" if name else str(key))]
    if isinstance(value, (list, tuple)):
        return [entry for i, part in enumerate(value) for entry in _entries(part, f"{name}.{i}" if name else str(i))]
    array = np.asarray(value)
    return [
        (f"{name}[{', '.join(map(str, index))}]" if index else name, float(array[index]))
        for index in np.ndindex(array.shape)
    ]
