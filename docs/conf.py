"""The site: Sphinx with MyST, for `make docs`. Mathematics is MathML; no font or script comes from elsewhere.

Pages of the repository that live outside of `docs` (the changelog, the gallery, …) are shown by stubs; see INCLUDED.
"""

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NAME = "pseudo_extended"

project = "pseudo-extended"
author = "The pseudo-extended developers"
copyright = "the pseudo-extended developers, Apache-2.0"
release = version = (ROOT / "src" / NAME / "version.py").read_text().split('"')[-2]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = True
html_math_renderer = "mathml"

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
default_role = "literal"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
python_maximum_signature_line_length = 90
add_module_names = False
toc_object_entries_show_parents = "hide"

exclude_patterns = ["_build"]
templates_path = []
nitpicky = False
pygments_style = "default"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

html_theme = "pydata_sphinx_theme"
html_title = "pseudo-extended"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options: dict[str, Any] = {
    "show_nav_level": 1,
    "navigation_depth": 3,
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_center": [],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "contributing": [], "search": []}

INCLUDED = {
    "reference/changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "releasing": "RELEASING.md",
    "howto/gallery": "examples/gallery/README.md",
    "benchmark/costs": "benchmarks/README.md",
    "reproduction/command": "reproduction/README.md",
}
"""Stub pages in docs, and the files of the repository that stand in their place on the site."""

LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)")


def show_page(app: Any, docname: str, content: list[str]) -> None:
    """Put a file of the repository in the place of its stub, and turn links so that they hold on the site."""
    home = ROOT / "docs" / f"{docname}.md"
    written_in = home
    if docname in INCLUDED:
        written_in = ROOT / INCLUDED[docname]
        content[0] = written_in.read_text(encoding="utf-8")
    pages = {ROOT / file: ROOT / "docs" / f"{page}.md" for page, file in INCLUDED.items()}
    pages[ROOT / "README.md"] = ROOT / "docs" / "index.md"

    def turned(match: re.Match[str]) -> str:
        path, anchor = match[1], match[2] or ""
        if not path:
            return match[0]
        aim = Path(os.path.normpath(written_in.parent / path))
        aim = aim / "README.md" if aim.is_dir() else aim
        aim = pages.get(aim, aim)
        return f"]({os.path.relpath(aim, home.parent)}{anchor})"

    content[0] = LINK.sub(turned, content[0])
    if re.match(r"reproduction/(?!README|command)", docname):  # tables that a command writes: linked, but in no menu
        content[0] = "---\norphan: true\n---\n" + content[0]


def mend_docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep bars, as in p(β = 1 | x), from looking like a substitution of reStructuredText, and colons like types."""
    if what in ("attribute", "data", "property") and lines:
        lines[0] = re.sub(r":(?=\s)", "\N{MODIFIER LETTER COLON}", lines[0], count=1)
    code = False
    for number, line in enumerate(lines):
        code = line.lstrip().startswith(">>>") or (code and bool(line.strip()))
        if not code:
            parts = re.split(r"(`[^`]*`)", line)
            lines[number] = "".join(part if part.startswith("`") else part.replace("|", "\\|") for part in parts)


def finish_page(app: Any, doctree: Any, docname: str) -> None:
    """Link `pe.name` and `result.name` in the text to the reference; drop the empty line that ends a doctest."""
    from docutils import nodes

    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip()
        block.rawsource, block[:] = text, [nodes.Text(text)]
    objects = app.env.domains.python_domain.objects
    for literal in list(doctree.findall(nodes.literal)):
        called = re.match(r"(pe|result)\.([A-Za-z_][\w.]*)", literal.astext())
        if called is None or isinstance(literal.parent, nodes.reference):
            continue
        inside = ("Result",) if called[1] == "result" else ("", "bases")
        names = [".".join(filter(None, (NAME, part, called[2]))) for part in inside]
        found = next((objects[name] for name in names if name in objects), None)
        if found is None:
            continue
        uri = app.builder.get_relative_uri(docname, found.docname) + f"#{found.node_id}"
        link = nodes.reference("", "", internal=True, refuri=uri, classes=["name"])
        literal.replace_self(link)
        link += literal


def write_mathml(translator: Any, node: Any) -> None:
    """Mathematics as MathML, which browsers draw without a script."""
    from docutils import nodes
    from docutils.utils.math.latex2mathml import tex2mathml

    block = isinstance(node, nodes.math_block)
    text = tex2mathml(node.astext(), as_block=block)
    translator.body.append(f'<div class="formula">{text}</div>' if block else text)
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", show_page)
    app.connect("autodoc-process-docstring", mend_docstring, priority=400)  # before napoleon
    app.connect("doctree-resolved", finish_page)
    app.add_html_math_renderer("mathml", (write_mathml, None), (write_mathml, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
