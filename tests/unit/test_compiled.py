"""Programs are looked up by what they compute, and by what goes in and comes out."""

import jax.numpy as jnp
import numpy as np
import pytest

from pseudo_extended import compiled
from pseudo_extended.compiled import Job, compile_once, seconds_compiling
from pseudo_extended.compiler_options import single_threaded_options


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


def test_programs_with_a_fourier_transform_use_one_thread(monkeypatch):
    asked = []
    monkeypatch.setattr(compiled, "single_threaded_options", lambda: asked.append(1) or single_threaded_options())
    (transform,) = compile_once(Job(lambda x: jnp.abs(jnp.fft.fft(x)), (np.ones(8, np.float32),)))
    np.testing.assert_allclose(transform(np.ones(8, np.float32)), [8, 0, 0, 0, 0, 0, 0, 0], atol=1e-6)
    compile_once(Job(lambda x: x + 0.5, (np.ones(8, np.float32),)))
    assert asked == [1]


def test_a_program_that_failed_is_tried_again(monkeypatch):
    job = Job(lambda x: x * 0.375, (np.ones(3, np.float32),))

    def full(*_):
        raise OSError("no")

    with monkeypatch.context() as patch:
        patch.setattr(compiled, "compiled_or_kept", full)
        with pytest.raises(OSError, match="no"):
            compile_once(job)
    (program,) = compile_once(job)
    np.testing.assert_array_equal(program(np.ones(3, np.float32)), 0.375)
