"""Nothing of the user's breaks: another sampler beside ours in one process, before it and after it."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pseudo_extended.constants import constants_by_precision, jax_mixes_precisions
from pseudo_extended.precision import double_precision

PROGRAM = Path(__file__).with_name("neighbours.py")
ROWS = [
    pytest.param("jax", id="jax"),
    pytest.param("numpyro", id="numpyro"),
    pytest.param("blackjax", id="blackjax", marks=pytest.mark.slow),
    pytest.param("pymc", id="pymc", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("first", ["ours", "theirs"])
@pytest.mark.parametrize("other", ROWS)
def test_another_sampler_in_the_same_process(other, first):
    """With NumPy doubles in the model and JAX in single precision, which is its default; and the same draws of ours."""
    done = subprocess.run([sys.executable, PROGRAM, other, first], timeout=1200, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_arrays_have_the_precision_of_whoever_asks_even_if_others_keep_theirs():
    x = np.linspace(0.0, 1.0, 6).reshape(2, 3)

    def function(b):
        return x @ b

    for _ in range(2):
        single = jax.make_jaxpr(function)(jnp.ones(3))
        with double_precision():
            double = jax.make_jaxpr(function)(jnp.ones(3))
            assert (x @ jnp.ones(3)).dtype == jnp.float64
        assert [constant.dtype for constant in (*single.consts, *double.consts)] == [jnp.float32, jnp.float64]
        assert (x @ jnp.ones(3)).dtype == jnp.float32


def test_an_array_used_twice_is_one_constant():
    x = np.linspace(0.0, 1.0, 3)
    with double_precision():
        assert len(jax.make_jaxpr(lambda b: x @ b + jnp.sum(jnp.sin(x)))(jnp.ones(3)).consts) == 1


def test_afterwards_jax_is_as_it_was():
    """JAX's own mistake is back, as it would be had the library not been there, and with nothing of ours in it."""
    from jax._src import dtypes

    if not jax_mixes_precisions():
        pytest.skip("this JAX keeps precisions apart by itself")
    x = np.ones(3)
    with constants_by_precision(), constants_by_precision():
        inside = dtypes.canonicalize_value(x)
    outside = dtypes.canonicalize_value(x)
    assert inside is not outside
    with jax.enable_x64(True):
        assert dtypes.canonicalize_value(x) is outside
