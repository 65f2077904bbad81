"""Docstrings stand alone in `help()` and in an editor: four words or more, and no beginning in mid-sentence."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "pseudo_extended"
MIN_WORDS = 4
MID_SENTENCE = {
    *("And", "As", "At", "Because", "But", "By", "For", "From", "If", "In", "Of", "On", "Or", "So", "Than", "That"),
    *("Them", "Then", "These", "Those", "To", "Where", "Which", "With"),
}


def complaints(text: str) -> list[str]:
    """The docstrings of a module that do not stand alone.

    >>> complaints('def f():\\n    "Of the draws."')
    ['f: Of the draws.']
    """
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        doc = ast.get_docstring(node)
        if doc is None:
            continue
        words = doc.split()
        is_lower_case = re.fullmatch("[a-z]{2,}", words[0]) and words[0] != "log"  # a formula may come first
        if len(words) < MIN_WORDS or words[0] in MID_SENTENCE or is_lower_case:
            found.append(f"{getattr(node, 'name', 'module')}: {doc.splitlines()[0]}")
    return found


def modules() -> dict[str, Path]:
    return {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}


@pytest.mark.parametrize("name", modules())
def test_docstrings_stand_alone(name):
    assert complaints((SOURCE / name).read_text()) == []


@pytest.mark.parametrize(
    "text",
    ['"""Of the draws of a chain."""', '"""For tables."""', '"""what a user sees of it"""', 'def f():\n    """N."""'],
)
def test_such_docstrings_are_found(text):
    assert len(complaints(text)) == 1


def test_a_docstring_that_stands_alone_is_not_complained_about():
    assert complaints('"""Return the weighted points of a state."""') == []
