"""Starting points of the chains: what the user gave, tried until the density is finite there."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from pseudo_extended import checks
from pseudo_extended.compiled import Job, compile_once
from pseudo_extended.generator import folded
from pseudo_extended.methods import AbstractMethod, AbstractPreparedMethod
from pseudo_extended.recipes import recipe
from pseudo_extended.run.preflight import explain, explain_instrument, first_error
from pseudo_extended.target import Target, flatten_position
from pseudo_extended.target.bases import Base

Proposal = Callable[[Any, int, int], Float[Array, " d"] | Float[np.ndarray, " d"]]


class Starts(NamedTuple):
    """A way to propose starting points: (key, number of the point, attempt) -> unconstrained vector."""

    propose: Proposal
    max_attempts: int
    origin: str
    batch: Float[np.ndarray, "batch d"] | None = None


def starting_points(
    target: Target, method: AbstractMethod, init: Any, key: Key[Array, ""], num_chains: int
) -> Float[np.ndarray, "chain particle d"]:
    """A point for every pseudo-sample of every chain, at which the target and the method's own densities are finite.

    Behind them, the same for every chain, the rest of a batch for a method that prepares with it.
    """
    starts = _starts(target, init)
    num_particles = method.num_points
    num_points = num_chains * num_particles

    # Their arrays are arguments, so that other numbers of the same shape are the same program.
    dynamic, static = eqx.partition((target, method), eqx.is_array)
    arrays, structure = jax.tree.flatten(dynamic)

    def check(
        arrays: list[Array], x: Float[Array, "particle d"]
    ) -> tuple[Bool[Array, " particle"], Bool[Array, " particle"]]:
        target, method = eqx.combine(jax.tree.unflatten(structure, arrays), static)
        return jax.vmap(lambda u: _is_finite(target, u, method.needs_gradient))(x), method.covers(target, x)

    places = np.zeros((num_chains, num_particles, target.dim))
    check_all, made_from = jax.vmap(check, in_axes=(None, 0)), recipe(target, method, "starting points", places.shape)
    [checked] = compile_once(Job(check_all, (arrays, places), quick=True, name="starting points", recipe=made_from))

    def is_good(points: Float[np.ndarray, "some d"]) -> Bool[np.ndarray, " some"]:
        """The program takes as many points as all chains have."""
        filled = np.resize(points, (-(-len(points) // num_points) * num_points, target.dim))
        batches = filled.reshape(-1, *places.shape)
        good = [np.logical_and(*(np.asarray(part).ravel() for part in checked(arrays, batch))) for batch in batches]
        return np.concatenate([np.zeros(0, bool), *good])[: len(points)]

    keys = [folded(folded(key, chain), particle) for chain in range(num_chains) for particle in range(num_particles)]
    x = np.zeros((num_points, target.dim))
    finite = np.zeros(num_points, bool)
    todo: Int[np.ndarray, " point"] = np.arange(num_points)
    for attempt in range(starts.max_attempts):
        for i in todo:
            x[i] = np.asarray(starts.propose(folded(keys[i], attempt), int(i), attempt))
        finite, covered = (
            np.asarray(part).ravel() for part in checked(arrays, x.reshape(num_chains, num_particles, -1))
        )
        todo = np.flatnonzero(~(finite & covered))
        if todo.size == 0:
            rest = _rest_of_batch(starts, method, x[:num_particles])
            rest = rest[is_good(rest)]
            x = x.reshape(num_chains, num_particles, target.dim)
            return np.concatenate([x, np.tile(rest, (num_chains, 1, 1))], axis=1)
    tried = f"{starts.max_attempts} {starts.origin}"
    worst = int(todo[0])
    if finite[worst]:
        raise ValueError(explain_instrument(target, x[worst], tried))
    sentence = explain(target, jnp.asarray(x[worst]), tried, needs_gradient=method.needs_gradient)
    raise ValueError(sentence) from first_error(target)


def _rest_of_batch(
    starts: Starts, method: AbstractMethod, x: Float[np.ndarray, "particle d"]
) -> Float[np.ndarray, "rest d"]:
    """What else a batch has, beyond a chain's own points, for a method that can make use of it."""
    if starts.batch is None or not isinstance(method, AbstractPreparedMethod):
        return x[:0]
    is_new = ~np.any(np.all(starts.batch[:, None] == x, axis=2), axis=1)
    return starts.batch[is_new][: method.max_starts - len(x)]


def propose_starts(target: Target, init: Any, key: Key[Array, ""], num_points: int) -> Float[np.ndarray, "point d"]:
    """Points as a run would first try them, finite or not."""
    starts = _starts(target, init)
    points = [starts.propose(folded(key, i), i, 0) for i in range(num_points)]
    return np.stack([np.asarray(point) for point in points])


def _is_finite(target: Target, u: Float[Array, " d"], needs_gradient: bool) -> Bool[Array, ""]:
    value, gradient = jax.value_and_grad(target.log_target)(u) if needs_gradient else (target.log_target(u), 0.0)
    return jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))


def _starts(target: Target, init: Any) -> Starts:
    if init is None:
        if target.base is None or not target.base.can_sample:
            raise TypeError(
                "init must be a position, a batch of positions or a function of a random key, unless the target has a "
                "base that can be sampled (pe.Normal(), or sample_prior= with log_prior and log_likelihood); got None."
            )
        if isinstance(target.base, Base) and target.base.sampler is not None:
            target.leaves("the draw of the base's sampler", target.base.sampler(jax.random.key(0, impl="threefry2x32")))
        return Starts(lambda key, i, attempt: target.draw_base(key), 100, "draws from the base")
    if callable(init):
        return Starts(lambda key, i, attempt: _unconstrain(target, init(key)), 100, "values of the function init")
    if isinstance(init, (list, tuple)) and target.treedef.num_nodes == 1:  # the position is one plain array
        init = checks.float_array("init", init)
    batch = _batch(target, init)
    if batch is None:
        centre = _unconstrain(target, init)
        attempts = 12

        def near(key: Any, i: int, attempt: int) -> Float[np.ndarray, " d"]:
            # Over-dispersed at first, then closer and closer, at last the position itself.
            width = 0.0 if attempt == attempts - 1 else 2.0**-attempt
            rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
            return centre + width * rng.uniform(-1.0, 1.0, centre.shape)

        return Starts(near, attempts, "points around init, init itself among them")

    def in_turn(key: Any, i: int, attempt: int) -> Float[np.ndarray, " d"]:
        # One place further after each round, so that chains differ also when they have as many points as the batch.
        return batch[(i + i // len(batch) + attempt) % len(batch)]

    return Starts(in_turn, len(batch), "points of the batch init", batch)


def _batch(target: Target, init: Any) -> Float[np.ndarray, "batch d"] | None:
    """A batch of positions, flattened and unconstrained; None if `init` is a single position."""
    leaves, treedef = flatten_position("init", init)
    if treedef != target.treedef or not all(
        np.ndim(leaf) == len(parameter.shape) + 1
        for (_, leaf), parameter in zip(leaves, target.parameters, strict=True)
    ):
        return None
    arrays = target.leaves("init", init, batch_ndim=1)
    sizes = {len(array) for array in arrays}
    if len(sizes) != 1 or 0 in sizes:
        raise ValueError(f"init as a batch must have one length, at least 1, for every parameter; got {sorted(sizes)}.")
    positions = [jax.tree.unflatten(target.treedef, [array[i] for array in arrays]) for i in range(sizes.pop())]
    return np.stack([_unconstrain(target, position) for position in positions])


def _unconstrain(target: Target, position: Any) -> Float[np.ndarray, " d"]:
    target.leaves("init", position)
    outside = target.outside_bounds(position)
    if outside is not None:
        raise ValueError(f"init for {outside}.")
    return np.asarray(target.unconstrain(position))
