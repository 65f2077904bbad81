"""The checks of user input. No tolerances: a value passes unchanged or is refused in a sentence."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pseudo_extended import checks

from .sentences import assert_sentence

HUGE = pytest.param(10**400, id="an int beyond every double")


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_integer_accepts_whole_numbers(value):
    made = checks.integer("draws", value, minimum=3)
    assert made == 3
    assert type(made) is int


@pytest.mark.parametrize("value", [True, np.True_, 3.0, "3", None, [3], np.array([3]), 1 + 2j, math.nan])
def test_integer_refuses_other_types(value):
    with pytest.raises(TypeError) as error:
        checks.integer("draws", value, minimum=1)
    assert_sentence(error, "draws", "at least 1")


def test_integer_refuses_too_small():
    with pytest.raises(ValueError, match="draws") as error:
        checks.integer("draws", 0, minimum=1)
    assert_sentence(error, "draws", "got 0")


@pytest.mark.parametrize(
    "value", [0.25, np.float32(0.25), np.array(0.25), jnp.float32(0.25), Fraction(1, 4), np.array(0.25, "f2")]
)
def test_real_accepts_numbers_and_array_scalars(value):
    made = checks.real("beta", value, low=0, high=1)
    assert made == 0.25
    assert type(made) is float


@pytest.mark.parametrize(
    ("closed", "low_allowed", "high_allowed"),
    [("[]", True, True), ("[)", True, False), ("(]", False, True), ("()", False, False)],
)
def test_real_ends_of_the_range(closed, low_allowed, high_allowed):
    for value, allowed in ((0, low_allowed), (1, high_allowed)):
        if allowed:
            assert checks.real("beta", value, low=0, high=1, closed=closed) == value
        else:
            with pytest.raises(ValueError, match="beta") as error:
                checks.real("beta", value, low=0, high=1, closed=closed)
            assert_sentence(error, "beta", f"{closed[0]}0, 1{closed[1]}")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1e-300, 1 + 1e-15, np.float64("nan"), HUGE])
def test_real_refuses_what_is_not_finite_or_outside(value):
    with pytest.raises(ValueError, match="beta") as error:
        checks.real("beta", value, low=0, high=1)
    assert_sentence(error, "beta", "[0, 1]")


@pytest.mark.parametrize("value", [HUGE, math.nan, math.inf])
def test_real_without_a_range_is_still_finite(value):
    with pytest.raises(ValueError, match="x") as error:
        checks.real("x", value)
    assert_sentence(error, "x", "finite")


@pytest.mark.parametrize("value", [True, "0.5", None, [0.5], np.array([0.5]), 0.5j, np.array(True), np.array("a")])
def test_real_refuses_other_types(value):
    with pytest.raises(TypeError) as error:
        checks.real("beta", value, low=0, high=1)
    assert_sentence(error, "beta")


def test_real_refuses_a_random_key():
    """A JAX key is an array scalar, too, of a dtype unlike NumPy's."""
    with pytest.raises(TypeError) as error:
        checks.real("beta", jax.random.key(0), low=0, high=1)
    assert_sentence(error, "beta")


def test_choice_tells_true_from_one():
    assert checks.choice("progress", True, (True, False)) is True
    for value in (1, 0, "True", None, np.array([True, False]), [True]):
        with pytest.raises(ValueError, match="progress") as error:
            checks.choice("progress", value, (True, False))
        assert_sentence(error, "progress", "True, False")


def test_function_and_instance():
    assert checks.function("f", abs) is abs
    with pytest.raises(TypeError) as error:
        checks.function("f", 3)
    assert_sentence(error, "f ", "function")
    assert checks.instance("x", 3, int, "a number") == 3
    with pytest.raises(TypeError) as error:
        checks.instance("x", "3", int, "a number")
    assert_sentence(error, "x ", "a number", "'3'")
    with pytest.raises(TypeError) as error:
        checks.instance("x", dict, int, "a number")
    assert_sentence(error, "did you mean dict()?")


@pytest.mark.parametrize("value", [1, [1, 2], ((1.0, 2.0), (3.0, 4.0)), np.arange(3), jnp.ones(2), [True, False], []])
def test_float_array_accepts_real_numbers(value):
    array = checks.float_array("x", value)
    assert array.dtype == np.float64
    np.testing.assert_array_equal(array, np.asarray(value))


@pytest.mark.parametrize("value", ["a", None, [1, "a"], [[1], [1, 2]], [1j], object(), {"a": 1}, b"1", [10**400]])
def test_float_array_refuses_everything_else(value):
    with pytest.raises(TypeError) as error:
        checks.float_array("x", value)
    assert_sentence(error, "x ")


@pytest.mark.parametrize("value", [math.nan, [0.0, math.inf], np.array([[-np.inf]])])
def test_float_array_refuses_what_is_not_finite(value):
    with pytest.raises(ValueError, match="finite") as error:
        checks.float_array("x", value)
    assert_sentence(error, "x ")


@pytest.mark.parametrize("value", [np.ndarray, jax.Array, "a" * 1000, {"a": list(range(1000))}, np.zeros((2, 3)), None])
def test_describe_is_short_and_never_fails(value):
    assert 0 < len(checks.describe(value)) <= 60
