"""The command: quick to answer, refuses in a sentence, and does what its Python counterparts do."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import pseudo_extended as pe
from pseudo_extended.cli import KINDS, app
from pseudo_extended.user_file import TargetNameError, load_target

from .made import target, two_modes

HEAVY = ("jax", "numpy", "pandas", "matplotlib", "scipy", "zarr")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return two_modes().save(tmp_path_factory.mktemp("command") / "run.zarr")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A user's file that imports a module beside it."""
    directory = tmp_path_factory.mktemp("user")
    (directory / "beside_it.py").write_text("from tests.doors.made import log_density, target\n")
    (directory / "users_model.py").write_text(
        "import numpy as np\nimport beside_it\nmodel = beside_it.target()\n"
        "def build():\n    return model\ndef normal(x):\n    return -(x**2).sum()\n"
    )
    return str(directory / "users_model.py")


def run(*arguments, code=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


class TestHelp:
    def test_imports_nothing_heavy(self):
        """What takes the time of an answer: half a second, most of it Python and typer."""
        code = (
            "import sys\nfrom typer.testing import CliRunner\nfrom pseudo_extended.cli import app\n"
            "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
            f"print([name for name in {HEAVY} if name in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"

    @pytest.mark.parametrize("name", ["sample", "check", "summary", "modes", "plot", "report", "resume", "extend"])
    def test_of_every_command(self, name):
        assert "Usage" in run(name, "--help")


class TestTarget:
    def test_from_a_file_with_a_module_beside_it(self, file):
        assert isinstance(load_target(f"{file}:model"), pe.Target)
        assert isinstance(load_target(f"{file}:build()"), pe.Target)

    @pytest.mark.parametrize("name", ["model", "nowhere.py:model", "math:nothing", "no.such.module:model"])
    def test_refusals(self, name):
        with pytest.raises(TargetNameError, match="target must"):
            load_target(name)


class TestStore:
    def test_summary_with_and_without_a_target(self, store, file):
        whole = run("summary", store, f"{file}:model", "--hdi-prob", "0.9")
        assert "theta[right_one]" in whole
        assert "hdi_5%" in whole
        assert f"{two_modes().summary()['mean'].iloc[0]:.4g}" in whole
        bare = run("summary", store, "--var-names", "theta")
        assert "theta[right_one]" in bare
        assert "tau" not in bare
        assert "the target was not given" in bare

    def test_modes(self, store, file):
        assert run("modes", store, f"{file}:model").startswith("2 modes")

    @pytest.mark.parametrize("kind", KINDS)
    def test_plot_without_a_target(self, store, tmp_path, kind):
        if kind == "modes":  # they need the density
            assert "without its target" in run("plot", store, "--kind", kind, "--out", tmp_path / "x.png", code=1)
            return
        out = tmp_path / f"{kind}.png"
        assert str(out) in run("plot", store, "--kind", kind, "--out", out).replace("\n", "")
        assert out.read_bytes().startswith(b"\x89PNG")

    def test_report_without_a_target(self, store, tmp_path):
        run("report", store, "--out", tmp_path / "run.html")
        text = (tmp_path / "run.html").read_text()
        assert "the target was not given" in text.lower()
        assert "theta[right_one]" in text

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["summary", "nowhere.zarr"], "does not exist"),
            (["plot", "STORE", "--kind", "violin"], "kind must be one of"),
            (["plot", "STORE", "--out", "nowhere/x.png"], "nowhere"),
            (["report", "STORE", "--out", "nowhere/run.html"], "nowhere"),
            (["summary", "STORE", "--var-names", "mu"], "var_names"),
            (["modes", "STORE", "math:exp"], "target"),
        ],
    )
    def test_refusals_are_one_line(self, store, arguments, words):
        output = run(*[store if argument == "STORE" else argument for argument in arguments], code=1)
        assert output.startswith("pseudo-extended: ")
        assert words in output
        assert "Traceback" not in output


class TestModel:
    def test_sample_and_check(self, file, tmp_path):
        quick = ["--draws", 20, "--warmup", 20, "--chains", 2, "--seed", 1, "--quiet"]
        assert "2 chains × 20 draws" in run("sample", f"{file}:normal", "--init", "0,0", *quick)
        assert "density" in run("check", f"{file}:normal", "--init", "0,0")


def test_store_is_read_without_its_target(store):
    from pseudo_extended.run.without_target import load_without_target

    bare, whole = load_without_target(store), pe.load(store, target())
    assert bare.labels == whole.labels
    assert bare.log_evidence == whole.log_evidence
    inside = (bare.coordinates == whole.coordinates).all(axis=3)
    assert inside.any(axis=2).all()  # each point is one of its draw
