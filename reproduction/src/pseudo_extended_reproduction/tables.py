"""Tables as Markdown and as LaTeX."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

TEX = {
    "±": r"$\pm$", "²": "$^2$", "β": r"$\beta$", "θ": r"$\theta$", "×": r"$\times$", "ᵀ": r"$^\top$", "%": r"\%",
    "_": r"\_", "&": r"\&", "~": r"\textasciitilde{}", "–": "--", "—": "---", "…": r"\ldots{}",
    "−": "$-$",
}  # fmt: skip


class Table(NamedTuple):
    """A caption, headings, and rows of text."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """With the caption above.

        >>> print(Table("Errors.", ["", "E[X]"], [["PE", "0.1"]]).markdown())
        Errors.
        <BLANKLINE>
        |  | E[X] |
        |---|---|
        | PE | 0.1 |
        """
        lines = [self.headings, *self.rows]
        text = ["| " + " | ".join(line) + " |" for line in lines]
        return "\n".join([self.caption, "", text[0], "|" + "---|" * len(self.headings), *text[1:]])

    def latex(self) -> str:
        """A table environment with booktabs' rules, as wide as the text."""
        lines = [" & ".join(map(to_tex, line)) + r" \\" for line in (self.headings, *self.rows)]
        columns = "l" + "r" * (len(self.headings) - 1)
        return "\n".join(
            [
                r"\begin{table}",
                r"  \centering",
                rf"  \caption{{{to_tex(self.caption)}}}",
                r"  \resizebox{\linewidth}{!}{%",
                rf"  \begin{{tabular}}{{{columns}}}",
                r"    \toprule",
                f"    {lines[0]}",
                r"    \midrule",
                *(f"    {line}" for line in lines[1:]),
                r"    \bottomrule",
                r"  \end{tabular}}",
                r"\end{table}",
            ]
        )


def to_tex(text: str) -> str:
    r"""Text with its special letters as LaTeX writes them.

    >>> to_tex("E[X1²] ± 5 %"), to_tex("-3.5 to 10-2")
    ('E[X1$^2$] $\\pm$ 5 \\%', '$-$3.5 to 10-2')
    """
    text = re.sub(r"(?<![\w.])-(?=\d)", "−", text)  # a minus, and no hyphen
    return "".join(TEX.get(letter, letter) for letter in text)


def write(tables: Sequence[Table], path: Path, title: str, notes: Sequence[str] = ()) -> list[Path]:
    """`path` with the ending .md, and the same with .tex; each in one step."""
    written = [path.with_suffix(".md"), path.with_suffix(".tex")]
    _write(written[0], "\n\n".join([f"# {title}", *notes, *(table.markdown() for table in tables)]) + "\n")
    _write(
        written[1],
        "\n\n".join(["% needs booktabs and graphicx", *map(to_tex, notes), *(t.latex() for t in tables)]) + "\n",
    )
    return written


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)
