"""Densities that misbehave: each ends in one sentence, or in a result of finite points with a warning that fits."""

import itertools
import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe


class Case(NamedTuple):
    """A density, and what is to be said of it."""

    make: Callable[[], Callable[[Any], Any]]
    plain: str = ""
    """Of random-walk Metropolis: the code of a warning, or words of the refusal; nothing if the draws are right."""
    warns: bool = True
    """Whether the default must warn or refuse."""
    quick: bool = False


def normal(x):
    return -0.5 * jnp.sum(x**2)


def numpy_normal(x):
    return -0.5 * float(np.sum(np.asarray(x) ** 2))


def now_and_then(what, every):
    """A NumPy function that returns something else, or raises, on some of its calls."""

    def make():
        calls = itertools.count(1)

        def log_density(x):
            if next(calls) % every == 0:
                if isinstance(what, Exception):
                    raise what
                return what
            return numpy_normal(x)

        return log_density

    return make


def noisy():
    rng = np.random.default_rng(0)
    return lambda x: numpy_normal(x) + float(rng.normal())


def drifting():
    calls = itertools.count()
    return lambda x: numpy_normal(np.asarray(x) - np.sin(0.01 * next(calls)))


def breaks_for_good():
    calls = itertools.count()
    return lambda x: numpy_normal(x) if next(calls) < 300 else None


CASES = {
    "raises now and then": Case(now_and_then(RuntimeError("no convergence"), 20), "PE005"),
    "nan now and then": Case(now_and_then(float("nan"), 20), "PE104"),
    "+inf now and then": Case(now_and_then(float("inf"), 50), "PE104"),
    "another shape now and then": Case(now_and_then(np.zeros(2), 50), "PE005"),
    "None from some call on": Case(breaks_for_good, "PE005", quick=True),
    "random": Case(noisy, "PE007", quick=True),
    "global state": Case(drifting, "PE007"),
    "nan in a half": Case(lambda: lambda x: jnp.where(x[0] > 0.5, jnp.nan, normal(x)), "PE104", quick=True),
    "+inf in a half": Case(lambda: lambda x: jnp.where(x[0] > 0.5, jnp.inf, normal(x)), "PE104"),
    "+inf near a point": Case(lambda: lambda x: jnp.where(jnp.sum((x - 1) ** 2) < 0.3, jnp.inf, normal(x)), "PE104"),
    "rubbish far out": Case(lambda: lambda x: jnp.where(jnp.sum(x**2) > 50.0, 1e32, normal(x)), "PE110", quick=True),
    "rubbish nearby": Case(lambda: lambda x: jnp.where(x[0] > 2.0, 1e32, normal(x)), "PE110"),
    "growing rubbish": Case(lambda: lambda x: jnp.where(x[0] > 3.0, 1e32 * jnp.abs(x[1]), normal(x)), "PE110"),
    "flat": Case(lambda: lambda x: 0.0 * jnp.sum(x), "PE110"),
    "improper": Case(lambda: lambda x: jnp.sum(x), "PE110"),
    "flat on one side": Case(
        lambda: lambda x: jnp.where(x[0] > 0, 0.0, -0.5 * x[0] ** 2) - 0.5 * x[1] ** 2, "PE201|PE202"
    ),
    "discontinuous": Case(lambda: lambda x: -0.5 * jnp.sum(jnp.floor(x) ** 2), warns=False),
    "tiny": Case(lambda: lambda x: 1e-300 * normal(x), "PE110"),
    "huge": Case(lambda: lambda x: 1e300 * normal(x), "PE10[12]|PE202"),
    "no density anywhere": Case(
        lambda: lambda x: -jnp.inf + 0.0 * jnp.sum(x), "must be finite at the start", quick=True
    ),
    "a vector": Case(lambda: lambda x: x, "log_density must return one float", quick=True),
    "a string": Case(lambda: lambda x: "x", "log_density must return one float", quick=True),
    "complex": Case(lambda: lambda x: 1j * jnp.sum(x), "log_density must return a float", quick=True),
}


@pytest.mark.parametrize(
    "name", [name if CASES[name].quick else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_random_walk_says_what_is_wrong(name):
    said = outcome(CASES[name], method=pe.Plain(pe.RandomWalk()))
    assert any(re.match(CASES[name].plain, code) or re.search(CASES[name].plain, text) for code, text in said), said


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_default_warns_or_refuses(name):
    said = outcome(CASES[name])
    assert bool(said) or not CASES[name].warns


def test_a_users_own_error_says_where_it_was_called():
    with pytest.raises(ZeroDivisionError) as error:
        outcome(Case(lambda: lambda x: 1 / 0))
    assert any("pseudo-extended called log_density" in note for note in error.value.__notes__)


def test_a_function_of_its_argument_alone_is_not_suspected():
    assert not any(code == "PE007" for code, _ in outcome(Case(lambda: numpy_normal), method=pe.Plain(pe.RandomWalk())))


def outcome(case, **options):
    """Codes and sentences of the warnings, or the sentence of the refusal without a code."""
    run = {"draws": 200, "warmup": 200, "chains": 2, "seed": 1, "progress": False, "time_limit": 60}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = pe.sample(case.make(), -0.5 * np.ones(2), **run | options)
        except (ValueError, TypeError) as error:
            said = str(error)
            assert said.endswith("."), said
            assert "\n" not in said, said
            return [("", said)]
    assert np.all(np.isfinite(result.unconstrained))
    return [(message.code, str(message)) for message in result.warnings]
