"""How many draws of a store a reader may take, and the seals to hold them against."""

import json
from typing import Any, NamedTuple

from pseudo_extended.store.files import BrokenFileError, read_file
from pseudo_extended.store.seals import Seals
from pseudo_extended.store.store import Store, StoreError

MAX_BYTES = 2**26
"""Of a zarr.json."""
WITHOUT_SEALS = (
    "an older version of this library wrote the store, without seals: a damaged chunk is found, but not a whole one "
    "that was put in another's place; pe.resume seals all chunks as they are."
)


class Shown(NamedTuple):
    """The draws that are there for readers."""

    num_draws: int
    """Of each chain."""
    seals: Seals | None
    """None in a store of format 2."""
    notes: tuple[str, ...]
    """What the user should know of them."""


def draws_shown(store: Store) -> Shown:
    """What a reader may take; `StoreError` if that is not what was written."""
    where = f"store {str(store.root)!r}"
    manifest = store.manifest
    said = said_by_metadata(store)
    if said is None:
        raise StoreError(f"{where} has no readable zarr.json: {store.mended('writes it')}.")
    try:
        seals = store.seals()
    except (BrokenFileError, OSError) as error:
        raise StoreError(f"{error}: {store.mended('writes it')}.") from None
    num_draws = _counted(store, said) if seals is None else seals.num_draws
    ended = manifest.num_draws if manifest.stopped != "running" else None
    if ended is not None and num_draws != ended:
        raise StoreError(
            f"{where} ended with {ended} draws of each chain, and {'zarr.json' if seals is None else 'engine/seals'} "
            f"says {num_draws}: it is an older copy, or not its own; {store.mended('writes it')}."
        )
    notes = [] if manifest.sealed or seals is not None else [WITHOUT_SEALS]
    if ended is not None and said != num_draws:
        notes.append(
            f"zarr.json of {where} says {said} draws, which is what xarray shows; {num_draws} were written: "
            f"{store.mended('writes it')}."
        )
    return Shown(num_draws, seals, tuple(notes))


def said_by_metadata(store: Store) -> int | None:
    """The number of draws in the root's zarr.json, which xarray believes; None if it cannot be read."""
    try:
        root: Any = json.loads(read_file(store.root / "zarr.json", most=MAX_BYTES))
        number = root["attributes"]["num_draws"]
    except (BrokenFileError, OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return number if type(number) is int else None


def _counted(store: Store, said: int) -> int:
    """Without seals: what zarr.json says, if the snapshots, which vouch for themselves, have as many."""
    layout, warmup = store.prepared.layout, store.manifest.plan.num_warmup
    least = said
    for lane in range(layout.num_lanes):
        found, _ = store.snapshots.load(lane)
        least = min(least, max((max(snapshot.done - warmup, 0) for snapshot in found), default=0))
        if least < said:
            break
    if not 0 <= said <= least:
        raise StoreError(
            f"store {str(store.root)!r} has {least} draws of each chain in its snapshots, and zarr.json says {said}: "
            "pe.resume writes it again."
        )
    return said
