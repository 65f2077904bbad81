"""Bad input to the whole public surface: 200 calls at random from a seed, and some 17,000 in the slow suite.

Each call works, or raises a `ValueError`, `TypeError` or one of the store's errors, in one sentence.
"""

import random
import re
import shutil
import warnings
import zlib
from pathlib import Path

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from typer.testing import CliRunner

import pseudo_extended as pe
from pseudo_extended.cli import app
from tests.execution import victim
from tests.fuzz.surface import RUN, normal, surface

REFUSALS = (ValueError, TypeError, ImportError, pe.StoreInUseError, TimeoutError)
JUNK = [
    None,
    True,
    -1,
    0,
    2.5,
    float("nan"),
    float("inf"),
    -1e300,
    10**30,
    10**400,
    1j,
    "",
    "x",
    "a\0b",
    "../..",
    "x" * 500,
    b"x",
    [],
    [1, "a"],
    (None,),
    {},
    {"x": 1},
    {1, 2},
    object(),
    Ellipsis,
    int,
    len,
    lambda: 1,
    lambda *a: "x",
    Path("x"),
    np.array([]),
    np.array([1.0, np.nan]),
    np.array("x"),
    np.array([object()]),
    np.datetime64("2020"),
    np.float32(0.5),
    jnp.zeros(3),
    slice(3),
    range(3),
    pe.Normal(),
    pe.NUTS(),
    pe.Plain(pe.HMC(1)),
    pe.Tempered(0.1),
    ValueError("x"),
    2**31,
    2**63,
    np.zeros((2, 2)),
    "\ud800",
    {"x": [1]},
    0.5,
    3,
]
"""What nobody should pass, mostly: some of it is allowed somewhere."""
COMMANDS = "info verify resume extend cache load sample check summary modes plot report"
OPTIONS = "--init --draws --help --version --quiet --cores --time-limit"
ARGUMENTS = "..a:b a-b:c {long}:f {long}.py:f -1 nan 1e400 10 x:y math:exp math:pi() nowhere.py:f ü {store}"
WORDS = ["", "\0", *COMMANDS.split(), *OPTIONS.split(), *ARGUMENTS.split()]


def sample(**options):
    return pe.sample(normal, np.zeros(2), **RUN | options)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store, and its result."""
    store = tmp_path_factory.mktemp("surface") / "run.zarr"
    return store, pe.sample(normal, np.zeros(2), store=store, **RUN)


def calls(store, result):
    """Name of a call -> the call, of one value of junk."""
    made = {
        "resume store": lambda v: pe.resume(v, normal, progress=False),
        "resume target": lambda v: pe.resume(store, v, progress=False),
        "resume method": lambda v: pe.resume(store, normal, method=v, progress=False),
        "resume other_versions": lambda v: pe.resume(store, normal, other_versions=v, progress=False),
        "extend draws": lambda v: v is True or pe.extend(store, normal, v if is_wrong_count(v) else 0, progress=False),
        "load store": lambda v: pe.load(v, normal),
        "load target": lambda v: pe.load(store, v),
        "load draws": lambda v: pe.load(store, normal, draws=v),
        "verify": pe.verify,
    }
    for name in ("cores", "chunk", "devices", "cluster", "callback", "progress", "time_limit"):
        made[f"resume {name}"] = lambda v, name=name: pe.resume(store, normal, **{"progress": False, name: v})
    for name in ("store", "resume", "method", "devices", "cluster", "target_ess", "chains", "thin", "seed", "warmup"):
        made[f"sample {name}"] = lambda v, name=name: (
            is_fine(name, v) or pe.sample(normal, np.zeros(2), **RUN | {name: v})
        )
    for each in surface(result):
        made[f"{each.name} {each.argument}"] = each.of
    return made


def is_wrong_count(value):
    return isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1


def is_fine(name, value):
    """Whether the run would be a run: those are tested elsewhere, and take a second each."""
    if value is None or isinstance(value, pe.methods.AbstractMethod):
        return True
    if name == "store":
        return isinstance(value, (str, Path)) and "\0" not in str(value) and 0 < len(str(value)) < 200
    if name == "resume":
        return value is False
    is_count = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return (is_count and value >= 0) or (name == "target_ess" and isinstance(value, (int, float)))


def attempt(call, *arguments):
    """A result, or one sentence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(*arguments)
        except REFUSALS as error:
            said = str(error)
    assert said.strip(), "an empty message"
    assert said.endswith((".", "!", "?")), f"no sentence: {said}"
    assert "\n" not in said, f"more than a line: {said}"
    return None


@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 10))])
def test_two_hundred_calls(made, tmp_path, monkeypatch, seed):
    rng, table = random.Random(seed), calls(*made)
    names = rng.choices(sorted(table), k=200)
    check_all(made[0], tmp_path, monkeypatch, [(name, table[name], rng.choice(JUNK)) for name in names])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_every_argument_with_everything(made, tmp_path, monkeypatch, part):
    table = [each for each in surface(made[1]) if zlib.crc32(each.name.encode()) % 4 == part]
    assert len(table) > 40
    every = [(f"{each.name} {each.argument}", each.of, value) for each in table for value in JUNK]
    check_all(made[0], tmp_path, monkeypatch, every)


def check_all(store, directory, monkeypatch, every):
    """Make calls, given by name and value, and look at the store afterwards."""
    monkeypatch.chdir(directory)
    before = {path: path.read_bytes() for path in store.rglob("c.*") if path.is_file()}
    failures = []
    for name, call, value in every:
        try:
            attempt(call, value)
        except Exception as error:
            failures.append(f"{name} of {str(value)[:40]!r}: {type(error).__name__}: {str(error)[:150]!r}")
        if "plot" in name:
            plt.close("all")
    assert not failures, "\n".join(failures)
    assert {path: path.read_bytes() for path in before} == before
    assert pe.verify(store) == []


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_command_never_shows_a_traceback(made, tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    rng, runner = random.Random(seed), CliRunner()
    store = shutil.copytree(made[0], tmp_path / "run.zarr")
    for _ in range(60):
        words = [rng.choice(WORDS).format(store=store, long="x" * 300) for _ in range(rng.randint(0, 4))]
        done = runner.invoke(app, words)
        assert done.exception is None or isinstance(done.exception, SystemExit), (words, done.exception)
        assert done.exit_code in (0, 1, 2, 130), words
        assert not re.search("Traceback", done.output), words


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cores", "chunk"])
def test_state_that_changes_under_way_is_refused_on_resume(made, tmp_path, name):
    store = shutil.copytree(made[0], tmp_path / "run.zarr")
    with pytest.raises(pe.StoreError, match="target differs"):
        pe.resume(store, victim.log_density, progress=False, **{name: 1})


def test_the_rule_itself_can_fail():
    def raising(error):
        raise error

    for error in (ValueError(""), ValueError("no stop"), TypeError("two\nlines.")):
        with pytest.raises(AssertionError):
            attempt(raising, error)
    with pytest.raises(KeyError):
        attempt(raising, KeyError("x"))
