"""Programs are looked up by what they compute, and by what goes in and comes out."""

import jax.numpy as jnp
import numpy as np

from pseudo_extended.compiled import Job, compile_once, seconds_compiling


def test_arguments_that_a_program_does_not_use_count():
    """JAX drops them from the text, but a call must still have as many."""
    short, long = [jnp.ones(2)], [jnp.ones(2), jnp.zeros(3)]
    for arrays in (short, long):
        (compiled,) = compile_once(Job(lambda arrays: arrays[0] + 1, (arrays,)))
        np.testing.assert_array_equal(compiled(arrays), [2, 2])


def test_names_of_what_a_program_returns_count():
    for name in ("a", "b"):
        (compiled,) = compile_once(Job(lambda x, name=name: {name: x + 1}, (jnp.ones(2),)))
        assert list(compiled(jnp.ones(2))) == [name]


def test_time_is_counted():
    before = seconds_compiling()
    compile_once(Job(lambda x: jnp.sin(x) + 0.123, (jnp.ones(3),)))
    assert seconds_compiling() > before
