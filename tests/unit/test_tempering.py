"""The parts of the tempering methods: refused settings, ladders, swaps, bands, weights, and what analysis says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.mcmc.integrators import IntegratorState, velocity_verlet
from blackjax.mcmc.metrics import gaussian_euclidean
from scipy.special import logsumexp

import pseudo_extended as pe
from pseudo_extended.kernels import KernelParameters, Metric, initial_state
from pseudo_extended.kernels.leapfrog import leapfrog
from pseudo_extended.kernels.tempered import log_density_at, tempered_point
from pseudo_extended.methods.level_weights import SWEEP, first_sums, leading_log_weight, level_log_weight, update_sums
from pseudo_extended.methods.simulated_tempering import level_log_probabilities
from pseudo_extended.results import tempering
from pseudo_extended.tempering.bands import band_betas, level_bands
from pseudo_extended.tempering.schedule import sigmoidal
from pseudo_extended.tempering.swaps import equal_rejections, swap_acceptance, swap_order
from pseudo_extended.warmup import stages

from .sentences import assert_sentence

NORMAL = pe.Target(lambda x: -0.5 * jnp.sum(x**2), np.zeros(2))
WITH_BASE = pe.Target(lambda x: -jnp.sum((x**2 - 1) ** 2) + 2.0, np.zeros(2), base=pe.Normal(0.5, 2.0))
NO_SAMPLER = pe.Target(lambda x: -0.5 * jnp.sum(x**2), np.zeros(2), base=pe.Base(lambda x: -jnp.sum(x**2)))


BAD_BETAS = [
    [1.0],
    [0.5, 0.5, 1.0],
    [1.0, 0.5],
    [0.1, 0.9],
    [-0.1, 1.0],
    [0.5, 2.0],
    [[0.5, 1.0]],
    [0.5, np.nan],
    "ab",
    None,
]


@pytest.mark.parametrize("method", [pe.ParallelTempering, pe.SimulatedTempering])
@pytest.mark.parametrize("betas", BAD_BETAS, ids=str)
def test_what_is_no_ladder_is_refused(method, betas):
    with pytest.raises((ValueError, TypeError)) as error:
        method(betas)
    assert_sentence(error, f"betas of {method.__name__}")


@pytest.mark.parametrize(
    "schedule", [[0.0, 1.0], [0.1, 0.5, 1.0], [0.0, 0.5, 0.9], [0.0, 0.5, 0.5, 1.0], "cubic", None, 3.0]
)
def test_what_is_no_schedule_is_refused(schedule):
    with pytest.raises((ValueError, TypeError)) as error:
        pe.AnnealedImportance(schedule)
    assert_sentence(error, "schedule of AnnealedImportance")


LADDER = [0.1, 0.4, 1.0]


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: pe.ParallelTempering(LADDER, "NUTS"), "kernel"),
        (lambda: pe.ParallelTempering(LADDER, pe.NUTS), "kernel"),
        (lambda: pe.ParallelTempering(LADDER, swaps="all"), "swaps"),
        (lambda: pe.ParallelTempering(LADDER, swaps="random_pair", swap_probability=1.5), "swap_probability"),
        (lambda: pe.ParallelTempering(LADDER, swap_probability=0.5), "swap_probability"),
        (lambda: pe.ParallelTempering(LADDER, adapt_betas=1), "adapt_betas"),
        (lambda: pe.ParallelTempering(LADDER, step_size=0.1), "step_size"),
        (
            lambda: pe.ParallelTempering(LADDER, step_size=[0.1, 0.2], adapt_betas=False),
            "step_size of ParallelTempering",
        ),
        (lambda: pe.ParallelTempering(LADDER, step_size=-1.0, adapt_betas=False), "step_size of ParallelTempering"),
        (lambda: pe.ParallelTempering(LADDER, metric="round"), "metric"),
        (lambda: pe.SimulatedTempering(LADDER, 3), "kernel"),
        (lambda: pe.SimulatedTempering(LADDER, log_weights=[0.0, 1.0]), "log_weights of SimulatedTempering"),
        (lambda: pe.SimulatedTempering(LADDER, log_weights="abc"), "log_weights of SimulatedTempering"),
        (lambda: pe.SimulatedTempering(LADDER, step_size=[[1.0]]), "step_size of SimulatedTempering"),
        (lambda: pe.AnnealedImportance(kernel=pe.HMC), "kernel"),
        (lambda: pe.AnnealedImportance(num_steps=1), "num_steps of AnnealedImportance"),
        (lambda: pe.AnnealedImportance([0.0, 0.5, 1.0], num_steps=2), "num_steps of AnnealedImportance"),
        (lambda: pe.AnnealedImportance(num_steps=3, step_size=[0.1] * 3), "step_size of AnnealedImportance"),
    ],
)
def test_bad_settings_are_refused(make, name):
    with pytest.raises((ValueError, TypeError)) as error:
        make()
    assert_sentence(error, name)


@pytest.mark.parametrize(
    ("method", "target", "words"),
    [
        (pe.ParallelTempering([0.0, 1.0]), NORMAL, "betas of ParallelTempering"),
        (pe.SimulatedTempering([0.0, 1.0]), NORMAL, "betas of SimulatedTempering"),
        (pe.AnnealedImportance(), NORMAL, "a target without a base"),
        (pe.AnnealedImportance(), NO_SAMPLER, "a base without a sampler"),
    ],
)
def test_a_base_that_is_missing(method, target, words):
    with pytest.raises(ValueError, match="base") as error:
        pe.sample(target, np.zeros(2), method=method, draws=1, warmup=0, progress=False)
    assert_sentence(error, words)


def test_published_setting():
    method = pe.ParallelTempering.kou_2006()
    np.testing.assert_allclose(1 / method.betas, [60, 21.6, 7.7, 2.8, 1])
    np.testing.assert_allclose(method.step_size**2 * method.betas, 0.25**2)
    assert method.swaps == "random_pair"
    assert method.swap_probability == 0.1
    assert not method.adapt_betas


@pytest.mark.usefixtures("x64")
class TestPath:
    u = np.array([0.3, -0.7])

    @pytest.mark.parametrize("target", [NORMAL, WITH_BASE], ids=["no base", "base"])
    @pytest.mark.parametrize("beta", [0.25, 1.0])
    def test_a_state_is_known_at_every_temperature(self, target, beta):
        """Against a fresh evaluation of log γ_β with its gradient."""
        point, beta = tempered_point(target, jnp.asarray(self.u), gradient=True), jnp.asarray(beta)
        expected = initial_state(log_density_at(target, beta), jnp.asarray(self.u), gradient=True)
        np.testing.assert_allclose(point.log_density(beta), expected.log_density, rtol=1e-12)
        np.testing.assert_allclose(point.gradient(beta), expected.gradient, rtol=1e-12)

    def test_at_zero_it_is_the_base_even_where_the_target_vanishes(self):
        target = pe.Target(lambda x: jnp.where(x[0] > 0, -x[0], -jnp.inf), np.ones(1), base=pe.Normal())
        point = tempered_point(target, jnp.array([-1.0]), gradient=False)
        np.testing.assert_allclose(point.log_density(jnp.asarray(0.0)), -0.5 - 0.5 * np.log(2 * np.pi))

    @pytest.mark.parametrize(
        "kernel",
        [pe.HMC(2, jitter=0), pe.MALA(), pe.NUTS(1), pe.RandomWalk()],
        ids=lambda kernel: type(kernel).__name__,
    )
    @pytest.mark.parametrize("target", [NORMAL, WITH_BASE], ids=["no base", "base"])
    @pytest.mark.parametrize("step_size", [0.3, 50.0], ids=["moves", "stays"])
    def test_a_move_keeps_both_parts_right(self, target, step_size, kernel):
        state = tempered_point(target, jnp.asarray(self.u), gradient=kernel.uses_gradient)
        metric = Metric.from_inverse_mass(jnp.ones(2))
        given = (jax.random.key(1), target, jnp.asarray(0.4), state, jnp.array([step_size]), metric)
        new, _ = kernel.move_tempered(*given)
        assert bool(jnp.all(new.position == state.position)) == (step_size == 50.0)
        expected = tempered_point(target, new.position, gradient=kernel.uses_gradient)
        for one, other in zip(jax.tree.leaves(new), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)

    @pytest.mark.parametrize(("kernel", "again"), [(pe.HMC(2), 0), (pe.MALA(), 0), (pe.RandomWalk(), 1)])
    def test_hamiltonian_kernels_evaluate_once_a_step_and_others_once_more(self, kernel, again):
        metric = Metric.from_inverse_mass(jnp.ones(2))
        for target in (NORMAL, WITH_BASE):
            state = tempered_point(target, jnp.asarray(self.u), gradient=kernel.uses_gradient)
            given = (jax.random.key(0), target, jnp.asarray(0.4), state, jnp.array([0.3]), metric)
            steps = getattr(kernel, "num_steps", 1)
            assert int(kernel.move_tempered(*given)[1].num_evaluations) == steps + again * (target.base is not None)

    @pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
    def test_the_split_leapfrog_goes_where_that_of_blackjax_goes(self, beta):
        """With one momentum and a dense metric: `HMC.step` and `HMC.move_tempered` follow the same trajectory."""
        target, x = WITH_BASE, jnp.asarray(self.u)
        covariance = jnp.array([[1.5, 0.4], [0.4, 0.7]])
        metric, density = Metric.from_inverse_mass(covariance), log_density_at(target, jnp.asarray(beta))
        white = jnp.array([0.7, -1.1])
        momentum = jnp.linalg.solve(metric.factor.T, white)
        state = IntegratorState(x, momentum, *jax.value_and_grad(density)(x))
        one_step = velocity_verlet(density, gaussian_euclidean(covariance).kinetic_energy)
        for _ in range(5):
            state = one_step(state, 0.2)
        point = tempered_point(target, x, gradient=True)
        end, last = leapfrog(target, jnp.asarray(beta), point, white, jnp.asarray(0.2), metric, 5)
        np.testing.assert_allclose(end.position, state.position, rtol=1e-10)
        np.testing.assert_allclose(metric.factor.T @ state.momentum, last, rtol=1e-10)
        np.testing.assert_allclose(end.log_density(jnp.asarray(beta)), state.logdensity, rtol=1e-10)

    @pytest.mark.parametrize("jitter", [0.0, 0.4, 0.9])
    def test_the_length_of_a_trajectory_varies_as_hmc_says(self, jitter):
        """On a flat density a trajectory is a straight line, so its length is |x' - x| / (number of steps |p|)."""
        flat = pe.Target(lambda x: 0.0 * jnp.sum(x), np.zeros(1))
        kernel, metric = pe.HMC(3, jitter=jitter), Metric.from_inverse_mass(jnp.ones(1))
        start = tempered_point(flat, jnp.zeros(1), gradient=True)
        keys, size = jax.random.split(jax.random.key(0), 4000), jnp.array([0.5])
        split = jax.vmap(lambda key: kernel.move_tempered(key, flat, jnp.ones(()), start, size, metric)[0].position)(
            keys
        )
        state = initial_state(flat.log_target, jnp.zeros(1), gradient=True)
        whole = jax.vmap(
            lambda key: kernel.step(key, flat.log_target, state, KernelParameters(size, jnp.ones(1)))[0].position
        )(keys)
        # The length of a trajectory is 1.5 p (1 + jitter v), p standard normal and v uniform on (-1, 1).
        fourth = 1 + 2 * jitter**2 + jitter**4 / 5
        for moved in (split, whole):
            x = np.asarray(moved)[:, 0] / 1.5
            for power, expected in ((2, 1 + jitter**2 / 3), (4, 3 * fourth)):
                error = np.std(x**power) / np.sqrt(x.size)
                assert abs(np.mean(x**power) - expected) < 4 * error


@pytest.mark.usefixtures("x64")
class TestSwaps:
    def test_acceptance(self):
        betas, delta = np.array([0.0, 0.2, 1.0]), np.array([-np.inf, 3.0, 1.0])
        np.testing.assert_allclose(swap_acceptance(jnp.asarray(betas), jnp.asarray(delta)), [0.0, 1.0])
        by_hand = np.exp((0.2 - 1.0) * 1.0 + (1.0 - 0.2) * 0.5)
        np.testing.assert_allclose(swap_acceptance(jnp.asarray(betas), jnp.array([0.0, 0.5, 1.0]))[1], by_hand)

    def test_order(self):
        swapped = jnp.array([True, False, False, True])
        np.testing.assert_array_equal(swap_order(swapped), [1, 0, 2, 4, 3])

    def test_equal_rejections(self):
        """A barrier linear in β between rungs is cut into equal parts; equal rates leave the ladder alone."""
        betas = np.array([0.0, 0.5, 0.8, 1.0])
        np.testing.assert_allclose(equal_rejections(jnp.asarray(betas), jnp.full(3, 0.4)), betas)
        tuned = equal_rejections(jnp.asarray(betas), jnp.array([0.6, 0.2, 0.1]))
        np.testing.assert_allclose(tuned, [0.0, 0.25, 0.5, 1.0])

    def test_even_and_odd_pairs_take_turns(self):
        method = pe.ParallelTempering([0.1, 0.2, 0.4, 1.0])
        for odd, expected in ((False, [True, False, True]), (True, [False, True, False])):
            np.testing.assert_array_equal(method._propose(jax.random.key(0), jnp.asarray(odd), 3), expected)

    def test_one_random_pair_now_and_then(self):
        """2,000 proposals with probability 0.3: each of three pairs 200 times, ± 5 binomial errors of 13.4."""
        method = pe.ParallelTempering([0.1, 0.2, 0.4, 1.0], swaps="random_pair", swap_probability=0.3)
        keys = jax.random.split(jax.random.key(0), 2000)
        proposed = np.asarray(jax.jit(jax.vmap(lambda key: method._propose(key, jnp.asarray(False), 3)))(keys))
        assert proposed.sum(axis=1).max() == 1
        assert np.all(np.abs(proposed.sum(axis=0) - 200) < 67), proposed.sum(axis=0)


@pytest.mark.parametrize(
    "betas", [np.linspace(0, 1, 1000), np.geomspace(1e-3, 1, 30), sigmoidal(50), np.array([0.5, 1.0])]
)
def test_bands_are_few_and_in_order(betas):
    bands = level_bands(betas)
    assert bands[0] == 0
    assert bands.max() < 8
    assert set(np.diff(bands)) <= {0, 1}
    centres = band_betas(jnp.asarray(betas), jnp.asarray(bands), int(bands.max()) + 1)
    assert np.all(np.diff(centres) > 0)


@pytest.mark.usefixtures("x64")
class TestLevelWeights:
    betas = np.r_[0.0, np.geomspace(0.01, 1, 30)]

    def test_at_first_all_levels_are_equally_likely(self):
        sums = first_sums(self.betas, jnp.asarray(-123.0))
        log_level = level_log_probabilities(self.betas, jnp.asarray(-123.0), level_log_weight(sums))
        np.testing.assert_allclose(log_level, -np.log(31), rtol=1e-9)

    def test_a_sweep_visits_both_ends(self):
        sums = first_sums(self.betas, jnp.asarray(0.0))
        levels = [
            int(jnp.argmax(leading_log_weight(sums._replace(num_points=i), self.betas))) for i in range(2 * SWEEP)
        ]
        assert levels[0] == 0
        assert levels[SWEEP] == 30
        assert np.all(np.diff(levels[: SWEEP + 1]) >= 0)
        assert np.all(np.diff(levels[SWEEP:]) <= 0)

    def test_exact_draws_give_the_masses(self):
        """Δ = -x²/2 · 24 under N(0, 1/(1 + 24β)): log Z(β) = -log(1 + 24β)/2, to 0.2 from 4,000 points."""
        rng, stage = np.random.default_rng(0), jax.tree.map(lambda plan: jnp.asarray(plan[-60]), stages(1000))
        truth = -0.5 * np.log1p(24 * self.betas)
        sums = first_sums(self.betas, jnp.asarray(-300.0))._replace(free=jnp.asarray(True))
        log_weight = jnp.asarray(-truth + rng.normal(size=31))  # any weights do, if the draws follow them
        share = np.exp(np.asarray(log_weight) + truth - logsumexp(np.asarray(log_weight) + truth))
        levels = rng.choice(31, size=4000, p=share)
        deltas = -12 * (rng.normal(size=4000) / np.sqrt(1 + 24 * self.betas[levels])) ** 2

        def add(sums, delta):
            log_level = level_log_probabilities(self.betas, delta, log_weight)
            return update_sums(sums, self.betas, delta, jnp.asarray(0), log_level, stage), None

        sums, _ = jax.lax.scan(add, sums, jnp.asarray(deltas))
        np.testing.assert_allclose(level_log_weight(sums) - level_log_weight(sums)[0], -truth, atol=0.2)


def test_no_effect_of_what_has_not_been_drawn():
    """Where the target vanishes half of the base's draws have Δ = -inf: no swap, no weight, and nothing breaks.

    P(x > 0) under N(0, 1) is 1/2 and the target is N(0, 1) on x > 0, so Z = 1/2.
    """
    half = pe.Target(
        lambda x: jnp.where(x[0] > 0, -0.5 * x[0] ** 2 - 0.5 * jnp.log(2 * jnp.pi), -jnp.inf),
        np.ones(1),
        base=pe.Normal(),
    )
    for method in (
        pe.ParallelTempering([0.0, 0.5, 1.0], pe.RandomWalk(), adapt_betas=False, step_size=1.0),
        pe.SimulatedTempering([0.0, 0.5, 1.0], pe.RandomWalk(), log_weights=[0.0, 0.5, 0.5], step_size=1.0),
        pe.AnnealedImportance([0.0, 0.5, 1.0], pe.RandomWalk(), step_size=1.0),
    ):
        result = pe.sample(half, np.ones(1), method=method, draws=4000, warmup=20, chains=2, seed=0, progress=False)
        assert np.all(np.isfinite(result.mean().value))
        assert result.weights[result.unconstrained[..., 0] < 0].sum() == 0
        estimate = result.log_evidence
        assert abs(estimate.value - np.log(0.5)) < 5 * estimate.standard_error < 0.5, (method.describe(), estimate)


class TestAnalysis:
    def test_rates_and_barrier(self):
        acceptance = np.array([0.5, 0.75]) + 0.1 * np.random.default_rng(0).normal(size=(2, 40, 1))
        statistics = {"swap_acceptance": acceptance}
        rates, barrier = tempering.swap_rates(statistics), tempering.communication_barrier(statistics)
        np.testing.assert_allclose(rates.value, acceptance.mean(axis=(0, 1)))
        np.testing.assert_allclose(barrier.value, np.sum(1 - rates.value))
        np.testing.assert_allclose(barrier.standard_error, rates.standard_error.sum(), rtol=1e-6)  # they move together

    def test_round_trips(self):
        """Replica 0 goes up and down twice and up once more: two round trips; those it displaces come half-way."""
        place = [0, 1, 2, 1, 0, 0, 1, 2, 2, 1, 0, 1, 2]
        replica = np.array([np.insert([1, 2], p, 0) for p in place])
        one = tempering.round_trips({"replica": replica[None]})
        alone = np.where(replica == 0, 0, -1)
        assert tempering.round_trips({"replica": alone[None]}) == [2]
        assert one >= 2
        assert tempering.round_trips({"replica": np.tile([0, 1, 2], (3, 10, 1))}).tolist() == [0, 0, 0]

    def test_thermodynamic_integration(self):
        """A normal path by exact draws: from N(0, 2²) to e³ N(0, 1), log Z = 3.

        The trapezium rule on 40 equal steps is off by at most 40 δ³/12 max|m''| = 0.0014, for E_β[Δ] = m(β) =
        c - 1.5/(1 + 3β) and |m''| ≤ 27; that is added to five standard errors.
        """
        betas = np.linspace(0, 1, 41)
        x = np.random.default_rng(1).normal(size=(2, 4000, 41)) * 2 / np.sqrt(1 + 3 * betas)
        delta = 3 + np.log(2) - 3 / 8 * x**2
        estimate = tempering.thermodynamic_integration({"beta": np.tile(betas, (2, 4000, 1)), "delta": delta})
        assert abs(estimate.value - 3) < 5 * estimate.standard_error + 0.0014
        assert estimate.standard_error < 0.01

    @pytest.mark.parametrize(
        "function", ["swap_rates", "communication_barrier", "round_trips", "thermodynamic_integration"]
    )
    def test_of_another_method(self, function):
        with pytest.raises(ValueError, match="ParallelTempering") as error:
            getattr(tempering, function)({"lp": np.zeros((2, 10)), "beta": np.zeros((2, 10))})
        assert_sentence(error, function)
