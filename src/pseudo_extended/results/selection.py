"""Selection of coordinates by names of parameters or coordinates, parts of names, or patterns."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from pseudo_extended import checks

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result


def select(
    result: "Result", var_names: str | Sequence[str] | None = None, filter_vars: str | None = None
) -> Int[np.ndarray, " chosen"]:
    """The places in `result.labels` of the coordinates that `var_names` names, in the order of `var_names`.

    As in ArviZ: a name is that of a parameter (`theta`) or of one coordinate (`theta[Choate]`); `filter_vars` makes it
    a part of the name ("like") or a regular expression ("regex"); a leading `~` excludes what it names.
    """
    checks.choice("filter_vars", filter_vars, (None, "like", "regex"))
    if var_names is None:
        return np.arange(len(result.labels))
    given = [var_names] if isinstance(var_names, str) else checks.entries("var_names", var_names)
    if not given or not all(isinstance(name, str) and name.lstrip("~") for name in given):
        raise TypeError(f"var_names must be a name, a list of names, or None; got {checks.describe(var_names)}.")
    if len({name.startswith("~") for name in given}) > 1:
        raise ValueError(f"var_names must all begin with ~, or none of them; got {checks.describe(var_names)}.")
    found: list[int] = []
    for name in given:
        matches = _matches(result, name.removeprefix("~"), filter_vars)
        if not matches:
            names = [parameter.name for parameter in result.target.shown]
            raise ValueError(f"var_names must name parameters out of {checks.describe(names)}; got {name!r}.")
        found += [i for i in matches if i not in found]
    if given[0].startswith("~"):
        left = [i for i in range(len(result.labels)) if i not in found]
        if not left:
            raise ValueError(f"var_names must leave a parameter; {checks.describe(var_names)} excludes all of them.")
        return np.array(left)
    return np.array(found)


def _matches(result: "Result", name: str, filter_vars: str | None) -> list[int]:
    """Coordinates whose parameter or own label matches."""
    parents = [parameter.name for parameter in result.target.shown for _ in range(parameter.size)]

    def is_match(text: str) -> bool:
        if filter_vars == "like":
            return name in text
        return re.search(name, text) is not None if filter_vars == "regex" else name == text

    try:
        return [i for i, pair in enumerate(zip(parents, result.labels, strict=True)) if any(map(is_match, pair))]
    except re.error as error:
        raise ValueError(f"var_names must be regular expressions; {name!r} is not: {error}.") from None


def chosen_labels(result: "Result", chosen: Int[np.ndarray, " chosen"]) -> list[str]:
    """The labels of the chosen coordinates."""
    return [result.labels[i] for i in chosen]


def values_of(result: "Result", chosen: Int[np.ndarray, " chosen"]) -> Any:
    """The chosen coordinates of all points, (chain, draw, particle, chosen)."""
    return result.coordinates[..., chosen]
