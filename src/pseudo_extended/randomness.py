"""Normal and uniform numbers out of one call of the generator.

Every call of `jax.random` is a copy of the generator in the compiled program, which takes time to compile and to start:
for a step that needs a few dozen numbers, one call for all of them is worth the trouble.

Normal numbers are Box and Muller's, r sin(2π v) and r cos(2π v) with r = √(-2 log u), and log and sine are polynomials
(those of fdlibm, below 1e-16 relative to their largest terms). `jax.random.normal` inverts the distribution function by
three polynomials and a logarithm in the C library, which XLA does not vectorise: 20 ns for a number instead of 2.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, UInt64

LOG_TERMS = (
    6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
    1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01,
)  # fmt: skip
"""log x = s (2 + Σ LOG_TERMS[i] s^(2i + 2)) with s = (x - 1)/(x + 1), for x between √½ and √2."""
SINE_TERMS = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04, 2.75573137070700676789e-06,
    -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)  # fmt: skip
"""sin a = a (1 + Σ SINE_TERMS[i] a^(2i + 2)), for a between -π/4 and π/4."""
SQRT_HALF = np.float64(np.sqrt(0.5)).view(np.int64)


def normals_and_uniforms(
    key: Key[Array, ""], num_normals: int, num_uniforms: int, batch: tuple[int, ...] = ()
) -> tuple[Float[Array, "*batch {num_normals}"], Float[Array, "*batch {num_uniforms}"]]:
    """Independent numbers, so many of each kind along the last axis.

    >>> normal, uniform = normals_and_uniforms(jax.random.key(0), 3, 2, batch=(5,))
    >>> normal.shape, uniform.shape
    ((5, 3), (5, 2))
    """
    num_pairs = -(-num_normals // 2)
    shape = (*batch, 2 * num_pairs + num_uniforms)
    if jax.dtypes.canonicalize_dtype(float) != np.float64:
        key_normal, key_uniform = jax.random.split(key)
        return jax.random.normal(key_normal, (*batch, num_normals)), jax.random.uniform(key_uniform, shape)[
            ..., 2 * num_pairs :
        ]
    uniform = uniforms(jax.random.bits(key, shape, dtype=jnp.uint64))
    first, second = uniform[..., None, :num_pairs], uniform[..., None, num_pairs : 2 * num_pairs]
    # Sine and cosine are the sine at two places: one formula for both is one kernel.
    quarter = 0.25 * jax.lax.broadcasted_iota(float, (2, num_pairs), 0)
    normal = jnp.sqrt(-2 * log_of_unit(1 - first)) * sine_of_turns(second + quarter)
    normal = normal.reshape(*batch, 2 * num_pairs)[..., :num_normals]
    # Used in several places, and XLA would compute them anew in each.
    return jax.lax.optimization_barrier(normal), uniform[..., 2 * num_pairs :]


def uniforms(bits: UInt64[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Multiples of 2^-52 from 0 to below 1."""
    one = np.float64(1).view(np.uint64)
    return jax.lax.bitcast_convert_type((bits >> np.uint64(12)) | one, jnp.float64) - 1


def log_of_unit(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The logarithm of normal positive numbers.

    >>> with jax.enable_x64(True):
    ...     x = np.array([2.0**-52, 0.1, 0.7, 0.99, 1.0])
    ...     print(np.max(np.abs(log_of_unit(jnp.asarray(x)) - np.log(x))) < 1e-14)
    True
    """
    word = jax.lax.bitcast_convert_type(x, jnp.int64)
    exponent = (word - SQRT_HALF) >> np.int64(52)
    mantissa = jax.lax.bitcast_convert_type(word - (exponent << np.int64(52)), jnp.float64)
    s = (mantissa - 1) / (mantissa + 1)
    z = s * s
    return exponent.astype(float) * np.log(2.0) + s * (2 + z * _polynomial(LOG_TERMS, z))


def sine_of_turns(turns: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """sin(2π v), for v between -1/4 and 3/2.

    >>> with jax.enable_x64(True):
    ...     v = np.linspace(-0.25, 1.5, 1000)
    ...     print(np.max(np.abs(sine_of_turns(jnp.asarray(v)) - np.sin(2 * np.pi * v))) < 2e-15)
    True
    """
    # By the half turn nearest to it, and its sign; then the sine of half the angle, which is doubled.
    halves = jnp.round(2 * turns)
    a = (0.5 * np.pi) * (2 * turns - halves)
    z = a * a
    sine = a + a * z * _polynomial(SINE_TERMS, z)
    whole = 2 * sine * jnp.sqrt(1 - sine * sine)
    return whole * (1 - 2 * (halves - 2 * jnp.floor(0.5 * halves)))


def _polynomial(terms: tuple[float, ...], z: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    total = terms[-1] * z + terms[-2]
    for term in reversed(terms[:-2]):
        total = total * z + term
    return total
