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
ValueAndGradient = Callable[[Float[Array, " d"], Float[Array, " d"]], tuple[Float[Array, ""], Float[Array, " d"]]]
"""Of a point, and the curvature along each coordinate as far as it is known (zero where it is not)."""

NUM_LANES = 32
MEMORY = 8
MAX_EVALUATIONS = 200
LEAST_GAIN = 1e-6
"""An ascent need only end well inside the mode: it is over when the next step promises less than this."""
LEAST_STEP = 1e-10
"""A step shortened to this share of the first try will never succeed."""
DIFFERENCE = 1e-3
"""Step of the differences that stand in for a gradient, in units of the width that the curvature says."""
FIRST_DIFFERENCE = 1e-5
"""The same before any curvature is known, relative to the size of the coordinate."""


class Ascents(NamedTuple):
    """Where ascents ended, and what is known of those places."""

    x: Float[Array, "start d"]
    log_density: Float[Array, " start"]
    """-inf where the start is not in the support."""
    gradient: Float[Array, "start d"]
    promise: Float[Array, " start"]
    """The gain that the next step would promise; infinite where the start is not in the support."""
    curvature: Float[Array, "start d"]
    """Along each coordinate, at least so much by the last steps; zero where there were none."""
    num_evaluations: Int[Array, " start"]


class _Climber(NamedTuple):
    """One ascent: where it is, and the step that it is about to try."""

    number: Int[Array, ""]
    """Of the start in the queue."""
    x: Float[Array, " d"]
    value: Float[Array, ""]
    gradient: Float[Array, " d"]
    direction: Float[Array, " d"]
    step: Float[Array, ""]
    promise: Float[Array, ""]
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
    out: Ascents


def ascend(
    log_density: LogDensity,
    starts: Float[Array, "start d"],
    num_starts: Int[Array, ""] | int | None = None,
    max_evaluations: Int[Array, ""] | int = MAX_EVALUATIONS,
    *,
    differences: bool = False,
) -> Ascents:
    """Ascents from the first `num_starts` of the starts, each of at most `max_evaluations` evaluations.

    Of one evaluation, an ascent is a look at its start. With `differences`, gradients are central differences, and
    each costs 2 d + 1 evaluations.
    """
    size, dim = starts.shape
    num_starts = jnp.asarray(size if num_starts is None else num_starts)
    num_lanes = min(NUM_LANES, size)
    evaluate = _by_differences(log_density) if differences else _by_autodiff(log_density)

    def goes_on(queue: _Queue) -> Bool[Array, ""]:
        return ~jnp.all(queue.lanes.done)

    def advance(queue: _Queue) -> _Queue:
        moved = jax.vmap(lambda climber: _advance(evaluate, climber, starts[0], max_evaluations))(queue.lanes)
        lanes = _choose(queue.lanes.done, queue.lanes, moved)
        ended = lanes.done & ~queue.lanes.done
        # A place outside the array is not written to.
        place = jnp.where(ended, lanes.number, size)
        found = Ascents(
            lanes.x,
            lanes.value,
            lanes.gradient,
            lanes.promise,
            jax.vmap(_known_curvature)(lanes.moves, lanes.changes),
            lanes.num_evaluations,
        )
        out = jax.tree.map(lambda whole, new: whole.at[place].set(new, mode="drop"), queue.out, found)
        number = queue.next_start + jnp.cumsum(ended) - 1
        again = ended & (number < num_starts)
        fresh = jax.vmap(_start)(number, starts[jnp.minimum(number, size - 1)])
        return _Queue(_choose(again, fresh, lanes), queue.next_start + jnp.sum(again), out)

    numbers = jnp.arange(num_lanes)
    lanes = jax.vmap(_start)(numbers, starts[:num_lanes])._replace(done=numbers >= num_starts)
    nowhere = jnp.full(size, -jnp.inf)
    out = Ascents(starts, nowhere, jnp.zeros((size, dim)), -nowhere, jnp.zeros((size, dim)), jnp.zeros(size, int))
    return jax.lax.while_loop(goes_on, advance, _Queue(lanes, jnp.asarray(num_lanes), out)).out


def _choose(condition: Bool[Array, " lane"], yes: _Climber, no: _Climber) -> _Climber:
    return jax.tree.map(lambda a, b: jnp.where(condition.reshape(-1, *(1,) * (a.ndim - 1)), a, b), yes, no)


def _by_autodiff(log_density: LogDensity) -> ValueAndGradient:
    value_and_gradient = jax.value_and_grad(log_density)
    return lambda x, curvature: value_and_gradient(x)


def _by_differences(log_density: LogDensity) -> ValueAndGradient:
    """Gradients by central differences over a small part of the width; one-sided at the edge of the support."""

    def evaluate(x: Float[Array, " d"], curvature: Float[Array, " d"]) -> tuple[Float[Array, ""], Float[Array, " d"]]:
        unknown = FIRST_DIFFERENCE * (1 + jnp.abs(x))
        length = jnp.where(curvature > 0, DIFFERENCE / jnp.sqrt(jnp.where(curvature > 0, curvature, 1.0)), unknown)
        # Long enough for the rounding of x, and of a coordinate along which little has changed no longer than that.
        length = jnp.clip(length, 1e-9 * (1 + jnp.abs(x)), 1e-2 * (1 + jnp.abs(x)))
        steps = jnp.diag(length)
        values = jax.vmap(log_density)(jnp.concatenate([x[None], x + steps, x - steps]))
        value, ahead, behind = values[0], values[1 : 1 + x.size], values[1 + x.size :]
        ahead_known, behind_known = jnp.isfinite(ahead), jnp.isfinite(behind)
        rise = jnp.where(ahead_known, ahead, value) - jnp.where(behind_known, behind, value)
        return value, rise / (length * jnp.maximum(ahead_known.astype(float) + behind_known, 1.0))

    return evaluate


def _known_curvature(moves: Float[Array, "memory d"], changes: Float[Array, "memory d"]) -> Float[Array, " d"]:
    """The Hessian is, for a quadratic, at least y yᵀ / sᵀ y for each pair: so much curvature along each coordinate."""
    products = jnp.sum(moves * changes, axis=1, keepdims=True)
    return jnp.max(jnp.where(products > 0, changes**2 / jnp.where(products > 0, products, 1.0), 0.0), axis=0)


def _start(number: Int[Array, ""], x: Float[Array, " d"]) -> _Climber:
    """About to try a step of length zero, which evaluates the start."""
    zero, zeros, memory = jnp.zeros(()), jnp.zeros_like(x), jnp.zeros((MEMORY, x.size))
    nothing, never = jnp.asarray(0), jnp.asarray(False)
    return _Climber(
        number, x, zero - jnp.inf, zeros, zeros, zero, zero + jnp.inf, nothing, memory, memory, nothing, zero, never
    )


def _advance(
    evaluate: ValueAndGradient, climber: _Climber, known: Float[Array, " d"], max_evaluations: Int[Array, ""] | int
) -> _Climber:
    """Try one step: if it climbs enough, take it and choose the next direction, otherwise shorten it.

    A lane that is done asks for the first start again: functions called in Python remember their answers.
    """
    is_first = climber.num_evaluations == 0
    move = climber.step * climber.direction
    point = jnp.where(climber.done, known, climber.x + move)
    width_known = jnp.where(climber.done, 0.0, _known_curvature(climber.moves, climber.changes))
    value, gradient = evaluate(point, width_known)
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
        jnp.where(taken, promise, climber.promise),
        num_evaluations,
        moves,
        changes,
        num_pairs,
        jnp.where(taken, scale, climber.scale),
        climber.done
        | (is_first & ~taken)
        | (taken & (promise < LEAST_GAIN))
        | (~taken & (shorter < LEAST_STEP))
        | (num_evaluations >= max_evaluations),
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
