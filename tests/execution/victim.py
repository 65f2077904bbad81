"""A run to be killed: `python victim.py store draws` begins it, or goes on with it if it is there, and says when."""

import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import pseudo_extended as pe
from pseudo_extended.run import stored

METHOD = pe.PseudoExtended(pe.Fixed(0.3), pe.HMC(2), 2)
WARMUP = 20_000


def log_density(x):
    return jnp.logaddexp(-0.5 * jnp.sum((x - 2) ** 2), -0.5 * jnp.sum((x + 2) ** 2))


def run(store, draws, **options):
    """Begin, or go on."""
    stored.LEAST_SECONDS = 0.05
    stored.SECONDS_BETWEEN_VIEWS = 0.1
    stored.CHUNK_BYTES = 2**14  # many small chunks
    if store is not None and (Path(store) / "engine" / "manifest.json").exists():
        return pe.resume(store, log_density, **options)
    return pe.sample(
        log_density,
        np.zeros(2),
        method=METHOD,
        draws=draws,
        warmup=WARMUP,
        chains=3,
        seed=7,
        store=store,
        **options,
    )


if __name__ == "__main__":
    sys.stdout.write("begin\n")
    sys.stdout.flush()
    run(sys.argv[1], int(sys.argv[2]), progress=False)
    sys.stdout.write("done\n")
