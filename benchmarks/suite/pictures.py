"""Pictures of the suite: error against cost, coverage of stated errors, and who found which modes."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from suite.report import Row

COLOURS = {
    "default": "black", "default-transform": "0.35", "default-no-gradient": "0.75",
    "nuts": "0.6", "dynesty": "C0", "ultranest": "C1", "nautilus": "C2", "tempest": "C3",
    "blackjax-smc": "C4", "blackjax-nss": "C5", "pymc-smc": "C6", "numpyro": "C7", "nutpie": "C8", "emcee": "C9",
    "reddemcee": "gold",
}  # fmt: skip
NUM_COLOURS = 24
"""In a picture that is kept in the repository."""


def draw(rows: list[Row], directory: Path) -> None:
    """All pictures."""
    import matplotlib as mpl

    mpl.use("Agg")
    for cost, label in (("evaluations", "evaluations"), ("process_cpu", "processor seconds")):
        _costs(rows, cost, label, directory / f"error_by_{cost}.webp")
    _coverage(rows, directory / "coverage.webp")
    _modes(rows, directory / "modes.webp")


def error_of(row: Row) -> float | None:
    """One number for a row: the larger of the errors of masses and of moments."""
    errors = [error for error in (row.typical("mass"), row.typical("moment")) if error is not None]
    return max(errors) if errors else None


def _costs(rows: list[Row], cost: str, label: str, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8.5, 5.5), constrained_layout=True)
    for peer in dict.fromkeys(row.peer for row in rows):
        own = [(row.median(cost), error_of(row)) for row in rows if row.peer == peer and row.outcomes]
        known = np.array([(x, max(y, 1e-4)) for x, y in own if y is not None]).reshape(-1, 2)
        size, marker = (60, "*") if peer == "default" else (22, "o")
        axes.scatter(*known.T, s=size, marker=marker, color=COLOURS[peer], label=peer, alpha=0.8, linewidths=0)
    axes.set(xscale="log", yscale="log", xlabel=f"{label} (median over seeds)")
    axes.set_ylabel("largest error of a mass, or of a moment in sds")
    axes.axhline(0.1, color="0.8", linewidth=1, zorder=0)
    axes.legend(fontsize=8, ncols=2, frameon=False)
    axes.set_title("A point is a problem; below the line, no error is larger than 0.1", fontsize=10)
    _save(figure, path)


def _coverage(rows: list[Row], path: Path) -> None:
    import matplotlib.pyplot as plt

    peers = [peer for peer in dict.fromkeys(row.peer for row in rows) if _zs(rows, peer).size]
    figure, axes = plt.subplots(figsize=(8.5, 0.6 + 0.45 * len(peers)), constrained_layout=True)
    for place, peer in enumerate(reversed(peers)):
        z = np.clip(_zs(rows, peer), 0.03, 300)
        jitter = np.linspace(-0.2, 0.2, len(z)) if len(z) > 1 else np.zeros(1)
        axes.scatter(z, place + jitter, s=22, color=COLOURS[peer], alpha=0.8, linewidths=0)
        axes.text(320, place, f"{np.sum(z <= 2)} of {len(z)}", va="center", fontsize=8)
    axes.axvspan(0.03, 2, color="0.93", zorder=0)
    axes.set(xscale="log", xlim=(0.03, 300), xlabel="error of log Z in stated errors (shaded: within two)")
    axes.set_yticks(range(len(peers)), reversed(peers))
    _save(figure, path)


def _zs(rows: list[Row], peer: str) -> np.ndarray:
    own = [each.evidence_z for row in rows if row.peer == peer for each in row.scores]
    return np.abs(np.array([z for z in own if z is not None], float))


def _modes(rows: list[Row], path: Path) -> None:
    import matplotlib.pyplot as plt

    peers = list(dict.fromkeys(row.peer for row in rows))
    names = [name for name in dict.fromkeys(row.problem for row in rows) if _modes_asked(rows, name) > 1]
    share = np.full((len(names), len(peers)), np.nan)
    failed = np.zeros(share.shape, bool)
    for row in rows:
        if row.problem not in names:
            continue
        at = names.index(row.problem), peers.index(row.peer)
        failed[at] = not row.outcomes
        if row.outcomes:
            share[at] = np.mean([each.found / each.modes for each in row.scores])
    figure, axes = plt.subplots(figsize=(1.5 + 0.62 * len(peers), 1.6 + 0.24 * len(names)), constrained_layout=True)
    image = axes.imshow(share, vmin=0, vmax=1, cmap="RdYlGn", aspect="auto")
    for (i, j), value in np.ndenumerate(share):
        text = "×" if failed[i, j] else "" if np.isnan(value) else f"{100 * value:.0f}"
        axes.text(j, i, text, ha="center", va="center", fontsize=7)
    axes.set_xticks(range(len(peers)), peers, rotation=60, ha="right", fontsize=8)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_title("Share of the modes found, per cent; × failed or ran out of time", fontsize=10)
    figure.colorbar(image, shrink=0.5)
    _save(figure, path)


def _modes_asked(rows: list[Row], name: str) -> int:
    return max((each.modes for row in rows if row.problem == name for each in row.scores), default=0)


def _save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt
    from PIL import Image

    drawn = BytesIO()
    figure.savefig(drawn, dpi=110, format="png")
    # A third of the size, and nobody sees a difference in lines and areas of a few colours.
    few = Image.open(drawn).convert("RGB").quantize(NUM_COLOURS, dither=Image.Dither.NONE)
    few.convert("RGB").save(path, lossless=True, method=6, quality=100)
    plt.close(figure)
