"""Tables in Markdown and pictures, from the records."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

import cells
import suite
from suite.problem import Problem
from suite.score import Score, score


@dataclass(frozen=True)
class Row:
    """The records of a problem and a peer: those that ended well with their scores, and what the others said."""

    problem: str
    peer: str
    dim: int
    outcomes: list[dict[str, Any]]
    scores: list[Score]
    failures: list[str]

    def median(self, part: str) -> float:
        """The median over seeds of a cost."""
        return float(np.median([outcome[part] for outcome in self.outcomes]))

    def typical(self, part: str) -> float | None:
        """The root of the mean square over seeds of an error; None where there is none."""
        errors = [getattr(each, part) for each in self.scores]
        known = [error for error in errors if error is not None]
        return float(np.sqrt(np.mean(np.square(known)))) if known else None


def rows_of(path: Path, names: list[str], peers: list[str]) -> tuple[list[Row], dict[str, Problem]]:
    """The rows of a file of records, in the order of problems and peers; of the default, the latest version's."""
    jax.config.update("jax_enable_x64", True)
    latest = _latest(path)
    rows, problems = [], {}
    for name in names:
        for peer in peers:
            outcomes = latest.get((name, peer), [])
            if not outcomes:
                continue
            if name not in problems:
                problems[name] = suite.load(name)
            good = [outcome for outcome in outcomes if "failed" not in outcome]
            failures = [outcome["failed"] for outcome in outcomes if "failed" in outcome]
            problem = problems[name]
            rows.append(Row(name, peer, problem.dim, good, [score(problem, each) for each in good], failures))
    return rows, problems


def _latest(path: Path) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Outcomes by problem and peer: the last line of a cell counts, and the last version of the library in the file."""
    versions: dict[tuple[str, str], str | None] = {}
    found: dict[tuple[str, str], dict[int, dict[str, Any]]] = defaultdict(dict)
    for record in cells.recorded(path):
        cell = record["cell"]
        key = (cell["problem"], cell["peer"])
        if versions.get(key, cell.get("version")) != cell.get("version"):
            found[key].clear()
        versions[key] = cell.get("version")
        found[key][cell["seed"]] = record["outcome"]
    return {key: list(outcomes.values()) for key, outcomes in found.items()}


HEADINGS = [
    "problem", "d", "sampler", "seeds", "modes found", "mass", "moment / sd", "log Z − truth", "stated", "covered",
    "evaluations", "processor s", "GiB",
]  # fmt: skip


def table(rows: list[Row]) -> str:
    """One line for each problem and peer."""
    return cells.markdown(HEADINGS, [_line(row) for row in rows])


def _line(row: Row) -> list[str]:
    seeds = str(len(row.outcomes)) + (f" (+ {len(row.failures)} failed)" if row.failures else "")
    if not row.outcomes:
        return [row.problem, str(row.dim), row.peer, seeds, row.failures[0].replace("|", "/")[:80], *[""] * 8]
    modes = row.scores[0].modes
    fewest = min(each.found for each in row.scores)
    gaps = [each.evidence for each in row.scores if each.evidence is not None]
    stated = [o["log_evidence_error"] for o in row.outcomes if o["log_evidence_error"]]
    covered = [each.covered for each in row.scores if each.covered is not None]
    return [
        row.problem, str(row.dim), row.peer, seeds, f"{fewest} of {modes}" if modes else "",
        _number(row.typical("mass")), _number(row.typical("moment")),
        f"{np.mean(gaps):+.3f}" + (f" (sd {np.std(gaps, ddof=1):.2g})" if len(gaps) > 1 else "") if gaps else "",
        f"{np.median(stated):.2g}" if stated else "", f"{100 * np.mean(covered):.0f} %",
        _count(row.median("evaluations")), f"{row.median('process_cpu'):.0f}", f"{row.median('process_gib'):.1f}",
    ]  # fmt: skip


def _number(error: float | None) -> str:
    return "" if error is None else f"{error:.2g}"


def _count(number: float) -> str:
    return f"{number / 1e6:.2g} M" if number >= 1e6 else f"{number / 1e3:.3g} k"


def coverage(rows: list[Row]) -> str:
    """How often stated errors cover, by peer, over all problems."""
    lines = []
    for peer in dict.fromkeys(row.peer for row in rows):
        own = [each for row in rows if row.peer == peer for each in row.scores]
        z = np.abs([each.evidence_z for each in own if each.evidence_z is not None])
        parts = [each.covered for each in own if each.covered is not None]
        found, modes = sum(each.found for each in own), sum(each.modes for each in own)
        failed = sum(len(row.failures) for row in rows if row.peer == peer)
        lines.append([
            peer, str(len(own)), str(failed), f"{found} of {modes}",
            f"{np.sum(z <= 2)} of {len(z)}" if len(z) else "none stated",
            f"{np.sum(z <= 3)} of {len(z)}" if len(z) else "none stated",
            f"{100 * np.mean(parts):.0f} %" if parts else "",
        ])  # fmt: skip
    headings = [
        "sampler",
        "runs",
        "failed",
        "modes found",
        "log Z within 2 stated errors",
        "within 3",
        "expectations within 2",
    ]
    return cells.markdown(headings, lines)


def write(records: cells.Records, names: list[str], peers: list[str], directory: Path) -> None:
    """Tables and pictures into a directory."""
    from suite import pictures

    rows, _ = rows_of(records.path, names, peers)
    directory.mkdir(parents=True, exist_ok=True)
    text = f"# Tables of the suite\n\n{INTRODUCTION}\n\n## Coverage of stated errors\n\n{coverage(rows)}\n\n"
    text += f"## Every problem\n\n{table(rows)}\n"
    (directory / "tables.md").write_text(text)
    pictures.draw(rows, directory)
    print(f"{len(rows)} rows: {directory}/tables.md and pictures")


INTRODUCTION = """Made by `python benchmarks/run_suite.py --tables docs/benchmark`; do not edit by hand.

- *modes found*: the fewest of any seed; a mode is found if it was given a tenth of its mass.
- *mass*: the largest error of the mass of a mode; *moment / sd*: the largest error of a mean or mean square, in
  standard deviations of its function; root mean square over seeds.
- *log Z − truth*: the mean over seeds; *stated*: the error that the sampler states.
- *covered*: expectations within two stated errors of the truth; 95 % if errors are right.
- *evaluations*: all of them, with or without gradient; *processor s* and *GiB*: of the whole process, imports and
  compilation included."""
