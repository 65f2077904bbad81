"""What notebooks show: tables with the user's texts escaped, and a check that is listed once."""

import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe

from .made import two_modes

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def evil():
    """A result whose every text is a script."""
    target = pe.Target(lambda p: -sum((leaf**2).sum() for leaf in p.values()), {SCRIPT: np.zeros(2), "b": 0.0})
    return two_modes(target=target, doubts=(SCRIPT,), notes=(SCRIPT,), method=SCRIPT)


@pytest.fixture(scope="module")
def result():
    return two_modes()


def test_texts_of_a_model_are_escaped(evil):
    for shown in (evil, evil.modes(), evil.mean(), evil.travel):
        page = shown._repr_html_()
        assert SCRIPT not in page
        assert "<table" in page
    assert "&lt;script&gt;" in evil._repr_html_()


def test_result_has_the_numbers_of_its_text(result):
    page = result._repr_html_()
    for number in result.summary()["mean"]:
        assert f"{number:.4g}" in page
    assert "log evidence" in page
    assert "mode 1: mass" in page


def test_estimates(result):
    assert "±" in result.log_evidence._repr_html_()
    page = result.mean()._repr_html_()
    assert "theta[0]" in page
    assert page.count("<tr>") == 4
    assert result.quantile([0.1, 0.9])._repr_html_().count("<tr>") == 7


def test_many_rows_are_cut():
    target = pe.Target(lambda x: -(x**2).sum(), np.zeros(50))
    wide = two_modes(target=target, unconstrained=np.zeros((4, 200, 6, 50)) + np.arange(200)[:, None, None])
    assert "and 20 more rows" in wide._repr_html_()


class TestCheck:
    def test_a_script_prints_it(self, capsys):
        found = pe.check(lambda x: -jnp.sum(x**2), np.ones(2))
        assert capsys.readouterr().out.strip() == str(found)

    def test_a_prompt_shows_it_once(self, capsys, monkeypatch):
        import sys

        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
        found = pe.check(lambda x: -jnp.sum(x**2), np.ones(2))
        assert not capsys.readouterr().out
        assert repr(found) == str(found)
        assert "<td>✓</td><td>density</td>" in found._repr_html_()


CELLS = [
    "import sys\nif {without}: sys.modules['ipywidgets'] = None\n"
    "import jax.numpy as jnp, numpy as np, pseudo_extended as pe",
    "method = pe.Plain(pe.HMC(2))\n"
    "result = pe.sample(lambda x: -jnp.sum(x**2), np.zeros(2), method=method, draws=2000, warmup=500, seed=1)",
    "result",
    "pe.check(lambda x: -jnp.sum(x**2), np.ones(2))",
    "result.mean()",
    "result.plot_marginals();",
]


@pytest.mark.slow
@pytest.mark.parametrize("without", [False, True], ids=["with ipywidgets", "without ipywidgets"])
def test_a_notebook(without, tmp_path, monkeypatch):
    """Executed by a kernel: progress in one line that changes, no warnings, and tables where results are shown."""
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    cells = [nbformat.v4.new_code_cell(cell.replace("{without}", str(without))) for cell in CELLS]
    book = nbformat.v4.new_notebook(cells=cells)
    where = {"metadata": {"path": str(tmp_path)}}
    client.NotebookClient(book, timeout=300, kernel_name="python3", resources=where).execute()
    outputs = [cell["outputs"] for cell in book.cells]
    streams = [part["text"] for parts in outputs for part in parts if part["output_type"] == "stream"]
    assert not streams
    [progress] = [part for part in outputs[1] if part["output_type"] == "display_data"]
    assert "10000/10000 (100%)" in progress["data"]["text/html"]
    for shown, what in ((2, "<table"), (3, "density"), (4, "<table")):
        [part] = outputs[shown]
        assert what in part["data"]["text/html"]
    assert any("image/png" in part.get("data", {}) for part in outputs[5])


def test_progress_in_a_notebook(monkeypatch):
    """One display, updated a few times a second at most, with what is said above it escaped."""
    from pseudo_extended.run import progress

    shown = []

    class Handle:
        def update(self, page):
            shown.append(page)

    class Display:
        HTML = str

        @staticmethod
        def display(page, display_id):
            shown.append(page)
            return Handle()

    monkeypatch.setattr(progress, "import_module", lambda name: Display)
    page = progress.Page()
    page.note(SCRIPT)
    for done in range(1000):
        page.show(progress.Status(done, 1000, False, 0, 10.0))
    page.show(progress.Status(1000, 1000, False, 0, 10.0))
    page.close()
    assert len(shown) < 20
    assert "1000/1000 (100%)" in shown[-1]
    assert SCRIPT not in shown[-1]
    assert "&lt;script" in shown[-1]
