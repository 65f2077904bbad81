"""Normal and uniform numbers out of one call of the generator.

Every call of `jax.random` is a copy of threefry in the compiled program, which takes time to compile and to start: for
a step that needs a few dozen numbers, one call for all of them is worth the trouble.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key


def normals_and_uniforms(
    key: Key[Array, ""], num_normals: int, num_uniforms: int, batch: tuple[int, ...] = ()
) -> tuple[Float[Array, "*batch {num_normals}"], Float[Array, "*batch {num_uniforms}"]]:
    """Independent numbers, so many of each kind along the last axis.

    >>> normal, uniform = normals_and_uniforms(jax.random.key(0), 3, 2, batch=(5,))
    >>> normal.shape, uniform.shape
    ((5, 3), (5, 2))
    """
    uniform = jax.random.uniform(key, (*batch, num_normals + num_uniforms), dtype=float)
    # Like jax.random.normal: by inversion, with the one value that would be infinite moved to its neighbour.
    symmetric = jnp.maximum(2 * uniform[..., :num_normals] - 1, -1 + jnp.finfo(uniform.dtype).epsneg)
    return jnp.sqrt(2.0) * jax.lax.erf_inv(symmetric), uniform[..., num_normals:]
