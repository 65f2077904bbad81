"""Declared symmetries as moves: each point goes to a random image of itself.

γ is the same there, so that only the base is looked at again. The target's pseudo-sample always moves; another one at β
with probability min(1, (γ0(x')/γ0(x))^(1-β) g(t, a')/g(t, a)), which is one where the base has the symmetry as well.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from pseudo_extended.kernels import TemperedPoint
from pseudo_extended.target import Target
from pseudo_extended.target.bases import NormalMixture
from pseudo_extended.target.symmetries import draw_element
from pseudo_extended.tempering.labelled import Labelled, Rows, select
from pseudo_extended.tempering.path import Path


class Sited(NamedTuple):
    """Points with all that a move of them depends on."""

    points: TemperedPoint
    label: Int[Array, " particle"] | None
    t: Float[Array, " particle"]
    carrier: Bool[Array, " particle"]
    beta: Float[Array, " particle"]


def move_by_symmetry(
    key: Key[Array, ""], target: Target, now: Sited, path: Path
) -> tuple[TemperedPoint, Int[Array, " particle"] | None]:
    """Every point by an element of its own of the target's symmetries, drawn uniformly."""
    keys = jax.random.split(key, now.beta.shape[0] + 1)
    points = jax.vmap(lambda key, point: _image(key, target, point))(keys[1:], now.points)
    gained = (1 - now.beta) * (points.log_base - now.points.log_base)
    label, before = now.label, now.label
    if before is not None:
        assert isinstance(target.base, NormalMixture)  # or there would be no rows
        label = jax.vmap(target.base.label)(points.position)
        gained = gained + Rows(path, now.t, now.carrier).log_ratio(label, before)
    # At the target itself nothing may keep a point, not even what the base does not know.
    gained = jnp.where(now.beta == 1, 0.0, jnp.where(jnp.isnan(gained), -jnp.inf, gained))
    uniform = jax.random.uniform(keys[0], gained.shape, dtype=float)
    accepted = (jnp.log(uniform) < gained) & points.is_finite()
    if label is None or before is None:
        nowhere = jnp.zeros(gained.shape, int)
        return select(accepted, Labelled(points, nowhere), Labelled(now.points, nowhere)).points, None
    return select(accepted, Labelled(points, label), Labelled(now.points, before))


def _image(key: Key[Array, ""], target: Target, point: TemperedPoint) -> TemperedPoint:
    """A random image of one point: log γ and its gradient as they were, the base's evaluated afresh."""
    element = draw_element(target.symmetries, key, target.dim)
    x = element(point.position)

    def log_base(u: Float[Array, " d"]) -> Float[Array, ""]:
        return target.path_point(u).log_base

    if point.grad_base is None or point.grad_delta is None:
        value = log_base(x)
        return TemperedPoint(x, value, point.log_target - value, None, None)
    value, of_base = jax.value_and_grad(log_base)(x)
    of_target = element(point.grad_base + point.grad_delta)
    return TemperedPoint(x, value, point.log_target - value, of_base, of_target - of_base)
