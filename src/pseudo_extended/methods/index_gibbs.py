"""Index Gibbs: the extended target with the index of the target's pseudo-sample made explicit.

    p(k, x, t) ∝ γ(x_k) Π_{j≠k} γ_{β(t_j)}(x_j) g(t_j),        k in 1 … N, t_j in [0, 1]

Given k and t everything factorises: each pseudo-sample moves on its own density, with the step size and the metric of
its own temperature, and no gradient goes through β. Given x both are drawn exactly, k with the temperatures integrated
out: pseudo-sample i carries the target with probability proportional to γ(x_i)/q(x_i), q(x) = ∫ γ_{β(t)}(x) g(t) dt.
The weighted points are the same as the paper's with this q (eq. 2), so theorem 2.1 holds for them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from pseudo_extended import checks
from pseudo_extended.bases import AbstractBase
from pseudo_extended.compiled import Job, compile_once
from pseudo_extended.instruments import AbstractInstrument, Fixed, Ladder, Tempered
from pseudo_extended.kernels import HMC, AbstractKernel
from pseudo_extended.kernels.path_moves import MoveInfo, PathState, Scale, evaluator, move, refresh
from pseudo_extended.methods.abstract import AbstractMethod, Chain, Prepared, StepInfo, WeightedPoints
from pseudo_extended.methods.preparation import Preparation, prepare_path
from pseudo_extended.path import Path, cells_given, draw_t, on_path
from pseudo_extended.target import Target
from pseudo_extended.warmup import Stage
from pseudo_extended.warmup.annealing import Annealed, path_from, tuning_at, tuning_from
from pseudo_extended.warmup.temperatures import (
    TemperatureAdaptation,
    adapt_g,
    adapt_steps,
    running_average,
    start_adaptation,
)

NUM_CELLS = 32
NUM_KNOTS = 9
DENSE_METRIC_UP_TO = 16


class IndexParameters(NamedTuple):
    """What the pilot and warm-up learn; frozen when the draws begin."""

    base: AbstractBase | None
    """A learned base; None for the target's own."""
    path: Path
    log_step: Float[Array, " knot"]
    scale: Scale
    """The metric at each knot; knots are equally far apart in t, like the nodes of the path."""


class IndexState(NamedTuple):
    """N pseudo-samples, their places on the path, and which of them carries the target."""

    points: PathState
    t: Float[Array, " particle"]
    """Places on the path; that of the target's pseudo-sample means nothing, it is at the target."""
    carrier: Int[Array, ""]
    log_weight: Float[Array, " particle"]
    """log γ(x)/q(x) with the temperature integrated out, where it is free."""
    last: "IndexInfo"
    """What happened in the move that led here."""


class IndexInfo(NamedTuple):
    """What happened in one step."""

    beta: Float[Array, " particle"]
    """The inverse temperatures of the moves; 1 for the pseudo-sample that carried the target."""
    carrier: Bool[Array, " particle"]
    """Which one that was."""
    t: Float[Array, " particle"]
    move: MoveInfo
    refresh_rate: Float[Array, " particle"]
    refresh_valid: Bool[Array, " particle"]
    share: Float[Array, " cell"]
    """The probability of each cell of the path, averaged over the pseudo-samples that do not carry the target."""
    log_ends: Float[Array, " 2"]
    """The log density of t at both ends of the path, averaged in the same way, less log g there."""


class IndexGibbs(AbstractMethod):
    """The default: pseudo-samples that travel along a learned path from a learned base to the target.

    Args:
        num_particles: N, at least 2; "auto" takes more the longer the pilot found the path, between 6 and 16.
        kernel: Local moves: `HMC` (its length is jittered), `NUTS`, `MALA` or `RandomWalk`.
        instrument: `Tempered(beta_min)` for free temperatures, whose g is learned; `Ladder` or `Fixed` for fixed ones.
        base: "auto" takes the base that the user gave the target and otherwise learns one; "target" never learns.
        metric: "diagonal", "dense", or "auto": dense up to 16 dimensions.
        width: Chains that one program advances.

    >>> import pseudo_extended as pe
    >>> pe.IndexGibbs(num_particles=8).describe()
    'index Gibbs with HMC, N = 8'
    """

    kernel: AbstractKernel
    instrument: AbstractInstrument
    num_particles: int = eqx.field(static=True)
    chooses_particles: bool = eqx.field(static=True)
    base: str = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    width: int = eqx.field(static=True)
    parameters: IndexParameters | None
    """What `prepare` learned."""

    def __init__(
        self,
        num_particles: int | str = "auto",
        kernel: AbstractKernel | None = None,
        instrument: AbstractInstrument | None = None,
        *,
        base: str = "auto",
        metric: str = "auto",
        width: int = 2,
        parameters: IndexParameters | None = None,
    ):
        fixed = isinstance(instrument, (Ladder, Fixed))
        self.chooses_particles = isinstance(num_particles, str) and num_particles == "auto" and not fixed
        if isinstance(num_particles, str) and num_particles != "auto":
            raise TypeError(
                f'num_particles must be an integer of at least 2, or "auto"; got {checks.describe(num_particles)}.'
            )
        if num_particles == "auto":
            num_particles = instrument.rungs.size if isinstance(instrument, Ladder) else 8
        self.num_particles = checks.integer("num_particles", num_particles, minimum=2)
        self.kernel = checks.instance(
            "kernel", HMC(num_steps=4) if kernel is None else kernel, AbstractKernel, "a kernel such as pe.HMC()"
        )
        if self.kernel.target_acceptance.size != 1:
            raise ValueError(
                "kernel of IndexGibbs must be one kernel with one step size (HMC, NUTS, MALA or RandomWalk); "
                f"got {type(self.kernel).__name__}."
            )
        self.instrument = _instrument(Tempered(0.0) if instrument is None else instrument)
        self.base = checks.choice("base", base, ("auto", "target"))
        self.metric = checks.choice("metric", metric, ("auto", "diagonal", "dense"))
        self.width = checks.integer("width", width, minimum=1, maximum=1024)
        self.parameters = parameters

    @property
    def num_points(self) -> int:
        """N."""
        return self.num_particles

    @property
    def needs_gradient(self) -> bool:
        """If its kernel does."""
        return self.kernel.uses_gradient

    @property
    def is_free(self) -> bool:
        """Whether the temperatures move."""
        return isinstance(self.instrument, Tempered)

    def check(self, target: Target) -> None:
        """Without a base to be learned, the instrument must give a proper extended target."""
        if isinstance(self.instrument, Ladder) and self.instrument.rungs.size != self.num_particles:
            self.instrument.check(target, self.num_particles)
        if not self.learns_base(target):
            self.instrument.check(target, self.num_particles)

    def learns_base(self, target: Target) -> bool:
        """Whether `prepare` learns a base for this target."""
        given_by_user = target.base is not None and target.log_likelihood is None
        return self.base == "auto" and not given_by_user

    def covers(self, target: Target, x: Float[Array, "particle d"]) -> Bool[Array, " particle"]:
        """Whether the base is positive."""
        return jnp.isfinite(jax.vmap(target.path_point)(x).log_base)

    def prepare(
        self, key: Key[Array, ""], target: Target, x: Float[np.ndarray, "chain particle d"], say: Callable[[str], None]
    ) -> Prepared:
        """Learn a base where none is given, and anneal a population along the path."""
        preparation = Preparation(
            kernel=self.kernel,
            learns_base=self.learns_base(target),
            beta_min=self._beta_range()[0],
            dense=self._dense(target.dim),
        )
        prepared = prepare_path(key, preparation, target, x[0], say)
        [tuned] = compile_once(Job(lambda annealed: self._tuned(annealed), (prepared.annealed,)))
        parameters = IndexParameters(jax.tree.map(jnp.asarray, prepared.base), *tuned(prepared.annealed))
        num_particles, notes = self.num_particles, prepared.notes
        if self.chooses_particles:
            num_particles = particles_for(float(prepared.annealed.length[-1]), target.dim)
            notes = (*notes, f"N = {num_particles} for a path of this length.")
        method = IndexGibbs(
            num_particles,
            self.kernel,
            self.instrument,
            base=self.base,
            metric=self.metric,
            width=self.width,
            parameters=parameters,
        )
        return Prepared(method, prepared.starts(key, x.shape[0], num_particles), notes)

    def init(self, key: Key[Array, ""], target: Target, x: Float[Array, "particle d"]) -> Chain:
        """Start at the given pseudo-samples, at places drawn given them."""
        parameters = self._untuned(target.dim) if self.parameters is None else self.parameters
        points = jax.vmap(self._evaluator(target, parameters))(x)
        zeros = jnp.zeros(self.num_particles)
        nobody = jnp.zeros(self.num_particles, bool)
        share = jnp.zeros(parameters.path.num_cells)
        moved = MoveInfo(zeros, nobody, nobody, zeros)
        info = IndexInfo(zeros, nobody, zeros, moved, zeros, nobody, share, jnp.zeros(2))
        state = self._draw_index(key, parameters.path, points, zeros, info)
        return Chain(state, parameters, start_adaptation(parameters.path, parameters.log_step))

    def step(self, key: Key[Array, ""], target: Target, chain: Chain) -> tuple[IndexState, IndexInfo]:
        """Move every pseudo-sample, refresh it from the base, then draw the index and the temperatures."""
        state, parameters = chain.state, chain.parameters
        key_move, key_refresh, key_index = jax.random.split(key, 3)
        carrier = jnp.arange(self.num_particles) == state.carrier
        t = jnp.where(carrier, 1.0, state.t)
        beta = jnp.where(carrier, 1.0, on_path(parameters.path.beta, state.t))
        step_size = jnp.exp(on_path(parameters.log_step, t))
        scale = parameters.scale[self._knot(parameters, t)]
        evaluate = self._evaluator(target, parameters)
        points, moved = move(key_move, self.kernel, evaluate, state.points, beta, step_size, scale)
        rate, valid = jnp.zeros_like(t), jnp.ones_like(carrier)
        own = self._own_target(target, parameters)
        if own.base is not None and own.base.can_sample:
            points, rate, valid = refresh(key_refresh, own.draw_base, evaluate, points, beta)
        info = state.last._replace(beta=beta, carrier=carrier, t=t, move=moved, refresh_rate=rate, refresh_valid=valid)
        state = self._draw_index(key_index, parameters.path, points, state.t, info)
        return state, state.last

    def adapt(self, target: Target, chain: Chain, stage: Stage, info: IndexInfo) -> Chain:
        """g towards even visits of the path, step sizes towards the kernel's acceptance rate."""
        del target
        parameters, adaptation = chain.parameters, chain.adaptation
        log_step, visits = adapt_steps(
            parameters.log_step,
            adaptation.visits,
            self._knot(parameters, info.t),
            info.move.acceptance_rate,
            jnp.broadcast_to(stage.tunes_step, info.t.shape),
            jnp.asarray(self.kernel.target_acceptance)[0],
        )
        num_updates = adaptation.num_updates + 1
        path = adapt_g(parameters.path, info.share, num_updates) if self.is_free else parameters.path
        average_g = running_average(adaptation.average_log_g, path.log_g, num_updates)
        average_step = running_average(adaptation.average_log_step, log_step, num_updates)
        frozen = parameters._replace(
            path=path._replace(log_g=jnp.where(stage.ends_warmup, average_g, path.log_g)),
            log_step=jnp.where(stage.ends_warmup, average_step, log_step),
        )
        return Chain(chain.state, frozen, TemperatureAdaptation(num_updates, visits, average_g, average_step))

    def points(self, target: Target, state: IndexState) -> WeightedPoints:
        """All pseudo-samples, weighted by γ(x)/q(x)."""
        info = state.last
        carried = state.points.log_density(jnp.ones_like(state.t))[state.carrier]
        statistics = {
            "lp": carried,
            "beta": info.beta,
            "index": jnp.argmax(info.carrier),
            "move_acceptance": info.move.acceptance_rate,
            "refresh_acceptance": info.refresh_rate,
        }
        if self._estimates_evidence(target):
            in_support = jnp.log(jnp.mean(info.refresh_valid.astype(float)))
            statistics["evidence_bottom"] = jnp.stack([info.log_ends[0], jnp.zeros(())])
            statistics["evidence_top"] = jnp.stack([info.log_ends[1], in_support])
        return WeightedPoints(state.points.x, state.log_weight, statistics)

    def report(self, info: IndexInfo) -> StepInfo:
        """The mean acceptance rate of all moves; divergences of the target's own pseudo-sample."""
        num_fresh = info.refresh_rate.shape[0]
        return StepInfo(
            jnp.mean(info.move.acceptance_rate),
            jnp.any(info.move.diverging & info.carrier),
            jnp.any(info.move.non_finite & info.carrier),
            (jnp.sum(info.move.num_evaluations) + num_fresh).astype(int),
        )

    def describe(self) -> str:
        """For tables."""
        return f"index Gibbs with {type(self.kernel).__name__}, N = {self.num_particles}"

    def _draw_index(
        self,
        key: Key[Array, ""],
        path: Path,
        points: PathState,
        t: Float[Array, " particle"],
        info: IndexInfo,
    ) -> IndexState:
        """k given x, with the temperatures integrated out where they are free; then t given x."""
        uniform = jax.random.uniform(key, (self.num_particles + 1,), dtype=float)
        if self.is_free:
            cells = cells_given(path, points.delta)
            log_weight = points.delta - cells.log_mass
            t = draw_t(uniform[1:], cells)
            others = 1 - jax.nn.softmax(log_weight)
            others = others / (jnp.sum(others) + 1e-300)
            log_ends = jax.nn.logsumexp(cells.log_ends, axis=0, b=others[:, None]) - path.log_g[jnp.array([0, -1])]
            info = info._replace(share=others @ cells.share, log_ends=log_ends)
        else:
            node = self._rungs()
            t = jnp.asarray(node / path.num_cells)
            log_weight = (1 - path.beta[node]) * points.delta - path.log_g[node]
        cumulative = jnp.cumsum(jax.nn.softmax(log_weight))
        index = jnp.minimum(jnp.sum(cumulative <= uniform[0] * cumulative[-1]), self.num_particles - 1)
        return IndexState(points, t, index, log_weight, info)

    def _own_target(self, target: Target, parameters: IndexParameters) -> Target:
        return target if parameters.base is None else target.with_base(parameters.base)

    def _evaluator(self, target: Target, parameters: IndexParameters) -> Any:
        return evaluator(self._own_target(target, parameters), gradient=self.kernel.uses_gradient)

    def _knot(self, parameters: IndexParameters, t: Float[Array, " particle"]) -> Int[Array, " particle"]:
        return jnp.round(t * (parameters.log_step.shape[0] - 1)).astype(int)

    def _estimates_evidence(self, target: Target) -> bool:
        learned = self.parameters is not None and self.parameters.base is not None
        return self.is_free and self._beta_range() == (0.0, 1.0) and (learned or target.base is not None)

    def _dense(self, dim: int) -> bool:
        return self.metric == "dense" or (self.metric == "auto" and dim <= DENSE_METRIC_UP_TO)

    def _beta_range(self) -> tuple[float, float]:
        if isinstance(self.instrument, Tempered):
            return self.instrument.beta_min, self.instrument.beta_max
        nodes = self._fixed_path().beta
        return float(nodes[0]), 1.0

    def _rungs(self) -> Int[np.ndarray, " particle"]:
        """The node of the path at which each pseudo-sample stays, for fixed temperatures."""
        return (
            np.arange(self.num_particles) if isinstance(self.instrument, Ladder) else np.zeros(self.num_particles, int)
        )

    def _fixed_path(self) -> Path:
        """Fixed temperatures as nodes of a path, with the target behind them."""
        if isinstance(self.instrument, Ladder):
            return Path(jnp.append(self.instrument.rungs, 1.0), jnp.append(self.instrument.log_g, 0.0))
        assert isinstance(self.instrument, Fixed)
        return Path(jnp.append(self.instrument.beta, 1.0), jnp.zeros(2))

    def _tuned(self, annealed: Annealed) -> tuple[Path, Float[Array, " knot"], Scale]:
        """Path, step sizes and metrics as the pilot found them."""
        if self.is_free:
            return path_from(annealed, NUM_CELLS, self._beta_range()[1]), *tuning_from(annealed, NUM_KNOTS)
        path = self._fixed_path()
        return path, *tuning_at(annealed, path.beta)

    def _untuned(self, dim: int) -> IndexParameters:
        """Before any pilot: nodes at all orders of magnitude, unit metric."""
        if self.is_free:
            low, high = self._beta_range()
            nodes = low + (high - low) * jnp.append(0.0, jnp.logspace(-8, 0, NUM_CELLS))
            path, num_knots = Path(nodes, jnp.zeros(NUM_CELLS + 1)), NUM_KNOTS
        else:
            path = self._fixed_path()
            num_knots = path.num_cells + 1
        unit = jnp.eye(dim) if self._dense(dim) else jnp.ones(dim)
        log_step = jnp.full(num_knots, jnp.log(0.5) - 0.25 * jnp.log(dim))
        return IndexParameters(None, path, log_step, jnp.broadcast_to(unit, (num_knots, *unit.shape)))


def particles_for(length: float, dim: int) -> int:
    """How many pseudo-samples a path of this thermodynamic length is worth.

    A pseudo-sample needs a number of steps from base to target that grows with the length, so a longer path wants more
    of them on the way for the target to be handed over as often. Each costs its gradients, so beyond that more are no
    gain; and each is kept in the output, so in very many dimensions there are fewer.

    >>> particles_for(1.0, 2), particles_for(8.0, 32), particles_for(30.0, 100)
    (6, 11, 16)
    """
    wanted = int(np.clip(5 + np.ceil(0.7 * length), 6, 16))
    return max(min(wanted, 8000 // dim), 6)


def _instrument(given: Any) -> AbstractInstrument:
    if not isinstance(given, (Tempered, Ladder, Fixed)):
        raise TypeError(
            "instrument of IndexGibbs must be pe.Tempered, pe.Ladder or pe.Fixed, which have temperatures; "
            f"got {checks.describe(given)}."
        )
    if isinstance(given, Tempered) and (given.log_g is not None or given.log_prior is not None):
        raise ValueError(
            "log_g and log_prior of Tempered must not be given with IndexGibbs, which learns g in warm-up; "
            "PseudoExtended takes them."
        )
    return given
