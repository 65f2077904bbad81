"""The modes of a result: where they are, how much mass each holds, and how the chains moved between them."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from pseudo_extended import checks
from pseudo_extended.results import estimates
from pseudo_extended.results.assignment import learn_rule
from pseudo_extended.results.clusters import find_clusters
from pseudo_extended.results.estimates import Estimate, Weights
from pseudo_extended.results.landscape import Landscape

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

SAMPLE_SIZE = 1000
"""Points of the sample in which modes are looked for; those of a density in Python are a quarter of it."""
NEGLIGIBLE = 1e-12
"""Points with less than this share of the weight of a draw belong to no mode."""
NUM_NAMED = 3
"""Coordinates that a line about a mode names."""


@dataclass(frozen=True, eq=False, repr=False)
class Modes:
    """Modes found in the weighted draws of a result, the heaviest first; `print` shows them as a table.

    Two modes are apart if every way between them crosses a valley of the density. `result.at(k)` is the result
    restricted to mode k.
    """

    labels: Int[np.ndarray, "chain draw particle"]
    """The mode of every point; -1 for points without weight."""
    mass: Estimate
    """The probability of each mode, with its Monte Carlo error."""
    log_evidence: Estimate | None
    """log of the evidence that each mode holds, log Z + log mass; None if the method estimates no evidence."""
    mean: pd.DataFrame
    """The mean of every coordinate in each mode, in the user's space."""
    sd: pd.DataFrame
    """The standard deviation of every coordinate in each mode: how wide the mode is."""
    peak: pd.DataFrame
    """The highest place of each mode, on the unconstrained scale, shown in the user's space."""
    share: Float[np.ndarray, "mode chain"]
    """The probability of each mode according to each chain alone."""
    visits: Int[np.ndarray, "mode chain"]
    """How often each chain came to each mode; a draw counts for the mode that has most of its weight."""
    crossings: Int[np.ndarray, " chain"]
    """How often each chain went from one mode to another."""
    misassigned: float
    """The share of points that the rule which tells modes apart gives to a wrong one, by cross-validation."""

    def __len__(self) -> int:
        return len(self.share)

    def table(self) -> pd.DataFrame:
        """One row for each mode: mass, evidence, how the chains agree, and the mean of every coordinate."""
        columns = {"mass": self.mass.value, "mcse_mass": self.mass.standard_error}
        if self.log_evidence is not None:
            columns |= {
                "log_evidence": self.log_evidence.value,
                "mcse_log_evidence": self.log_evidence.standard_error,
            }
        columns |= {
            "min_share": self.share.min(axis=1),
            "max_share": self.share.max(axis=1),
            "visits": self.visits.sum(axis=1),
        }
        return pd.concat([pd.DataFrame(columns, index=self.mean.index), self.mean], axis=1)

    def lines(self, max_lines: int = 3) -> list[str]:
        """A line for each mode with its mass and place; of many modes the heaviest, and one line for the others."""
        named = self._telling_coordinates()
        shown = len(self) if len(self) <= max_lines else max_lines - 1
        lines = []
        for k in range(shown):
            place = ", ".join(f"{name} = {self.mean[name].iloc[k]:.3g} ± {self.sd[name].iloc[k]:.2g}" for name in named)
            mass, error = self.mass.value[k], self.mass.standard_error[k]
            lines.append(f"mode {k}: mass {mass:.3f} ± {error:.3f} at {place}")
        if shown < len(self):
            rest = float(np.sum(self.mass.value[shown:]))
            lines.append(f"{len(self) - shown} more modes with a mass of {rest:.3f} together: see result.modes()")
        return lines

    def __repr__(self) -> str:
        count = "1 mode" if len(self) == 1 else f"{len(self)} modes"
        crossings = ", ".join(str(number) for number in self.crossings)
        table = self.table().iloc[:, : 7 if self.log_evidence is not None else 5]
        table = pd.concat([table, self.mean[self._telling_coordinates(8)]], axis=1)
        lines = [f"{count}; crossings by chain: {crossings}", table.map(lambda number: f"{number:.4g}").to_string()]
        return "\n".join(lines)

    def _telling_coordinates(self, most: int = NUM_NAMED) -> list[str]:
        """Coordinates in which the modes differ most, in the order of the result."""
        within = np.sqrt(np.mean(self.sd.to_numpy() ** 2, axis=0)) + 1e-300
        apart = np.std(self.mean.to_numpy(), axis=0) / within
        chosen = np.sort(np.argsort(-apart, kind="stable")[:most])
        return [str(name) for name in self.mean.columns[chosen]]


def find_modes(result: "Result", *, min_mass: float, min_depth: float) -> Modes:
    """The modes of a result; see `Result.modes`."""
    min_mass = checks.real("min_mass", min_mass, low=0, high=1, closed="()")
    min_depth = checks.real("min_depth", min_depth, low=0, closed="()")
    weights = result.weights
    share = weights.ravel() / max(float(weights.sum()), 1e-300)
    if not np.isfinite(share).all() or share.sum() == 0:
        raise ValueError("modes must be looked for in points with weights; no point of this result has any.")
    flat = result.unconstrained.reshape(-1, result.target.dim)
    counts = _systematic(share, SAMPLE_SIZE if not result.target.host_functions else SAMPLE_SIZE // 4)
    rows = np.flatnonzero(counts)
    sample = np.repeat(flat[rows], counts[rows], axis=0)
    clusters = find_clusters(Landscape(result.target, sample), min_depth, min_mass)
    first = np.cumsum(counts[rows]) - counts[rows]
    labels, misassigned = _assign(
        flat, share, rows, clusters.labels[first], clusters.is_sure[first], counts[rows].astype(float)
    )
    return describe_modes(result, labels.reshape(weights.shape), clusters.peaks, misassigned)


def describe_modes(
    result: "Result",
    labels: Int[np.ndarray, "chain draw particle"],
    peaks: Float[np.ndarray, "mode d"],
    misassigned: float,
) -> Modes:
    """Masses, places and visits of modes, from the label of every point; the heaviest first."""
    weights = result.weights
    order = np.argsort([-np.sum(weights[labels == k]) for k in range(len(peaks))], kind="stable")
    number = np.append(np.argsort(order), -1)
    labels, peaks = number[labels], peaks[order]
    inside = labels[..., None] == np.arange(len(peaks))
    mass = estimates.mean(inside.astype(float), weights)
    if len(peaks) == 1:  # everything, whatever the draws are
        mass = mass._replace(standard_error=np.zeros(1))
    moments = [_moments(result.coordinates, weights * inside[..., k]) for k in range(len(peaks))]
    index, columns = pd.Index(range(len(peaks)), name="mode"), pd.Index(result.labels)
    mean, sd = (pd.DataFrame([each[i] for each in moments], index, columns) for i in (0, 1))
    top = result.show(peaks[None, :, None])
    share = np.einsum("cdp,cdpm->mc", weights, inside)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = share / share.sum(axis=0)
    visits, crossings = _visits(np.einsum("cdp,cdpm->cdm", weights, inside))
    evidences = None
    if "evidence_top" in result.statistics:
        found = [restrict(result, labels == k).log_evidence for k in range(len(peaks))]
        evidences = Estimate(*(np.array(parts, float) for parts in zip(*found, strict=True)))
    return Modes(
        labels,
        mass,
        evidences,
        mean,
        sd,
        pd.DataFrame(_flatten(top, 3)[0, :, 0], index, columns),
        share,
        visits,
        crossings,
        misassigned,
    )


def restrict(result: "Result", inside: np.ndarray) -> "Result":
    """The result restricted to the points where `inside` is true: the others have no weight.

    A draw then counts by the share of its weight that is inside. The evidence gets that share as one more factor, so
    that it is the evidence of the part, with the error of the product.
    """
    share = np.sum(np.where(inside, result.weights, 0.0), axis=2)
    with np.errstate(divide="ignore"):
        log_share = np.log(share)
        log_whole = np.log(np.sum(result.weights, axis=2))
    if not np.any(share > 0):
        raise ValueError("inside must hold points with weight; it holds none.")
    log_weights = np.where(inside, result.log_weights, -np.inf)
    empty = ~np.any(np.isfinite(log_weights), axis=2)
    log_weights[empty] = 0.0  # any weights, of a draw that does not count
    log_share = np.where(empty, -np.inf, log_share)
    statistics = dict(result.statistics)
    for name, factor in (("evidence_top", log_share), ("evidence_bottom", log_whole)):
        if name in statistics:
            statistics[name] = np.concatenate([statistics[name], factor[..., None]], axis=2)
    return replace(result, log_weights=log_weights, log_importance=log_share, statistics=statistics)


def _systematic(share: Float[np.ndarray, " point"], size: int) -> Int[np.ndarray, " point"]:
    """How often each point comes into an equally weighted sample; evenly over chains and draws, without chance."""
    upto = np.floor(np.cumsum(share) / np.sum(share) * size + 0.5).astype(int)
    return np.diff(upto, prepend=0)


def _assign(
    flat: Float[np.ndarray, "point d"],
    share: Float[np.ndarray, " point"],
    rows: Int[np.ndarray, " sampled"],
    known: Int[np.ndarray, " sampled"],
    sure: np.ndarray,
    counts: Float[np.ndarray, " sampled"],
) -> tuple[Int[np.ndarray, " point"], float]:
    """Labels of all points, from those of the sampled ones; where these are not sure, from the others."""
    for label in range(known.max() + 1):
        if not np.any(sure & (known == label)):
            sure = sure | (known == label)
    rule, misassigned = learn_rule(flat[rows[sure]], known[sure], counts[sure])
    labels = np.full(len(flat), -1)
    matters = share > NEGLIGIBLE * share.max()
    labels[matters] = rule(flat[matters])
    labels[rows[sure]] = known[sure]
    return labels, misassigned


def _moments(values: np.ndarray, weights: Weights) -> tuple[np.ndarray, np.ndarray]:
    mean = estimates.mean_value(values, weights)
    return np.asarray(mean), np.sqrt(estimates.mean_value((values - mean) ** 2, weights))


def _visits(by_mode: Float[np.ndarray, "chain draw mode"]) -> tuple[Int[np.ndarray, "mode chain"], np.ndarray]:
    """Arrivals at each mode, and all changes of the mode that holds most of a draw; draws without weight are passed."""
    visits, crossings = np.zeros((by_mode.shape[2], len(by_mode)), int), np.zeros(len(by_mode), int)
    for chain, rows in enumerate(by_mode):
        held = np.argmax(rows, axis=1)[rows.sum(axis=1) > 0]
        if held.size:
            arrivals = held[np.append(True, np.diff(held) != 0)]
            visits[:, chain] = np.bincount(arrivals, minlength=by_mode.shape[2])
            crossings[chain] = len(arrivals) - 1
    return visits, crossings


def _flatten(points: object, num_leading: int) -> np.ndarray:
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(points)]
    return np.concatenate([leaf.reshape(*leaf.shape[:num_leading], -1) for leaf in leaves], axis=-1)
