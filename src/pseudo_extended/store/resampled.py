"""One unweighted point a draw, in the user's own space: what tools without weights can use of a store.

Which point it is depends on the seed, the chain and the draw only, so it does not depend on how the run was cut up.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from pseudo_extended.precision import in_double_precision
from pseudo_extended.target import Target
from pseudo_extended.weights import draw_index


def resample_particles(
    log_weight: Float[np.ndarray, "chain draw particle"], seed: int, chains: Int[np.ndarray, " chain"], first: int
) -> Int[np.ndarray, "chain draw"]:
    """Choose the pseudo-sample that stands for each draw, by its weight; `first` is the number of the first draw."""
    num_draws = log_weight.shape[1]
    uniform = np.stack([_uniforms(seed, int(chain), first, num_draws) for chain in chains])
    top = np.max(log_weight, axis=-1, keepdims=True)
    return draw_index(np.exp(log_weight - top), uniform)


def constrainer(target: Target, num_points: int) -> Callable[[Float[np.ndarray, "point d"]], list[np.ndarray]]:
    """A function that takes up to `num_points` unconstrained vectors to the parameters that the user sees."""
    view = target.view
    if view is not None:
        return lambda u: list(view.show(u, target.constrain).values())
    if all(bounds is None for bounds in target.bounds):
        ends = np.cumsum([parameter.size for parameter in target.parameters])[:-1]
        shapes = [parameter.shape for parameter in target.parameters]

        def split(u: Float[np.ndarray, "point d"]) -> list[np.ndarray]:
            parts = np.split(u, ends, axis=1)
            return [part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True)]

        return split
    mapped: Any = jax.jit(jax.vmap(lambda u: jax.tree.leaves(target.constrain(u))))

    @in_double_precision
    def constrain(u: Float[np.ndarray, "point d"]) -> list[np.ndarray]:
        padded = np.zeros((num_points, target.dim))  # always as many, so it compiles once
        padded[: len(u)] = u
        return [np.asarray(leaf)[: len(u)] for leaf in mapped(padded)]

    return constrain


def _uniforms(seed: int, chain: int, first: int, count: int) -> Float[np.ndarray, " draw"]:
    """Numbers first, first + 1, … of the stream of a chain; the generator counts in fours."""
    bits = np.random.Philox(key=(seed % 2**64) + (chain << 64))
    bits.advance(first // 4)
    return np.random.Generator(bits).random(first % 4 + count)[first % 4 :]
