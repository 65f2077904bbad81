"""A population annealed from base to target: the pilot that learns a path before any chain runs on it.

It is a sequential Monte Carlo sampler with an adaptive schedule (Del Moral, Doucet, Jasra 2006; Zhou, Johansen, Aston
2016): each level goes as far as the importance weights allow, resamples, and moves. One pass gives all that the chains
need to start: where the temperatures must be dense (equal loss of weight is equal thermodynamic length), log Z along
the path whatever its size, step sizes and metrics by temperature, and points of the target.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from pseudo_extended.kernels import AbstractKernel, TemperedPoint, evaluator
from pseudo_extended.kernels.metric import Factor
from pseudo_extended.pilot.whitening import Whitening
from pseudo_extended.target import Target
from pseudo_extended.tempering.moves import move_points
from pseudo_extended.tempering.path import Path, even_lengths

MAX_LEVELS = 300
WEIGHT_KEPT = 0.8
"""Each level may cost this share of the effective sample size: the weights' coefficient of variation is a half."""


class Annealed(NamedTuple):
    """What a pass learned; arrays by level are filled up to `num_levels`, and repeat the last one after it."""

    population: TemperedPoint
    """Points of the target, island by island."""
    beta: Float[Array, " level"]
    length: Float[Array, " level"]
    """Thermodynamic length up to each level."""
    log_z: Float[Array, "level island"]
    """log Z(β) - log Z(0), one estimate for each island."""
    log_step: Float[Array, " level"]
    scale: Factor
    """The part of the metric that goes by temperature."""
    num_levels: Int[Array, ""]
    finished: Bool[Array, ""]
    """Whether β = 1 was reached."""
    covered: Float[Array, ""]
    """The share of the draws from the start of the path at which the target is positive."""
    num_evaluations: Int[Array, ""]
    """Of the density, for all of it."""


class _Level(NamedTuple):
    """The state of the pass."""

    key: Key[Array, ""]
    population: TemperedPoint
    log_step: Float[Array, ""]
    record: Annealed


def anneal(
    key: Key[Array, ""],
    kernel: AbstractKernel,
    target: Target,
    x: Float[Array, "particle d"],
    reserve: Float[Array, "start d"],
    *,
    beta_min: float,
    num_islands: int,
    num_moves: int,
    num_first_moves: int,
    dense: bool,
    whitening: Whitening | None = None,
) -> Annealed:
    """Anneal the points `x`, draws from the start of the path or near it, in islands that resample apart.

    Where the target vanishes at some of them, others take their place; where it does at all, points of `reserve`.
    """
    evaluate = evaluator(target, gradient=kernel.uses_gradient)
    population, covered = _where_positive(jax.vmap(evaluate)(jnp.concatenate([x, reserve])), x.shape[0])
    beta = jnp.asarray(beta_min, float)
    log_step = jnp.log(0.5) - 0.25 * jnp.log(float(x.shape[1]))
    gradient, shared = kernel.uses_gradient, None if whitening is None else jnp.asarray(whitening.factor)
    blank = metric(population, beta, dense=dense, gradient=gradient, whitening=whitening)

    def fill(value: Array) -> Array:
        return jnp.broadcast_to(value, (MAX_LEVELS, *value.shape))

    record = Annealed(
        population,
        fill(beta),
        jnp.zeros(MAX_LEVELS),
        # What vanishes there is missing from the mass of the start already.
        jnp.full((MAX_LEVELS, num_islands), jnp.log(jnp.maximum(covered, 0.5 / x.shape[0]))),
        fill(log_step),
        fill(blank),
        jnp.asarray(0),
        jnp.asarray(False),
        covered,
        jnp.asarray(x.shape[0] + reserve.shape[0]),
    )

    def goes_on(level: _Level) -> Bool[Array, ""]:
        return ~level.record.finished & (level.record.num_levels < MAX_LEVELS)

    def advance(level: _Level) -> _Level:
        key_next, key_resample, key_move = jax.random.split(level.key, 3)
        record, number = level.record, level.record.num_levels
        before = jnp.maximum(number - 1, 0)
        delta = jnp.where(level.population.is_finite(), level.population.delta, -jnp.inf)
        # The first level stays where it is and only moves, so that the moves are traced, and compiled, once.
        step, kept = _next_step(delta, 1 - record.beta[before])
        step, kept = jnp.where(number == 0, 0.0, step), jnp.where(number == 0, 1.0, kept)
        by_island = jnp.where(jnp.isneginf(delta), -jnp.inf, step * delta).reshape(num_islands, -1)
        population = _resample(key_resample, level.population, by_island)
        beta = jnp.where(step >= 1 - record.beta[before], 1.0, record.beta[before] + step)
        scale = metric(population, beta, dense=dense, gradient=gradient, whitening=whitening)
        num = jnp.where(number == 0, num_first_moves, num_moves)
        population, log_step, num_evaluations = _move(
            key_move, kernel, target, population, beta, level.log_step, scale, shared, num
        )
        new = Annealed(
            population,
            _put(record.beta, number, beta),
            # The last term keeps some nodes on a stretch where nothing changes.
            _put(record.length, number, record.length[before] + jnp.sqrt(-jnp.log(kept)) + 0.05 * step),
            _put(record.log_z, number, record.log_z[before] + _log_mean_exp(by_island)),
            _put(record.log_step, number, log_step),
            _put(record.scale, number, scale),
            number + 1,
            beta >= 1,
            covered,
            record.num_evaluations + num_evaluations,
        )
        return _Level(key_next, population, log_step, new)

    return jax.lax.while_loop(goes_on, advance, _Level(key, population, log_step, record)).record


def _where_positive(points: TemperedPoint, size: int) -> tuple[TemperedPoint, Float[Array, ""]]:
    """`size` points at which the target is positive, and the share of the first `size` that were; the rest is spare."""
    valid = points.is_finite()
    num_valid, num_spare = jnp.sum(valid[:size]), valid.shape[0] - size
    first = jnp.argsort(~valid[:size], stable=True)[jnp.arange(size) % jnp.maximum(num_valid, 1)]
    chosen = jnp.where(num_valid > 0, first, size + jnp.arange(size) % num_spare)
    return jax.tree.map(lambda leaf: leaf[chosen], points), num_valid / size


def metric(
    population: TemperedPoint,
    beta: Float[Array, ""],
    *,
    dense: bool,
    gradient: bool,
    whitening: Whitening | None = None,
) -> Factor:
    """Standard deviations (or a Cholesky factor) that suit local moves at β, in whitened coordinates if there are any.

    From the gradients: the mean of the squared score is the mean curvature, 1/σ² for a normal, and unlike the
    covariance it does not see how far the modes are apart. Never wider than the population; without gradients, as wide.
    """
    places = population.position if whitening is None else population.position @ whitening.inverse.T
    spread = jnp.std(places, axis=0) + 1e-150
    if not gradient:
        return jnp.diag(spread) if dense else spread
    score = population.gradient(jnp.broadcast_to(beta, population.delta.shape))
    assert score is not None
    score = jnp.where(population.is_finite()[:, None], score, 0.0)
    score = score if whitening is None else score @ whitening.factor
    curvature = jnp.mean(score**2, axis=0) + 1e-300
    if not dense:
        return jnp.minimum(curvature**-0.5, spread)
    # In units of the diagonal, shrunk a little towards it: well conditioned whatever the scales are.
    unit = jnp.sqrt(curvature)
    correlation = 0.95 * (score / unit).T @ (score / unit) / score.shape[0] + 0.05 * jnp.eye(score.shape[1])
    factor = jnp.linalg.cholesky(jnp.linalg.inv(correlation))
    return jnp.minimum(1 / unit, spread)[:, None] * factor


def path_from(annealed: Annealed, num_cells: int, beta_max: float = 1.0) -> Path:
    """Nodes equally far apart in thermodynamic length up to `beta_max`, and g = 1/Z there."""
    # A pass that did not reach the target ends in one long step, for which the mean of Δ is all that is known.
    levels, delta = np.asarray(annealed.beta), np.asarray(annealed.population.delta)
    levels = np.append(levels, 1.0)
    length = np.append(annealed.length, annealed.length[-1] + (0.0 if annealed.finished else 1.0))
    log_z = np.mean(np.asarray(annealed.log_z), axis=1)
    log_z = np.append(log_z, log_z[-1] + (1 - levels[-2]) * np.mean(delta))
    beta, length = np.minimum(levels, beta_max), np.minimum(length, np.interp(beta_max, levels, length))
    nodes = even_lengths(beta, length, num_cells)
    nodes[-1] = beta_max
    log_z = np.interp(nodes, levels, log_z)
    return Path(jnp.asarray(nodes), jnp.asarray(log_z[-1] - log_z))


def tuning_from(annealed: Annealed, num_knots: int, beta_max: float = 1.0) -> tuple[Float[Array, " knot"], Factor]:
    """Log step sizes and metrics at knots equally far apart on the path up to `beta_max`; the last is the target's."""
    at = np.linspace(0.0, 1.0, num_knots) * np.interp(beta_max, annealed.beta, annealed.length)
    at[-1] = annealed.length[-1]
    return _tuning(annealed, at)


def tuning_at(annealed: Annealed, beta: Float[np.ndarray, " knot"]) -> tuple[Float[Array, " knot"], Factor]:
    """Log step sizes and metrics at given temperatures."""
    return _tuning(annealed, np.interp(beta, annealed.beta, annealed.length))


def _tuning(annealed: Annealed, at: Float[np.ndarray, " knot"]) -> tuple[Float[Array, " knot"], Factor]:
    length = np.asarray(annealed.length)
    nearest = np.clip(np.searchsorted(length, at), 0, int(annealed.num_levels) - 1)
    log_step = np.interp(at, length, np.asarray(annealed.log_step))
    return jnp.asarray(log_step), jnp.asarray(np.asarray(annealed.scale)[nearest])


def _move(
    key: Key[Array, ""],
    kernel: AbstractKernel,
    target: Target,
    population: TemperedPoint,
    beta: Float[Array, ""],
    log_step: Float[Array, ""],
    scale: Factor,
    shared: Float[Array, "d d"] | None,
    num_moves: Int[Array, ""],
) -> tuple[TemperedPoint, Float[Array, ""], Int[Array, ""]]:
    """A few moves of all points, with the step size following the mean acceptance rate."""
    size = population.delta.shape[0]
    betas = jnp.broadcast_to(beta, (size,))
    scales = jnp.broadcast_to(scale, (size, *scale.shape))
    aim = jnp.asarray(kernel.target_acceptance)[0]

    def once(i: Any, carry: tuple[TemperedPoint, Array, Array]) -> tuple[TemperedPoint, Array, Array]:
        population, log_step, num_evaluations = carry
        steps = jnp.broadcast_to(jnp.exp(log_step), (size,))
        key_move = jax.random.fold_in(key, i)
        population, info = move_points(key_move, kernel, target, population, betas, steps, scales, shared)
        num_evaluations = num_evaluations + jnp.sum(info.num_evaluations).astype(int)
        return population, log_step + 1.5 * (jnp.mean(info.acceptance_rate) - aim), num_evaluations

    return jax.lax.fori_loop(0, num_moves, once, (population, log_step, jnp.asarray(0)))


def _next_step(delta: Float[Array, " particle"], most: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The longest step in β that keeps enough of the effective sample size, and the share it keeps."""

    def kept(step: Float[Array, ""]) -> Float[Array, ""]:
        log_weight = jnp.where(jnp.isneginf(delta), -jnp.inf, step * delta)
        weight = jnp.exp(log_weight - jnp.max(log_weight))
        # Points of density zero are no use at any step and must not stop the schedule.
        alive = jnp.sum(~jnp.isneginf(delta))
        return jnp.sum(weight) ** 2 / (alive * jnp.sum(weight**2))

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        # By geometric mean at first: log Z may need steps of any order of magnitude.
        middle = jnp.where(low > 0, 0.5 * (low + high), high * 1e-2)
        good = kept(middle) >= WEIGHT_KEPT
        return jnp.where(good, middle, low), jnp.where(good, high, middle)

    low, _ = jax.lax.fori_loop(0, 40, halve, (jnp.zeros(()), most))
    step = jnp.where(kept(most) >= WEIGHT_KEPT, most, jnp.maximum(low, 1e-14))
    return step, jnp.clip(kept(step), 1e-12, 1.0)


def _resample(key: Key[Array, ""], population: TemperedPoint, log_weight: Float[Array, "island each"]) -> TemperedPoint:
    """Systematic resampling within each island."""
    num_islands, size = log_weight.shape
    weight = jax.nn.softmax(log_weight, axis=1)
    offset = jax.random.uniform(key, (num_islands, 1), dtype=float)
    places = (jnp.arange(size) + offset) / size
    cumulative = jnp.cumsum(weight, axis=1)
    cumulative = cumulative / cumulative[:, -1:]
    chosen = jax.vmap(jnp.searchsorted)(cumulative, places)
    index = (jnp.clip(chosen, 0, size - 1) + size * jnp.arange(num_islands)[:, None]).ravel()
    return jax.tree.map(lambda leaf: leaf[index], population)


def _log_mean_exp(values: Float[Array, "island each"]) -> Float[Array, " island"]:
    return jax.nn.logsumexp(values, axis=1) - jnp.log(values.shape[1])


def _put(buffer: Array, number: Int[Array, ""], value: Array) -> Array:
    """`value` at this level and, for now, at all later ones."""
    later = jnp.arange(buffer.shape[0]) >= number
    return jnp.where(later.reshape(-1, *(1,) * value.ndim), value, buffer)
