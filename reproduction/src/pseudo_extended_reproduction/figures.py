"""How the figures look, and how they are saved: WebP and SVG."""

import importlib.util
from io import BytesIO
from pathlib import Path
from typing import Any

COLOURS = {
    "truth": "#444444", "hmc": "#c0392b", "pe": "#1f6f8b", "default": "#2e8b57", "ais": "#b07d2b", "st": "#7d5ba6",
    "gs": "#c2588f", "ram": "#8c6d31", "ee": "#5b7f95", "pt": "#a55194",
}  # fmt: skip


def check_matplotlib() -> None:
    """A sentence if there is none."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("figures need matplotlib: pip install 'pseudo-extended[plots]'.")


def colour(method: str) -> str:
    """By the kind of method."""
    return COLOURS[method.partition("-")[0]]


def new_figure(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Any, Any]:
    """A figure and its axes, as an array of two dimensions; drawn without pyplot, which keeps figures and threads."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def plain_log_ticks(axis: Any) -> None:
    """0.2, 0.5, 1 and so on, as many as there is room for, instead of powers of ten that run into each other."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter(NullFormatter())


def save(figure: Any, path: Path) -> list[Path]:
    """Write the figure as WebP, in 20 colours to keep it small, and as SVG, without a date to be reproducible."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    written = [path.with_suffix(".webp"), path.with_suffix(".svg")]
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=130)
    with Image.open(drawn) as picture:
        small = picture.convert("RGB").quantize(20, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.convert("RGB").save(written[0], lossless=True, quality=100, method=6)
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "pseudo-extended", "svg.fonttype": "none"}):
        figure.savefig(written[1], metadata={"Date": None})
    return written
