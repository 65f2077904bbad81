"""One step of the pseudo-samples at given temperatures: local moves, draws from the base, leaps and symmetries."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from pseudo_extended.kernels import AbstractKernel, KernelInfo, TemperedPoint
from pseudo_extended.kernels.tempered import evaluator
from pseudo_extended.methods.adaptive.parameters import AdaptiveParameters
from pseudo_extended.methods.adaptive.state import AdaptiveInfo, AdaptiveState
from pseudo_extended.target import Target
from pseudo_extended.target.bases import NormalMixture
from pseudo_extended.tempering.bridges import log_masses
from pseudo_extended.tempering.labelled import Labelled, Rows, labelled, refresh_labelled, settle
from pseudo_extended.tempering.leaps import leapers, offer_leaps, take_leaps
from pseudo_extended.tempering.moves import move_point, move_points, refresh
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
    target_kernel: AbstractKernel | None
    """The kernel of further moves of the pseudo-sample that carries the target."""
    num_target_moves: int
    shared_metric: Float[Array, "d d"] | None
    leaps: bool
    """Whether pseudo-samples leap between the modes of a learned mixture."""

    def __call__(
        self, key: Key[Array, ""], state: AdaptiveState, parameters: AdaptiveParameters
    ) -> tuple[TemperedPoint, Int[Array, " particle"] | None, AdaptiveInfo]:
        """Move every pseudo-sample; return the points, their labels, and the account."""
        key_move, key_offer, key_carrier, key_symmetry = jax.random.split(key, 4)
        carrier = jnp.arange(state.t.shape[0]) == state.carrier
        t = jnp.where(carrier, 1.0, state.t)
        beta = jnp.where(carrier, 1.0, on_path(parameters.path.beta, state.t))
        step_size, factor = parameters.step_size(t), parameters.scale[parameters.knot(t)]
        points, moved = move_points(
            key_move, self.kernel, self.target, state.points, beta, step_size, factor, self.shared_metric
        )
        points, of_target = self._move_carrier(key_carrier, points, state.carrier, parameters)
        offered = self._offer(key_offer, state, points, Rows(parameters.path, t, carrier), beta)
        points, label = offered.points, offered.label
        if self.target.symmetries:
            now = Sited(points, label, t, carrier, beta)
            points, label = move_by_symmetry(key_symmetry, self.target, now, parameters.path)
        num_evaluations = jnp.sum(moved.num_evaluations) + offered.num_evaluations
        if of_target is not None:
            num_evaluations = num_evaluations + of_target.num_evaluations
        return (
            points,
            label,
            AdaptiveInfo(
                beta,
                carrier,
                t,
                moved,
                offered.refresh_rate,
                offered.fresh_log_mass,
                of_target,
                num_evaluations,
                offered.leap_rate,
            ),
        )

    def _move_carrier(
        self, key: Key[Array, ""], points: TemperedPoint, carrier: Int[Array, ""], parameters: AdaptiveParameters
    ) -> tuple[TemperedPoint, KernelInfo | None]:
        """Move the pseudo-sample that carries the target some more, by a kernel of its own."""
        if self.target_kernel is None:
            return points, None
        assert parameters.target_scale is not None
        kernel, factor, one = self.target_kernel, parameters.target_scale, jnp.ones(())
        step_size = jnp.exp(parameters.log_step[-1])

        def again(i: Array, carry: tuple[TemperedPoint, KernelInfo]) -> tuple[TemperedPoint, KernelInfo]:
            point, so_far = carry
            point, info = move_point(
                jax.random.fold_in(key, i), kernel, self.target, point, one, step_size, factor, self.shared_metric
            )
            return point, KernelInfo(
                so_far.acceptance_rate + info.acceptance_rate / self.num_target_moves,
                so_far.diverging | info.diverging,
                so_far.non_finite | info.non_finite,
                so_far.num_evaluations + info.num_evaluations,
            )

        nothing = KernelInfo(jnp.zeros(()), jnp.asarray(False), jnp.asarray(False), jnp.asarray(0))
        before = jax.tree.map(lambda leaf: leaf[carrier], points)
        after, info = jax.lax.fori_loop(0, self.num_target_moves, again, (before, nothing))
        return jax.tree.map(lambda leaf, new: leaf.at[carrier].set(new), points, after), info

    def _offer(
        self,
        key: Key[Array, ""],
        state: AdaptiveState,
        points: TemperedPoint,
        rows: Rows,
        beta: Float[Array, " particle"],
    ) -> Offered:
        """Offer every pseudo-sample a draw from the base, and two of them a leap where the base has several modes."""
        evaluate, num_particles = evaluator(self.target, gradient=self.kernel.uses_gradient), beta.shape[0]
        nothing, base = jnp.zeros_like(beta), self.target.base
        if state.label is not None:
            assert isinstance(base, NormalMixture)  # or there would be no labels
            key_settle, key_draw, key_refresh, key_who, key_leap = jax.random.split(key, 5)
            now = settle(key_settle, rows, Labelled(state.points, state.label), labelled(base.label, points))
            places, leaps = jax.vmap(self.target.draw_base)(jax.random.split(key_draw, num_particles)), None
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
        if base is None or not base.can_sample:
            return Offered(points, None, nothing, nothing, None, 0)
        points, rate, delta = refresh(key, self.target.draw_base, evaluate, points, beta)
        return Offered(points, None, rate, log_masses(rows.path, delta), None, num_particles)
