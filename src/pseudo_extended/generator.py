"""Random numbers for the loop over draws, from a generator that takes few operations.

A step of some hundred small kernels draws random numbers in a dozen places. With threefry, JAX's own generator, each
place is 150 operations of XLA, and more than half of all that is compiled. Here a key is a 64-bit word, and its
children and its numbers come from SplitMix64's mixing function m (Steele, Lea and Flood 2014), a bijection of 64-bit
words with the constants of Stafford's variant 13:

    child i of k:     m(k + (i + 1) γ)                      γ = 2^64 / φ, odd
    k folded with n:  m(m(k + δ) + (n + 1) γ)               so that it is no child
    number i of k:    m(m(k + (i + 1) γ) + k + δ)           keyed twice, so that no two keys share a stretch of numbers

Siblings never collide, and other keys only as random words do, in fewer than one of 10^6 runs of 10^6 draws. The
numbers depend on the key and on their place alone, as JAX's do, and `jax.random` works with such keys as with its own.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import define_prng_impl
from jaxtyping import Array, Key, UInt32, UInt64

GOLDEN = 0x9E3779B97F4A7C15
FOLDED = 0xD1B54A32D192ED03
"""Sets keys that are folded with a number apart from children, and the second round of a number from its first."""
MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
SHIFTS = (30, 27, 31)


def mixing(key: Key[Array, "*batch"]) -> Key[Array, "*batch"]:
    """The same key for the generator of this module, whatever generator it was made for.

    >>> key = mixing(jax.random.key(3, impl="threefry2x32"))
    >>> with jax.enable_x64(True):
    ...     print(jax.random.uniform(key, (2,)))
    [0.39372937 0.43148704]
    """
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=MIXING)


def folded(key: Key[Array, ""], number: int) -> Key[Array, ""]:
    """The key folded with a number, as `fold_in` of this module's generator makes it, but of JAX's own kind.

    It is worked out in Python's integers, as JAX would compile a program for it.

    >>> key = jax.random.key(3, impl="threefry2x32")
    >>> with jax.enable_x64(True):
    ...     there = jax.random.key_data(jax.random.fold_in(mixing(key), 5))
    >>> bool(jnp.all(jax.random.key_data(folded(key, 5)) == there))
    True
    """
    low, high = (int(part) for part in np.asarray(jax.random.key_data(key)))
    word = _mixed(_mixed((low | high << 32) + FOLDED) + (number + 1) * GOLDEN)
    return own_key(word)


def own_key(word: int) -> Key[Array, ""]:
    """A key of JAX's own generator, of 64 bits."""
    data = np.array([word & 0xFFFFFFFF, word >> 32], np.uint32)
    return jax.random.wrap_key_data(jax.device_put(data), impl="threefry2x32")


def _mixed(word: int) -> int:
    """`mix` for an integer of Python, modulo 2^64."""
    mask = 2**64 - 1
    word &= mask
    for shift, multiplier in zip(SHIFTS, MULTIPLIERS, strict=False):
        word = (word ^ word >> shift) * multiplier & mask
    return word ^ word >> SHIFTS[2]


def mix(word: UInt64[Array, "*shape"]) -> UInt64[Array, "*shape"]:
    """SplitMix64's function of a 64-bit word: every bit of it depends on every bit of the word."""
    for shift, multiplier in zip(SHIFTS, MULTIPLIERS, strict=False):
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(multiplier)
    return word ^ (word >> np.uint64(SHIFTS[2]))


def _word(key: UInt32[Array, " 2"]) -> UInt64[Array, ""]:
    if jax.dtypes.canonicalize_dtype(np.uint64) != np.uint64:
        raise TypeError("this generator needs 64-bit words; call it inside jax.enable_x64(True), as pe.sample does.")
    return jax.lax.bitcast_convert_type(key, jnp.uint64)


def _places(shape: tuple[int, ...]) -> UInt64[Array, "*shape"]:
    """(i + 1) γ for the places of an array."""
    size = math.prod(shape)
    if size >= 2**32:
        raise NotImplementedError(f"random numbers must be fewer than 2**32; got the shape {shape}.")
    return (jax.lax.iota(jnp.uint64, size).reshape(shape) + np.uint64(1)) * np.uint64(GOLDEN)


def _seed(seed: Array) -> Array:
    return jax.random.key_data(jax.random.key(seed, impl="threefry2x32"))


def _split(key: Array, shape: tuple[int, ...]) -> Array:
    return jax.lax.bitcast_convert_type(mix(_word(key) + _places(shape)), jnp.uint32)


def _random_bits(key: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
    word = _word(key)
    bits = mix(mix(word + _places(shape)) + (word + np.uint64(FOLDED)))
    # XLA would compute them anew wherever they are used.
    return jax.lax.optimization_barrier(bits).astype(f"uint{bit_width}")


def _fold_in(key: Array, data: Any) -> Array:
    place = (jnp.asarray(data).astype(jnp.uint64) + np.uint64(1)) * np.uint64(GOLDEN)
    return jax.lax.bitcast_convert_type(mix(mix(_word(key) + np.uint64(FOLDED)) + place), jnp.uint32)


MIXING: Any = define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="splitmix64_keyed_twice",
)
