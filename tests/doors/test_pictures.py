"""The pictures of the documentation: what the pages show is what the tool makes."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = "\n".join(page.read_text() for page in DOCS.rglob("*.md"))
SHOWN = {*re.findall(r"\]\((?:\.\./)?pictures/([\w-]+\.webp)\)", PAGES)}


def test_every_picture_of_a_page_is_there():
    assert SHOWN
    assert {path.name for path in (DOCS / "pictures").glob("*.webp")} == SHOWN
    assert sum(path.stat().st_size for path in (DOCS / "pictures").glob("*.webp")) < 2e6


@pytest.mark.slow
def test_the_tool_makes_them(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS.parent / "tools"))
    import pictures
    import site_pictures
    import user_pictures

    made = [
        *pictures.make(tmp_path, draws=200),
        *site_pictures.make(tmp_path, draws=200),
        *user_pictures.make(tmp_path),
    ]
    assert {path.name for path in made} == SHOWN
