"""JAX's own random numbers, from a generator that is written out in full.

On CPU, JAX compiles threefry as a loop of five rounds, which saves compilation. In a step of some hundred small kernels
the five loops that it needs are hundreds more: a draw of the 20-mode mixture took a third longer. Written out, a loop
is part of one kernel. The numbers are the same, bit for bit, as those of `impl="threefry2x32"` (Salmon, Moraes, Dror
and Shaw 2011).
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import define_prng_impl
from jaxtyping import Array, Key, UInt32

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def written_out(key: Key[Array, "*batch"]) -> Key[Array, "*batch"]:
    """The same key for the generator of this module: `jax.random` gives the same numbers with it.

    >>> key = jax.random.key(3, impl="threefry2x32")
    >>> bool(jnp.all(jax.random.normal(written_out(key), (5,)) == jax.random.normal(key, (5,))))
    True
    """
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=WRITTEN_OUT)


def threefry(key: UInt32[Array, " 2"], high: UInt32[Array, "*shape"], low: UInt32[Array, "*shape"]) -> tuple[Any, Any]:
    """Twenty rounds on the counters, with a part of the key added after every four."""
    parts = key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA)
    high, low = high + parts[0], low + parts[1]
    for i in range(5):
        for distance in ROTATIONS[i % 2]:
            high = high + low
            low = high ^ ((low << np.uint32(distance)) | (low >> np.uint32(32 - distance)))
        high, low = high + parts[(i + 1) % 3], low + parts[(i + 2) % 3] + np.uint32(i + 1)
    return high, low


def _one_word(high: Array, low: Array) -> Array:
    """Both halves of 64 bits as one number, behind a barrier.

    The barrier keeps XLA from writing out a key's rounds again wherever a number made from it is used: for keys made of
    keys that grows exponentially, and XLA's of 2026 never ended. One number, as of two behind a barrier each would be a
    kernel of its own, with all the rounds in it.
    """
    return jax.lax.optimization_barrier((high.astype(jnp.uint64) << np.uint64(32)) | low.astype(jnp.uint64))


def _as_keys(high: Array, low: Array) -> Array:
    if jax.dtypes.canonicalize_dtype(np.uint64) != np.uint64:
        return jnp.stack(jax.lax.optimization_barrier((high, low)), axis=-1)
    return jax.lax.bitcast_convert_type(_one_word(low, high), jnp.uint32)  # the lower half comes first


def _counted(key: Array, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The counters 0, 1, … encrypted."""
    size = math.prod(shape)
    if size >= 2**32:
        raise NotImplementedError(f"random numbers must be fewer than 2**32; got the shape {shape}.")
    low = jax.lax.iota(jnp.uint32, size).reshape(shape)
    return threefry(key, jnp.zeros_like(low), low)


def _seed(seed: Array) -> Array:
    return jax.random.key_data(jax.random.key(seed, impl="threefry2x32"))


def _split(key: Array, shape: tuple[int, ...]) -> Array:
    return _as_keys(*_counted(key, shape))


def _random_bits(key: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
    high, low = _counted(key, shape)
    if bit_width == 64:
        return _one_word(high, low)
    return jax.lax.optimization_barrier(high ^ low).astype(f"uint{bit_width}")


def _fold_in(key: Array, data: Any) -> Array:
    low = jnp.asarray(data, jnp.uint32)
    return _as_keys(*threefry(key, jnp.zeros_like(low), low))


WRITTEN_OUT: Any = define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="threefry2x32_written_out",
)
