"""What a second pilot costs, and what it sees: `python benchmarks/pilots.py`.

Each run has two pilots with two chains each. On the hard targets a pilot may miss a mode; the table says how often one
did, how often both did (which nobody is told of), and how often a warning told that exactly one did.
"""

import argparse
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import pseudo_extended as pe

ALARMS = {"PE506", "PE508"}


def with_mode(dim: int, mass: float, scale: float, distance: float) -> Callable[[jax.Array], jax.Array]:
    """A unit normal and a mode of this mass, `scale` times as wide, at this distance."""
    place = np.full(dim, distance / np.sqrt(dim))

    def log_density(x: jax.Array) -> jax.Array:
        wide = jnp.log1p(-mass) - 0.5 * jnp.sum(x**2)
        narrow = jnp.log(mass) - 0.5 * jnp.sum(((x - place) / scale) ** 2) - dim * jnp.log(scale)
        return jnp.logaddexp(wide, narrow)

    return log_density


TARGETS = {
    "two equal normals, d = 2": (2, with_mode(2, 0.5, 1.0, 8.0)),
    "a tenth at a third of the width, d = 5": (5, with_mode(5, 0.1, 0.3, 6.0)),
    "a tenth at a third of the width, d = 8": (8, with_mode(8, 0.1, 0.3, 6.0)),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    seeds = parser.parse_args().seeds
    print("| target | runs | pilots that missed the mode | both | one, and told | false alarms | pilot's evaluations, "
          "share of the second | processor seconds of a run |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    for name, (dim, log_density) in TARGETS.items():
        missed, both, told, false, share, seconds = 0, 0, 0, 0, [], []
        for seed in range(seeds):
            began = time.process_time()
            result = pe.sample(log_density, jnp.zeros(dim), pilots=2, draws=200, seed=seed, progress=False)
            result.modes()
            seconds.append(time.process_time() - began)
            far = np.mean(result.unconstrained, axis=-1) > 3 / np.sqrt(dim)
            held = np.einsum("cdp,cdp->c", result.weights, far).reshape(2, 2).sum(axis=1)
            misses = int(np.sum(held == 0))
            alarmed = bool(ALARMS & {message.code for message in result.warnings})
            missed, both = missed + misses, both + (misses == 2)
            told, false = told + (misses == 1 and alarmed), false + (misses != 1 and alarmed)
            assert result.evaluations is not None
            share.append(0.5 * result.evaluations.pilot / sum(result.evaluations))
        print(f"| {name} | {seeds} | {missed} of {2 * seeds} | {both} | {told} of {missed - 2 * both} | {false} | "
              f"{100 * np.mean(share):.0f} % | {np.median(seconds):.1f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
