"""The metric that warm-up learns for the target's own moves, from draws and scores, and their share of evaluations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.kernels.metric import LowRank, times, transpose_times
from pseudo_extended.kernels.tempered import evaluator
from pseudo_extended.methods.adaptive import choices
from pseudo_extended.methods.adaptive.choices import share_of_target
from pseudo_extended.methods.adaptive.target_moves import LEAST_CAREFUL, TargetMoves, TargetParameters
from pseudo_extended.precision import double_precision
from pseudo_extended.warmup import Stage
from pseudo_extended.warmup.fisher import MAX_KEPT, add_draw, empty_window, learned, low_rank

RNG = np.random.default_rng(0)
DIM = 20
ROTATION, _ = np.linalg.qr(RNG.normal(size=(DIM, DIM)))


def window_of(covariance, number):
    draws = RNG.multivariate_normal(np.zeros(len(covariance)), covariance, number) + 3.0
    scores = -(draws - 3.0) @ np.linalg.inv(covariance)
    window, add = empty_window(len(covariance)), jax.jit(add_draw)
    for draw, score in zip(draws, scores, strict=True):
        window = add(window, jnp.asarray(draw), jnp.asarray(score), jnp.asarray(True))
    return window


def condition(factor, covariance):
    """Of the normal in the coordinates that the factor says are round."""
    matrix = np.asarray(times(factor, jnp.eye(len(covariance)))).T
    inverse = np.linalg.inv(matrix)
    return np.linalg.cond(inverse @ covariance @ inverse.T)


@pytest.fixture(autouse=True)
def precise():
    with double_precision():
        yield


class TestTheFactor:
    def test_a_matrix_makes_a_correlated_normal_round_in_a_few_windows(self):
        covariance = (ROTATION * np.geomspace(1e-4, 1e2, DIM)) @ ROTATION.T
        window, factor = window_of(covariance, 100), jnp.eye(DIM)
        for _ in range(5):
            factor = learned(window, factor)
        assert condition(factor, covariance) < 2

    def test_a_vector_learns_the_scales(self):
        covariance = np.diag(np.geomspace(1e-4, 1e2, DIM))
        window, factor = window_of(covariance, 50), jnp.ones(DIM)
        for _ in range(5):
            factor = learned(window, factor)
        assert condition(factor, covariance) < 1.1

    def test_few_directions_beside_scales_do_in_many_dimensions(self):
        """Three long directions and two narrow ones in 300 dimensions, from 100 draws."""
        rotation, _ = np.linalg.qr(RNG.normal(size=(300, 300)))
        variance = np.concatenate([[400.0, 200.0, 100.0, 0.01, 0.005], np.ones(295)])
        scale = np.geomspace(0.1, 10.0, 300)
        covariance = (rotation * variance) @ rotation.T * np.outer(scale, scale)
        window = window_of(covariance, 100)
        assert condition(learned(window, low_rank(jnp.ones(300))), covariance) < condition(scale, covariance) / 200

    def test_a_round_normal_stays_as_it_is(self):
        window = window_of(np.eye(300), 60)
        factor = learned(window, low_rank(jnp.ones(300)))
        assert isinstance(factor, LowRank)
        np.testing.assert_allclose(factor.stretch, 1.0)
        np.testing.assert_allclose(factor.scale, 1.0, rtol=1e-3)

    @pytest.mark.parametrize("factor", [jnp.ones(DIM) * 2, jnp.asarray(ROTATION), low_rank(jnp.ones(DIM))])
    def test_the_transpose_is_the_transpose(self, factor):
        factor = learned(window_of(np.eye(DIM) + 3.0, 40), factor)
        forward, back = times(factor, jnp.eye(DIM)).T, transpose_times(factor, jnp.eye(DIM))
        np.testing.assert_allclose(forward, back, atol=1e-12)

    def test_only_the_last_draws_of_a_window_are_kept_and_only_those_that_count(self):
        window = empty_window(1)
        for i in range(MAX_KEPT + 5):
            window = add_draw(window, jnp.array([float(i)]), jnp.zeros(1), jnp.asarray(i != 7))
        assert int(window.number) == MAX_KEPT + 4
        assert float(jnp.min(window.draws)) == 4.0
        assert 7.0 not in np.asarray(window.draws)


class TestTheShare:
    @pytest.mark.parametrize("cost", [3.0, 40.0, 1000.0])
    @pytest.mark.parametrize(("share", "least"), [(0.8, 0.25), (0.5, 1.0), (0.25, 0.25)])
    def test_whatever_a_move_costs_the_target_has_its_share(self, cost, share, least):
        moves = TargetMoves(pe.NUTS(), share, least)
        mean_number, of_all = moves.rates(
            TargetParameters(jnp.zeros(()), jnp.ones(1), jnp.asarray(cost), jnp.zeros(())), 20.0
        )
        spent, others = float(mean_number) * cost, float(of_all) * 20.0
        assert spent / (spent + others) == pytest.approx(share)
        assert least <= float(of_all) <= 1

    def test_it_follows_from_the_path(self):
        assert share_of_target(0.7, 0.7, 200, has_many_modes=False) == 0
        assert share_of_target(1.0, 5.0, 10, has_many_modes=True) == 0.25
        assert share_of_target(1.5, 1.5, 10, has_many_modes=False) == 0.5
        assert share_of_target(1.5, 1.5, 10, has_many_modes=True) == 0
        assert share_of_target(9.0, 9.0, 10, has_many_modes=False) == 0.5
        assert share_of_target(9.0, 9.0, 100, has_many_modes=False) == 0.8


class TestCarefulMoves:
    def after_moves_on(self, log_density):
        """The probability of careful moves when 300 moves have tuned the step size."""
        target, moves = pe.Target(log_density, np.zeros(3)), TargetMoves(pe.NUTS(6), 0.5, 1.0)
        parameters = TargetParameters(jnp.log(0.5), jnp.eye(3), jnp.asarray(8.0), jnp.zeros(()))
        stage = Stage(*(jnp.asarray(part) for part in (True, False, False, False)))

        def once(i, carry):
            point, parameters, adaptation = carry
            point, info = moves.move(keys[i], target, point, parameters, jnp.asarray(1))
            return point, *moves.adapt(parameters, adaptation, stage, point, info, i.astype(float))

        evaluate = evaluator(target.with_base(pe.Normal(0.0, 3.0)), gradient=True)
        carry = evaluate(jnp.zeros(3)), parameters, moves.start(parameters, 3)
        keys = jax.random.split(jax.random.key(0), 300)
        _, parameters, _ = jax.jit(lambda: jax.lax.fori_loop(0, 300, once, carry))()
        return float(parameters.careful)

    def test_few_on_a_normal(self):
        assert self.after_moves_on(lambda x: -0.5 * jnp.sum(x**2)) < 1.5 * LEAST_CAREFUL

    def test_many_in_a_funnel(self):
        assert self.after_moves_on(funnel) > 3 * LEAST_CAREFUL


def funnel(x):
    return -0.5 * (x[0] / 2) ** 2 - 0.5 * jnp.sum(x[1:] ** 2) * jnp.exp(-x[0]) - 0.5 * (x.size - 1) * x[0]


class TestARun:
    def test_half_of_the_evaluations_go_to_the_target_of_a_funnel(self):
        run = pe.sample(funnel, np.zeros(7), seed=0, chains=2, draws=500, progress=False)
        assert any("50% of all evaluations" in note for note in run.notes), run.notes
        assert run.evaluations is not None
        # Where not all were moved, the account has the rates of the step before.
        rates = run.statistics["move_acceptance"]
        moved = 1 + np.sum(np.any(rates[:, 1:] != rates[:, :-1], axis=2), axis=1)
        of_all = 3 * run.weights.shape[2] * np.sum(moved)
        assert 0.35 < 1 - of_all / run.evaluations.draws < 0.65

    def test_a_path_that_nobody_travels_is_left_to_nuts(self, monkeypatch):
        monkeypatch.setattr(choices, "HOPELESS_PATH", 1.0)
        run = pe.sample(funnel, np.zeros(18), seed=0, chains=2, draws=100, warmup=100, progress=False)
        assert run.method == "NUTS on the target"
        assert any("NUTS alone" in note for note in run.notes), run.notes
        assert run.weights.shape == (2, 100, 1)
        assert run.pilot is not None
