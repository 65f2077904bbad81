"""Where the data files are."""

import os
from pathlib import Path


def data_path(name: str) -> Path:
    """A file of the directory that PSEUDO_EXTENDED_DATA names."""
    folder = os.environ.get("PSEUDO_EXTENDED_DATA")
    if folder is None:
        raise FileNotFoundError(
            f"PSEUDO_EXTENDED_DATA must name the directory that holds {name}; it is not set in the environment."
        )
    path = Path(folder) / name
    if not path.is_file():
        raise FileNotFoundError(f"PSEUDO_EXTENDED_DATA must name a directory that holds {name}; got {folder}.")
    return path
