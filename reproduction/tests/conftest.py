"""Shared by the tests of the reproduction."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def data_directory() -> Path:
    """The authors' data files, in the directory that PSEUDO_EXTENDED_DATA names."""
    named = os.environ.get("PSEUDO_EXTENDED_DATA")
    if not named:
        pytest.skip("PSEUDO_EXTENDED_DATA must name the directory of the public data files for this test.")
    return Path(named).absolute()
