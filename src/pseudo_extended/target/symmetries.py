"""Symmetries that a user declares: the density does not change when indices are permuted or signs are flipped.

A posterior of a mixture with K components has K! labellings, a factor model 2^K patterns of signs. A declared symmetry
is an exact move: it maps a point to another one of the same density, at no evaluation. It acts on the unconstrained
vector, y = sign · u[order], which is what it does in the user's space too where bounds are alike.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key
from scipy.special import gammaln

from pseudo_extended import checks
from pseudo_extended.target.labels import Parameter, known_names


class Symmetry(NamedTuple):
    """What a user declares; `permutation` and `sign_flip` make it."""

    kind: str
    names: tuple[str, ...]
    axis: int | None


def permutation(*names: str, axis: int = 0) -> Symmetry:
    """Declare that the density stays the same when indices along an axis are permuted, in all these parameters alike.

    Args:
        names: The parameters whose entries belong together, such as the centre and the weight of a component; the only
            parameter of the target unless given.
        axis: The axis that counts the exchangeable things.

    >>> import jax.numpy as jnp, pseudo_extended as pe
    >>> def log_density(p):                      # two groups: which is the first is anybody's guess
    ...     return -jnp.sum((jnp.sort(p["centre"]) - jnp.array([-1.0, 1.0])) ** 2)
    >>> target = pe.Target(log_density, {"centre": np.zeros(2)}, symmetries=[pe.permutation("centre")])
    >>> target.symmetries[0].describe()
    'permutations of 2 indices of centre'
    """
    return _declared("permutation", names, checks.integer("axis of permutation", axis, minimum=-32, maximum=32))


def sign_flip(*names: str, axis: int | None = None) -> Symmetry:
    """Declare that the density stays the same when the signs of these parameters change together.

    Args:
        names: The parameters that change sign together, such as the loadings and the scores of a factor; the only
            parameter of the target unless given.
        axis: The axis that counts the things which change sign one by one; None if all entries change together.

    >>> import pseudo_extended as pe
    >>> target = pe.Target(lambda x: -((x @ x - 4) ** 2), np.zeros(3), symmetries=[pe.sign_flip(axis=0)])
    >>> target.symmetries[0].describe()
    'signs of 3 indices of x'
    """
    if axis is not None:
        axis = checks.integer("axis of sign_flip", axis, minimum=-32, maximum=32)
    return _declared("sign", names, axis)


def _declared(kind: str, names: Sequence[Any], axis: int | None) -> Symmetry:
    function = "permutation" if kind == "permutation" else "sign_flip"
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"names of {function} must be strings, each a parameter's; got {checks.describe(name)}.")
    if len(set(names)) != len(names):
        raise ValueError(f"names of {function} must differ from each other; got {list(names)}.")
    return Symmetry(kind, tuple(names), axis)


class Element(NamedTuple):
    """y = sign · u[order]; gradients go along."""

    order: Int[Array, " d"]
    sign: Float[Array, " d"]

    def __call__(self, u: Float[Array, " d"]) -> Float[Array, " d"]:
        """The image of a point, or of a gradient."""
        return self.sign * u[self.order]

    def after(self, first: "Element") -> "Element":
        """First another element, then itself."""
        return Element(first.order[self.order], self.sign * first.sign[self.order])


class Action(eqx.Module):
    """What a declared symmetry does to the unconstrained vector."""

    symmetry: Symmetry = eqx.field(static=True)
    blocks: Int[np.ndarray, "index coordinate"]
    """The coordinates that go with each index."""

    @property
    def log_size(self) -> float:
        """The log of the number of its elements."""
        number = len(self.blocks)
        return float(gammaln(number + 1) if self.symmetry.kind == "permutation" else number * np.log(2))

    def describe(self) -> str:
        """Describe the symmetry for the notes."""
        what = "permutations" if self.symmetry.kind == "permutation" else "signs"
        return f"{what} of {len(self.blocks)} indices of {', '.join(self.symmetry.names)}"

    def draw(self, key: Key[Array, ""], dim: int) -> Element:
        """Any of its elements, each as likely as any other."""
        uniform = jax.random.uniform(key, (len(self.blocks),), dtype=float)
        order, sign = jnp.arange(dim), jnp.ones(dim)
        if self.symmetry.kind == "permutation":
            return Element(order.at[self.blocks].set(jnp.asarray(self.blocks)[jnp.argsort(uniform)]), sign)
        signs = jnp.where(uniform < 0.5, -1.0, 1.0)[:, None]
        return Element(order, sign.at[self.blocks].set(jnp.broadcast_to(signs, self.blocks.shape)))


def draw_element(actions: Sequence[Action], key: Key[Array, ""], dim: int) -> Element:
    """An element of all symmetries together: one of each, one after the other."""
    element = Element(jnp.arange(dim), jnp.ones(dim))
    for i, action in enumerate(actions):
        element = action.draw(jax.random.fold_in(key, i), dim).after(element)
    return element


def actions_from(symmetries: Any, parameters: Sequence[Parameter]) -> tuple[Action, ...]:
    """What declared symmetries do to a flat vector of these parameters, checked against their names and shapes."""
    if symmetries is None:
        return ()
    if not isinstance(symmetries, (list, tuple)) or isinstance(symmetries, Symmetry):
        raise TypeError(
            "symmetries must be a list of pe.permutation(...) and pe.sign_flip(...); "
            f"got {checks.describe(symmetries)}."
        )
    ends = np.cumsum([parameter.size for parameter in parameters])
    flat = np.split(np.arange(ends[-1]), ends[:-1])
    places = {part.name: each.reshape(part.shape) for part, each in zip(parameters, flat, strict=True)}
    return tuple(_action(symmetry, places) for symmetry in symmetries)


def _action(symmetry: Any, places: Mapping[str, np.ndarray]) -> Action:
    if not isinstance(symmetry, Symmetry):
        raise TypeError(
            f"symmetries must be made by pe.permutation and pe.sign_flip; got {checks.describe(symmetry)} among them."
        )
    if not symmetry.names:
        if len(places) > 1:
            raise ValueError(f"a symmetry must name its parameters, out of {list(places)}; got no name.")
        symmetry = symmetry._replace(names=tuple(places))
    known_names("symmetries", dict.fromkeys(symmetry.names), places)
    chosen = {name: places[name] for name in symmetry.names}
    if symmetry.axis is None:
        return Action(symmetry, np.concatenate([place.ravel() for place in chosen.values()])[None])
    for name, place in chosen.items():
        if not -place.ndim <= symmetry.axis < place.ndim:
            raise ValueError(
                f"axis of a symmetry must be an axis of {name!r}, which has shape {place.shape}; got {symmetry.axis}."
            )
    rows = [np.moveaxis(place, symmetry.axis, 0) for place in chosen.values()]
    lengths = {name: len(row) for name, row in zip(chosen, rows, strict=True)}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"axis {symmetry.axis} of parameters that change together must have one length (on the unconstrained "
            f"scale, where a simplex has an entry less); got {lengths}; leave symmetries out, and the default looks "
            "for exchanged labels by itself."
        )
    return Action(symmetry, np.concatenate([row.reshape(len(row), -1) for row in rows], axis=1))


def elements(actions: Sequence[Action], dim: int, at_most: int) -> list[Element] | None:
    """All elements of the symmetries, the identity first; None if there are more of them than that.

    >>> from pseudo_extended.target.labels import Parameter
    >>> both = actions_from([permutation(), sign_flip(axis=0)], [Parameter("x", (3,), ("i",))])
    >>> len(elements(both, 3, at_most=100)), elements(both, 3, at_most=40)
    (48, None)
    """
    if sum(action.log_size for action in actions) > np.log(at_most + 0.5):
        return None
    found = [(np.arange(dim), np.ones(dim))]
    for action in actions:
        for i in range(len(action.blocks)):  # each index in turn: with every one before it exchanged, or its sign
            found += [changed for element in found for changed in _changes(action, i, *element)]
    return [Element(jnp.asarray(order), jnp.asarray(sign)) for order, sign in found]


def _changes(action: Action, i: int, order: np.ndarray, sign: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    blocks, changed = action.blocks, []
    if action.symmetry.kind == "sign":
        flipped = sign.copy()
        flipped[blocks[i]] *= -1
        return [(order, flipped)]
    for j in range(i):
        exchanged = np.arange(len(order))
        exchanged[blocks[i]], exchanged[blocks[j]] = blocks[j], blocks[i]
        changed.append((order[exchanged], sign[exchanged]))
    return changed
