"""The generator written out gives JAX's own numbers, bit for bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pseudo_extended.generator import written_out

DRAWS = {
    "doubles": lambda key: jax.random.normal(key, (5, 3), dtype=jnp.float64),
    "singles": lambda key: jax.random.uniform(key, (7,), dtype=jnp.float32),
    "one": lambda key: jax.random.normal(key),
    "none": lambda key: jax.random.uniform(key, (0, 2)),
    "bytes": lambda key: jax.random.bits(key, (3,), dtype=jnp.uint8),
    "words": lambda key: jax.random.bits(key, (3,), dtype=jnp.uint32),
    "permutation": lambda key: jax.random.permutation(key, 9),
    "choice": lambda key: jax.random.choice(key, 50, (6,), replace=False),
    "integers": lambda key: jax.random.randint(key, (4,), -5, 1000),
    "split": lambda key: jax.random.key_data(jax.random.split(key, (3, 2))),
    "folded": lambda key: jax.random.key_data(jax.random.fold_in(key, 12345)),
    "folded, more than 32 bits": lambda key: jax.random.key_data(jax.random.fold_in(key, jnp.asarray(2**33 + 5))),
    "twice folded": lambda key: jax.random.normal(jax.random.fold_in(jax.random.split(key)[1], 3), (4,)),
    "mapped": lambda key: jax.vmap(lambda key: jax.random.normal(key, (3,)))(jax.random.split(key, 4)),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("compiled", [False, True])
def test_the_same_numbers(name, compiled):
    with jax.enable_x64(True):
        draw = jax.jit(DRAWS[name]) if compiled else DRAWS[name]
        for seed in (0, 1, 2**31, 2**40 + 7):
            key = jax.random.key(seed, impl="threefry2x32")
            np.testing.assert_array_equal(draw(written_out(key)), draw(key))


def test_many_keys_at_once():
    keys = jax.random.split(jax.random.key(5, impl="threefry2x32"), (2, 3))
    np.testing.assert_array_equal(jax.random.key_data(written_out(keys)), jax.random.key_data(keys))


def test_too_many_numbers():
    key = written_out(jax.random.key(0, impl="threefry2x32"))
    with pytest.raises(NotImplementedError, match=r"fewer than 2\*\*32; got the shape \(65536, 65536\)"):
        jax.jit(lambda key: jax.random.bits(key, (2**16, 2**16))).lower(key)
