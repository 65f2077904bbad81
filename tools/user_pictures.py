"""A picture for each page that is written for some kind of user: `python tools/user_pictures.py docs/pictures`.

The code of the page is executed, and its `result` is drawn: a picture shows the run that the page is about.
"""

import argparse
import doctest
from pathlib import Path
from typing import Any

import matplotlib as mpl

import pseudo_extended as pe
from site_pictures import save_small

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
PAGES = {
    "pymc": lambda result: result.plot_corner(["centre", "width"]),
    "numpyro": lambda result: result.plot_marginals(),
    "prior_transform": lambda result: result.plot_corner(),
    "bilby_pypesto": lambda result: result.plot_corner(),
    "numpy": lambda result: result.plot_marginals(),
}
"""What is drawn of the result of each page."""


def execute(page: Path) -> dict[str, Any]:
    """The names that a page defines; its examples up to the one that makes `result`."""
    names: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(page.read_text()):
        exec(compile(example.source, str(page), "single"), names)
        if isinstance(names.get("result"), pe.Result):
            break
    return names


def make(directory: Path, pages: tuple[str, ...] = tuple(PAGES)) -> list[Path]:
    """All pictures, and their paths."""
    mpl.use("Agg")
    paths = []
    for name in pages:
        result = execute(TUTORIALS / f"{name}.md")["result"]
        result.modes()  # which the pictures of a function in Python do not look for by themselves
        drawn = PAGES[name](result)
        figure = drawn if hasattr(drawn, "savefig") else drawn.get_figure()
        paths.append(save_small(figure, directory / f"for_{name}.webp", dpi=100, colours=32))
    return paths


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("pages", nargs="*", default=list(PAGES))
    chosen = parser.parse_args()
    print(*make(chosen.directory, tuple(chosen.pages)), sep="\n")


if __name__ == "__main__":
    main()
