"""A row of ours beside the paper's, and which of its cells are marked as different."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from pseudo_extended_reproduction.published import MOMENTS, RUNS, Four
from pseudo_extended_reproduction.summaries import differs, rmse_of, with_error

COMPARED = " (the paper's in parentheses; * where they are more than two standard errors apart)"
LEAST_RUNS = 5
"""For a mark: fewer do not know their own error."""


class Comparison(NamedTuple):
    """The cells of a row; no marks for one that the paper does not have, or of too few runs."""

    text: list[str]
    marks: list[bool]
    marks_elsewhere: list[bool]
    """If the paper had measured its errors against other moments."""


def compare(records: Sequence[dict[str, Any]], printed: Four | None, elsewhere: Float[np.ndarray, " 4"]) -> Comparison:
    """The runs of a row and what the paper prints; `elsewhere` is the true moments less the other ones."""
    errors = np.array([[record["scores"][name] for name in MOMENTS] for record in records])
    rmse, error = rmse_of(errors)
    text = [with_error(*cell) for cell in zip(rmse.tolist(), error.tolist(), strict=True)]
    if printed is None:
        return Comparison(text, [], [])
    text = [f"{cell} ({value:.2f})" for cell, value in zip(text, printed, strict=True)]
    if len(records) < LEAST_RUNS:
        return Comparison(text, [], [])
    paper = np.array(printed)
    marks = differs(rmse, error, paper, RUNS).tolist()
    marks_elsewhere = differs(*rmse_of(errors + elsewhere), paper, RUNS).tolist()
    text = [f"{cell}{'*' if mark else ''}" for cell, mark in zip(text, marks, strict=True)]
    return Comparison(text, marks, marks_elsewhere)
