"""Many ascents of a log density by L-BFGS, in lanes that take the next start from a queue as soon as they are done.

Ours and not `optax.lbfgs` under `vmap`: there, every ascent waits for the longest, and within each iteration every line
search for the longest. Here an iteration is one evaluation in each lane, whatever the ascent in it is doing, so the
cost is that of the evaluations.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

LogDensity = Callable[[Float[Array, " d"]], Float[Array, ""]]

NUM_LANES = 64
MEMORY = 8
MAX_EVALUATIONS = 200
LEAST_GAIN = 1e-6
"""An ascent need only end well inside the mode: it is over when the next step promises less than this."""
LEAST_STEP = 1e-10
"""A step shortened to this share of the first try will never succeed."""


class _Climber(NamedTuple):
    """One ascent: where it is, and the step that it is about to try."""

    number: Int[Array, ""]
    """Of the start in the queue."""
    x: Float[Array, " d"]
    value: Float[Array, ""]
    gradient: Float[Array, " d"]
    direction: Float[Array, " d"]
    step: Float[Array, ""]
    num_evaluations: Int[Array, ""]
    moves: Float[Array, "memory d"]
    changes: Float[Array, "memory d"]
    """Of the gradient, with the sign that makes both of one direction where the density is concave."""
    num_pairs: Int[Array, ""]
    scale: Float[Array, ""]
    """The step for a unit of gradient, before any pair is known."""
    done: Bool[Array, ""]


class _Queue(NamedTuple):
    """All lanes, and what came out of them."""

    lanes: _Climber
    next_start: Int[Array, ""]
    ends: Float[Array, "start d"]
    values: Float[Array, " start"]


def ascend(
    log_density: LogDensity, starts: Float[Array, "start d"]
) -> tuple[Float[Array, "start d"], Float[Array, " start"]]:
    """Where the ascents from the starts end, and the log density there; -inf where a start is not in the support."""
    num_starts = starts.shape[0]
    num_lanes = min(NUM_LANES, num_starts)
    value_and_gradient = jax.value_and_grad(log_density)

    def goes_on(queue: _Queue) -> Bool[Array, ""]:
        return ~jnp.all(queue.lanes.done)

    def advance(queue: _Queue) -> _Queue:
        was_done = queue.lanes.done
        lanes = jax.vmap(lambda climber: _advance(value_and_gradient, climber))(queue.lanes)
        ended = lanes.done & ~was_done
        # A place outside the array is not written to.
        place = jnp.where(ended, lanes.number, num_starts)
        ends = queue.ends.at[place].set(lanes.x, mode="drop")
        values = queue.values.at[place].set(lanes.value, mode="drop")
        number = queue.next_start + jnp.cumsum(ended) - 1
        again = ended & (number < num_starts)
        fresh = jax.vmap(_start)(number, starts[jnp.minimum(number, num_starts - 1)])
        lanes = jax.tree.map(
            lambda new, old: jnp.where(again.reshape(-1, *(1,) * (new.ndim - 1)), new, old), fresh, lanes
        )
        return _Queue(lanes, queue.next_start + jnp.sum(again), ends, values)

    lanes = jax.vmap(_start)(jnp.arange(num_lanes), starts[:num_lanes])
    queue = _Queue(lanes, jnp.asarray(num_lanes), starts, jnp.full(num_starts, -jnp.inf))
    queue = jax.lax.while_loop(goes_on, advance, queue)
    return queue.ends, queue.values


def _start(number: Int[Array, ""], x: Float[Array, " d"]) -> _Climber:
    """About to try a step of length zero, which evaluates the start."""
    zero, zeros, memory = jnp.zeros(()), jnp.zeros_like(x), jnp.zeros((MEMORY, x.size))
    nothing = jnp.asarray(0)
    return _Climber(
        number, x, zero - jnp.inf, zeros, zeros, zero, nothing, memory, memory, nothing, zero, jnp.asarray(False)
    )


def _advance(
    value_and_gradient: Callable[[Float[Array, " d"]], tuple[Float[Array, ""], Float[Array, " d"]]], climber: _Climber
) -> _Climber:
    """Try one step: if it climbs enough, take it and choose the next direction, otherwise shorten it."""
    is_first = climber.num_evaluations == 0
    move = climber.step * climber.direction
    value, gradient = value_and_gradient(climber.x + move)
    slope = jnp.vdot(climber.gradient, move)
    usable = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
    taken = usable & (is_first | (value >= climber.value + 1e-4 * slope))

    change = climber.gradient - gradient
    curvature = jnp.vdot(move, change)
    concave = taken & ~is_first & (curvature > 1e-10 * jnp.linalg.norm(move) * jnp.linalg.norm(change))
    place = climber.num_pairs % MEMORY
    moves = jnp.where(concave, climber.moves.at[place].set(move), climber.moves)
    changes = jnp.where(concave, climber.changes.at[place].set(change), climber.changes)
    num_pairs = climber.num_pairs + concave
    # At first a step of length one; longer each time while the density is convex; then by the last pair.
    first_scale = 1 / (jnp.linalg.norm(gradient) + 1e-300)
    secant = curvature / (jnp.vdot(change, change) + 1e-300)
    scale = jnp.where(is_first, first_scale, jnp.where(concave, secant, 4 * climber.scale))

    direction = _two_loops(gradient, moves, changes, num_pairs, scale)
    promise = jnp.vdot(direction, gradient)
    # Rounding may spoil the memory: then the gradient itself.
    uphill = promise > 0
    direction, promise = (
        jnp.where(uphill, direction, scale * gradient),
        jnp.where(uphill, promise, scale * jnp.vdot(gradient, gradient)),
    )
    num_evaluations = climber.num_evaluations + 1
    shorter = 0.3 * climber.step
    return _Climber(
        climber.number,
        jnp.where(taken, climber.x + move, climber.x),
        jnp.where(taken, value, climber.value),
        jnp.where(taken, gradient, climber.gradient),
        jnp.where(taken, direction, climber.direction),
        jnp.where(taken, 1.0, shorter),
        num_evaluations,
        moves,
        changes,
        num_pairs,
        jnp.where(taken, scale, climber.scale),
        climber.done
        | (is_first & ~taken)
        | (taken & (promise < LEAST_GAIN))
        | (~taken & (shorter < LEAST_STEP))
        | (num_evaluations >= MAX_EVALUATIONS),
    )


def _two_loops(
    gradient: Float[Array, " d"],
    moves: Float[Array, "memory d"],
    changes: Float[Array, "memory d"],
    num_pairs: Int[Array, ""],
    scale: Float[Array, ""],
) -> Float[Array, " d"]:
    """The inverse Hessian of the pairs applied to the gradient (Nocedal and Wright 2006, algorithm 7.4)."""
    curvatures = jnp.sum(moves * changes, axis=1)
    inverse = jnp.where(curvatures > 0, 1 / jnp.where(curvatures > 0, curvatures, 1.0), 0.0)

    def backwards(age: Int[Array, ""], carry: tuple[Array, Array]) -> tuple[Array, Array]:
        direction, shares = carry
        i = (num_pairs - 1 - age) % MEMORY
        share = inverse[i] * jnp.vdot(moves[i], direction)
        return direction - share * changes[i], shares.at[i].set(share)

    def forwards(age: Int[Array, ""], direction: Array) -> Array:
        i = (num_pairs + age) % MEMORY
        return direction + (shares[i] - inverse[i] * jnp.vdot(changes[i], direction)) * moves[i]

    direction, shares = jax.lax.fori_loop(0, MEMORY, backwards, (gradient, jnp.zeros(MEMORY)))
    return jax.lax.fori_loop(0, MEMORY, forwards, scale * direction)
