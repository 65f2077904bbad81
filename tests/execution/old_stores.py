"""The runs behind tests/fixtures/store-0.1, which the library at commit 0f5a5b1 (version 0.1.0) wrote:

    PYTHONPATH=/path/to/that/commit/src python tests/execution/old_stores.py tests/fixtures/store-0.1

Every public method, instrument, kernel and base is in one of them; two were stopped in warm-up. Do not write them
again: they are here because no later version wrote them. A later format gets a directory of its own.
"""

import contextlib
import sys
import tarfile
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import pseudo_extended as pe

DRAWS = 40
RUN = {"draws": DRAWS, "warmup": 60, "chains": 2, "seed": 7, "progress": False}


def two_normals(x):
    centres = jnp.array([[-2.0, 0.0], [2.0, 1.0]])
    return jax.nn.logsumexp(-0.5 * jnp.sum((x - centres) ** 2, axis=1) / 0.25)


def based():
    return pe.Target(two_normals, np.zeros(2), base=pe.Normal(0.0, 3.0))


def composed():
    instrument = pe.PerParticle([pe.Fixed(0.2), pe.Tempered(0.1), pe.Density(pe.Normal(0.0, 3.0))])
    return pe.PseudoExtended(instrument, pe.Mixture([pe.Cycle([pe.MALA(), pe.RandomWalk()]), pe.NUTS(4)]), 3)


METHODS = {
    "default": lambda: None,
    "plain-hmc": lambda: pe.Plain(pe.HMC(3)),
    "composed": composed,
    "stratified": lambda: pe.PseudoExtended(pe.Stratified(0.1), pe.HMC(3), 3, metric="dense"),
    "index-gibbs-ladder": lambda: pe.AdaptivePseudoExtended(
        3, pe.RandomWalk(), pe.Ladder([0.1, 0.5, 1.0]), base="target"
    ),
    "parallel-tempering": lambda: pe.ParallelTempering([0.1, 0.4, 1.0], pe.HMC(2)),
    "simulated-tempering": lambda: pe.SimulatedTempering([0.1, 0.4, 1.0], pe.MALA()),
    "annealed-importance": lambda: pe.AnnealedImportance("linear", pe.HMC(2), num_steps=8),
    "equi-energy": lambda: pe.EquiEnergy([-1, 1, 3], [1.0, 3.0, 9.0], burn_in=10, head_start=10, ring_capacity=50),
    "repelling-attracting": lambda: pe.RepellingAttracting(0.5),
    "continuous-tempering": lambda: pe.ContinuousTempering("gibbs", pe.HMC(2), base=pe.Normal(0.0, 3.0), log_zeta=0.0),
    "normal-mixture": lambda: pe.PseudoExtended(
        pe.Density(pe.NormalMixture(np.array([[-2.0, 0.0], [2.0, 1.0]]), np.full((2, 2), 0.7))), pe.NUTS(4), 2
    ),
}


def target_of(name: str):
    return based() if name == "annealed-importance" else two_normals


WARMING = {f"{name}-in-warm-up": name for name in ("default", "plain-hmc")}
"""Stores of runs that were stopped in warm-up, before they had draws, and their methods."""


def write(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, method in METHODS.items():
        with packed(directory / f"{name}.tar.xz") as store:
            pe.sample(target_of(name), np.zeros(2), method=method(), store=store, **RUN)
    for name, method in WARMING.items():
        with packed(directory / f"{name}.tar.xz") as store, contextlib.suppress(RuntimeError):  # no draws yet
            stop = {"callback": lambda run: run.status.done > 0}
            pe.sample(target_of(method), np.zeros(2), method=METHODS[method](), store=store, **stop, **RUN)


@contextlib.contextmanager
def packed(archive: Path):
    """A directory for a store, which goes into the archive: its files are sparse, and megabytes long."""
    with tempfile.TemporaryDirectory() as scratch:
        yield Path(scratch) / "run.zarr"
        with tarfile.open(archive, "w:xz") as packing:
            packing.add(Path(scratch) / "run.zarr", arcname="run.zarr", filter=_anonymous)


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """The same bytes whoever writes them, and no lock."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return None if entry.name.endswith("/lock") else entry


if __name__ == "__main__":
    write(Path(sys.argv[1]))
