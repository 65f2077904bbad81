"""Check the built site: links lead somewhere, nothing is fetched from elsewhere, fields of tuples are described.

    python tools/check_site.py output/site

Prints one line for each fault, and ends with status 1 if there is one.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
"""What a browser fetches on its own; a link that a reader follows may lead anywhere."""


class Use(NamedTuple):
    """An address on a page."""

    tag: str
    attribute: str
    address: str


class Page(HTMLParser):
    """The addresses on a page, and the places on it that can be linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.uses: list[Use] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect."""
        given = {name: value for name, value in attrs if value is not None}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "link" and given.get("rel") not in ("stylesheet", "preload", "icon", "preconnect"):
            return
        self.uses += [Use(tag, name, given[name]) for name in ("href", "src") if name in given]


def read(path: Path) -> Page:
    """One page."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def faults(site: Path) -> list[str]:
    """One sentence for each link that leads nowhere, or to another machine without being asked."""
    pages = {path.resolve(): read(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for use in dict.fromkeys(page.uses):
            parts = urlsplit(use.address)
            if parts.scheme in ("data", "mailto", "javascript"):
                continue
            if parts.scheme or parts.netloc:
                if (use.tag, use.attribute) in LOADED:
                    found.append(f"{name} fetches {use.address}")
                elif parts.scheme not in ("http", "https") or "." not in parts.netloc:
                    found.append(f"{name} links to {use.address}, which is no address")
                continue
            aim = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            aim = aim / "index.html" if aim.is_dir() else aim
            if not aim.exists():
                found.append(f"{name} links to {use.address}, which is not there")
            elif parts.fragment and aim in pages and unquote(parts.fragment) not in pages[aim].places:
                found.append(f"{name} links to {use.address}, and there is no such place on that page")
    for path in pages:
        for name in re.findall(r'id="([\w.]+)">(?:(?!<dt).)*?<p>Alias for field number', path.read_text(), re.DOTALL):
            found.append(f"{path.relative_to(site.resolve())} has the field {name}, whose docstring is missing")
    for path in sorted(site.rglob("*.css")):
        for address in re.findall(r"(?:@import|url\()\s*['\"]?(https?://[^'\")\s]+)", path.read_text(encoding="utf-8")):
            found.append(f"{path.relative_to(site)} fetches {address}")
    return found


def main() -> None:
    """From the command line."""
    site = Path(sys.argv[1])
    found = faults(site)
    print(*found, sep="\n")
    print(f"{site}: {len(list(site.rglob('*.html')))} pages, {len(found)} faults")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
