"""`verify`: whether every file of a store is what was written, and at its place."""

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pseudo_extended.store.arrays import Arrays
from pseudo_extended.store.files import BrokenFileError, read_file
from pseudo_extended.store.layout import Layout
from pseudo_extended.store.parts import begun_parts, has_parts
from pseudo_extended.store.seals import SEALS, Seals
from pseudo_extended.store.shown import MAX_BYTES, said_by_metadata
from pseudo_extended.store.store import Store, store_path

PATIENCE = 20
"""Looks at a store whose run goes on, a tenth of a second apart, until its metadata are those of its seals."""


def verify(store: str | Path) -> list[str]:
    """Check every file of a store, and return one sentence for each that is not what the run wrote.

    It checks what xarray and ArviZ read (`posterior`, `sample_stats`, `weighted_points`, their labels and all
    metadata) and what `pe.resume` needs: each chunk must be whole, and must be the chunk of this run, column, lane and
    number that was written at its place. The store may be that of a run on its way. It takes no target and writes
    nothing; `pe.resume` mends what is broken, as far as the run can make it again. Of a store of format 2 it checks
    less, because chunks had no seals, and says so.

    >>> import jax.numpy as jnp, pathlib, pseudo_extended as pe, tempfile
    >>> path = tempfile.mkdtemp() + "/run.zarr"
    >>> def log_density(x):
    ...     return -0.5 * jnp.sum(x**2)
    >>> run = dict(method=pe.Plain(pe.HMC(2)), draws=50, warmup=10, chains=2, seed=1, progress=False)
    >>> result = pe.sample(log_density, jnp.zeros(1), store=path, **run)
    >>> pe.verify(path)
    []
    >>> one, other = (pathlib.Path(path, "posterior", "x", name) for name in ("c.0.0.0", "c.1.0.0"))
    >>> _ = one.write_bytes(other.read_bytes())
    >>> pe.verify(path)
    ['.../posterior/x/c.0.0.0 is whole, but is not the chunk that was written at its place.']
    """
    root = store_path(store)
    if has_parts(root):  # of several pilots
        return [fault for part in begun_parts(root) for fault in verify(part)]
    opened = Store.open(root)
    return [f"{fault}." for fault in (*opened.broken, *_faults(opened))]


def _faults(store: Store) -> Iterator[str]:
    yield from _links(store.root)
    starts = ["start.npz"] if store.manifest.has_chains else []
    learned = ["learned.npz"] if store.manifest.prepared is not None else []
    has_its_chains = not store.manifest.has_chains
    for name in (*starts, *learned):
        try:
            store.read_arrays(name)
            has_its_chains = True
        except (BrokenFileError, OSError) as error:
            yield str(error)
    if store.manifest.prepared is None or not has_its_chains:  # without them, it may say that it has any number
        return
    layout = store.prepared.layout
    for lane in range(layout.num_lanes) if store.manifest.has_chains else ():
        snapshots, broken = store.snapshots.load(lane)
        yield from broken
        if not snapshots and not broken and store.manifest.num_draws:
            yield f"lane {lane} has no snapshot in {store.engine}"
    if store.manifest.num_draws is None and not (store.root / "zarr.json").exists():
        return  # stopped before any reader was to see anything
    yield from _faults_of_draws(store, layout)


def _faults_of_draws(store: Store, layout: Layout) -> Iterator[str]:
    try:
        seals = _settled_seals(store)
    except (BrokenFileError, OSError) as error:
        yield str(error)
        return
    ended = store.manifest.num_draws if store.manifest.stopped != "running" else None
    if seals is None:
        said = said_by_metadata(store)
        yield f"{store.root} has no seals, because an older version wrote it: chunks that were exchanged are not found"
        if said is None or said < 0 or (ended is not None and said != ended):
            yield f"{store.root / 'zarr.json'} says {said} draws, where {ended or 'some'} were written"
            return
        yield from _faults_of_chunks(store.arrays, None, [said] * layout.num_lanes)
        return
    if ended is not None and seals.num_draws != ended:
        yield f"{store.engine / SEALS} says {seals.num_draws} draws, where the run ended with {ended}"
    yield from _faults_of_metadata(store, seals)
    yield from _faults_of_chunks(store.arrays, seals, [lane.num_draws for lane in seals.lanes])


def _settled_seals(store: Store) -> Seals | None:
    """The seals; of a run that goes on, when readers' metadata have followed them."""
    for _ in range(PATIENCE):
        seals = store.seals()
        if seals is None or store.manifest.stopped != "running" or said_by_metadata(store) == seals.num_draws:
            return seals
        time.sleep(0.1)
    return store.seals()


def _faults_of_chunks(arrays: Arrays, seals: Seals | None, counts: list[int]) -> Iterator[str]:
    layout = arrays.layout
    for column in dict.fromkeys(layout.columns):
        for lane, count in enumerate(counts):
            for index in range(-(-count // layout.chunk)):
                try:
                    arrays.read(column, lane, index, seals)
                except (BrokenFileError, OSError) as error:
                    yield str(error)


def _faults_of_metadata(store: Store, seals: Seals) -> Iterator[str]:
    """What xarray takes the shape, the type and the labels of every array from."""
    arrays = store.arrays
    for path, digest in seals.labels.items():
        place = store.root / path
        try:
            if ".." in Path(path).parts or Path(path).is_absolute():
                raise BrokenFileError(f"{path} is no place in a store")
            if hashlib.sha256(read_file(place)).hexdigest() != digest:
                raise BrokenFileError(f"{place} is not the label that was written")
            arrays.adopt_label(path)
        except (BrokenFileError, OSError) as error:
            yield str(error)
    is_running = store.manifest.stopped == "running"
    for path, expected in arrays.metadata(seals.num_draws).items():
        place = store.root / path / "zarr.json"
        try:
            found: Any = json.loads(read_file(place, most=MAX_BYTES))
        except BrokenFileError as error:
            yield str(error)
        except (OSError, ValueError, RecursionError):
            yield f"{place} is damaged: it is no JSON"
        else:
            said = _number_in(found)
            if is_running and said is not None and 0 <= said <= seals.num_draws:
                expected = arrays.metadata(said)[path]  # killed after the seals and before the metadata: still true
            if _comparable(found) != _comparable(expected):
                yield f"{place} does not describe what was written"


def _number_in(metadata: Any) -> int | None:
    """The number of draws that the metadata of a group or an array say."""
    try:
        number = metadata["shape"][1] if metadata["node_type"] == "array" else metadata["attributes"]["num_draws"]
    except (KeyError, IndexError, TypeError):
        return None
    return number if type(number) is int else None


def _comparable(metadata: Any) -> Any:
    """Without the version of the library, which the manifest may have a newer one of."""
    if isinstance(metadata, dict):
        return {key: _comparable(value) for key, value in metadata.items() if key != "inference_library_version"}
    return [_comparable(each) for each in metadata] if isinstance(metadata, list) else metadata


def _links(root: Path) -> Iterator[str]:
    for path in root.rglob("*"):
        if path.is_symlink():
            yield f"{path} is a link, which a run never makes"
