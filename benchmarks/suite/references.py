"""Reference answers that were computed once, by `make_references.py`, and are kept beside the problems."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from suite.problem import Problem

FILE = Path(__file__).parent / "references.json"


def load(name: str) -> dict[str, Any] | None:
    """The reference of a problem, if there is one."""
    known = json.loads(FILE.read_text()) if FILE.is_file() else {}
    return known.get(name)


def keep(name: str, reference: dict[str, Any]) -> None:
    """Write the reference of a problem."""
    known = json.loads(FILE.read_text()) if FILE.is_file() else {}
    known[name] = reference
    lines = ",\n".join(f'"{each}": {json.dumps(known[each])}' for each in sorted(known))
    FILE.write_text("{\n" + lines + "\n}\n")


def with_evidence(name: str, problem: Problem) -> Problem:
    """The problem with log Z of its reference."""
    known = load(name)
    if known is None:
        return problem
    return replace(problem, log_evidence=known["log_evidence"], log_evidence_error=known["log_evidence_error"])
