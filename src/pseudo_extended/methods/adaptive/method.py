"""The adaptive method: the extended target with the index of the target's pseudo-sample made explicit, by Gibbs steps.

    p(k, x, t) ∝ γ(x_k) Π_{j≠k} γ_{β(t_j)}(x_j) g(t_j),        k in 1 … N, t_j in [0, 1]

Where the base is a mixture at several modes, g depends on the mode too: see `tempering.mode_rows`. Given k and t
everything factorises: each pseudo-sample moves on its own density, with the step size and the metric of its own
temperature, and no gradient goes through β (`moves`). Given x both are drawn exactly, k with the temperatures
integrated out (`index`): pseudo-sample i carries the target with probability proportional to γ(x_i)/q(x_i), where
q(x) = ∫ γ_{β(t)}(x) g(t) dt. The weighted points are the paper's with this q (eq. 2), so theorem 2.1 holds for them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from pseudo_extended import checks
from pseudo_extended.instruments import AbstractInstrument, Temperatures, Tempered
from pseudo_extended.kernels import NUTS, AbstractKernel, KernelInfo
from pseudo_extended.kernels.tempered import evaluator
from pseudo_extended.methods.abstract import (
    AbstractPreparedMethod,
    Chain,
    Prepared,
    Statistic,
    StepInfo,
    WeightedPoints,
)
from pseudo_extended.methods.adaptive.choices import (
    FEW_DIMENSIONS,
    is_left_to_nuts,
    kernel_for,
    least_of_all,
    particles_for,
    share_of_target,
    warmup_for,
)
from pseudo_extended.methods.adaptive.index import draw_index
from pseudo_extended.methods.adaptive.moves import Moves
from pseudo_extended.methods.adaptive.parameters import AdaptiveParameters, tuned, untuned, with_rows_for
from pseudo_extended.methods.adaptive.state import AdaptiveInfo, AdaptiveState
from pseudo_extended.methods.adaptive.target_moves import TargetAdaptation, TargetMoves, first_parameters, no_moves
from pseudo_extended.methods.plain import Plain
from pseudo_extended.pilot.annealer import Preparation
from pseudo_extended.pilot.mode_search import NUM_ASCENTS
from pseudo_extended.pilot.preparation import prepare_path
from pseudo_extended.pilot.whitening import WHITENED_UP_TO
from pseudo_extended.target import Target
from pseudo_extended.target.bases import AbstractBase, Normal, NormalMixture
from pseudo_extended.tempering.bridges import bridges, share_of_others
from pseudo_extended.tempering.guessed import Images
from pseudo_extended.tempering.mode_rows import adapt_rows
from pseudo_extended.tempering.path import cells_given
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
"""The sentence about the use of declared symmetries."""


LEFT_TO_NUTS = (
    "the path is too long to be travelled: N = 1, and the target is sampled by NUTS alone, from points that the pilot "
    "has reached. There is no estimate of log_evidence."
)


OFFERED_IMAGES = (
    "the density seems to stay as it is when coordinates are exchanged or change sign: pseudo-samples are offered such "
    "images of themselves."
)


class BothAdaptations(NamedTuple):
    """The state of warm-up where the target's pseudo-sample makes moves of its own."""

    path: TemperatureAdaptation
    target: TargetAdaptation


class AdaptivePseudoExtended(AbstractPreparedMethod):
    """The default: pseudo-samples that travel along a learned path from a learned base to the target.

    Args:
        num_particles: N, at least 2; "auto" takes more the longer the pilot found the path, 12 to 16 of them up to 16
            dimensions and 6 to 16 beyond, but 4, or 1 with NUTS alone, where a long path leads to a single mode.
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
    target_moves: TargetMoves | None
    """Further moves of the pseudo-sample that carries the target, where short ones do not cross it."""
    learned_base: AbstractBase | None
    shared_metric: Float[Array, "d d"] | None
    """The factor that all metrics have in common."""
    images: Images | None
    """Maps that seem to leave the density as it is, where its modes cannot be listed."""
    parameters: AdaptiveParameters | None
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
        target_moves: TargetMoves | None = None,
        learned_base: AbstractBase | None = None,
        shared_metric: Float[Array, "d d"] | None = None,
        images: Images | None = None,
        parameters: AdaptiveParameters | None = None,
    ):
        self.instrument = Tempered(0.0) if instrument is None else _with_temperatures(instrument)
        self.chooses_particles = isinstance(num_particles, str) and num_particles == "auto" and self.is_free
        if isinstance(num_particles, str) and num_particles != "auto":
            raise TypeError(
                f'num_particles must be an integer of at least 2, or "auto"; got {checks.describe(num_particles)}.'
            )
        if isinstance(num_particles, str):
            num_particles = self.temperatures.rungs.size if self.temperatures.rungs.size > 1 else 8
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
        self.base = checks.choice("base", base, ("auto", "target"))
        self.metric = checks.choice("metric", metric, ("auto", "diagonal", "dense"))
        self.width = checks.integer("width", width, minimum=1, maximum=1024)
        self.leaps = leaps
        self.target_moves = target_moves
        self.learned_base, self.shared_metric, self.images = learned_base, shared_metric, images
        self.parameters = parameters

    @property
    def num_points(self) -> int:
        """The number of pseudo-samples, N."""
        return self.num_particles

    @property
    def max_starts(self) -> int:
        """The most starting positions the pilot can use: half of its ascents begin at them."""
        return NUM_ASCENTS // 2

    @property
    def runs_until_good(self) -> bool:
        """True: how many draws are enough depends on how the pseudo-samples travel."""
        return True

    @property
    def needs_gradient(self) -> bool:
        """Whether the kernel uses the gradient."""
        return self.kernel.uses_gradient

    @property
    def is_free(self) -> bool:
        """Whether the temperatures move."""
        return self.temperatures.are_free

    @property
    def temperatures(self) -> Temperatures:
        """The range of the temperatures, or their rungs."""
        return _temperatures(self.instrument)

    def check(self, target: Target) -> None:
        """Require a proper extended target, with a base of some kind where one will be learned."""
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
            beta_min=float(self.temperatures.beta_min),
            dense=self._dense(target.dim),
            whitens=self._whitens(target.dim),
        )
        prepared = prepare_path(key, preparation, target, x[0], say)
        num_particles, notes, length = self.num_particles, prepared.notes, prepared.length
        chooses = self.chooses_particles and self.chooses_kernel
        if chooses and is_left_to_nuts(length, target.dim, has_many_modes=prepared.has_many_modes):
            notes = (*notes, LEFT_TO_NUTS)
            starts = prepared.starts(key, x.shape[0], 1)
            report = prepared.report
            return Prepared(Plain(NUTS()), starts, notes, report, report.num_evaluations, needs_round_trips=False)
        if self.chooses_particles:
            num_particles = particles_for(length, target.dim, has_many_modes=prepared.has_many_modes)
            notes = (*notes, f"N = {num_particles} for a path of this length.")
        parameters = AdaptiveParameters(*tuned(self.temperatures, prepared.annealed))
        if self.is_free and isinstance(prepared.base, NormalMixture):
            parameters = with_rows_for(parameters, prepared.base)
        shared_metric = None if prepared.shared_metric is None else jax.device_put(prepared.shared_metric)
        target_moves = None
        share = share_of_target(length, prepared.first_length, target.dim, has_many_modes=prepared.has_many_modes)
        if self.chooses_kernel and share:
            target_moves = TargetMoves(NUTS(), share, least_of_all(share, target.dim))
            own = first_parameters(parameters.scale[-1], shared_metric, prepared.target_scale())
            parameters = parameters._replace(target=own)
            notes = (*notes, f"the target's pseudo-sample makes moves of NUTS, with {share:.0%} of all evaluations.")
        if prepared.images is not None and not parameters.path.has_rows:
            notes = (*notes, OFFERED_IMAGES)
        notes = (*notes, *(f"declared: {action.describe()}; {HOW_USED}" for action in target.symmetries))
        method = AdaptivePseudoExtended(
            num_particles,
            kernel,
            self.instrument,
            base=self.base,
            metric=self.metric,
            leaps=self.leaps,
            width=self.width if target_moves is None else 1,
            target_moves=target_moves,
            learned_base=jax.tree.map(jax.device_put, prepared.base),
            shared_metric=shared_metric,
            images=None if parameters.path.has_rows else prepared.images,
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
            parameters = untuned(self.temperatures, target.dim, dense=self._dense(target.dim))
        points = jax.vmap(evaluator(self._own_target(target), gradient=self.needs_gradient))(x)
        zeros = jnp.zeros(self.num_particles)
        nobody = jnp.zeros(self.num_particles, bool)
        moved = KernelInfo(zeros, nobody, nobody, jnp.zeros(self.num_particles, int))
        of_target = None if self.target_moves is None else no_moves(jnp.asarray(0))
        leap_rate = jnp.zeros(2) if self.leaps and parameters.path.has_rows else None
        info = AdaptiveInfo(zeros, nobody, zeros, moved, zeros, zeros, of_target, jnp.asarray(0), leap_rate)
        label = jax.vmap(self._mixture(target).label)(x) if parameters.path.has_rows else None
        state = draw_index(key, self.temperatures, parameters.path, points, info, label)
        adaptation = start_adaptation(parameters.path, parameters.log_step)
        if self.target_moves is None:
            return Chain(state, parameters, adaptation)
        assert parameters.target is not None
        own = self.target_moves.start(parameters.target, target.dim)
        return Chain(state, parameters, BothAdaptations(adaptation, own))

    def step(self, key: Key[Array, ""], target: Target, chain: Chain) -> tuple[AdaptiveState, AdaptiveInfo]:
        """Move every pseudo-sample at its temperature, then draw the index and the temperatures."""
        moves = Moves(
            self._own_target(target),
            self.kernel,
            self.target_moves,
            self.shared_metric,
            self.leaps,
            self.images,
        )
        key_moves, key_index = jax.random.split(key)
        points, label, info = moves(key_moves, chain.state, chain.parameters)
        return draw_index(key_index, self.temperatures, chain.parameters.path, points, info, label), info

    def adapt(self, target: Target, chain: Chain, stage: Stage, info: AdaptiveInfo) -> Chain:
        """Adapt what belongs to the path, and what to the target's own moves."""
        del target
        both = chain.adaptation
        if self.target_moves is None or not isinstance(both, BothAdaptations):
            return self._adapt_path(chain, stage, info)
        chain = self._adapt_path(chain._replace(adaptation=both.path), stage, info)
        assert info.target_move is not None
        carrier = jax.tree.map(lambda leaf: leaf[chain.state.carrier], chain.state.points)
        own, of_target = self.target_moves.adapt(
            chain.parameters.target, both.target, stage, carrier, info.target_move, both.path.num_updates
        )
        return Chain(chain.state, chain.parameters._replace(target=own), BothAdaptations(chain.adaptation, of_target))

    def _adapt_path(self, chain: Chain, stage: Stage, info: AdaptiveInfo) -> Chain:
        """Move g towards even visits of the path, and step sizes towards the kernel's acceptance rate."""
        parameters, adaptation = chain.parameters, chain.adaptation
        knot, acceptance = parameters.knot(info.t), info.move.acceptance_rate
        aim = jnp.broadcast_to(jnp.asarray(self.kernel.target_acceptance)[0], knot.shape)
        counts = jnp.asarray(stage.tunes_step) & (info.move.num_evaluations > 0)
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

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The statistics of `points`; the last three only where there are leaps, or the evidence is estimated."""
        return (
            Statistic("lp"),
            Statistic("carrier"),
            Statistic("beta", ("particle",)),
            Statistic("move_acceptance", ("particle",)),
            Statistic("refresh_acceptance", ("particle",)),
            Statistic("leap_acceptance", ("leap",)),
            Statistic("evidence_top", ("factor",)),
            Statistic("evidence_bottom", ("factor",)),
        )

    def points(self, target: Target, state: AdaptiveState) -> WeightedPoints:
        """Return all pseudo-samples, weighted by γ(x)/q(x)."""
        info = state.last
        carried = state.points.log_density(jnp.ones_like(state.t))[state.carrier]
        statistics = {
            "lp": carried,
            "carrier": jnp.argmax(info.carrier),
            # In single precision: for tables of rates only, and every byte of a draw goes to the store.
            "beta": info.beta.astype(jnp.float32),
            "move_acceptance": info.move.acceptance_rate.astype(jnp.float32),
            "refresh_acceptance": info.refresh_rate.astype(jnp.float32),
        }
        if info.leap_rate is not None:
            statistics["leap_acceptance"] = info.leap_rate.astype(jnp.float32)
        base = self._own_target(target).base
        if self.is_free and self.temperatures[:2] == (0.0, 1.0) and base is not None:
            fresh = info.fresh_log_mass if base.can_sample else None
            top, bottom = bridges(state.log_weight, state.points.delta - state.log_weight, fresh)
            statistics |= {"evidence_top": top, "evidence_bottom": bottom}
        return WeightedPoints(state.points.position, state.log_weight, statistics)

    def report(self, info: AdaptiveInfo) -> StepInfo:
        """Report the mean acceptance rate of all moves, and divergences of the target's own pseudo-sample."""
        diverging = jnp.any(info.move.diverging & info.carrier)
        non_finite = jnp.any(info.move.non_finite & info.carrier)
        if info.target_move is not None:
            diverging, non_finite = diverging | info.target_move.diverging, non_finite | info.target_move.non_finite
        return StepInfo(jnp.mean(info.move.acceptance_rate), diverging, non_finite, info.num_evaluations)

    def describe(self) -> str:
        """Name the method and its main settings, for tables and reports."""
        return f"adaptive pseudo-extended MCMC with {type(self.kernel).__name__}, N = {self.num_particles}"

    def _own_target(self, target: Target) -> Target:
        return target if self.learned_base is None else target.with_base(self.learned_base)

    def _mixture(self, target: Target) -> NormalMixture:
        base = self._own_target(target).base
        assert isinstance(base, NormalMixture)  # or there would be no rows
        return base

    def _dense(self, dim: int) -> bool:
        return self.metric != "diagonal" and dim <= FEW_DIMENSIONS

    def _whitens(self, dim: int) -> bool:
        most = WHITENED_UP_TO if self.metric == "auto" else MAX_SEARCHED
        return self.kernel.uses_gradient and self.metric != "diagonal" and FEW_DIMENSIONS < dim <= most


def _temperatures(instrument: AbstractInstrument) -> Temperatures:
    temperatures = instrument.temperatures()
    assert temperatures is not None  # or the constructor would have refused it
    return temperatures


def _with_temperatures(given: Any) -> AbstractInstrument:
    temperatures = given.temperatures() if isinstance(given, AbstractInstrument) else None
    if temperatures is None:
        raise TypeError(
            "instrument of AdaptivePseudoExtended must be pe.Tempered, pe.Ladder or pe.Fixed, which have temperatures; "
            f"got {checks.describe(given)}."
        )
    if temperatures.are_free and temperatures.log_g is not None:
        raise ValueError(
            "log_g and log_prior of Tempered must not be given with AdaptivePseudoExtended, which learns g in warm-up; "
            "PseudoExtended takes them."
        )
    return given
