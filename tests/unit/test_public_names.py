"""The public names: all there, nothing else in `dir`, imported late, without the libraries that only extras need."""

import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended import __main__ as command
from tests.unit.sentences import assert_sentence

NAMESPACES = ["bases", "instruments", "kernels", "methods", "plots", "problems", "stopping", "testing"]
FLAGS = ["diverging", "non_finite"]
OPTIONAL = ["arviz", "google_crc32c", "matplotlib", "typer", "xarray", "zarr"]


def test_every_public_name_is_there():
    for name in pe.__all__:
        assert getattr(pe, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        pe.no_such_name  # noqa: B018


def test_dir_has_public_names_and_namespaces_only():
    assert dir(pe) == sorted(pe.__all__)
    modules = [name for name in dir(pe) if type(getattr(pe, name)).__name__ == "module"]
    assert modules == NAMESPACES


@pytest.mark.parametrize("name", ["bases", "instruments", "kernels", "methods"])
def test_the_public_classes_of_a_namespace_are_the_same_at_the_top(name):
    namespace = getattr(pe, name)
    public = {each for each in dir(namespace) if isinstance(getattr(namespace, each), type)}
    for each in public & {*pe.__all__}:
        assert getattr(pe, each) is getattr(namespace, each)
    assert public & {*pe.__all__}


def test_importing_is_cheap():
    """No other library is imported before a name is used, and those of the extras not even then."""
    code = f"""
import sys
before = set(sys.modules)
import pseudo_extended as pe
new = {{name.partition(".")[0] for name in set(sys.modules) - before}} - set(sys.stdlib_module_names)
assert new == {{"pseudo_extended"}}, new
pe.sample, pe.Result, pe.PseudoExtended, pe.HMC, pe.Normal
found = set({OPTIONAL}) & set(sys.modules)
assert not found, found
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(filter(None, sys.path))})


class TestMissingExtras:
    @pytest.mark.parametrize("missing", ["zarr", "google_crc32c"])
    def test_of_a_store(self, tmp_path, monkeypatch, missing):
        monkeypatch.setitem(sys.modules, missing, None)
        for use in (lambda path: pe.sample(jnp.sum, np.zeros(1), store=path), lambda path: pe.load(path, jnp.sum)):
            with pytest.raises(ImportError) as error:
                use(tmp_path / "run.zarr")
            assert_sentence(error, "a store needs", "`pip install 'pseudo-extended[store]'`")

    @pytest.mark.parametrize("missing", ["arviz", "xarray"])
    def test_of_arviz(self, monkeypatch, missing):
        blank = {"acceptance_rate": np.ones((1, 4)), **{name: np.zeros((1, 4), bool) for name in FLAGS}}
        result = pe.Result(
            target=pe.Target(jnp.sum, np.zeros(1)), unconstrained=np.zeros((1, 4, 1, 1)),
            log_weights=np.zeros((1, 4, 1)), statistics=blank, method="", seed=0, seconds={}, stopped=None, doubts=(),
        )  # fmt: skip
        monkeypatch.setitem(sys.modules, missing, None)
        with pytest.raises(ImportError) as error:
            result.to_arviz()
        assert_sentence(error, "to_arviz needs", "`pip install 'pseudo-extended[arviz]'`")

    def test_of_the_command(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "typer", None)
        with pytest.raises(SystemExit) as error:
            command.main()
        assert "needs 'pseudo-extended[cli]'; install it with `pip install" in str(error.value)


def test_the_old_name_of_the_default_works_with_a_warning():
    with pytest.warns(DeprecationWarning, match=r"pe\.AdaptivePseudoExtended") as caught:
        old = pe.IndexGibbs
    assert old is pe.AdaptivePseudoExtended
    assert caught[0].filename == __file__
