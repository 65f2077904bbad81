"""From the scores of runs to root mean squared errors with their own errors, and how they compare with printed ones."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float


class Summary(NamedTuple):
    """A method on a problem, over its runs."""

    rmse: dict[str, float]
    """Root mean square of each score."""
    error: dict[str, float]
    """Its standard error; nan for a single run."""
    runs: int
    seconds: float
    """Of a run, warm-up included, compilation not."""
    evaluations: float
    """Of the target at one point, in a run's draws."""


def summarise(records: Sequence[dict[str, Any]]) -> Summary:
    """Of all runs of one method on one problem.

    >>> runs = [{"scores": {"E[X]": e}, "seconds": 1.0, "evaluations": 10} for e in (0.3, -0.4)]
    >>> summary = summarise(runs)
    >>> round(summary.rmse["E[X]"], 3), round(summary.error["E[X]"], 3), summary.runs
    (0.354, 0.049, 2)
    """
    names = records[0]["scores"]
    scores = np.array([[record["scores"][name] for name in names] for record in records])
    rmse, error = rmse_of(scores)
    return Summary(
        dict(zip(names, rmse.tolist(), strict=True)),
        dict(zip(names, error.tolist(), strict=True)),
        len(records),
        float(np.mean([record["seconds"] for record in records])),
        float(np.mean([record["evaluations"] for record in records])),
    )


def rmse_of(errors: Float[np.ndarray, "run score"]) -> tuple[Float[np.ndarray, " score"], Float[np.ndarray, " score"]]:
    """The root mean square over runs, and its standard error by the delta method."""
    squares = errors**2
    rmse = np.sqrt(squares.mean(axis=0))
    if len(errors) < 2:
        return rmse, np.full_like(rmse, np.nan)
    spread = squares.std(axis=0, ddof=1) / np.sqrt(len(squares))
    return rmse, np.divide(spread, 2 * rmse, out=np.zeros_like(rmse), where=rmse > 0)


def with_error(value: float, error: float) -> str:
    """As many digits as the error leaves, to two of its own; one where five of the value do not reach so far.

    >>> with_error(0.12345, 0.0123), with_error(33.79114, 0.00052), with_error(0.5, float("nan"))
    ('0.123 ± 0.012', '33.7911 ± 0.0005', '0.500')
    """
    if not np.isfinite(error):
        return f"{value:.3g}" if value >= 1 else f"{value:.3f}"
    if error == 0 or value == 0:
        return f"{value:.3f} ± {error:.2g}"
    first = -int(np.floor(np.log10(error)))
    enough = 4 - int(np.floor(np.log10(abs(value))))
    places = max(first, min(first + 1, enough), 0)
    return f"{value:.{places}f} ± {error:.{places}f}"


def mean_with_error(values: Float[np.ndarray, " run"]) -> str:
    """The mean over runs with its standard error, which a single run has not; nothing for no runs.

    >>> mean_with_error(np.array([1.0, 2.0, 3.0])), mean_with_error(np.array([-0.25])), mean_with_error(np.zeros(0))
    ('2.00 ± 0.58', '-0.250', '')
    """
    if not len(values):
        return ""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return with_error(float(values.mean()), float(error))


def differs(
    rmse: Float[np.ndarray, " score"],
    error: Float[np.ndarray, " score"],
    published: Float[np.ndarray, " score"],
    published_runs: int,
) -> Bool[np.ndarray, " score"]:
    """Whether ours and theirs are more than two standard errors apart.

    The published number is from runs too: its error is 1/√(2R) of itself if runs have normal errors, and it is rounded
    to two digits.
    """
    rounding = 0.005 / np.sqrt(3)
    combined = np.sqrt(error**2 + published**2 / (2 * published_runs) + rounding**2)
    return np.abs(rmse - published) > 2 * combined
