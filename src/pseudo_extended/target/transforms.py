"""Bijections from the whole real line to bounded parameters, element by element, with their Jacobians.

The unconstrained value `u` is what the samplers see; the constrained value `x` is the user's:

| bounds        | x(u)                          | log |dx/du|                              |
|---------------|-------------------------------|------------------------------------------|
| none          | u                             | 0                                        |
| lower a       | a + exp(u)                    | u                                        |
| upper b       | b - exp(u)                    | u                                        |
| both a, b     | a + (b - a) σ(u)              | log(b - a) + log σ(u) + log σ(-u)        |
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pseudo_extended.checks import describe


class Kind(NamedTuple):
    """The elements of a parameter that share one kind of bound."""

    members: tuple[int, ...]
    has_lower: bool
    has_upper: bool


class Bounds(eqx.Module):
    """Open bounds of one parameter, flattened; infinite where there is none."""

    lower: Float[np.ndarray, " size"]
    upper: Float[np.ndarray, " size"]
    kinds: tuple[Kind, ...] = eqx.field(static=True)

    def constrain(self, u: Float[Array, " size"]) -> tuple[Float[Array, " size"], Float[Array, ""]]:
        """x(u), and the log of the absolute determinant of its Jacobian."""
        x, log_det = u, jnp.zeros((), u.dtype)
        for kind in self.kinds:
            where = self._where(kind)
            value, log_slope = _constrain(u[where], *self._ends(where), kind)
            x = value if len(self.kinds) == 1 else x.at[where].set(value)
            log_det = log_det + jnp.sum(log_slope)
        return x, log_det

    def unconstrain(self, x: Float[Array, " size"]) -> Float[Array, " size"]:
        """u(x); infinite or nan for an x that is not inside the bounds."""
        u = x
        for kind in self.kinds:
            where = self._where(kind)
            value = _unconstrain(x[where], *self._ends(where), kind)
            u = value if len(self.kinds) == 1 else u.at[where].set(value)
        return u

    def _ends(self, where: slice | np.ndarray) -> tuple[Array, Array]:
        return jnp.asarray(self.lower)[where], jnp.asarray(self.upper)[where]

    def _where(self, kind: Kind) -> slice | np.ndarray:
        # A parameter of one kind, the usual case, needs no gather or scatter.
        return slice(None) if len(self.kinds) == 1 else np.array(kind.members)


def _constrain(u: Array, lower: Array, upper: Array, kind: Kind) -> tuple[Array, Array]:
    match kind.has_lower, kind.has_upper:
        case True, True:
            log_slope = jnp.log(upper - lower) + jax.nn.log_sigmoid(u) + jax.nn.log_sigmoid(-u)
            return lower + (upper - lower) * jax.nn.sigmoid(u), log_slope
        case True, False:
            return lower + jnp.exp(u), u
        case False, True:
            return upper - jnp.exp(u), u
        case _:
            return u, jnp.zeros_like(u)


def _unconstrain(x: Array, lower: Array, upper: Array, kind: Kind) -> Array:
    match kind.has_lower, kind.has_upper:
        case True, True:
            return jnp.log(x - lower) - jnp.log(upper - x)
        case True, False:
            return jnp.log(x - lower)
        case False, True:
            return jnp.log(upper - x)
        case _:
            return x


def bounds_from(name: str, value: Any, shape: tuple[int, ...]) -> Bounds:
    """The bounds of parameter `name` from a user's `(lower, upper)`: numbers, arrays that broadcast, or None.

    >>> bounds_from("sigma", (0, None), ()).kinds
    (Kind(members=(0,), has_lower=True, has_upper=False),)
    """
    allowed = f"bounds of {name!r} must be a pair (lower, upper) of numbers, arrays of shape {shape} or None"
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise TypeError(f"{allowed}; got {describe(value)}.")
    ends = []
    for end, infinite in zip(value, (-np.inf, np.inf), strict=True):
        try:
            ends.append(np.broadcast_to(np.asarray(infinite if end is None else end, np.float64), shape).ravel())
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"{allowed}; got {describe(end)}.") from None
    lower, upper = ends
    if not np.all(lower < upper) or np.any(lower == np.inf) or np.any(upper == -np.inf):
        raise ValueError(f"bounds of {name!r} must have lower < upper; got {value[0]} and {value[1]}.")
    with np.errstate(over="ignore"):
        width = upper - lower
    if not np.all(np.isfinite(width) | np.isinf(lower) | np.isinf(upper)):
        raise ValueError(f"bounds of {name!r} must have a finite distance; got {value[0]} and {value[1]}.")
    patterns: dict[tuple[bool, bool], list[int]] = {}
    for i, (low, high) in enumerate(zip(lower, upper, strict=True)):
        patterns.setdefault((bool(np.isfinite(low)), bool(np.isfinite(high))), []).append(i)
    kinds = tuple(Kind(tuple(members), *pattern) for pattern, members in patterns.items())
    return Bounds(lower.copy(), upper.copy(), kinds)
