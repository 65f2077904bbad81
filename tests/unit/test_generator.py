"""The generator of the loop over draws: numbers that depend on key and place alone, and that look random."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from pseudo_extended.generator import FOLDED, GOLDEN, mixing
from pseudo_extended.randomness import normals_and_uniforms

MASK = 2**64 - 1

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
    "twice folded": lambda key: jax.random.normal(jax.random.fold_in(jax.random.split(key)[1], 3), (4,)),
    "mapped": lambda key: jax.vmap(lambda key: jax.random.normal(key, (3,)))(jax.random.split(key, 4)),
}


def key_of(word):
    data = jnp.asarray([word & 0xFFFFFFFF, word >> 32], jnp.uint32)
    return mixing(jax.random.wrap_key_data(data, impl="threefry2x32"))


def word_of(key):
    low, high = (int(part) for part in jax.random.key_data(key))
    return low | high << 32


def mixed(word):
    """SplitMix64's function in Python's integers."""
    word &= MASK
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ word >> 27) * 0x94D049BB133111EB & MASK
    return word ^ word >> 31


@pytest.mark.parametrize("name", DRAWS)
def test_compiled_or_not(name):
    with jax.enable_x64(True):
        for seed in (0, 1, 2**31, 2**40 + 7):
            key = mixing(jax.random.key(seed, impl="threefry2x32"))
            np.testing.assert_array_equal(jax.jit(DRAWS[name])(key), DRAWS[name](key))


def test_the_published_function():
    """The first numbers of SplitMix64 with seed 1234567, as everybody's implementation has them."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [mixed(1234567 + (i + 1) * GOLDEN) for i in range(3)] == published


@pytest.mark.parametrize("word", [0, 1, 2**32 - 1, 2**63 + 12345])
def test_the_formulae(word):
    with jax.enable_x64(True):
        key = key_of(word)
        children = [word_of(child) for child in jax.random.split(key, 3)]
        folded = [word_of(jax.random.fold_in(key, i)) for i in (0, 7, 2**32 - 1)]
        bits = [int(each) for each in jax.random.bits(key, (3,), dtype=jnp.uint64)]
    assert children == [mixed(word + (i + 1) * GOLDEN) for i in range(3)]
    assert folded == [mixed(mixed(word + FOLDED) + (i + 1) * GOLDEN) for i in (0, 7, 2**32 - 1)]
    assert bits == [mixed(mixed(word + (i + 1) * GOLDEN) + word + FOLDED) for i in range(3)]


def test_keys_of_a_tree_differ():
    """Children, keys folded with numbers, and theirs: all that a run of some thousand draws makes."""
    with jax.enable_x64(True):
        root = mixing(jax.random.key(0, impl="threefry2x32"))

        def of_draw(i):
            key = jax.random.fold_in(root, i)
            some = jax.random.split(key, 3)
            deeper = jax.vmap(lambda key: jax.random.split(key, 5))(some).reshape(-1)
            return jax.random.key_data(jnp.concatenate([key[None], some, deeper]))

        keys = np.asarray(jax.jit(jax.vmap(of_draw))(jnp.arange(20_000))).reshape(-1, 2)
    assert len(np.unique(keys, axis=0)) == len(keys) == 19 * 20_000


def test_numbers_of_many_keys_look_random():
    """Neighbours in place, in the key that they were folded from, and in the parent: each bit, and each pair of bits.

    Four standard deviations at 64² pairs of bits would be passed by chance alone: five are asked for.
    """
    with jax.enable_x64(True):
        root = mixing(jax.random.key(1, impl="threefry2x32"))
        keys = jax.vmap(lambda i: jax.random.fold_in(root, i))(jnp.arange(50_000))
        words = np.asarray(jax.vmap(lambda key: jax.random.bits(key, (2,), dtype=jnp.uint64))(keys))
    bits = np.unpackbits(words.view(np.uint8).reshape(len(words), 2, 8), axis=2).reshape(len(words), 2, 64) * 2.0 - 1
    z = bits.mean(axis=0) * np.sqrt(len(bits))
    assert np.max(np.abs(z)) < 5
    for one, other in ((bits[:, 0], bits[:, 1]), (bits[1:, 0], bits[:-1, 0])):
        assert np.max(np.abs(one.T @ other)) / np.sqrt(len(one)) < 5.5


def test_normal_numbers():
    """Each against the normal law, their squares, and the two of a pair against each other; 10^-4 a test."""
    with jax.enable_x64(True):
        normal, uniform = normals_and_uniforms(mixing(jax.random.key(2, impl="threefry2x32")), 5, 2, (40_000,))
    normal, uniform = np.asarray(normal), np.asarray(uniform)
    assert normal.shape == (40_000, 5)
    assert uniform.shape == (40_000, 2)
    assert min(stats.kstest(column, "norm").pvalue for column in normal.T) > 1e-4
    assert min(stats.kstest(column, "uniform").pvalue for column in uniform.T) > 1e-4
    assert stats.kstest(np.sum(normal**2, axis=1), stats.chi2(5).cdf).pvalue > 1e-4
    assert stats.kstest(np.prod(normal[:, :2], axis=1), _product_of_normals()).pvalue > 1e-4


def _product_of_normals():
    """The law of a product of two independent normal numbers, from its density K0(|x|)/π by quadrature."""
    from scipy.special import k0

    grid = np.linspace(0, 30, 300_001)[1:]
    half = np.cumsum(k0(grid)) * 1e-4 / np.pi
    half += 0.5 - half[-1]
    return lambda x: 0.5 + np.sign(x) * np.interp(np.abs(x), np.r_[0, grid], np.r_[0, half])


def test_single_precision():
    with pytest.raises(TypeError, match="needs 64-bit words"):
        jax.random.bits(mixing(jax.random.key(0, impl="threefry2x32")), (2,))
    normal, uniform = normals_and_uniforms(jax.random.key(0), 3, 2)
    assert normal.shape == (3,)
    assert uniform.shape == (2,)


def test_many_keys_at_once():
    keys = jax.random.split(jax.random.key(5, impl="threefry2x32"), (2, 3))
    np.testing.assert_array_equal(jax.random.key_data(mixing(keys)), jax.random.key_data(keys))


def test_too_many_numbers():
    with jax.enable_x64(True):
        key = mixing(jax.random.key(0, impl="threefry2x32"))
        with pytest.raises(NotImplementedError, match=r"fewer than 2\*\*32; got the shape \(65536, 65536\)"):
            jax.jit(lambda key: jax.random.bits(key, (2**16, 2**16))).lower(key)
