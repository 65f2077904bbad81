"""Shared by all tests."""

import pytest

from pseudo_extended.precision import double_precision


@pytest.fixture
def x64():
    """Double precision for the body of a test that calls the pieces below `sample` directly."""
    with double_precision():
        yield
