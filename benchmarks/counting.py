"""How often a density is evaluated, everything counted, by the density itself.

The wrapped density calls back into Python, once for a batch, and the callback counts the points of the batch. That is
too slow for a run whose time is measured (some 0.1 ms a call), so a run is repeated for its count where the library
does not report it. A value, and a value with its gradient, count as one evaluation; so does a Hessian,
whatever its cost.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Density = Callable[[Float[Array, " d"]], Float[Array, ""]]


class Counted:
    """A log density that counts its evaluations in `count`.

    >>> density = Counted(lambda x: -0.5 * jnp.sum(x**2))
    >>> values = jax.jit(jax.vmap(jax.value_and_grad(density)))(jnp.ones((7, 2)))
    >>> jax.block_until_ready(values)[0].shape, density.count
    ((7,), 7)
    """

    def __init__(self, log_density: Density):
        self.count = 0

        def note(place: np.ndarray) -> np.ndarray:
            self.count += int(np.prod(place.shape))
            return np.zeros(place.shape, np.int32)

        @jax.custom_jvp
        def tick(place: Float[Array, ""]) -> Float[Array, ""]:
            """Zero, in a way that no compiler can know."""
            kind = jax.ShapeDtypeStruct((), jnp.int32)
            return jax.pure_callback(note, kind, place, vmap_method="broadcast_all").astype(place.dtype)

        tick.defjvp(lambda at, along: (tick(at[0]), jnp.zeros_like(along[0])))

        @jax.custom_jvp
        def counted(x: Float[Array, " d"]) -> Float[Array, ""]:
            return log_density(x) + tick(x[0])

        @counted.defjvp
        def _(at: tuple[Array], along: tuple[Array]) -> tuple[Array, Array]:
            value, slope = jax.jvp(log_density, at, along)
            zero = tick(at[0][0])
            # In the slope as well: an integrator may need no value.
            return value + zero, slope + zero * jnp.sum(along[0])

        self._counted = counted

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """The log density."""
        return self._counted(x)
