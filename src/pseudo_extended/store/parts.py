"""A store of several pilots: a directory with a store for each of them, and a small file that says how many there are.

`pilot-0`, `pilot-1` and so on are stores like any other. The file gives the seed of the whole run, from which the seed
of each follows, so that a store of another run in their place is found.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pseudo_extended.store.files import ASIDE, BrokenFileError, read_file, replace_file
from pseudo_extended.store.store import Store, StoreError, has_manifest

PLAN = "pilots.json"
MAX_PILOTS = 10_000
"""The largest number that is believed."""


class Parts(NamedTuple):
    """What is in the file."""

    pilots: int
    seed: int


def seed_of(seed: int, number: int) -> int:
    """The seed of a pilot's run: that of the first is the user's, so that its chains are those of a run alone."""
    return seed if number == 0 else int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def has_parts(root: Path) -> bool:
    """Whether a store is a directory of stores."""
    return (root / PLAN).is_file() and not has_manifest(root)


def read_parts(root: Path) -> Parts:
    """What `write_parts` wrote, or a `StoreError`."""
    try:
        content: Any = json.loads(read_file(root / PLAN, most=10_000))
        found = Parts(content["pilots"], content["seed"])
        if type(found.pilots) is not int or type(found.seed) is not int:
            raise ValueError("its numbers are none")
        if not (1 <= found.pilots <= MAX_PILOTS and found.seed >= 0):
            raise ValueError(f"it says {found.pilots} pilots and seed {found.seed}"[:100])
    except (BrokenFileError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        said = f"it has no {error}" if isinstance(error, KeyError) else error
        raise StoreError(f"store {str(root)!r} has no {PLAN} that can be read: {said}.") from None
    return found


def write_parts(root: Path, parts: Parts) -> None:
    """Begin a store of several pilots, all at once: a run that is killed before it leaves an empty directory."""
    root.mkdir(parents=True, exist_ok=True)
    replace_file(root / PLAN, (json.dumps(parts._asdict()) + "\n").encode())


def is_empty(root: Path) -> bool:
    """Whether nothing is in a directory but what a killed run may have left."""
    return not root.exists() or (root.is_dir() and all(path.name.endswith(ASIDE) for path in root.iterdir()))


def begun_parts(root: Path) -> list[Path]:
    """The stores of the pilots that have begun, each with the seed that it must have; `StoreError` otherwise."""
    plan, begun = read_parts(root), []
    for number in range(plan.pilots):
        path = root / f"pilot-{number}"
        if path.is_symlink():
            raise StoreError(f"{str(path)!r} is a link, which a run never makes.")
        if has_manifest(path):
            seed = Store.open(path).manifest.plan.seed
            if seed != seed_of(plan.seed, number):
                raise StoreError(f"store {str(path)!r} belongs to another run, or to another pilot of this one.")
            begun.append(path)
    return begun
