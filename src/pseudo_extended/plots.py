"""Plots of results: `pe.plots.corner(result)` and others; the common ones are methods too, `result.plot_corner()`.

The list of them is that of `results/plots/__init__.py`, which `Result` uses as well.
"""

from pseudo_extended.results.plots import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]
from pseudo_extended.results.plots import __all__ as __all__
