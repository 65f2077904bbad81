"""The ranks of a calibration: whether they are uniform, as a table and as a picture."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import chdtrc

NUM_REFERENCES = 2000
"""Sets of uniform ranks with which the observed ones are compared."""
LEVEL = 0.01
"""Quantities with a smaller p-value, times the number of quantities, are said to be off."""


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Ranks of the true values among posterior draws; `print` shows a test of their uniformity for each quantity."""

    ranks: pd.DataFrame
    """A row for each simulation and a column for each quantity: how many of the `num_points` draws are smaller."""
    num_points: int
    """Posterior draws that a true value is ranked among: ranks are 0 to this number, all alike if all is right."""
    runs: pd.DataFrame
    """Of each simulation: the smallest effective sample size, and the codes of its warnings."""

    def table(self) -> pd.DataFrame:
        """Tabulate for each quantity the mean rank, as a share, and p-values that its ranks are uniform.

        `p_ecdf` is of the largest distance between the distribution of the ranks and the uniform one, which sees a
        shift and a wrong width; `p_bins` is Pearson's chi-squared test of a histogram.
        """
        rows = {}
        for name in self.ranks:
            ranks = self.ranks[name].to_numpy(int)
            rows[name] = {
                "mean_rank": float(np.mean(ranks) / self.num_points),
                "p_ecdf": ecdf_p_value(ranks, self.num_points),
                "p_bins": bins_p_value(ranks, self.num_points),
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("quantity")

    @property
    def suspects(self) -> list[str]:
        """The quantities whose ranks are not uniform, with Bonferroni's correction for their number."""
        table = self.table()
        p = np.minimum(2 * table[["p_ecdf", "p_bins"]].min(axis=1) * len(table), 1.0)
        return [str(name) for name in table.index[np.asarray(p) < LEVEL]]

    def __repr__(self) -> str:
        warned = int(np.sum(self.runs["warnings"] != ""))
        suspects = self.suspects
        verdict = "no quantity is off." if not suspects else f"! not calibrated: {', '.join(suspects)}."
        return "\n".join(
            [
                f"Calibration by {len(self.ranks)} simulations, ranks of 0 to {self.num_points}; {warned} had warnings",
                self.table().map(lambda value: f"{value:.3g}").to_string(),
                verdict,
            ]
        )

    def plot(self, num_bins: int = 16) -> Any:
        """Histograms of the ranks, with the band that holds 99 % of the bars if all is right; a matplotlib figure."""
        from matplotlib.figure import Figure
        from scipy.stats import binom

        number, names = len(self.ranks), list(self.ranks)
        columns = min(3, len(names))
        figure = Figure(figsize=(3.2 * columns, 2.4 * -(-len(names) // columns)), layout="constrained")
        axes = np.atleast_1d(figure.subplots(-(-len(names) // columns), columns, squeeze=False)).ravel()
        edges = bin_edges(self.num_points, num_bins)
        width = np.diff(edges) / (self.num_points + 1)
        low, high = binom.ppf(0.005, number, width), binom.ppf(0.995, number, width)
        for axis, name in zip(axes, names, strict=False):
            counts = np.histogram(self.ranks[name], edges)[0]
            axis.stairs(high, edges, baseline=low, fill=True, color="0.85")
            axis.stairs(counts, edges, color="C0")
            axis.set_title(str(name), fontsize="small")
            axis.set_xlabel("rank")
        for axis in axes[len(names) :]:
            axis.set_axis_off()
        return figure


def bin_edges(num_points: int, num_bins: int) -> Float[np.ndarray, " edge"]:
    """Edges of bins that hold whole ranks, as equal as they can be."""
    return np.unique(np.round(np.linspace(0, num_points + 1, min(num_bins, num_points + 1) + 1))) - 0.5


def bins_p_value(ranks: Int[np.ndarray, " simulation"], num_points: int) -> float:
    """Pearson's test of uniformity, with bins that expect five or more."""
    edges = bin_edges(num_points, int(np.clip(len(ranks) // 5, 2, 20)))
    expected = len(ranks) * np.diff(edges) / (num_points + 1)
    counts = np.histogram(ranks, edges)[0]
    return float(chdtrc(len(expected) - 1, np.sum((counts - expected) ** 2 / expected)))


def ecdf_p_value(ranks: Int[np.ndarray, " simulation"], num_points: int) -> float:
    """How often uniform ranks are as far from the uniform distribution as these; by simulation, always the same.

    >>> ecdf_p_value(np.arange(100) % 20, 19) > 0.9, ecdf_p_value(np.zeros(100, int), 19) < 0.01
    (True, True)
    """
    uniform = np.arange(1, num_points + 2) / (num_points + 1)

    def distance(some: np.ndarray) -> float:
        return float(np.max(np.abs(np.cumsum(np.bincount(some, minlength=num_points + 1)) / len(some) - uniform)))

    rng = np.random.default_rng(0)
    observed = distance(ranks)
    as_far = sum(
        distance(rng.integers(0, num_points + 1, len(ranks))) >= observed - 1e-12 for _ in range(NUM_REFERENCES)
    )
    return (1 + as_far) / (1 + NUM_REFERENCES)
