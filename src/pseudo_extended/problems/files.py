"""Data files that are not ours to ship: from a directory, or downloaded once, and never without their checksum."""

import hashlib
import http.client
import os
import tempfile
import urllib.request
from pathlib import Path
from typing import NamedTuple

from pseudo_extended import checks
from pseudo_extended.paths import is_file

VARIABLE = "PSEUDO_EXTENDED_DATA"
AUTHORS = "https://raw.githubusercontent.com/chris-nemeth/pseudo-extended-mcmc-code"
LAST, EARLIER = "c8fa25f1561f3a2b72f902c6bd4e0bc131d69ac2", "08177fe792c6a3e821558d84cb98ce7c8ba7b46a"
BOLTZMANN = f"{AUTHORS}/{LAST}/Section_4.2-Boltzmann_machine_relaxations"
CANCER = f"{AUTHORS}/{LAST}/Section_4.3-Sparse_logistic_regression_with_horseshoe_priors"
PIGEONS = "https://raw.githubusercontent.com/Julia-Tempering/Pigeons.jl/0f737bededd01b9e77bf05b6ae77364e3dbaa7b6/examples/data"
SECONDS = 60.0


class DamagedFileError(ValueError):
    """A file is there, but it is not the published one."""


class DataFile(NamedTuple):
    """The address of a file, and the SHA-256 of its contents."""

    address: str
    digest: str


FILES = {
    "colon.mat": DataFile(f"{CANCER}/colon.mat", "ffcdeba03eb67cec403fa1dc9f827c22a6e2c57786bf3e01dfe1b4b3e25e0a2f"),
    "leukemia.mat": DataFile(
        f"{CANCER}/leukemia.mat", "eb92382fb77c968864cb0a92a2c77acde7f88ba7fe5fd5a64b98184e3a05269d"
    ),
    "prostate.mat": DataFile(
        f"{CANCER}/prostate.mat", "050b598534dbc662f23e30f39b41354b61d02ab8567837bcf9b1091c1c636ab4"
    ),
    "params_and_moms.npz": DataFile(
        f"{AUTHORS}/{EARLIER}/boltzmann_machine_relaxations/params_and_moms.npz",
        "2fd13a0850dd10fb9222feff582582bbb6c38c0f1f4e03d2e2b3b12fb0304303",
    ),
    "relaxations.npz": DataFile(
        f"{BOLTZMANN}/relaxations.npz", "434c03a0e118b192ae9fd49470b1b7dd73a7c92dc2c325fc9ce74ff65175c712"
    ),
    "var_moms.npz": DataFile(
        f"{BOLTZMANN}/var_moms.npz", "647a52404a233242beaaccd2a8ae5bec33cd94d491f5cc734b6d1dfbffe4dd22"
    ),
    "mrna.csv": DataFile(
        f"{PIGEONS}/Ballnus_et_al_2017_M1a.csv", "dba06a45aa467e126f642e53a1f86c7a3cad20381627ab7d9d6840cd33a62a80"
    ),
}


def data_file(name: str, directory: str | Path | None = None) -> Path:
    """The path of a data file whose checksum is right.

    It is looked for in `directory` and nowhere else if that is given; else in the directory that the environment
    variable PSEUDO_EXTENDED_DATA names; else in a cache of ours, into which it is downloaded if it is not there.
    """
    if not isinstance(directory, (str, Path, type(None))):
        raise TypeError(f"directory must be a path; got {checks.describe(directory)}.")
    given = os.environ.get(VARIABLE) or None if directory is None else directory
    path = (_cache() if given is None else Path(given)) / name
    if not is_file(path):
        if given is not None:
            whose = f"the data directory (--data, or {VARIABLE})" if directory is None else "directory"
            raise FileNotFoundError(f"{whose} must hold {name}; got {str(given)!r}, which does not.")
        _download(name, path)
    digest = FILES[name].digest
    if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
        raise DamagedFileError(f"{path} must be the published file, SHA-256 {digest}; got another.")
    return path


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pseudo-extended"


def _download(name: str, path: Path) -> None:
    """Into place only if it is what it should be."""
    file = FILES[name]
    try:
        with urllib.request.urlopen(file.address, timeout=SECONDS) as answer:
            content = answer.read()
    except (OSError, http.client.HTTPException) as error:  # the latter for an answer that was cut off
        raise FileNotFoundError(
            f"{name} could not be downloaded from {file.address} ({error}); "
            f"get it in another way and name its directory in {VARIABLE}."
        ) from error
    if hashlib.sha256(content).hexdigest() != file.digest:
        raise DamagedFileError(
            f"{file.address} must be the file of SHA-256 {file.digest}; got another. Nothing was kept."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as part:
        part.write(content)
    Path(part.name).replace(path)
