"""One step of the pseudo-samples at given temperatures: local moves, draws from the base, leaps and symmetries."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from pseudo_extended.kernels import AbstractKernel, KernelInfo, TemperedPoint
from pseudo_extended.kernels.tempered import Evaluate, evaluator
from pseudo_extended.methods.adaptive.parameters import AdaptiveParameters
from pseudo_extended.methods.adaptive.state import AdaptiveInfo, AdaptiveState
from pseudo_extended.methods.adaptive.target_moves import TargetMoves
from pseudo_extended.target import Target
from pseudo_extended.target.bases import NormalMixture
from pseudo_extended.tempering.bridges import log_masses
from pseudo_extended.tempering.guessed import Images, offer_images, take_images
from pseudo_extended.tempering.labelled import Labelled, Rows, labelled, refresh_labelled, settle
from pseudo_extended.tempering.leaps import leapers, offer_leaps, take_leaps
from pseudo_extended.tempering.moves import draw_fresh, move_points, refresh
from pseudo_extended.tempering.path import on_path
from pseudo_extended.tempering.symmetric import Sited, move_by_symmetry


class Offered(NamedTuple):
    """The points after draws from the base and leaps were offered to them, and what became of the offers."""

    points: TemperedPoint
    label: Int[Array, " particle"] | None
    refresh_rate: Float[Array, " particle"]
    fresh_log_mass: Float[Array, " particle"]
    leap_rate: Float[Array, " leap"] | None
    num_evaluations: int


class Moves(NamedTuple):
    """The moves of the adaptive method; each leaves γ_β of every pseudo-sample, times its g, invariant."""

    target: Target
    """With the base of the path."""
    kernel: AbstractKernel
    """The local moves of all pseudo-samples."""
    target_moves: TargetMoves | None
    """Further moves of the pseudo-sample that carries the target."""
    shared_metric: Float[Array, "d d"] | None
    leaps: bool
    """Whether pseudo-samples leap between the modes of a learned mixture."""
    images: Images | None
    """Maps that may leave the target as it is, where there is no such mixture."""

    def __call__(
        self, key: Key[Array, ""], state: AdaptiveState, parameters: AdaptiveParameters
    ) -> tuple[TemperedPoint, Int[Array, " particle"] | None, AdaptiveInfo]:
        """Return the points after the step, their labels, and the account.

        Where the target's own pseudo-sample makes moves, the moves of all are left out now and then, by chance.
        """
        if self.target_moves is None:
            return self._move_all(key, state, parameters)
        own = parameters.target
        assert own is not None
        key_all, key_which, key_target = jax.random.split(key, 3)
        mean_number, rate_of_all = self.target_moves.rates(own, self._cost_of_all(state))
        uniform = jax.random.uniform(key_which, (2,), dtype=float)
        number = jnp.floor(mean_number + uniform[0]).astype(int)
        nothing = _nothing_moved(state, parameters)
        points, label, info = jax.lax.cond(
            uniform[1] < rate_of_all,
            lambda: self._move_all(key_all, state, parameters),
            lambda: (state.points, state.label, nothing),
        )
        before = jax.tree.map(lambda leaf: leaf[state.carrier], points)
        after, of_target = self.target_moves.move(key_target, self.target, before, own, number)
        points = jax.tree.map(lambda leaf, new: leaf.at[state.carrier].set(new), points, after)
        if label is not None:
            base = self.target.base
            assert isinstance(base, NormalMixture)  # or there would be no labels
            label = label.at[state.carrier].set(base.label(after.position))
        num_evaluations = info.num_evaluations + of_target.num_evaluations
        return (
            points,
            label,
            info._replace(target_move=of_target, num_evaluations=num_evaluations),
        )

    def _cost_of_all(self, state: AdaptiveState) -> float:
        """Evaluations of a step in which all move and are offered draws and leaps, about."""
        trajectory = self.kernel.trajectory
        num_steps = 1 if trajectory is None else trajectory.num_steps
        num_leaps = 2 if (self.images is not None if state.label is None else self.leaps) else 0
        return state.t.shape[0] * (num_steps + 1.0) + num_leaps

    def _move_all(
        self, key: Key[Array, ""], state: AdaptiveState, parameters: AdaptiveParameters
    ) -> tuple[TemperedPoint, Int[Array, " particle"] | None, AdaptiveInfo]:
        """Move every pseudo-sample; return the points, their labels, and the account."""
        key_move, key_offer, key_symmetry = jax.random.split(key, 3)
        carrier, t, beta = _places(state, parameters)
        step_size, factor = parameters.step_size(t), parameters.scale[parameters.knot(t)]
        points, moved = move_points(
            key_move, self.kernel, self.target, state.points, beta, step_size, factor, self.shared_metric
        )
        offered = self._offer(key_offer, state, points, Rows(parameters.path, t, carrier), beta)
        points, label = offered.points, offered.label
        if self.target.symmetries:
            now = Sited(points, label, t, carrier, beta)
            points, label = move_by_symmetry(key_symmetry, self.target, now, parameters.path)
        num_evaluations = jnp.sum(moved.num_evaluations) + offered.num_evaluations
        rate, fresh, leap_rate = offered.refresh_rate, offered.fresh_log_mass, offered.leap_rate
        info = AdaptiveInfo(beta, carrier, t, moved, rate, fresh, None, num_evaluations, leap_rate=leap_rate)
        return points, label, info

    def _offer(
        self,
        key: Key[Array, ""],
        state: AdaptiveState,
        points: TemperedPoint,
        rows: Rows,
        beta: Float[Array, " particle"],
    ) -> Offered:
        """Offer every pseudo-sample a draw from the base, and two of them a leap where the base has several modes."""
        if state.label is None:
            return self._offer_without_labels(key, state, points, rows, beta)
        evaluate, num_particles, base = self._evaluate, beta.shape[0], self.target.base
        assert isinstance(base, NormalMixture)  # or there would be no labels
        key_settle, key_draw, key_refresh, key_who, key_leap = jax.random.split(key, 5)
        now = settle(key_settle, rows, Labelled(state.points, state.label), labelled(base.label, points))
        places, leaps = draw_fresh(key_draw, self.target.draw_base, num_particles), None
        if self.leaps:
            which = leapers(key_who, state.carrier, num_particles)
            leaps = offer_leaps(key_leap, base, rows.path.log_g.shape[1] - 1, now, which)
            places = jnp.concatenate([places, leaps.position])
        # All at once: each evaluation in the program is a copy of the density and its gradient to compile.
        offered = labelled(base.label, jax.vmap(evaluate)(places))
        fresh, there = (jax.tree.map(lambda leaf, part=part: leaf[part], offered)
                        for part in (slice(num_particles), slice(num_particles, None)))  # fmt: skip
        leap_rate = None
        if leaps is not None:
            now, leap_rate = take_leaps(base, rows, now, beta, leaps, there)
        now, rate, fresh = refresh_labelled(key_refresh, fresh, rows, now, beta)
        fresh_log_mass = log_masses(rows.path.seen_from(fresh.label), fresh.points.delta)
        return Offered(*now, rate, fresh_log_mass, leap_rate, len(places))

    @property
    def _evaluate(self) -> Evaluate:
        return evaluator(self.target, gradient=self.kernel.uses_gradient)

    def _offer_without_labels(
        self,
        key: Key[Array, ""],
        state: AdaptiveState,
        points: TemperedPoint,
        rows: Rows,
        beta: Float[Array, " particle"],
    ) -> Offered:
        """Offer two pseudo-samples an image of themselves, where the density seems to have symmetries, and draws."""
        num_particles = beta.shape[0]
        key_refresh, key_draw, key_who, key_image = jax.random.split(key, 4)
        base, nothing, images = self.target.base, jnp.zeros_like(beta), None
        can_sample = base is not None and base.can_sample
        places = draw_fresh(key_draw, self.target.draw_base, num_particles) if can_sample else points.position[:0]
        if self.images is not None:
            images = offer_images(key_image, self.images, points, leapers(key_who, state.carrier, num_particles))
            places = jnp.concatenate([places, images.position])
        if not len(places):
            return Offered(points, None, nothing, nothing, None, 0)
        # All at once: each evaluation in the program is a copy of the density and its gradient to compile.
        offered = jax.vmap(self._evaluate)(places)
        if images is not None:
            there = jax.tree.map(lambda leaf: leaf[len(leaf) - len(images.which) :], offered)
            points = take_images(points, beta, images, there)
        if not can_sample:
            return Offered(points, None, nothing, nothing, None, len(places))
        fresh = jax.tree.map(lambda leaf: leaf[:num_particles], offered)
        points, rate, delta = refresh(key_refresh, fresh, points, beta)
        return Offered(points, None, rate, log_masses(rows.path, delta), None, len(places))


def _places(
    state: AdaptiveState, parameters: AdaptiveParameters
) -> tuple[Bool[Array, " particle"], Float[Array, " particle"], Float[Array, " particle"]]:
    """Return who carries the target, and the places and inverse temperatures at which all move."""
    carrier = jnp.arange(state.t.shape[0]) == state.carrier
    beta = jnp.where(carrier, 1.0, on_path(parameters.path.beta, state.t))
    return carrier, jnp.where(carrier, 1.0, state.t), beta


def _nothing_moved(state: AdaptiveState, parameters: AdaptiveParameters) -> AdaptiveInfo:
    """Return the account of a step without moves of all.

    The rates, and what the base offered, are those of the last step that had them.
    """
    carrier, t, beta = _places(state, parameters)
    nobody, none = jnp.zeros_like(carrier), jnp.zeros_like(state.last.move.num_evaluations)
    return state.last._replace(
        beta=beta,
        carrier=carrier,
        t=t,
        move=KernelInfo(state.last.move.acceptance_rate, nobody, nobody, none),
        target_move=None,
        num_evaluations=jnp.asarray(0),
    )
