"""Plots of weighted results. matplotlib is imported when the first of them is drawn: it is the extra `plots`."""

from pseudo_extended.results.plots.comparison import plot_comparison as comparison
from pseudo_extended.results.plots.corner import plot_corner as corner
from pseudo_extended.results.plots.evidence import plot_evidence as evidence
from pseudo_extended.results.plots.journey import plot_journey as journey
from pseudo_extended.results.plots.marginals import plot_marginals as marginals
from pseudo_extended.results.plots.masses import plot_modes as modes
from pseudo_extended.results.plots.pilot import plot_pilot as pilot
from pseudo_extended.results.plots.style import COLUMN as COLUMN
from pseudo_extended.results.plots.style import PAGE as PAGE
from pseudo_extended.results.plots.style import STYLE as STYLE
from pseudo_extended.results.plots.temperatures import plot_temperatures as temperatures
from pseudo_extended.results.plots.trace import plot_trace as trace
from pseudo_extended.results.plots.weights import plot_weights as weights

__all__ = [
    "COLUMN",
    "PAGE",
    "STYLE",
    "comparison",
    "corner",
    "evidence",
    "journey",
    "marginals",
    "modes",
    "pilot",
    "temperatures",
    "trace",
    "weights",
]
