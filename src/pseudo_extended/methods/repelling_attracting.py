"""Repelling-attracting Metropolis of Tak, Meng and van Dyk (2018), JCGS 27, 479-490."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from pseudo_extended import checks
from pseudo_extended.methods.abstract import AbstractMethod, Chain, Statistic, StepInfo, WeightedPoints
from pseudo_extended.randomness import normals_and_uniforms
from pseudo_extended.target import Target
from pseudo_extended.warmup import Stage

LOG_EPSILON = math.log(1e-308)


class RepellingState(NamedTuple):
    """The point and its auxiliary variable, with their log densities."""

    x: Float[Array, " d"]
    log_density: Float[Array, ""]
    z: Float[Array, " d"]
    log_density_z: Float[Array, ""]
    gave_up: Bool[Array, ""]
    """Whether the last step was rejected because one of its forced moves used up its tries."""


class RepellingInfo(NamedTuple):
    """The account of one step: acceptance and evaluations."""

    acceptance_rate: Float[Array, ""]
    non_finite: Bool[Array, ""]
    num_evaluations: Int[Array, ""]


class ForcedMoves(NamedTuple):
    """The three forced moves under way: down to x', up to x*, down to z*."""

    phase: Int[Array, ""]
    """How many of the three are done."""
    num_tries: Int[Array, ""]
    """Proposals of the present one."""
    num_evaluations: Int[Array, ""]
    centre: Float[Array, " d"]
    """Where the present one starts: x, x' and x*, and z* at the end."""
    log_density: Float[Array, ""]
    x: Float[Array, " d"]
    """x*, once it is there."""
    log_density_x: Float[Array, ""]


class RepellingAttracting(AbstractMethod):
    """Random walks that are forced down and then up again, so that a proposal can cross a valley.

    With π_ε = π + ε: draw x' ~ q(·|x) until one is accepted with min{1, π_ε(x)/π_ε(x')}, then x* ~ q(·|x') until one is
    accepted with min{1, π_ε(x*)/π_ε(x')}, then z* ~ q(·|x*) like x'. The pair (x*, z*) replaces (x, z) with probability
    min{1, π(x*) min{1, π_ε(x)/π_ε(z)} / [π(x) min{1, π_ε(x*)/π_ε(z*)}]}. It leaves π(x) q(z|x) alone: the proposal of
    x* brings in the probabilities that a move down from x or x* is accepted at once, which nobody can compute, and the
    proposal of z* brings them in the other way round.

    Args:
        scale: Of the normal q(·|x): a standard deviation, a vector of them or a lower-triangular Cholesky factor.
        max_tries: Proposals after which a forced move gives up, and the whole step is rejected.
        log_epsilon: log ε, so small that it matters only where π underflows; it goes with the normalisation of γ.

    *Giving up is exact.* Let s(x) be the probability that a move down from x succeeds within `max_tries`, and t(x') the
    same for a move up. Given success, what it finds has the same distribution as without a limit. So the limit
    multiplies the density of the path (x, z) -> x' -> (x*, z*) by s(x) t(x') s(x*), and that of the way back, through
    the same x', by s(x*) t(x') s(x): the same factor, because both moves down have the same limit. Their ratio, and so
    the acceptance probability, is as before. `result.statistics["gave_up"]` tells how often it happened.

    >>> import pseudo_extended as pe
    >>> pe.RepellingAttracting.tak_2018("a").scale
    array(2.)
    """

    scale: Float[np.ndarray, "..."]
    max_tries: int = eqx.field(static=True)
    log_epsilon: float = eqx.field(static=True)

    def __init__(self, scale: Any = 1.0, *, max_tries: int = 10_000, log_epsilon: float = LOG_EPSILON):
        self.scale = _scale(scale)
        self.max_tries = checks.integer("max_tries of RepellingAttracting", max_tries, minimum=1)
        self.log_epsilon = checks.real("log_epsilon of RepellingAttracting", log_epsilon)

    @classmethod
    def tak_2018(cls, scenario: str = "a") -> "RepellingAttracting":
        """The settings published for the 20-mode mixture: q has covariance 4 I in scenario (a), 3.5 I in (b)."""
        checks.choice("scenario", scenario, ("a", "b"))
        return cls(math.sqrt({"a": 4.0, "b": 3.5}[scenario]))

    @property
    def needs_gradient(self) -> bool:
        """False: proposals are random walks."""
        return False

    def check(self, target: Target) -> None:
        """Require a scale that fits the target's dimension."""
        if self.scale.ndim and self.scale.shape[0] != target.dim:
            raise ValueError(
                f"scale of RepellingAttracting must be one number or have length {target.dim}, like the target; "
                f"got {self.scale.shape[0]}."
            )

    def init(self, key: Key[Array, ""], target: Target, x: Float[Array, "particle d"]) -> Chain:
        """Start at the one given point, with z a draw of q around it."""
        z = self.propose(jax.random.normal(key, x[0].shape, float), x[0])
        return Chain(RepellingState(x[0], target.log_target(x[0]), z, target.log_target(z), jnp.asarray(False)), (), ())

    def step(self, key: Key[Array, ""], target: Target, chain: Chain) -> tuple[RepellingState, RepellingInfo]:
        """Down, up and down again; then accept both points or none."""
        state: RepellingState = chain.state
        key_moves, key_accept = jax.random.split(key)
        moves = self.forced_moves(key_moves, target, state)
        gave_up = moves.phase < 3
        log_ratio = self.log_ratio(state, moves)
        acceptance_rate = jnp.where(gave_up, 0.0, jnp.exp(jnp.minimum(log_ratio, 0.0)))
        accepts = jax.random.uniform(key_accept, dtype=float) < acceptance_rate
        proposal = RepellingState(moves.x, moves.log_density_x, moves.centre, moves.log_density, gave_up)
        new = jax.tree.map(lambda after, before: jnp.where(accepts, after, before), proposal, state)
        non_finite = ~gave_up & ~jnp.isfinite(moves.log_density_x)
        return new._replace(gave_up=gave_up), RepellingInfo(acceptance_rate, non_finite, moves.num_evaluations)

    def forced_moves(self, key: Key[Array, ""], target: Target, state: RepellingState) -> ForcedMoves:
        """All three in one loop, so that the density is compiled once; it ends early if one of them gives up."""

        def propose(moves: ForcedMoves) -> ForcedMoves:
            key_try = jax.random.fold_in(key, moves.num_evaluations)
            noise, uniform = normals_and_uniforms(key_try, moves.centre.size, 1)
            point = self.propose(noise, moves.centre)
            log_density = target.log_target(point)
            ascent = self.log_with_epsilon(log_density) - self.log_with_epsilon(moves.log_density)
            log_accept = jnp.where(moves.phase == 1, ascent, -ascent)
            accepts = jnp.log(uniform[0]) < log_accept
            arrived = ForcedMoves(
                phase=moves.phase + 1,
                num_tries=jnp.zeros_like(moves.num_tries),
                num_evaluations=moves.num_evaluations,
                centre=point,
                log_density=log_density,
                x=jnp.where(moves.phase == 1, point, moves.x),
                log_density_x=jnp.where(moves.phase == 1, log_density, moves.log_density_x),
            )
            failed = moves._replace(num_tries=moves.num_tries + 1)
            new = jax.tree.map(lambda after, before: jnp.where(accepts, after, before), arrived, failed)
            return new._replace(num_evaluations=moves.num_evaluations + 1)

        zero = jnp.asarray(0)
        start = ForcedMoves(zero, zero, zero, state.x, state.log_density, state.x, state.log_density)
        return jax.lax.while_loop(lambda moves: (moves.phase < 3) & (moves.num_tries < self.max_tries), propose, start)

    def log_ratio(self, state: RepellingState, moves: ForcedMoves) -> Float[Array, ""]:
        """The log of the ratio in the acceptance probability of (x*, z*)."""

        def log_down(log_density: Float[Array, ""], log_density_z: Float[Array, ""]) -> Float[Array, ""]:
            return jnp.minimum(0.0, self.log_with_epsilon(log_density) - self.log_with_epsilon(log_density_z))

        forth = moves.log_density_x + log_down(state.log_density, state.log_density_z)
        back = state.log_density + log_down(moves.log_density_x, moves.log_density)
        return forth - back

    def log_with_epsilon(self, log_density: Float[Array, ""]) -> Float[Array, ""]:
        """log (π + ε)."""
        return jnp.logaddexp(log_density, self.log_epsilon)

    def propose(self, noise: Float[Array, " d"], centre: Float[Array, " d"]) -> Float[Array, " d"]:
        """A draw of q around `centre`, from standard normal numbers."""
        scale = jnp.asarray(self.scale)
        return centre + (scale @ noise if scale.ndim == 2 else scale * noise)

    def adapt(self, target: Target, chain: Chain, stage: Stage, info: RepellingInfo) -> Chain:
        """Return the chain as it is: nothing is tuned."""
        del target, stage, info
        return chain

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The statistics of `points`."""
        return (
            Statistic("lp"),
            Statistic("gave_up"),
        )

    def points(self, target: Target, state: RepellingState) -> WeightedPoints:
        """The point itself, with weight one."""
        del target
        return WeightedPoints(state.x[None], jnp.zeros(1), {"lp": state.log_density, "gave_up": state.gave_up})

    def report(self, info: RepellingInfo) -> StepInfo:
        """Every proposal of the forced moves is an evaluation."""
        return StepInfo(info.acceptance_rate, jnp.asarray(False), info.non_finite, info.num_evaluations)

    def describe(self) -> str:
        """Name the method and its main settings, for tables and reports."""
        return "repelling-attracting Metropolis"


def _scale(given: Any) -> Float[np.ndarray, "..."]:
    scale = checks.float_array("scale of RepellingAttracting", given)
    square = scale.ndim == 2 and scale.shape[0] == scale.shape[1] and np.array_equal(scale, np.tril(scale))
    diagonal = np.diagonal(scale) if square else scale
    if not (scale.ndim < 2 or square) or diagonal.size == 0 or not np.all(diagonal > 0):
        raise ValueError(
            "scale of RepellingAttracting must be a positive number, a vector of them or a lower-triangular matrix "
            f"with a positive diagonal; got {checks.describe(given)}."
        )
    return scale
