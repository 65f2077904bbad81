"""Many ascents of a log density by L-BFGS, in lanes that take the next start from a queue as soon as they are done.

Each iteration is one evaluation in each lane, whatever the ascent in it is doing, so that none waits for another: the
cost is that of the evaluations.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from pseudo_extended.pilot.race import Race

LogDensities = Callable[
    [Float[np.ndarray, "point d"]], tuple[Float[np.ndarray, " point"], Float[np.ndarray, "point d"]]
]
"""Values and gradients at many points."""

MAX_LANES = 512
MAX_NUMBERS = 2**22
"""In the memories of all lanes together."""
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
    """The ends of ascents, with what is known of those places."""

    x: Float[np.ndarray, "start d"]
    log_density: Float[np.ndarray, " start"]
    """-inf where the start is not in the support, or the ascent has lost a race."""
    gradient: Float[np.ndarray, "start d"]
    promise: Float[np.ndarray, " start"]
    """The gain that the next step would promise; infinite where the start is not in the support."""
    curvature: Float[np.ndarray, "start d"]
    """Along each coordinate, at least so much by the last steps; zero where there were none."""
    num_evaluations: Int[np.ndarray, " start"]


class _Climbers(NamedTuple):
    """Some ascents: where they are, and the steps that they are about to try."""

    number: Int[np.ndarray, " lane"]
    """Of the start in the queue."""
    x: Float[np.ndarray, "lane d"]
    value: Float[np.ndarray, " lane"]
    gradient: Float[np.ndarray, "lane d"]
    direction: Float[np.ndarray, "lane d"]
    step: Float[np.ndarray, " lane"]
    promise: Float[np.ndarray, " lane"]
    num_evaluations: Int[np.ndarray, " lane"]
    moves: Float[np.ndarray, "lane memory d"]
    changes: Float[np.ndarray, "lane memory d"]
    """Of the gradient, with the sign that makes both of one direction where the density is concave."""
    num_pairs: Int[np.ndarray, " lane"]
    scale: Float[np.ndarray, " lane"]
    """The step for a unit of gradient, before any pair is known."""
    done: Bool[np.ndarray, " lane"]

    def some(self, which: np.ndarray) -> "_Climbers":
        """Some of the lanes."""
        return _Climbers(*(column[which] for column in self))

    def and_more(self, others: "_Climbers") -> "_Climbers":
        """Join these lanes with others."""
        return _Climbers(*(np.concatenate(columns) for columns in zip(self, others, strict=True)))


def ascend(
    evaluate: LogDensities,
    starts: Float[np.ndarray, "start d"],
    max_evaluations: int = MAX_EVALUATIONS,
    *,
    differences: bool = False,
    race: Race | None = None,
    max_total: float = np.inf,
) -> Ascents:
    """Ascents from the starts, each of at most `max_evaluations` evaluations.

    Of one evaluation, an ascent is a look at its start. With `differences`, gradients are central differences, and
    each costs 2 d + 1 evaluations. Those that lose a race end with the density -inf.
    `max_total` is the most for all together: then they end where they are, and those in the queue at their starts.
    """
    size, dim = starts.shape
    num_lanes = int(np.clip(MAX_NUMBERS // (2 * MEMORY * dim), 32, MAX_LANES))
    nowhere = np.full(size, -np.inf)
    out = Ascents(starts.copy(), nowhere, np.zeros((size, dim)), -nowhere, np.zeros((size, dim)), np.zeros(size, int))
    queue = np.arange(size)
    lanes, queue, total = _begin(starts, queue[:num_lanes]), queue[num_lanes:], 0
    with np.errstate(all="ignore"):  # what is no number is a step that failed
        while len(lanes.x):
            total += len(lanes.x)
            if total > max_total:
                _write(out, lanes)
                break
            lanes = _advance(evaluate, lanes, max_evaluations, differences=differences)
            if race is not None:
                lost = ~lanes.done & race.lost(lanes.num_evaluations, lanes.x, lanes.value)
                lanes = lanes._replace(done=lanes.done | lost, value=np.where(lost, -np.inf, lanes.value))
            if not lanes.done.any():
                continue
            _write(out, lanes.some(lanes.done))
            lanes = lanes.some(~lanes.done)
            free = num_lanes - len(lanes.x)
            if len(queue) and free:
                lanes, queue = lanes.and_more(_begin(starts, queue[:free])), queue[free:]
    return out


def _write(out: Ascents, ended: _Climbers) -> None:
    """What came out of ascents that are over."""
    curvature = _known_curvature(ended.moves, ended.changes)
    found = Ascents(ended.x, ended.value, ended.gradient, ended.promise, curvature, ended.num_evaluations)
    for whole, part in zip(out, found, strict=True):
        whole[ended.number] = part


def _begin(starts: Float[np.ndarray, "start d"], numbers: Int[np.ndarray, " lane"]) -> _Climbers:
    """About to try steps of length zero, which evaluate the starts."""
    x = starts[numbers]
    size, dim = x.shape
    zero, zeros, nothing, never = np.zeros(size), np.zeros((size, dim)), np.zeros(size, int), np.zeros(size, bool)
    moves, changes = np.zeros((2, size, MEMORY, dim))
    return _Climbers(
        numbers, x, zero - np.inf, zeros, zeros, zero, zero + np.inf, nothing, moves, changes, nothing, zero, never
    )


def _known_curvature(
    moves: Float[np.ndarray, "lane memory d"], changes: Float[np.ndarray, "lane memory d"]
) -> Float[np.ndarray, "lane d"]:
    """The Hessian is, for a quadratic, at least y yᵀ / sᵀ y for each pair: so much curvature along each coordinate."""
    products = np.einsum("lmd,lmd->lm", moves, changes)[:, :, None]
    return np.max(np.where(products > 0, changes**2 / np.where(products > 0, products, 1.0), 0.0), axis=1)


def _by_differences(
    evaluate: LogDensities, x: Float[np.ndarray, "lane d"], curvature: Float[np.ndarray, "lane d"]
) -> tuple[Float[np.ndarray, " lane"], Float[np.ndarray, "lane d"]]:
    """Gradients by central differences over a small part of the width; one-sided at the edge of the support."""
    size, dim = x.shape
    unknown = FIRST_DIFFERENCE * (1 + np.abs(x))
    length = np.where(curvature > 0, DIFFERENCE / np.sqrt(np.where(curvature > 0, curvature, 1.0)), unknown)
    # Long enough for the rounding of x, and of a coordinate along which little has changed no longer than that.
    length = np.clip(length, 1e-9 * (1 + np.abs(x)), 1e-2 * (1 + np.abs(x)))
    steps = length[:, :, None] * np.eye(dim)
    places = np.concatenate([x[:, None], x[:, None] + steps, x[:, None] - steps], axis=1)
    values = evaluate(places.reshape(-1, dim))[0].reshape(size, 2 * dim + 1)
    value, ahead, behind = values[:, 0], values[:, 1 : 1 + dim], values[:, 1 + dim :]
    ahead_known, behind_known = np.isfinite(ahead), np.isfinite(behind)
    rise = np.where(ahead_known, ahead, value[:, None]) - np.where(behind_known, behind, value[:, None])
    return value, rise / (length * np.maximum(ahead_known.astype(float) + behind_known, 1.0))


def _advance(evaluate: LogDensities, now: _Climbers, max_evaluations: int, *, differences: bool) -> _Climbers:
    """Try one step in each lane: if it climbs enough, take it and choose the next direction, otherwise shorten it."""
    is_first = now.num_evaluations == 0
    move = now.step[:, None] * now.direction
    point = now.x + move
    if differences:
        value, gradient = _by_differences(evaluate, point, _known_curvature(now.moves, now.changes))
    else:
        value, gradient = evaluate(point)
    slope = _dot(now.gradient, move)
    usable = np.isfinite(value) & np.all(np.isfinite(gradient), axis=1)
    taken = usable & (is_first | (value >= now.value + 1e-4 * slope))

    change = now.gradient - gradient
    curvature = _dot(move, change)
    concave = taken & ~is_first & (curvature > 1e-10 * np.sqrt(_dot(move, move) * _dot(change, change)))
    [learning], place = np.nonzero(concave), now.num_pairs[concave] % MEMORY
    now.moves[learning, place], now.changes[learning, place] = move[concave], change[concave]
    num_pairs = now.num_pairs + concave
    # At first a step of length one; longer each time while the density is convex; then by the last pair.
    first_scale = 1 / (np.sqrt(_dot(gradient, gradient)) + 1e-300)
    secant = curvature / (_dot(change, change) + 1e-300)
    scale = np.where(is_first, first_scale, np.where(concave, secant, 4 * now.scale))

    direction = _two_loops(gradient, now.moves, now.changes, num_pairs, scale)
    promise = _dot(direction, gradient)
    # Rounding may spoil the memory: then the gradient itself.
    uphill = promise > 0
    direction = np.where(uphill[:, None], direction, scale[:, None] * gradient)
    promise = np.where(uphill, promise, scale * _dot(gradient, gradient))
    num_evaluations = now.num_evaluations + 1
    shorter = 0.3 * now.step
    climbed = taken[:, None]
    return _Climbers(
        now.number,
        np.where(climbed, point, now.x),
        np.where(taken, value, now.value),
        np.where(climbed, gradient, now.gradient),
        np.where(climbed, direction, now.direction),
        np.where(taken, 1.0, shorter),
        np.where(taken, promise, now.promise),
        num_evaluations,
        now.moves,
        now.changes,
        num_pairs,
        np.where(taken, scale, now.scale),
        (is_first & ~taken)
        | (taken & (promise < LEAST_GAIN))
        | (~taken & (shorter < LEAST_STEP))
        | (num_evaluations >= max_evaluations),
    )


def _two_loops(
    gradient: Float[np.ndarray, "lane d"],
    moves: Float[np.ndarray, "lane memory d"],
    changes: Float[np.ndarray, "lane memory d"],
    num_pairs: Int[np.ndarray, " lane"],
    scale: Float[np.ndarray, " lane"],
) -> Float[np.ndarray, "lane d"]:
    """The inverse Hessian of the pairs applied to the gradient (Nocedal and Wright 2006, algorithm 7.4)."""
    curvatures = np.einsum("lmd,lmd->lm", moves, changes)
    inverse = np.where(curvatures > 0, 1 / np.where(curvatures > 0, curvatures, 1.0), 0.0)
    lane, direction, taken = np.arange(len(gradient)), gradient, []
    for age in range(min(MEMORY, int(num_pairs.max()))):
        place = (num_pairs - 1 - age) % MEMORY
        move, change, weight = moves[lane, place], changes[lane, place], inverse[lane, place]
        share = weight * _dot(move, direction)
        direction = direction - share[:, None] * change
        taken.append((move, change, weight, share))
    direction = scale[:, None] * direction
    for move, change, weight, share in reversed(taken):
        direction = direction + (share - weight * _dot(change, direction))[:, None] * move
    return direction


def _dot(a: Float[np.ndarray, "lane d"], b: Float[np.ndarray, "lane d"]) -> Float[np.ndarray, " lane"]:
    return np.einsum("ld,ld->l", a, b)
