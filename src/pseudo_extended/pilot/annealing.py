"""A population annealed from base to target: the pilot that learns a path before any chain runs on it.

It is a sequential Monte Carlo sampler with an adaptive schedule (Del Moral, Doucet, Jasra 2006; Zhou, Johansen, Aston
2016): each level goes as far as the importance weights allow, resamples, and moves. One pass gives all that the chains
need to start: where the temperatures must be dense (equal loss of weight is equal thermodynamic length), log Z along
the path whatever its size, step sizes and metrics by temperature, and points of the target.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float
from scipy.special import logsumexp, softmax

from pseudo_extended.kernels.metric import Factor
from pseudo_extended.pilot.moves import Evaluate, Mover, Population
from pseudo_extended.pilot.whitening import Whitening
from pseudo_extended.tempering.path import Path, even_lengths

MAX_LEVELS = 300
FEW_POINTS = 8
"""Of each island, of which only starts are wanted."""
WEIGHT_KEPT = 0.8
"""Each level may cost this share of the effective sample size: the weights' coefficient of variation is a half."""


class Annealed(NamedTuple):
    """What a pass learned."""

    population: Population
    """Points of the target, island by island."""
    beta: Float[np.ndarray, " level"]
    length: Float[np.ndarray, " level"]
    """Thermodynamic length up to each level."""
    log_z: Float[np.ndarray, "level island"]
    """log Z(β) - log Z(0), one estimate for each island."""
    log_step: Float[np.ndarray, " level"]
    scale: Float[np.ndarray, "level d"] | Float[np.ndarray, "level d d"]
    """The part of the metric that goes by temperature."""
    num_levels: int
    finished: bool
    """Whether β = 1 was reached."""
    covered: float
    """The share of the draws from the start of the path at which the target is positive."""
    num_evaluations: int
    """Of the density, for all of it."""


class Metric(NamedTuple):
    """What metrics are learned."""

    dense: bool
    """Whether each temperature has one with correlations."""
    gradient: bool = True
    """Whether there are gradients to learn them from."""
    whitening: Whitening | None = None
    """The coordinates that they are in."""


class Moves(NamedTuple):
    """How a population moves at each level."""

    one: Mover
    num: int
    num_first: int
    """At the first level, where the step size is not known."""
    target_acceptance: float
    far: float = np.inf
    """The length of a path from which the points are only wanted as starts: few go on, and move once a level."""


def anneal(
    rng: np.random.Generator,
    moves: Moves,
    evaluate: Evaluate,
    x: Float[np.ndarray, "particle d"],
    reserve: Float[np.ndarray, "start d"],
    *,
    beta_min: float,
    num_islands: int,
    metrics: Metric,
    tell: Callable[[float], None] = lambda beta: None,
) -> Annealed:
    """Anneal the points `x`, draws from the start of the path or near it, in islands that resample apart.

    Where the target vanishes at some of them, others take their place; where it does at all, points of `reserve`.
    `tell` hears how far it is.
    """
    size, dim = x.shape
    population, covered = _where_positive(evaluate(np.concatenate([x, reserve])), size)
    num_evaluations = size + len(reserve)
    shared = None if metrics.whitening is None else np.asarray(metrics.whitening.factor)
    beta, length, log_step = float(beta_min), 0.0, np.log(0.5) - 0.25 * np.log(dim)
    # What vanishes there is missing from the mass of the start already.
    log_z = np.full(num_islands, np.log(max(covered, 0.5 / size)))
    levels: list[tuple[float, float, np.ndarray, float, np.ndarray]] = []
    while not levels or (beta < 1 and len(levels) < MAX_LEVELS):
        if levels:  # the first level stays where it is and only moves
            delta = np.where(population.is_finite(), population.delta, -np.inf)
            step, kept = _next_step(delta, 1 - beta)
            by_island = np.where(np.isneginf(delta), -np.inf, step * delta).reshape(num_islands, -1)
            population = _resample(rng, population, by_island)
            if length > moves.far:
                population = _thinned(population, num_islands)
            beta = 1.0 if step >= 1 - beta else beta + step
            # The last term keeps some nodes on a stretch where nothing changes.
            length += np.sqrt(-np.log(kept)) + 0.05 * step
            log_z = log_z + logsumexp(by_island, axis=1) - np.log(by_island.shape[1])
        scale = metric(population, beta, metrics)
        num_moves = moves.num if length <= moves.far else 1
        for _ in range(num_moves if levels else moves.num_first):
            population, rate, evaluations = moves.one(rng, population, beta, float(np.exp(log_step)), scale, shared)
            log_step += 1.5 * (rate - moves.target_acceptance)
            num_evaluations += evaluations
        levels.append((beta, length, log_z, float(log_step), scale))
        tell(beta)
    betas, lengths, log_zs, log_steps, scales = (np.array(column) for column in zip(*levels, strict=True))
    return Annealed(
        population, betas, lengths, log_zs, log_steps, scales, len(levels), beta >= 1, covered, num_evaluations
    )


def _where_positive(points: Population, size: int) -> tuple[Population, float]:
    """`size` points at which the target is positive, and the share of the first `size` that were; the rest is spare."""
    [valid] = np.nonzero(points.is_finite()[:size])
    spare = size + np.arange(size) % (len(points.position) - size) if not len(valid) else valid
    chosen = np.resize(spare, size)
    return points.some(chosen), len(valid) / size


def metric(population: Population, beta: float, metrics: Metric) -> Float[np.ndarray, " d"] | Float[np.ndarray, "d d"]:
    """Standard deviations (or a Cholesky factor) that suit local moves at β, in whitened coordinates if there are any.

    From the gradients: the mean of the squared score is the mean curvature, 1/σ² for a normal, and unlike the
    covariance it does not see how far the modes are apart. Never wider than the population; without gradients, as wide.
    """
    whitening = metrics.whitening
    places = population.position if whitening is None else population.position @ np.asarray(whitening.inverse).T
    spread = np.std(places, axis=0) + 1e-150
    if not metrics.gradient:
        return np.diag(spread) if metrics.dense else spread
    score = population.gradient(beta)
    score = np.where(population.is_finite()[:, None], score, 0.0)
    score = score if whitening is None else score @ np.asarray(whitening.factor)
    curvature = np.mean(score**2, axis=0) + 1e-300
    if not metrics.dense:
        return np.minimum(curvature**-0.5, spread)
    # In units of the diagonal, shrunk a little towards it: well conditioned whatever the scales are.
    unit = np.sqrt(curvature)
    correlation = 0.95 * (score / unit).T @ (score / unit) / len(score) + 0.05 * np.eye(score.shape[1])
    factor = np.linalg.cholesky(np.linalg.inv(correlation))
    return np.minimum(1 / unit, spread)[:, None] * factor


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
    return Path(jax.device_put(nodes), jax.device_put(log_z[-1] - log_z))


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
    return jax.device_put(log_step), jax.device_put(np.asarray(annealed.scale)[nearest])


def _next_step(delta: Float[np.ndarray, " particle"], most: float) -> tuple[float, float]:
    """The longest step in β that keeps enough of the effective sample size, and the share it keeps."""
    # Points of density zero are no use at any step and must not stop the schedule.
    alive = delta[~np.isneginf(delta)]
    above = alive - np.max(alive, initial=-np.inf)

    def kept(step: float) -> float:
        weight = np.exp(step * above)
        return float(np.sum(weight) ** 2 / (len(alive) * np.sum(weight**2))) if len(alive) else 0.0

    if kept(most) >= WEIGHT_KEPT:
        return most, min(kept(most), 1.0)
    low, high = 0.0, most
    for _ in range(40):
        # By geometric mean at first: log Z may need steps of any order of magnitude.
        middle = 0.5 * (low + high) if low > 0 else high * 1e-2
        low, high = (middle, high) if kept(middle) >= WEIGHT_KEPT else (low, middle)
    step = max(low, 1e-14)
    return step, float(np.clip(kept(step), 1e-12, 1.0))


def _thinned(population: Population, num_islands: int) -> Population:
    """A few points of each island, that were resampled in order of their places in it."""
    places = np.arange(len(population.position)).reshape(num_islands, -1)
    stride = max(places.shape[1] // FEW_POINTS, 1)
    return population.some(places[:, ::stride].ravel())


def _resample(
    rng: np.random.Generator, population: Population, log_weight: Float[np.ndarray, "island each"]
) -> Population:
    """Systematic resampling within each island."""
    num_islands, size = log_weight.shape
    # An island with no point of use stays as it is.
    weight = softmax(np.where(np.all(np.isneginf(log_weight), axis=1, keepdims=True), 0.0, log_weight), axis=1)
    cumulative = np.cumsum(weight, axis=1)
    places = (np.arange(size) + rng.uniform(size=(num_islands, 1))) / size
    chosen = [np.searchsorted(each / each[-1], place) for each, place in zip(cumulative, places, strict=True)]
    index = (np.minimum(chosen, size - 1) + size * np.arange(num_islands)[:, None]).ravel()
    return population.some(index)
