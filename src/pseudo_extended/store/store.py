"""A store: the directory of one run, with its manifest, its draws and its lock.

run.zarr/
  zarr.json          all metadata; opens with xarray.open_datatree, a group with xarray.open_zarr(…, group=…)
  posterior/         one unweighted point a draw, in the user's space (absent where draws do not count alike)
  weighted_points/   x: all pseudo-samples, on the unconstrained space
  sample_stats/      log_weight, and what the sampler reports
  engine/            what only the run itself needs: manifest, starting points, snapshots, lock
"""

import contextlib
import json
import uuid
from pathlib import Path
from typing import Any

import numpy as np

from pseudo_extended import checks
from pseudo_extended.store.arrays import Arrays, Layout, require_store
from pseudo_extended.store.files import BrokenFileError, read_sealed, write_sealed
from pseudo_extended.store.lock import Lock
from pseudo_extended.store.manifest import COPIES, read_manifest, write_manifest
from pseudo_extended.store.snapshots import Snapshots


class StoreError(ValueError):
    """There is no such store, or it cannot be used; the sentence says why."""


class Store:
    """An open store. Reading needs no lock; `lock` before anything is written."""

    def __init__(self, root: Path, manifest: dict[str, Any], broken: list[str]):
        self.root = root
        self.engine = root / "engine"
        self.manifest = manifest
        self.broken = broken
        """What was found damaged and could be done without."""
        self._lock = Lock(self.engine / "lock", f"store {str(self.root)!r}", "; pe.load reads the draws meanwhile")

    @staticmethod
    def create(path: Any) -> "Store":
        """A new store, locked; it counts as one from its first `write`."""
        root = store_path(path)
        store = Store(root, {"run": uuid.uuid4().hex}, [])
        if root.exists() and not root.is_dir():
            raise StoreError(f"store must be a directory, or nothing yet; {str(root)!r} is a file.")
        foreign = [entry.name for entry in root.iterdir() if entry.name != "engine"] if root.exists() else []
        if any((store.engine / copy).exists() for copy in COPIES):
            raise StoreError(
                f"store {str(root)!r} holds a run already: pe.resume goes on with it, pe.extend adds draws to it; "
                "or name another, or delete it."
            )
        if foreign:
            raise StoreError(
                f"store must name a new or empty directory; {str(root)!r} holds {foreign[0]!r} and is none."
            )
        try:
            store.engine.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"store must name a directory that can be made; {str(root)!r} cannot: {error}.") from None
        store.lock()
        return store

    @staticmethod
    def open(path: Any) -> "Store":
        """One that exists; refused in a sentence if it is none, is broken, or comes from a newer version."""
        root = store_path(path)
        if not root.is_dir():
            raise StoreError(f"store {str(root)!r} does not exist.")
        if not any((root / "engine" / copy).exists() for copy in COPIES):
            begun = (root / "engine").is_dir()
            raise StoreError(
                f"store {str(root)!r} has no manifest: "
                + ("the run was stopped before it began; run pe.sample again." if begun else "it is no run of ours.")
            )
        try:
            return Store(root, *read_manifest(root / "engine"))
        except BrokenFileError as error:
            raise StoreError(f"store {str(root)!r} cannot be resumed: {error}.") from None

    def lock(self) -> None:
        """Refuse if another run has it."""
        self._lock.acquire()

    def close(self) -> None:
        """Let others write to it; a directory into which nothing was written is removed."""
        self._lock.release()
        if not any((self.engine / copy).exists() for copy in COPIES):
            (self.engine / "lock").unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                self.engine.rmdir()
                self.root.rmdir()

    def write(self, **entries: Any) -> None:
        """Change entries of the manifest."""
        self.manifest = write_manifest(self.engine, self.manifest | entries)

    def write_arrays(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        """Arrays that belong to the manifest, such as the starting points."""
        write_sealed(self.engine / name, arrays)

    def read_arrays(self, name: str) -> dict[str, np.ndarray]:
        """Them back, or a `BrokenFileError`."""
        return read_sealed(self.engine / name)

    @property
    def num_draws_shown(self) -> int | None:
        """How many draws of every chain a reader sees now; None if that cannot be read."""
        try:
            return int(json.loads((self.root / "zarr.json").read_bytes())["attributes"]["num_draws"])
        except (OSError, ValueError, KeyError):
            return None

    @property
    def arrays(self) -> Arrays:
        """The draws; only after preparation, which decides their shape."""
        if "layout" not in self.manifest:
            raise StoreError(f"store {str(self.root)!r} has no draws yet: it is in preparation, or was stopped in it.")
        attributes = {
            "inference_library": "pseudo_extended",
            "inference_library_version": self.manifest["library"],
            "sampling_method": self.manifest["description"],
            "seed": str(self.manifest["plan"]["seed"]),
            "note": "posterior is resampled from weighted points: weighted_points.x by sample_stats.log_weight, which "
            "is up to a constant within each draw",
        }
        return Arrays(self.root, Layout.from_json(self.manifest["layout"]), attributes)

    @property
    def snapshots(self) -> Snapshots:
        """Of the lanes."""
        return Snapshots(self.engine, self.manifest["run"])


def store_path(path: Any) -> Path:
    """`path`, if it can be one, and the libraries that stores need are there."""
    for module in ("zarr", "google_crc32c"):
        require_store(module)
    if not (isinstance(path, (str, Path)) and str(path)):
        raise TypeError(f"store must be a path such as 'run.zarr'; got {checks.describe(path)}.")
    return Path(path)
