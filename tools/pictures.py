"""The pictures of the documentation, from two short runs: `python tools/pictures.py docs/pictures`.

A slow test makes them again and compares their names with what the pages show.
"""

import argparse
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np

import pseudo_extended as pe
from site_pictures import save_small

MEANS = np.array([[-4.0, 0.0, 1.0], [3.0, 1.0, 0.0], [4.0, -5.0, 0.0]])
SCALES = np.array([[0.5, 0.5, 1.0], [1.0, 1.0, 0.4], [0.8, 0.6, 1.0]])
MASSES = np.array([0.3, 0.5, 0.2])
SHORT = 120
"""Draws of which every one is drawn; more would be a black bar, and a large file."""
KINDS = ("corner", "marginals", "trace", "journey", "temperatures", "pilot", "weights", "modes", "evidence")


def log_density(position: dict[str, Any]) -> Any:
    """Three normals of different widths, and an exponential."""
    z = (position["theta"] - MEANS) / SCALES
    heights = jnp.log(MASSES) - jnp.sum(jnp.log(SCALES), axis=1) - 0.5 * jnp.sum(z**2, axis=1)
    return jax.nn.logsumexp(heights) - 1.5 * jnp.log(2 * jnp.pi) - position["tau"]


def three_modes(draws: int) -> pe.Result:
    """A run on them."""
    example = {"theta": np.zeros(3), "tau": 1.0}
    target = pe.Target(
        log_density,
        example,
        bounds={"tau": (0, None)},
        dims={"theta": ["school"]},
        coords={"school": ["Choate", "Deerfield", "Phillips"]},
    )
    return pe.sample(target, example, draws=draws, seed=1, progress=False)


def eggbox(draws: int) -> pe.Result:
    """A run on the eggbox of nested samplers."""
    target = pe.from_prior_transform(
        lambda theta: (2 + jnp.prod(jnp.cos(theta / 2))) ** 5, lambda u: 10 * jnp.pi * u, names=["x", "y"]
    )
    return pe.sample(target, draws=draws, seed=1, progress=False)


def make(directory: Path, draws: int = 1000) -> list[Path]:
    """All pictures, and their paths."""
    mpl.use("Agg")
    result, many, short = three_modes(draws), eggbox(draws), three_modes(SHORT)
    drawn = {kind: getattr(short if kind in ("journey", "trace") else result, f"plot_{kind}")() for kind in KINDS}
    drawn["comparison"] = pe.plots.comparison({"all draws": result, "mode 0 alone": result.at(0)})
    drawn["eggbox"] = many.plot_corner()
    paths = []
    for name, plot in drawn.items():
        figure = plot if hasattr(plot, "savefig") else plot.get_figure()
        paths.append(save_small(figure, directory / f"{name}.webp"))
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
