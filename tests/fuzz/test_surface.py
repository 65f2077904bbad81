"""Bad input to the whole public surface, drawn at random from a seed: 200 calls, and 2,000 in the slow suite.

Each call works, or raises a `ValueError`, `TypeError` or one of the store's errors, in one sentence.
"""

import random
import re
import shutil
import warnings
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import pseudo_extended as pe
from pseudo_extended.cli import app
from tests.execution import victim

REFUSALS = (ValueError, TypeError, pe.StoreInUseError, TimeoutError)
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
]
"""What nobody should pass, mostly: some of it is allowed somewhere."""
RUN = {"method": pe.Plain(pe.RandomWalk()), "draws": 8, "warmup": 2, "chains": 2, "seed": 1, "progress": False}
COMMANDS = "info verify resume extend cache load --help --version --quiet --cores --time-limit"
ARGUMENTS = "-1 nan 1e400 10 x:y math:exp math:pi() nowhere.py:f ü {store}"
WORDS = ["", "\0", *COMMANDS.split(), *ARGUMENTS.split()]


def normal(x):
    return -0.5 * jnp.sum(x**2)


def sample(**options):
    return pe.sample(normal, np.zeros(2), **RUN | options)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store, and its result."""
    store = tmp_path_factory.mktemp("surface") / "run.zarr"
    return store, pe.sample(normal, np.zeros(2), store=store, **RUN)


CONSTRUCTORS = {
    pe.IndexGibbs: ({}, ("kernel", "instrument", "base")),
    pe.ParallelTempering: ({"betas": [0.1, 1.0]}, ("kernel",)),
    pe.SimulatedTempering: ({"betas": [0.1, 1.0]}, ("kernel",)),
    pe.EquiEnergy: ({"energies": [-1, 1], "temperatures": [1.0, 3.0]}, ("burn_in", "ring_capacity")),
    pe.RepellingAttracting: ({}, ("scale", "max_tries")),
    pe.Base: ({"log_density": normal}, ("sampler",)),
    pe.NormalMixture: ({"means": np.zeros((2, 2)), "scales": np.ones((2, 2))}, ()),
    pe.Stratified: ({}, ("beta_min", "correlation")),
    pe.Mixture: ({"kernels": [pe.NUTS(), pe.MALA()]}, ("probabilities",)),
}
"""Classes, with arguments that are right, and the names of others."""


def calls(store, result):
    """Name of a call -> the call, of one value of junk."""
    target = pe.Target(normal, np.zeros(2))
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
        "check": lambda v: callable(v) or pe.check(v, np.zeros(2)),  # a function's own errors are its user's
        "register_class": lambda v: pe.register_class(v, pe.HMC),
        "quantile": result.quantile,
        "resample": lambda v: result.resample(seed=v),
        "expect": result.expect,
        "unconstrain": target.unconstrain,
    }
    for name in ("cores", "chunk", "devices", "cluster", "callback", "progress", "time_limit"):
        made[f"resume {name}"] = lambda v, name=name: pe.resume(store, normal, **{"progress": False, name: v})
    for name in ("store", "resume", "method", "devices", "cluster", "target_ess", "chains", "thin", "seed", "warmup"):
        made[f"sample {name}"] = lambda v, name=name: (
            is_fine(name, v) or pe.sample(normal, np.zeros(2), **RUN | {name: v})
        )
    for kind, (right, names) in CONSTRUCTORS.items():
        for name in (*right, *names):
            made[f"{kind.__name__} {name}"] = lambda v, kind=kind, right=right, name=name: kind(**right | {name: v})
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
    monkeypatch.chdir(tmp_path)
    rng, failures = random.Random(seed), []
    table = calls(*made)
    before = {path: path.read_bytes() for path in made[0].rglob("c.*") if path.is_file()}
    for _ in range(200):
        name, value = rng.choice(sorted(table)), rng.choice(JUNK)
        try:
            attempt(table[name], value)
        except Exception as error:
            failures.append(f"{name} of {str(value)[:40]!r}: {type(error).__name__}: {str(error)[:150]!r}")
    assert not failures, "\n".join(failures)
    assert {path: path.read_bytes() for path in before} == before
    assert pe.verify(made[0]) == []


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_command_never_shows_a_traceback(made, tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    rng, runner = random.Random(seed), CliRunner()
    store = shutil.copytree(made[0], tmp_path / "run.zarr")
    for _ in range(60):
        words = [rng.choice(WORDS).format(store=store) for _ in range(rng.randint(0, 4))]
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
