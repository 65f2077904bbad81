"""The documentation is whole: every public name has a page and an example, and every block of code is executed."""

import doctest
import inspect
import re
import shlex
import sys
from pathlib import Path

import pytest

import pseudo_extended as pe

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE = [path for path in sorted(DOCS.rglob("*.md")) if path.parent.name != "reproduction"]
NAMESPACES = ["bases", "instruments", "kernels", "methods", "plots", "problems", "stopping", "testing"]
SETTINGS = {"plots.COLUMN", "plots.PAGE", "plots.STYLE"}
"""Values, which a sentence describes."""
NOT_RUN = {
    *("from_stan", "problems.HorseshoeProblem", "problems.TransfectionProblem", "problems.cancer", "problems.mrna"),
    *("problems.load_boltzmann", "problems.load_mean_field", "Sensitivity", "Calibration"),
    *("methods.AbstractPreparedMethod", "methods.Prepared"),
}
"""An example of these needs a compiler, data or minutes; the page says in words how to use them."""
DIRECTIVE = re.compile(r"^\.\. auto\w+:: pseudo_extended\.([\w.]+)", re.MULTILINE)
PAGES = {path: path.read_text() for path in sorted((DOCS / "reference" / "api").glob("*.md"))}
FENCE = re.compile(r"^(```+|:::+)([^\n]*)\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)


def look_up(name):
    value = pe
    for part in name.split("."):
        value = getattr(value, part)
    return value


def public_names():
    names = [name for name in pe.__all__ if name not in {*NAMESPACES, "__version__"}]
    for space in NAMESPACES:
        module = getattr(pe, space)
        public = getattr(module, "__all__", [name for name in dir(module) if not name.startswith("_")])
        names += [f"{space}.{name}" for name in public if not inspect.ismodule(getattr(module, name))]
    return names


def same_names(name):
    """The names of one object, such as `Base` and `bases.Base`."""
    return {name, name.rpartition(".")[2], *(f"{space}.{name.rpartition('.')[2]}" for space in NAMESPACES)}


def page_of(name):
    aliases = same_names(name)
    for path, text in PAGES.items():
        for documented in DIRECTIVE.findall(text):
            if documented in aliases and look_up(documented) is look_up(name):
                return path
    return None


@pytest.mark.parametrize("name", sorted({*public_names()} - SETTINGS))
def test_every_public_name_has_a_page_and_an_example(name):
    page = page_of(name)
    assert page is not None, f"{name} needs an autodoc directive on a page of docs/reference/api"
    short = name.rpartition(".")[2]
    documented = inspect.getdoc(look_up(name)) or ""
    examples = doctest.DocTestParser().get_examples(PAGES[page])
    shown = any(re.search(rf"\b{short}\b", example.source + example.want) for example in examples)
    described = name in NOT_RUN and re.search(rf"\b{short}\b", PAGES[page].partition("## Example")[2])
    assert ">>>" in documented or shown or described, f"{name} needs an example on {page.name}"


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_every_setting_is_described(name):
    assert f"`pe.{name}`" in PAGES[DOCS / "reference" / "api" / "plots.md"]


def test_a_page_names_nothing_that_is_gone():
    for text in PAGES.values():
        for name in DIRECTIVE.findall(text):
            assert look_up(name) is not None


@pytest.mark.parametrize("page", [ROOT / "README.md", *SITE], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_block_of_python_is_executed(page):
    """A block marked as Python is a session, which pytest runs as a doctest."""
    for _, kind, body in FENCE.findall(page.read_text()):
        if kind.strip() in ("python", "pycon"):
            assert body.lstrip().startswith((">>>", "#")) or ">>>" in body, body


def commands():
    for path in [ROOT / "README.md", *SITE]:
        for _, kind, body in FENCE.findall(path.read_text()):
            if not kind.strip():
                for line in body.replace("\\\n", " ").splitlines():
                    if re.match(r"pseudo-extended (?!reproduce)\w", line):
                        yield pytest.param(line.partition("  #")[0], id=f"{path.stem}: {line[:50]}")


@pytest.mark.parametrize("line", [*commands()])
def test_every_command_of_a_page_can_be_given(line):
    """Its name, arguments and options exist; nothing is run."""
    typer = pytest.importorskip("typer")
    from pseudo_extended.cli import app

    name, *arguments = shlex.split(line)[1:]
    command = typer.main.get_command(app).commands[name]
    command.make_context(name, arguments)  # raises if an option or an argument is unknown or missing


def test_the_page_of_the_command_line_has_every_command_and_option():
    typer = pytest.importorskip("typer")
    from pseudo_extended.cli import app

    text = (DOCS / "reference" / "command_line.md").read_text()
    for name, command in typer.main.get_command(app).commands.items():
        assert f"`{name}" in text, name
        for option in (each for each in command.params if each.param_type_name == "option"):
            assert all(f"`{each}`" in text for each in option.opts if each.startswith("--") and each != "--help"), (
                option
            )


def test_every_page_is_in_a_menu():
    listed = set()
    for page in DOCS.rglob("*.md"):
        for _, kind, body in FENCE.findall(page.read_text()):
            if kind.startswith("{toctree}"):
                entries = [line for line in body.splitlines() if line.strip() and not line.startswith(":")]
                names = [re.sub(r".*<(.*)>", r"\1", entry) for entry in entries]
                listed |= {(page.parent / f"{name}.md").resolve() for name in names}
    tables = {path for path in (DOCS / "reproduction").glob("*.md") if path.stem not in ("README", "command")}
    assert {path.resolve() for path in DOCS.rglob("*.md")} - listed - tables == {DOCS / "index.md"}


@pytest.mark.parametrize("page", SITE, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_links_to_files_lead_somewhere(page):
    """`make docs` checks every link of the built site, with its anchor; this one needs no Sphinx."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", link):
            assert re.match(r"https?://[\w.-]+\.\w+(/\S*)?$", link), link
        elif not link.startswith("#"):
            assert (page.parent / link.partition("#")[0]).exists(), link


def test_the_checker_of_the_site_finds_what_is_wrong(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.delitem(sys.modules, "check_site", raising=False)
    from check_site import faults

    (tmp_path / "good.html").write_text('<p id="here"></p><a href="good.html#here">x</a><a href="https://a.org/">y</a>')
    assert faults(tmp_path) == []
    (tmp_path / "bad.html").write_text(
        '<a href="none.html">1</a><a href="good.html#there">2</a><a href="http://nowhere">3</a>'
        '<script src="https://cdn.example.org/x.js"></script>'
    )
    (tmp_path / "api.html").write_text('<dt id="Estimate.value"></dt><dd><p>Alias for field number 0</p></dd>')
    (tmp_path / "bad.css").write_text('@import url("https://fonts.example.org/font.css");')
    assert len(faults(tmp_path)) == 6
