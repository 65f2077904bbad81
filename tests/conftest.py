"""Shared by all tests."""

import os
from pathlib import Path

import pytest

from pseudo_extended.precision import double_precision

DATA = Path(os.environ.get("PSEUDO_EXTENDED_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture
def x64():
    """Double precision for the body of a test that calls the pieces below `sample` directly."""
    with double_precision():
        yield


@pytest.fixture
def data_directory() -> Path:
    """Public data that the repository does not hold: ../shared/data, or what PSEUDO_EXTENDED_DATA names."""
    if not DATA.is_dir():
        pytest.skip(f"no data in {DATA}; PSEUDO_EXTENDED_DATA names another directory")
    return DATA
