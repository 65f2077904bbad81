"""Guessed symmetries as moves: a point is offered an image of itself, at the price of one evaluation.

A posterior with labels or signs that can be exchanged has often more modes than a list can hold. Maps that seem to
leave its density as it is (`pilot.hidden_symmetries`) are offered by chance, up to four of them one after the other:

    x' = s · x[o],        accepted with probability min(1, γ_β(x') / γ_β(x))

A map and its inverse are offered with the same probability, and neither stretches the space. So γ_β stays invariant
whether the guess was right or not; where it was, the pseudo-sample that carries the target always moves.
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from pseudo_extended.kernels import TemperedPoint
from pseudo_extended.target.symmetries import Element

MOST_MAPS = 4
"""One after the other: more labels are exchanged at once than by a map alone."""


class Images(eqx.Module):
    """Maps y = sign · x[order] that may leave the density as it is; with each of them its inverse."""

    order: Int[Array, "map d"]
    sign: Float[Array, "map d"]

    @classmethod
    def of(cls, elements: Sequence[Element]) -> "Images":
        """Maps with those of their inverses that are not among them.

        >>> turn = Element(np.array([1, 2, 0]), np.array([1.0, 1.0, -1.0]))
        >>> Images.of([turn]).order.tolist()
        [[1, 2, 0], [2, 0, 1]]
        """
        both = [each for element in elements for each in (element, _inverse(element))]
        known = {np.asarray(order).tobytes() + np.asarray(sign).tobytes(): (order, sign) for order, sign in both}
        orders, signs = zip(*known.values(), strict=True)
        return cls(jnp.asarray(np.stack(orders), int), jnp.asarray(np.stack(signs), float))

    def draw(self, key: Key[Array, ""], x: Float[Array, " d"]) -> Float[Array, " d"]:
        """The image of a place under one to `MOST_MAPS` random maps."""
        uniform = jax.random.uniform(key, (MOST_MAPS + 1,), dtype=float)
        which = jnp.floor(uniform[1:] * self.order.shape[0]).astype(int)
        number = 1 + jnp.floor(uniform[0] * MOST_MAPS)
        for i in range(MOST_MAPS):
            x = jnp.where(i < number, self.sign[which[i]] * x[self.order[which[i]]], x)
        return x


class OfferedImages(NamedTuple):
    """Images that are offered: to whom, and where they are."""

    which: Int[Array, " offer"]
    position: Float[Array, "offer d"]
    uniform: Float[Array, " offer"]
    """To be accepted by."""


def offer_images(
    key: Key[Array, ""], images: Images, points: TemperedPoint, which: Int[Array, " offer"]
) -> OfferedImages:
    """Draw an image for some of the points, no two of them the same."""
    keys = jax.random.split(key, which.shape[0] + 1)
    position = jax.vmap(images.draw)(keys[1:], points.position[which])
    return OfferedImages(which, position, jax.random.uniform(keys[0], which.shape, dtype=float))


def take_images(
    points: TemperedPoint, beta: Float[Array, " particle"], offered: OfferedImages, there: TemperedPoint
) -> TemperedPoint:
    """The points, after those offers that are accepted; `there` is what is known at the images."""
    which = offered.which
    here = jax.tree.map(lambda leaf: leaf[which], points)
    gained = there.log_density(beta[which]) - here.log_density(beta[which])
    accepted = there.is_finite() & (jnp.log(offered.uniform) < gained)
    return jax.tree.map(lambda old, new: _replaced(old, new, which, accepted), points, there)


def _replaced(old: Array, new: Array, which: Int[Array, " offer"], accepted: Bool[Array, " offer"]) -> Array:
    rows = accepted.reshape(-1, *(1,) * (old.ndim - 1))
    return old.at[which].set(jnp.where(rows, new, old[which]))


def _inverse(element: Element) -> Element:
    """The map back: x[o] = s · y."""
    back = np.argsort(np.asarray(element.order))
    return Element(back, np.asarray(element.sign)[back])  # pyright: ignore[reportArgumentType]
