"""Programs on disk: the same programs, from nobody but the user, and never a reason to fail."""

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from pseudo_extended import cli, compiled, kept_programs
from pseudo_extended.compiled import Job, compile_once
from pseudo_extended.kept_programs import forget_kept_programs, private_directory

X = np.linspace(0.0, 1.0, 5)


def function(x):
    return {"sine": jnp.sin(x) * 2.5, "sum": jnp.sum(x)}


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv(kept_programs.VARIABLE, str(tmp_path / "programs"))
    return tmp_path / "programs"


def run(job=None):
    """As in a new process: nothing in memory; and how many programs XLA compiled."""
    compiled._compiled.clear()
    [program] = compile_once(job or Job(function, (X,)))
    return program(X)


def entries(directory):
    return sorted(directory.glob("*.program"))


@pytest.fixture
def num_compiled(monkeypatch):
    compile_it, calls = kept_programs.compiled_or_kept, []

    def counting(name, program, call, recipe):
        return compile_it(name, program, lambda: calls.append(name) or call(), recipe)

    monkeypatch.setattr(compiled, "compiled_or_kept", counting)
    return calls


def test_the_second_process_compiles_nothing_and_computes_the_same(directory, num_compiled):
    first, second = run(), run()
    assert len(num_compiled) == 1
    np.testing.assert_array_equal(first["sine"], second["sine"])
    assert sorted(second) == ["sine", "sum"]
    [entry] = entries(directory)
    assert directory.stat().st_mode & 0o777 == 0o700
    assert entry.stat().st_mode & 0o777 == 0o600


def test_options_text_and_machine_make_another_program(directory, num_compiled, monkeypatch):
    run()
    run(Job(function, (X,), quick=True))
    run(Job(lambda x: jnp.cos(x), (X,)))
    monkeypatch.setattr(kept_programs, "this_machine", lambda: "another")
    run()
    assert len(num_compiled) == len(entries(directory)) == 4


@pytest.mark.parametrize(
    "damage", [lambda b: b"", lambda b: b[:-7], lambda b: b[:200] + b"?" + b[201:], lambda b: b"x" * 99]
)
def test_a_broken_entry_is_compiled_again_and_replaced(directory, num_compiled, damage):
    run()
    [entry] = entries(directory)
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    run()
    run()
    assert len(num_compiled) == 2
    assert len(entry.read_bytes()) > 200


def test_what_is_not_the_users_alone_is_not_read(directory, num_compiled, tmp_path):
    run()
    [entry] = entries(directory)
    entry.chmod(0o644)
    run()
    assert len(num_compiled) == 2
    elsewhere = tmp_path / "elsewhere"
    entry.rename(elsewhere)
    entry.symlink_to(elsewhere)
    run()
    assert len(num_compiled) == 3
    directory.chmod(0o755)
    assert private_directory() is None
    run()
    assert len(num_compiled) == 4


def test_a_link_is_no_directory(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv(kept_programs.VARIABLE, str(tmp_path / "link"))
    assert private_directory() is None


def test_callbacks_into_python_are_not_kept(directory):
    import jax

    def calls_back(x):
        return jax.pure_callback(np.cos, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    run(Job(calls_back, (X.astype(np.float32),)))
    assert not directory.exists() or not entries(directory)


def test_the_oldest_go_when_it_is_full(directory, monkeypatch):
    run()
    monkeypatch.setattr(kept_programs, "MAX_BYTES", entries(directory)[0].stat().st_size * 3 // 2)
    [first] = entries(directory)
    run(Job(lambda x: jnp.sin(x) * 3.5, (X,)))
    assert first not in entries(directory)
    assert len(entries(directory)) == 1


def test_off(directory, monkeypatch):
    monkeypatch.setenv(kept_programs.VARIABLE, "off")
    run()
    assert not directory.exists()
    assert "no compiled programs are kept" in CliRunner().invoke(cli.app, ["cache"]).output


def test_the_command_shows_and_clears(directory):
    run()
    shown = CliRunner().invoke(cli.app, ["cache"]).output
    assert ": 1 programs, 0." in shown
    assert "deleted 1 files" in CliRunner().invoke(cli.app, ["cache", "--clear"]).output
    assert not entries(directory)
    assert forget_kept_programs() == 0
