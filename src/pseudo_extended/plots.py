"""Plots of results: `pe.plots.corner(result)` and others; the common ones are methods too, `result.plot_corner()`."""

from pseudo_extended.results.plots import COLUMN as COLUMN
from pseudo_extended.results.plots import PAGE as PAGE
from pseudo_extended.results.plots import STYLE as STYLE
from pseudo_extended.results.plots import comparison as comparison
from pseudo_extended.results.plots import corner as corner
from pseudo_extended.results.plots import evidence as evidence
from pseudo_extended.results.plots import journey as journey
from pseudo_extended.results.plots import marginals as marginals
from pseudo_extended.results.plots import modes as modes
from pseudo_extended.results.plots import pilot as pilot
from pseudo_extended.results.plots import temperatures as temperatures
from pseudo_extended.results.plots import trace as trace
from pseudo_extended.results.plots import weights as weights

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
