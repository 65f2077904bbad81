"""A store: the directory of one run, with its manifest, its draws and its lock.

run.zarr/
  zarr.json          all metadata; opens with xarray.open_datatree, a group with xarray.open_zarr(…, group=…)
  posterior/         one unweighted point a draw, in the user's space (absent where draws do not count alike)
  weighted_points/   x: all pseudo-samples, on the unconstrained space
  sample_stats/      log_weight, and what the sampler reports
  engine/            what only the run itself needs: manifest, starting points, snapshots, seals, lock
"""

import contextlib
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pseudo_extended import checks
from pseudo_extended.store.arrays import Arrays, require_store
from pseudo_extended.store.files import ASIDE, BrokenFileError, clean, read_sealed, write_sealed
from pseudo_extended.store.lock import Lock
from pseudo_extended.store.manifest import COPIES, Manifest, Prepared, read_manifest, write_manifest
from pseudo_extended.store.seals import SEALS, Seals, read_seals, text
from pseudo_extended.store.snapshots import Snapshots

LEFTOVERS = ("lock", "owner", "start.npz")
"""What a run that was killed before it had a manifest may have left in `engine`."""


class StoreError(ValueError):
    """There is no such store, or it cannot be used; the sentence says why."""


class StoreWriteError(StoreError, OSError):
    """The operating system did not let a store be written; the sentence says why, and what is safe."""


class Store:
    """An open store. Reading needs no lock; `lock` before anything is written."""

    def __init__(self, root: Path, run: str, manifest: Manifest | None, broken: list[str]):
        self.root = root
        self.engine = root / "engine"
        self.run = run
        self.begun = manifest
        """The manifest; None before the starting points are known."""
        self.broken = broken
        """What was found damaged and could be done without."""
        self._lock = Lock(self.engine / "lock", f"store {str(self.root)!r}", "; pe.load reads the draws meanwhile")

    @staticmethod
    def create(path: Any) -> "Store":
        """A new store, locked; it counts as one from its first manifest."""
        root = store_path(path)
        store = Store(root, uuid.uuid4().hex, None, [])
        try:
            store._check_empty()
            store.engine.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"store must name a directory that can be made; {str(root)!r} cannot: {error}.") from None
        store.lock()
        try:
            store._check_empty()  # again: another process may have begun a run before we had the lock
            for name in LEFTOVERS[2:]:
                (store.engine / name).unlink(missing_ok=True)
        except BaseException:
            store.close()
            raise
        return store

    @staticmethod
    def open(path: Any) -> "Store":
        """One that exists; refused in a sentence if it is none, is broken, or comes from a newer version."""
        root = store_path(path)
        if not root.is_dir():
            raise StoreError(f"store {str(root)!r} does not exist.")
        if not has_manifest(root):
            begun = (root / "engine").is_dir()
            raise StoreError(
                f"store {str(root)!r} has no manifest: "
                + ("the run was stopped before it began; run pe.sample again." if begun else "it is no run of ours.")
            )
        try:
            manifest, broken = read_manifest(root / "engine")
        except (BrokenFileError, OSError) as error:
            raise StoreError(f"store {str(root)!r} cannot be resumed: {error}.") from None
        return Store(root, manifest.run, manifest, broken)

    def lock(self) -> None:
        """Refuse if another run has it, or if something in it is a link, through which nothing is written."""
        try:
            if self.engine.is_symlink():
                raise BrokenFileError(
                    f"{self.engine} is a link, and nothing is written where a link may lead elsewhere"
                )
            self._lock.acquire()
            clean(self.root)
        except (BrokenFileError, OSError) as error:
            self._lock.release()
            raise StoreError(f"store {str(self.root)!r} cannot be written to: {error}.") from None

    def close(self) -> None:
        """Let others write to it; a directory into which nothing was written is removed."""
        was_ours = self._lock.is_held
        self._lock.release()
        if was_ours and not has_manifest(self.root):
            with contextlib.suppress(OSError):
                for name in LEFTOVERS:
                    (self.engine / name).unlink(missing_ok=True)
                self.engine.rmdir()
                self.root.rmdir()

    @property
    def manifest(self) -> Manifest:
        """What the run is, once it has begun."""
        assert self.begun is not None
        return self.begun

    def begin(self, manifest: Manifest) -> None:
        """Write the first manifest: from now on the run can be resumed."""
        self.begun = write_manifest(self.engine, manifest)

    def write(self, **changes: Any) -> None:
        """Change fields of the manifest."""
        self.begun = write_manifest(self.engine, replace(self.manifest, **changes))

    def reread(self) -> None:
        """What another process may have written since."""
        fresh = Store.open(self.root)
        self.run, self.begun, self.broken = fresh.run, fresh.begun, fresh.broken

    def write_arrays(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        """Arrays that belong to the manifest, such as the starting points."""
        write_sealed(self.engine / name, arrays | {"//run": np.asarray(self.run), "//name": np.asarray(name)})

    def read_arrays(self, name: str) -> dict[str, np.ndarray]:
        """Read arrays back, or raise a `BrokenFileError`."""
        arrays = read_sealed(self.engine / name)
        owner, role = text(arrays, "//run"), text(arrays, "//name")
        is_unnamed = not self.manifest.sealed and owner is None and role is None
        if (owner, role) != (self.run, name) and not is_unnamed:
            raise BrokenFileError(f"{self.engine / name} belongs to another run")
        x = arrays.get("x")
        is_start = x is not None and x.dtype == np.float64 and x.ndim == 3 and len(x) == self.manifest.plan.chains
        if self.manifest.has_chains and not is_start:
            raise BrokenFileError(f"{self.engine / name} has no starting points for the chains of its run")
        return {key: array for key, array in arrays.items() if not key.startswith("//")}

    def mended(self, what: str) -> str:
        """The end of a sentence about damage: who can do `what`."""
        return (
            f"pe.resume {what} again"
            if self.manifest.has_chains
            else "the result was saved after its run: save it anew"
        )

    @property
    def prepared(self) -> Prepared:
        """What is known after preparation, which decides the shapes of the draws."""
        if self.manifest.prepared is None:
            raise StoreError(f"store {str(self.root)!r} has no draws yet: it is in preparation, or was stopped in it.")
        return self.manifest.prepared

    def seals(self) -> Seals | None:
        """The seals of the draws that readers see, or a `BrokenFileError`; None for a store of format 2."""
        if not self.manifest.sealed and not (self.engine / SEALS).exists():
            return None
        return read_seals(self.engine, self.run, self.prepared.layout)

    @property
    def arrays(self) -> Arrays:
        """The draws; only after preparation."""
        manifest, prepared = self.manifest, self.prepared
        attributes = {
            "inference_library": "pseudo_extended",
            "inference_library_version": manifest.library,
            "sampling_method": prepared.description,
            "seed": str(manifest.plan.seed),
            "run": self.run,
            "note": "posterior is resampled from weighted points: weighted_points.x by sample_stats.log_weight, which "
            "is up to a constant within each draw",
        }
        return Arrays(self.root, prepared.layout, attributes)

    @property
    def snapshots(self) -> Snapshots:
        """The snapshots of the lanes."""
        return Snapshots(self.engine, self.run)

    def _check_empty(self) -> None:
        """Refuse a place where something is that no run of ours has left before it began."""
        if self.root.exists() and not self.root.is_dir():
            raise StoreError(f"store must be a directory, or nothing yet; {str(self.root)!r} is a file.")
        if has_manifest(self.root):
            raise StoreError(
                f"store {str(self.root)!r} holds a run already: pe.resume goes on with it, pe.extend adds draws to it; "
                "or pass resume=True, or name another, or delete it."
            )
        foreign = [entry.name for entry in self.root.iterdir() if entry.name != "engine"] if self.root.exists() else []
        if self.engine.is_dir():
            left = (entry.name for entry in self.engine.iterdir())
            foreign += [f"engine/{name}" for name in left if name not in LEFTOVERS and not name.endswith(ASIDE)]
        if foreign:
            raise StoreError(
                f"store must name a new or empty directory; {str(self.root)!r} holds {foreign[0]!r} and is none."
            )


def has_manifest(root: Path) -> bool:
    """Whether a run has begun there, however broken it may be."""
    return any((root / "engine" / copy).exists() for copy in COPIES)


def store_path(path: Any) -> Path:
    """`path`, if it can be one, and the libraries that stores need are there."""
    for module in ("zarr", "google_crc32c"):
        require_store(module)
    if not (isinstance(path, (str, Path)) and str(path)):
        raise TypeError(f"store must be a path such as 'run.zarr'; got {checks.describe(path)}.")
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # which those say in their place who need it
        pass
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise StoreError(f"store must be a path such as 'run.zarr'; got {checks.describe(path)}: {reason}.") from None
    return Path(path)
