"""Paths that users give."""

from pathlib import Path


def is_file(path: Path) -> bool:
    """Whether there is such a file; there is none whose name the system refuses, such as one of 300 characters.

    >>> is_file(Path("x" * 300))
    False
    """
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
