"""Shared by all tests."""

import os
from pathlib import Path

import pytest

from pseudo_extended.precision import double_precision
from tests.limits import BYTES, SECONDS, SECONDS_IF_SLOW, limited_memory, limited_time

os.environ.setdefault("PSEUDO_EXTENDED_CACHE", "off")
"""Programs are compiled anew, and the user's are left alone."""


@pytest.fixture
def x64():
    """Double precision for the body of a test that calls the pieces below `sample` directly."""
    with double_precision():
        yield


@pytest.fixture
def data_directory() -> Path:
    """Public data files that the repository does not hold, in the directory that PSEUDO_EXTENDED_DATA names."""
    named = os.environ.get("PSEUDO_EXTENDED_DATA")
    if not named:
        pytest.skip("PSEUDO_EXTENDED_DATA must name the directory of the public data files for this test.")
    return Path(named).absolute()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """No test goes on for ever or takes the machine down, wherever it is started."""
    seconds = SECONDS_IF_SLOW if item.get_closest_marker("slow") else SECONDS
    with limited_time(seconds), limited_memory(BYTES):
        return (yield)
