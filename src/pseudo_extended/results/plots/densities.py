"""What plots of parameters share: the chosen coordinates with weights, modes and bounds, and their densities."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from jaxtyping import Float, Int
from scipy.ndimage import gaussian_filter, gaussian_filter1d

from pseudo_extended import checks
from pseudo_extended.results.modes import Modes
from pseudo_extended.results.selection import chosen_labels, select, values_of

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

Names = str | Sequence[str] | None
GRID = 512
PLANE = 96
"""Cells of a grid along a coordinate, for one and for two of them."""
DENSEST_OF_NORMAL = 0.507
"""Standard deviations: how wide the interval around the mean of a normal is that holds a fifth of it."""
OUTSIDE = 2e-4
"""The share of the weight that may lie beyond either end of an axis."""


class Shown(NamedTuple):
    """The coordinates that a plot shows, flat over chains, draws and particles; points without weight are left out."""

    labels: list[str]
    values: Float[np.ndarray, "point chosen"]
    weights: Float[np.ndarray, " point"]
    """They sum to one."""
    modes: Int[np.ndarray, " point"]
    """The mode of each point; 0 for all if there is one mode, or none were looked for."""
    num_modes: int
    masses: Float[np.ndarray, " mode"]
    bounds: list[tuple[float, float]]
    omitted: int
    """Coordinates that were left out because there are too many, and none were chosen."""


def shown(
    result: "Result", var_names: Names, filter_vars: str | None, modes: Any, most: int, truths: Any = None
) -> tuple[Shown, Float[np.ndarray, " chosen"]]:
    """The coordinates to show, and the truths for them, nan where there are none."""
    found = modes_for(result, modes)
    chosen = select(result, var_names, filter_vars)
    omitted = 0
    if var_names is None and len(chosen) > most:
        omitted = len(chosen) - most
        chosen = _most_telling(result, found, most)
    weights = result.weights.ravel()
    kept = np.flatnonzero(weights > 1e-12 * weights.max())
    labels = np.zeros(len(kept), int) if found is None else np.maximum(found.labels.ravel()[kept], 0)
    num_modes = 1 if found is None else len(found)
    share = weights[kept] / weights[kept].sum()
    names = chosen_labels(result, chosen)
    values = values_of(result, chosen).reshape(-1, len(chosen))[kept]
    masses = np.bincount(labels, share, num_modes)
    ends = known_bounds(result)
    bounds = [ends.get(name, (-np.inf, np.inf)) for name in names]
    return Shown(names, values, share, labels, num_modes, masses, bounds, omitted), _truths(result, truths, chosen)


def modes_for(result: "Result", modes: Any) -> Modes | None:
    """The modes to colour by: those given, those of the result (None), or none (False)."""
    if modes is None or modes is True:
        return result._shown_modes() if modes is None else result.modes()
    if modes is False:
        return None
    return checks.instance("modes", modes, Modes, "what result.modes() returns, True, False or None")


def known_bounds(result: "Result") -> dict[str, tuple[float, float]]:
    """Hard bounds by coordinate; only those of a target without a view are known."""
    target = result.target
    if target.view is not None:
        return {}
    names, found = iter(result.labels), {}
    for parameter, bounds in zip(target.parameters, target.bounds, strict=True):
        for i in range(parameter.size):
            name = next(names)
            if bounds is not None:
                found[name] = float(bounds.lower[i]), float(bounds.upper[i])
    return found


def _most_telling(result: "Result", modes: Modes | None, most: int) -> Int[np.ndarray, " chosen"]:
    """Coordinates in which the modes differ most; without modes, the first ones."""
    if modes is None or len(modes) < 2:
        return np.arange(most)
    return np.array([result.labels.index(name) for name in modes._telling_coordinates(most)])


def _truths(result: "Result", truths: Any, chosen: Int[np.ndarray, " chosen"]) -> Float[np.ndarray, " chosen"]:
    """Read the true values, from a mapping of names to values or a sequence in the order of what is shown."""
    found = np.full(len(result.labels), np.nan)
    if truths is None:
        return found[chosen]
    if not isinstance(truths, Mapping):
        array = checks.float_array("truths", truths, finite=False)
        if array.shape not in ((len(chosen),), (len(found),)):
            raise ValueError(
                f"truths must have a value for each of the {len(chosen)} coordinates shown, or be a mapping from "
                f"names to values; got shape {array.shape}."
            )
        return array if array.shape == (len(chosen),) else array[chosen]
    for name, value in truths.items():
        array = checks.float_array(f"truths for {name!r}", value).ravel()
        places = select(result, name)
        if array.size != len(places):
            raise ValueError(f"truths for {name!r} must have {len(places)} value(s); got {array.size}.")
        found[places] = array
    return found[chosen]


def limits(values: Float[np.ndarray, " point"], weights: Float[np.ndarray, " point"]) -> tuple[float, float]:
    """The ends of an axis that hold nearly all of the weight, with some room."""
    order = np.argsort(values)
    upto = np.cumsum(weights[order]) / np.sum(weights)
    low, high = values[order][np.searchsorted(upto, [OUTSIDE, 1 - OUTSIDE]).clip(0, len(values) - 1)]
    room = 0.06 * (high - low) or 0.5 * max(abs(low), 1.0)
    return float(low - room), float(high + room)


class Curve(NamedTuple):
    """Densities along one coordinate, each mode's times its mass."""

    grid: Float[np.ndarray, " grid"]
    by_mode: Float[np.ndarray, "mode grid"]

    @property
    def total(self) -> Float[np.ndarray, " grid"]:
        """The sum over all modes."""
        return self.by_mode.sum(axis=0)


def curve(data: Shown, i: int, span: tuple[float, float] | None = None) -> Curve:
    """Kernel densities of a coordinate, with a bandwidth for each mode, mirrored at hard bounds."""
    x, low, high = data.values[:, i], *data.bounds[i]
    first, last = limits(x, data.weights) if span is None else span
    first, last = max(first, low), min(last, high)
    width = (last - first) / GRID
    edges = first + width * np.arange(GRID + 1)
    by_mode = np.zeros((data.num_modes, GRID))
    for k in range(data.num_modes):
        here = data.modes == k
        if here.any():
            counts = np.histogram(x[here], edges, weights=data.weights[here])[0]
            smooth = bandwidth(x[here], data.weights[here]) / width
            mirrored = _ends_at_bound((low, high), (first, last))
            by_mode[k] = gaussian_filter1d(counts, smooth, mode="reflect" if mirrored else "constant") / width
    return Curve((edges[:-1] + edges[1:]) / 2, by_mode)


def plane(data: Shown, i: int, j: int, mode: int, spans: tuple[Any, Any]) -> Float[np.ndarray, "row column"]:
    """A mode's density of two coordinates on a grid, a row for each value of the second, mirrored at hard bounds."""
    which = data.modes == mode
    if not which.any():
        return np.zeros((PLANE, PLANE))
    x, y, weights = data.values[which, i], data.values[which, j], data.weights[which]
    counts = np.histogram2d(y, x, PLANE, range=(spans[1], spans[0]), weights=weights)[0]
    steps = [(span[1] - span[0]) / PLANE for span in spans]
    # In two dimensions a kernel is wider, n^(-1/6) for n^(-1/5), and at least as wide as a cell.
    smooth = [max(1.1 * bandwidth(part, weights) / step, 0.8) for part, step in zip((y, x), steps[::-1], strict=True)]
    edges = [
        "reflect" if _ends_at_bound(data.bounds[k], span) else "constant" for k, span in ((j, spans[1]), (i, spans[0]))
    ]
    return gaussian_filter(counts, smooth, mode=cast(Any, edges))


def _ends_at_bound(bounds: tuple[float, float], span: tuple[float, float]) -> bool:
    return bounds[0] == span[0] or bounds[1] == span[1]


def levels(density: Float[np.ndarray, "..."], probs: Sequence[float]) -> list[float]:
    """Heights above which a density on a grid has these shares of its mass, rising, and no two alike."""
    ordered = np.sort(density.ravel())[::-1]
    upto = np.cumsum(ordered)
    if not upto[-1] > 0:
        return []
    heights = {float(ordered[min(np.searchsorted(upto, prob * upto[-1]), len(ordered) - 1)]) for prob in probs}
    return sorted(height for height in heights if 0 < height < ordered[0])


def bandwidth(x: Float[np.ndarray, " point"], weights: Float[np.ndarray, " point"]) -> float:
    """Silverman's rule, with the number of points that the weights are worth.

    Where nobody has told modes apart, the standard deviation and the quartiles tell how far they are apart and not how
    wide they are, and the densest fifth of the points tells that.
    """
    order = np.argsort(x)
    upto = np.cumsum(weights[order]) / weights.sum()
    places = np.searchsorted(upto, [0.25, 0.75, *np.linspace(0, 0.8, 81), *np.linspace(0.2, 1, 81)])
    lower, upper, *ends = x[order][places.clip(0, len(x) - 1)]
    densest = np.min(np.array(ends[81:]) - ends[:81]) / DENSEST_OF_NORMAL
    mean = np.average(x, weights=weights)
    deviation = np.sqrt(np.average((x - mean) ** 2, weights=weights))
    spread = min(deviation, (upper - lower) / 1.34, densest or np.inf) or deviation or 1e-3 * max(abs(mean), 1.0)
    count = weights.sum() ** 2 / np.sum(weights**2)
    return float(0.9 * spread * count**-0.2)
