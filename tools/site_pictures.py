"""The pictures that explain the method, each from a run: `python tools/site_pictures.py docs/pictures`.

`tools/pictures.py` draws those of the page about plots. Both keep few colours, so that a picture is some kilobytes.
"""

import argparse
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import pseudo_extended as pe

OURS, STUCK, TRUTH, SOFT = "#1f6f8b", "#c0392b", "#444444", "#bbbbbb"
BEACONS = np.array([[-3.0, 0.0], [0.0, 0.2], [3.0, 0.1]])
MEASURED, NOISE = np.array([4.5, 2.0, 2.9]), 0.2
STYLE: dict[Any, Any] = {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "figure.dpi": 130}


def ship(position: Any) -> Any:
    """The posterior of the first tutorial: a ship that measured its distances to three beacons."""
    distances = jnp.sqrt(jnp.sum((position - BEACONS) ** 2, axis=1))
    return -0.5 * jnp.sum(((MEASURED - distances) / NOISE) ** 2) - 0.5 * jnp.sum((position / 5) ** 2)


def two_normals(x: Any) -> Any:
    """A third of the mass at -6, two thirds at 6."""
    return jnp.logaddexp(jnp.log(1.0) - 0.5 * jnp.sum((x + 6) ** 2), jnp.log(2.0) - 0.5 * jnp.sum((x - 6) ** 2))


def density(x: np.ndarray) -> np.ndarray:
    """The density of `two_normals`, normalised."""
    return (np.exp(-0.5 * (x + 6) ** 2) + 2 * np.exp(-0.5 * (x - 6) ** 2)) / (3 * np.sqrt(2 * np.pi))


def ship_results(draws: int) -> tuple[pe.Result, pe.Result]:
    """The default and NUTS, from the start of the tutorial."""
    options: dict[str, Any] = {"draws": draws, "seed": 1, "progress": False}
    target = pe.Target(ship, np.ones(2))
    ours = pe.sample(target, np.ones(2), **options)
    return ours, pe.sample(target, np.ones(2), method=pe.Plain(pe.NUTS()), warmup=500, **options)


def draw_valley(draws: int) -> Figure:
    """The density, and the histogram of NUTS."""
    stuck = pe.sample(
        two_normals, np.full(1, 6.0), method=pe.Plain(pe.NUTS()), draws=draws, warmup=300, seed=1, progress=False
    )
    x = np.linspace(-10, 10, 400)
    figure, ax = plt.subplots(figsize=(4.6, 1.9), layout="constrained")
    ax.hist(
        stuck.points.ravel(),
        bins=np.linspace(-10, 10, 81).tolist(),
        density=True,
        color=STUCK,
        alpha=0.45,
        label="NUTS",
    )
    ax.plot(x, density(x), color=TRUTH, label="the density")
    tempered = density(x) ** 0.1
    ax.plot(x, tempered / (tempered.sum() * (x[1] - x[0])), color=OURS, linestyle="--", label="tempered, β = 0.1")
    ax.set(xlabel="x", yticks=[])
    ax.legend(frameon=False)
    return figure


def draw_extended(_: int) -> Figure:
    """Ten draws of the paper's method with four pseudo-samples."""
    method = pe.PseudoExtended(pe.Fixed(0.05), pe.HMC(6), num_particles=4)
    result = pe.sample(
        two_normals, np.full(1, 6.0), method=method, draws=10, warmup=300, thin=8, chains=1, seed=3, progress=False
    )
    points, weights = result.points[0, :, :, 0], result.weights[0]
    x = np.linspace(-12, 12, 400)
    figure, ax = plt.subplots(figsize=(4.6, 2.4), layout="constrained")
    ax.fill_between(x, 10.4, 10.4 + 6 * density(x), color=SOFT, alpha=0.5, linewidth=0)
    for draw, (row, weight) in enumerate(zip(points, weights, strict=True)):
        ax.axhline(draw, color=SOFT, linewidth=0.4, zorder=0)
        ax.scatter(row, np.full(4, draw), s=3 + 55 * weight, color=OURS, alpha=0.8, linewidths=0)
    ax.set(xlabel="x", ylabel="draw", xlim=(-12, 12), ylim=(-0.6, 13))
    ax.set_yticks([0, 5, 9])
    return figure


def draw_travel(_: int) -> Figure:
    """Temperatures of four pseudo-samples of the default, on its path from a broad normal."""
    target = pe.Target(two_normals, np.zeros(1), base=pe.Normal(0.0, 20.0))
    method = pe.AdaptivePseudoExtended(4, base="target")
    result = pe.sample(target, method=method, draws=50, chains=1, seed=1, progress=False)
    beta, carrier = result.statistics["beta"][0], result.statistics["carrier"][0]
    figure, ax = plt.subplots(figsize=(4.6, 2.0), layout="constrained")
    for particle, colour in enumerate((OURS, STUCK, "#8e6c00", "#6a4c93")):
        ax.plot(beta[:, particle], color=colour, linewidth=1.0)
        held = carrier == particle
        ax.scatter(np.flatnonzero(held), np.full(held.sum(), 1.06), s=9, marker="s", color=colour, linewidths=0)
    ax.set(xlabel="draw", ylabel="β", ylim=(-0.04, 1.1), yticks=[0, 0.5, 1])
    return figure


def draw_nuts(ours: pe.Result, stuck: pe.Result) -> Figure:
    """The northing of both runs."""
    figure, ax = plt.subplots(figsize=(4.6, 1.8), layout="constrained")
    bins = np.linspace(-3, 3, 61).tolist()
    ax.hist(ours.points[..., 1].ravel(), bins, weights=ours.weights.ravel(), density=True, color=OURS, alpha=0.6)
    ax.hist(stuck.points[..., 1].ravel(), bins, density=True, histtype="step", color=STUCK)
    ax.set(xlabel="x[1] (north)", yticks=[])
    ax.text(-1.7, 1.0, "this library", color=OURS, ha="center")
    ax.text(1.2, 1.9, "NUTS", color=STUCK, ha="right")
    return figure


def save_small(figure: Any, path: Path, dpi: int = 130, colours: int = 16) -> Path:
    """A lossless WebP with few colours."""
    drawn = BytesIO()
    figure.savefig(drawn, dpi=dpi)
    small = Image.open(drawn).convert("RGB").quantize(colours, dither=Image.Dither.NONE)
    small.convert("RGB").save(path, lossless=True, quality=100, method=6)
    return path


def make(directory: Path, draws: int = 1000) -> list[Path]:
    """All pictures, and their paths."""
    mpl.use("Agg")
    paths = []
    with mpl.rc_context(STYLE):
        makers: Sequence[tuple[str, Callable[[int], Figure]]] = (
            ("valley", draw_valley), ("extended", draw_extended), ("travel", draw_travel)
        )  # fmt: skip
        for name, maker in makers:
            paths.append(save_small(maker(draws), directory / f"{name}.webp"))
        ours, stuck = ship_results(draws)
        paths.append(save_small(draw_nuts(ours, stuck), directory / "ship_nuts.webp"))
    paths.append(save_small(ours.plot_corner(), directory / "ship.webp"))
    return paths


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    directory = parser.parse_args().directory
    directory.mkdir(parents=True, exist_ok=True)
    print(*make(directory), sep="\n")


if __name__ == "__main__":
    main()
