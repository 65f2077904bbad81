"""The adaptive method: the extended target with the index of the target's pseudo-sample made explicit, by Gibbs steps.

    p(k, x, t) ∝ γ(x_k) Π_{j≠k} γ_{β(t_j)}(x_j) g(t_j),        k in 1 … N, t_j in [0, 1]

Where the base is a mixture at several modes, g depends on the mode too: see `tempering.mode_rows`. Given k and t
everything factorises: each pseudo-sample moves on its own density, with the step size and the metric of
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
from pseudo_extended.instruments import AbstractInstrument, Fixed, Ladder, Tempered
from pseudo_extended.kernels import NUTS, AbstractKernel
from pseudo_extended.kernels.path_moves import (
    Evaluate,
    MoveInfo,
    PathState,
    Scale,
    evaluator,
    kernel_move,
    move,
    refresh,
)
from pseudo_extended.methods.abstract import AbstractPreparedMethod, Chain, Prepared, StepInfo, WeightedPoints
from pseudo_extended.methods.index_parameters import (
    FEW_DIMENSIONS,
    IndexParameters,
    beta_range,
    kernel_for,
    needs_target_moves,
    particles_for,
    rungs,
    tuned,
    untuned,
    warmup_for,
    with_rows_for,
)
from pseudo_extended.pilot.annealer import Preparation
from pseudo_extended.pilot.mode_search import NUM_ASCENTS
from pseudo_extended.pilot.preparation import prepare_path
from pseudo_extended.pilot.whitening import WHITENED_UP_TO
from pseudo_extended.target import Target
from pseudo_extended.target.bases import AbstractBase, Normal, NormalMixture
from pseudo_extended.tempering.bridges import bridges, log_masses, share_of_others
from pseudo_extended.tempering.labelled import Labelled, Rows, labelled, refresh_labelled, settle
from pseudo_extended.tempering.leaps import leap, leapers
from pseudo_extended.tempering.mode_rows import adapt_rows
from pseudo_extended.tempering.path import Path, cells_given, draw_t, on_path
from pseudo_extended.tempering.symmetric import Sited, move_by_symmetry
from pseudo_extended.tempering.temperatures import (
    TemperatureAdaptation,
    adapt_g,
    adapt_steps,
    running_average,
    start_adaptation,
)
from pseudo_extended.warmup import Stage

MAX_SEARCHED = 1000
"""Dimensions in which modes of a model with a prior are looked for: the curvature at each costs a gradient for every
dimension, hours for a regression on some thousand covariates."""


HOW_USED = "in every step each pseudo-sample is moved by a random one."
"""Of declared symmetries."""


MAX_DEPTH = 8
"""Of the trees of NUTS: 255 evaluations, so that a step size that has collapsed does not stop the run."""


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
    label: Int[Array, " particle"] | None = None
    """The mode of the base that each is in, where g depends on it."""


class IndexInfo(NamedTuple):
    """What happened in one step."""

    beta: Float[Array, " particle"]
    """The inverse temperatures of the moves; 1 for the pseudo-sample that carried the target."""
    carrier: Bool[Array, " particle"]
    """Which one that was."""
    t: Float[Array, " particle"]
    move: MoveInfo
    refresh_rate: Float[Array, " particle"]
    fresh_log_mass: Float[Array, " particle"]
    """log q/γ0 at the draws from the base that were offered; -inf where the target vanishes."""
    target_move: MoveInfo | None
    """The moves of the target's pseudo-sample alone, averaged, where it makes any."""
    num_evaluations: Int[Array, ""]
    leap_rate: Float[Array, " leap"] | None = None
    """Acceptance of the leaps that were offered, the first of them to the carrier."""


class AdaptivePseudoExtended(AbstractPreparedMethod):
    """The default: pseudo-samples that travel along a learned path from a learned base to the target.

    Args:
        num_particles: N, at least 2; "auto" takes more the longer the pilot found the path, 12 to 16 of them up to 16
            dimensions and 6 to 16 beyond.
        kernel: Local moves: `HMC` (its length is jittered), `NUTS`, `MALA` or `RandomWalk`. Unless given, HMC with two
            leapfrog steps up to 16 dimensions and four beyond.
        instrument: `Tempered(beta_min)` for free temperatures, whose g is learned; `Ladder` or `Fixed` for fixed ones.
        base: "auto" takes the base that the user gave the target and otherwise learns one, except that a model with a
            prior and more than 1,000 dimensions starts at its prior; "target" never learns.
        metric: "diagonal", "dense", or "auto": dense up to 16 dimensions.
        width: Chains that one program advances.

    >>> import pseudo_extended as pe
    >>> pe.AdaptivePseudoExtended(num_particles=8).describe()
    'adaptive pseudo-extended MCMC with HMC, N = 8'
    """

    kernel: AbstractKernel
    instrument: AbstractInstrument
    num_particles: int = eqx.field(static=True)
    chooses_particles: bool = eqx.field(static=True)
    chooses_kernel: bool = eqx.field(static=True)
    base: str = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    width: int = eqx.field(static=True)
    leaps: bool = eqx.field(static=True)
    """Whether pseudo-samples leap between the modes of a learned mixture."""
    target_kernel: AbstractKernel | None
    """Further moves of the pseudo-sample that carries the target, where short ones do not cross it."""
    num_target_moves: int = eqx.field(static=True)
    learned_base: AbstractBase | None
    shared_metric: Float[Array, "d d"] | None
    """The factor that all metrics have in common."""
    parameters: IndexParameters | None
    """What `prepare` learned: the base, which stays as it is, and what warm-up goes on to tune in each chain."""

    def __init__(
        self,
        num_particles: int | str = "auto",
        kernel: AbstractKernel | None = None,
        instrument: AbstractInstrument | None = None,
        *,
        base: str = "auto",
        metric: str = "auto",
        width: int = 2,
        leaps: bool = True,
        target_kernel: AbstractKernel | None = None,
        num_target_moves: int = 0,
        learned_base: AbstractBase | None = None,
        shared_metric: Float[Array, "d d"] | None = None,
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
        self.chooses_kernel = kernel is None
        self.kernel = checks.instance(
            "kernel", kernel_for(None) if kernel is None else kernel, AbstractKernel, "a kernel such as pe.HMC()"
        )
        if self.kernel.target_acceptance.size != 1:
            raise ValueError(
                "kernel of AdaptivePseudoExtended must be one kernel with one step size (HMC, NUTS, MALA or "
                f"RandomWalk); got {type(self.kernel).__name__}."
            )
        self.instrument = _instrument(Tempered(0.0) if instrument is None else instrument)
        self.base = checks.choice("base", base, ("auto", "target"))
        self.metric = checks.choice("metric", metric, ("auto", "diagonal", "dense"))
        self.width = checks.integer("width", width, minimum=1, maximum=1024)
        self.leaps = leaps
        self.target_kernel, self.num_target_moves = target_kernel, num_target_moves
        self.learned_base, self.shared_metric = learned_base, shared_metric
        self.parameters = parameters

    @property
    def num_points(self) -> int:
        """N."""
        return self.num_particles

    @property
    def max_starts(self) -> int:
        """Ascents begin at them, at most half of all."""
        return NUM_ASCENTS // 2

    @property
    def runs_until_good(self) -> bool:
        """Yes: how many draws are enough depends on how the pseudo-samples travel."""
        return True

    @property
    def needs_gradient(self) -> bool:
        """If its kernel does."""
        return self.kernel.uses_gradient

    @property
    def is_free(self) -> bool:
        """Whether the temperatures move."""
        return isinstance(self.instrument, Tempered)

    def check(self, target: Target) -> None:
        """The instrument must give a proper extended target, with a base of some kind where one will be learned."""
        based = target.with_base(Normal()) if self.learns_base(target) else target
        self.instrument.check(based, self.num_particles)

    def learns_base(self, target: Target) -> bool:
        """Whether `prepare` learns a base for this target."""
        if self.base == "target" or target.base is None:
            return self.base == "auto"
        if target.log_likelihood is None:  # the user's own
            return False
        return target.dim <= MAX_SEARCHED or not target.base.can_sample

    def covers(self, target: Target, x: Float[Array, "particle d"]) -> Bool[Array, " particle"]:
        """Whether the base is positive."""
        return jnp.isfinite(jax.vmap(target.path_point)(x).log_base)

    def prepare(
        self, key: Key[Array, ""], target: Target, x: Float[np.ndarray, "chain particle d"], say: Callable[[str], None]
    ) -> Prepared:
        """Learn a base where none is given, and anneal a population along the path."""
        kernel = kernel_for(target.dim) if self.chooses_kernel else self.kernel
        preparation = Preparation(
            kernel=kernel,
            learns_base=self.learns_base(target),
            beta_min=beta_range(self.instrument)[0],
            dense=self._dense(target.dim),
            whitens=self._whitens(target.dim),
        )
        prepared = prepare_path(key, preparation, target, x[0], say)
        num_particles, notes, length = self.num_particles, prepared.notes, prepared.length
        if self.chooses_particles:
            num_particles = particles_for(length, target.dim, has_many_modes=prepared.has_many_modes)
            notes = (*notes, f"N = {num_particles} for a path of this length.")
        parameters = IndexParameters(*tuned(self.instrument, prepared.annealed))
        if self.is_free and isinstance(prepared.base, NormalMixture):
            parameters = with_rows_for(parameters, prepared.base)
        target_kernel = None
        if self.chooses_kernel and self.kernel.uses_gradient and needs_target_moves(length, target.dim):
            target_kernel = NUTS(max_depth=MAX_DEPTH)
            parameters = parameters._replace(
                log_step=jnp.append(parameters.log_step, parameters.log_step[-1]),
                target_scale=jnp.asarray(prepared.target_scale()),
            )
            notes = (*notes, "the pseudo-sample that carries the target also makes moves of NUTS.")
        notes = (*notes, *(f"declared: {action.describe()}; {HOW_USED}" for action in target.symmetries))
        method = AdaptivePseudoExtended(
            num_particles,
            kernel,
            self.instrument,
            base=self.base,
            metric=self.metric,
            leaps=self.leaps,
            width=self.width if target_kernel is None else 1,
            target_kernel=target_kernel,
            num_target_moves=0 if target_kernel is None else 2,
            learned_base=jax.tree.map(jnp.asarray, prepared.base),
            shared_metric=None if prepared.shared_metric is None else jnp.asarray(prepared.shared_metric),
            parameters=parameters,
        )
        starts = prepared.starts(key, x.shape[0], num_particles)
        evaluations, num_warmup = prepared.report.num_evaluations, warmup_for(length)
        several = prepared.has_many_modes
        return Prepared(method, starts, notes, prepared.report, evaluations, num_warmup, needs_round_trips=several)

    def init(self, key: Key[Array, ""], target: Target, x: Float[Array, "particle d"]) -> Chain:
        """Start at the given pseudo-samples, at places drawn given them."""
        parameters = self.parameters
        if parameters is None:
            parameters = untuned(self.instrument, target.dim, dense=self._dense(target.dim))
        points = jax.vmap(self._evaluator(target))(x)
        zeros = jnp.zeros(self.num_particles)
        nobody = jnp.zeros(self.num_particles, bool)
        moved = MoveInfo(zeros, nobody, nobody, zeros)
        of_target = None if self.target_kernel is None else jax.tree.map(lambda each: each[0], moved)
        leap_rate = jnp.zeros(2) if self.leaps and parameters.path.has_rows else None
        info = IndexInfo(zeros, nobody, zeros, moved, zeros, zeros, of_target, jnp.asarray(0), leap_rate)
        label = jax.vmap(self._mixture(target).label)(x) if parameters.path.has_rows else None
        state = self._draw_index(key, parameters.path, points, info, label)
        return Chain(state, parameters, start_adaptation(parameters.path, parameters.log_step))

    def step(self, key: Key[Array, ""], target: Target, chain: Chain) -> tuple[IndexState, IndexInfo]:
        """Move every pseudo-sample, refresh it from the base, then draw the index and the temperatures."""
        state, parameters = chain.state, chain.parameters
        key_move, key_refresh, key_index = jax.random.split(key, 3)
        carrier = jnp.arange(self.num_particles) == state.carrier
        t = jnp.where(carrier, 1.0, state.t)
        beta = jnp.where(carrier, 1.0, on_path(parameters.path.beta, state.t))
        scale = Scale(parameters.scale[parameters.knot(t)], self.shared_metric)
        evaluate = self._evaluator(target)
        points, moved = move(key_move, self.kernel, evaluate, state.points, beta, parameters.step_size(t), scale)
        num_evaluations = jnp.sum(moved.num_evaluations).astype(int)
        points, of_target = self._move_target(jax.random.fold_in(key, 3), evaluate, points, state.carrier, parameters)
        if of_target is not None:
            num_evaluations = num_evaluations + of_target.num_evaluations.astype(int)
        rate, fresh_log_mass, label, leap_rate = jnp.zeros_like(t), jnp.zeros_like(t), None, None
        own = self._own_target(target)
        if state.label is not None:
            key_settle, key_refresh, key_leap = jax.random.split(key_refresh, 3)
            rows, base = Rows(parameters.path, t, carrier), self._mixture(target)
            now = settle(key_settle, rows, Labelled(state.points, state.label), labelled(base.label, points))
            now, rate, fresh = refresh_labelled(key_refresh, own.draw_base, evaluate, base.label, rows, now, beta)
            (points, label), num_evaluations = now, num_evaluations + self.num_particles
            fresh_log_mass = log_masses(parameters.path.seen_from(fresh.label), fresh.points.delta)
            if self.leaps:
                key_who, key_leap = jax.random.split(key_leap)
                which = leapers(key_who, state.carrier, self.num_particles)
                (points, label), leap_rate = leap(key_leap, base, evaluate, rows, now, beta, which)
                num_evaluations = num_evaluations + which.size
        elif own.base is not None and own.base.can_sample:
            points, rate, delta = refresh(key_refresh, own.draw_base, evaluate, points, beta)
            num_evaluations = num_evaluations + self.num_particles
            fresh_log_mass = log_masses(parameters.path, delta)
        if target.symmetries:
            key_symmetry, now = jax.random.fold_in(key, 4), Sited(points, label, t, carrier, beta)
            points, label = move_by_symmetry(key_symmetry, own, now, parameters.path, gradient=self.needs_gradient)
        info = IndexInfo(beta, carrier, t, moved, rate, fresh_log_mass, of_target, num_evaluations, leap_rate)
        state = self._draw_index(key_index, parameters.path, points, info, label)
        return state, state.last

    def adapt(self, target: Target, chain: Chain, stage: Stage, info: IndexInfo) -> Chain:
        """g towards even visits of the path, step sizes towards the kernel's acceptance rate."""
        del target
        parameters, adaptation = chain.parameters, chain.adaptation
        knot, acceptance = parameters.knot(info.t), info.move.acceptance_rate
        aim = jnp.broadcast_to(jnp.asarray(self.kernel.target_acceptance)[0], knot.shape)
        if info.target_move is not None and self.target_kernel is not None:
            knot = jnp.append(knot, parameters.num_knots)
            acceptance = jnp.append(acceptance, info.target_move.acceptance_rate)
            aim = jnp.append(aim, jnp.asarray(self.target_kernel.target_acceptance)[0])
        counts = jnp.broadcast_to(stage.tunes_step, knot.shape)
        log_step, visits = adapt_steps(parameters.log_step, adaptation.visits, knot, acceptance, counts, aim)
        num_updates = adaptation.num_updates + 1
        path, state, rows = parameters.path, chain.state, adaptation.rows
        if rows is not None:
            share, weight = cells_given(path.seen_from(state.label), state.points.delta).share, state.log_weight
            others, carries = share_of_others(weight), jax.nn.softmax(weight)
            path, rows = adapt_rows(path, share, others, carries, state.label, rows, num_updates)
        elif self.is_free:
            cells = cells_given(path, state.points.delta)
            path = adapt_g(path, cells.share @ share_of_others(state.log_weight), num_updates)
        average_g = running_average(adaptation.average_log_g, path.log_g, num_updates)
        average_step = running_average(adaptation.average_log_step, log_step, num_updates)
        frozen = parameters._replace(
            path=path._replace(log_g=jnp.where(stage.ends_warmup, average_g, path.log_g)),
            log_step=jnp.where(stage.ends_warmup, average_step, log_step),
        )
        return Chain(state, frozen, TemperatureAdaptation(num_updates, visits, average_g, average_step, rows))

    def points(self, target: Target, state: IndexState) -> WeightedPoints:
        """All pseudo-samples, weighted by γ(x)/q(x)."""
        info = state.last
        carried = state.points.log_density(jnp.ones_like(state.t))[state.carrier]
        statistics = {
            "lp": carried,
            "index": jnp.argmax(info.carrier),
            # In single precision: for tables of rates only, and every byte of a draw goes to the store.
            "beta": info.beta.astype(jnp.float32),
            "move_acceptance": info.move.acceptance_rate.astype(jnp.float32),
            "refresh_acceptance": info.refresh_rate.astype(jnp.float32),
        }
        if info.leap_rate is not None:
            statistics["leap_acceptance"] = info.leap_rate.astype(jnp.float32)
        base = self._own_target(target).base
        if self.is_free and beta_range(self.instrument) == (0.0, 1.0) and base is not None:
            fresh = info.fresh_log_mass if base.can_sample else None
            top, bottom = bridges(state.log_weight, state.points.delta - state.log_weight, fresh)
            statistics |= {"evidence_top": top, "evidence_bottom": bottom}
        return WeightedPoints(state.points.x, state.log_weight, statistics)

    def report(self, info: IndexInfo) -> StepInfo:
        """The mean acceptance rate of all moves; divergences of the target's own pseudo-sample."""
        diverging = jnp.any(info.move.diverging & info.carrier)
        non_finite = jnp.any(info.move.non_finite & info.carrier)
        if info.target_move is not None:
            diverging, non_finite = diverging | info.target_move.diverging, non_finite | info.target_move.non_finite
        return StepInfo(jnp.mean(info.move.acceptance_rate), diverging, non_finite, info.num_evaluations)

    def describe(self) -> str:
        """For tables."""
        return f"adaptive pseudo-extended MCMC with {type(self.kernel).__name__}, N = {self.num_particles}"

    def _move_target(
        self,
        key: Key[Array, ""],
        evaluate: Evaluate,
        points: PathState,
        carrier: Int[Array, ""],
        parameters: IndexParameters,
    ) -> tuple[PathState, MoveInfo | None]:
        """Further moves of the pseudo-sample that carries the target, by a kernel of its own."""
        if self.target_kernel is None:
            return points, None
        assert parameters.target_scale is not None
        kernel, one = self.target_kernel, jnp.ones(())
        scale = Scale(parameters.target_scale, self.shared_metric)
        step_size = jnp.exp(parameters.log_step[-1])

        def again(i: Array, carry: tuple[PathState, MoveInfo]) -> tuple[PathState, MoveInfo]:
            state, so_far = carry
            state, info = kernel_move(kernel, evaluate, jax.random.fold_in(key, i), state, one, step_size, scale)
            rate = so_far.acceptance_rate + info.acceptance_rate / self.num_target_moves
            return state, MoveInfo(
                rate,
                so_far.diverging | info.diverging,
                so_far.non_finite | info.non_finite,
                so_far.num_evaluations + info.num_evaluations,
            )

        nothing = MoveInfo(jnp.zeros(()), jnp.asarray(False), jnp.asarray(False), jnp.zeros(()))
        before = jax.tree.map(lambda leaf: leaf[carrier], points)
        after, info = jax.lax.fori_loop(0, self.num_target_moves, again, (before, nothing))
        return jax.tree.map(lambda leaf, new: leaf.at[carrier].set(new), points, after), info

    def _draw_index(
        self,
        key: Key[Array, ""],
        path: Path,
        points: PathState,
        info: IndexInfo,
        label: Int[Array, " particle"] | None = None,
    ) -> IndexState:
        """k given x, with the temperatures integrated out where they are free; then t given x."""
        uniform = jax.random.uniform(key, (self.num_particles + 1,), dtype=float)
        if self.is_free:
            cells = cells_given(path.seen_from(label), points.delta)
            log_weight = points.delta - cells.log_mass
            t = draw_t(uniform[1:], cells)
        else:
            node = rungs(self.instrument, self.num_particles)
            t = jnp.asarray(node / path.num_cells)
            log_weight = (1 - path.beta[node]) * points.delta - path.log_g[node]
        cumulative = jnp.cumsum(jnp.exp(log_weight - jnp.max(log_weight)))
        index = jnp.minimum(jnp.sum(cumulative <= uniform[0] * cumulative[-1]), self.num_particles - 1)
        return IndexState(points, t, index, log_weight, info, label)

    def _own_target(self, target: Target) -> Target:
        return target if self.learned_base is None else target.with_base(self.learned_base)

    def _evaluator(self, target: Target) -> Any:
        return evaluator(self._own_target(target), gradient=self.kernel.uses_gradient)

    def _mixture(self, target: Target) -> NormalMixture:
        base = self._own_target(target).base
        assert isinstance(base, NormalMixture)  # or there would be no rows
        return base

    def _dense(self, dim: int) -> bool:
        return self.metric != "diagonal" and dim <= FEW_DIMENSIONS

    def _whitens(self, dim: int) -> bool:
        most = WHITENED_UP_TO if self.metric == "auto" else MAX_SEARCHED
        return self.kernel.uses_gradient and self.metric != "diagonal" and FEW_DIMENSIONS < dim <= most


def _instrument(given: Any) -> AbstractInstrument:
    if not isinstance(given, (Tempered, Ladder, Fixed)):
        raise TypeError(
            "instrument of AdaptivePseudoExtended must be pe.Tempered, pe.Ladder or pe.Fixed, which have temperatures; "
            f"got {checks.describe(given)}."
        )
    if isinstance(given, Tempered) and (given.log_g is not None or given.log_prior is not None):
        raise ValueError(
            "log_g and log_prior of Tempered must not be given with AdaptivePseudoExtended, which learns g in warm-up; "
            "PseudoExtended takes them."
        )
    return given
