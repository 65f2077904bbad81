"""Warm-up: the plan, dual averaging, the metric and the first guess."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.kernels import KernelInfo, KernelParameters, KernelState, initial_state, unit_parameters
from pseudo_extended.warmup import Stage, WindowedWarmup, first_step_size, stages
from pseudo_extended.warmup.metric import add_point, inverse_mass, no_covariance
from pseudo_extended.warmup.step_size import average_step, averaged_step, start_averaging

from .sentences import assert_sentence


class TestStages:
    def test_stans_plan(self):
        """From Stan's reference manual: 75, then 25, 50, 100, 200 and 500, then 50."""
        plan = stages(1000)
        np.testing.assert_array_equal(np.flatnonzero(plan.ends_window) + 1, [100, 150, 250, 450, 950])
        np.testing.assert_array_equal(np.flatnonzero(plan.learns_metric), np.arange(75, 950))
        np.testing.assert_array_equal(np.flatnonzero(plan.ends_warmup), [999])

    @pytest.mark.parametrize("num_warmup", [*range(0, 30), *range(30, 400, 7), 149, 150, 151, 1000, 1001, 5000])
    def test_any_length(self, num_warmup):
        plan = stages(num_warmup)
        assert all(len(part) == num_warmup for part in plan)
        assert np.flatnonzero(plan.ends_warmup).tolist() == ([num_warmup - 1] if num_warmup else [])
        learns, ends = np.flatnonzero(plan.learns_metric), np.flatnonzero(plan.ends_window)
        assert np.all(plan.tunes_step == (num_warmup >= 20))
        if num_warmup < 75:
            assert learns.size == ends.size == 0
            return
        assert learns[-1] == ends[-1], "what the last window learned is thrown away"
        assert np.all(np.diff(learns) == 1)
        assert np.all(np.isin(ends, learns))
        assert num_warmup - 1 - ends[-1] >= 25, "too few iterations are left for the step size in the final metric"
        sizes = np.diff(np.r_[learns[0] - 1, ends])
        assert np.all(sizes >= min(25, learns.size)), "a window is too short for a metric"


@pytest.mark.usefixtures("x64")
class TestDualAveraging:
    def test_against_the_paper(self):
        """Hoffman and Gelman (2014), algorithm 5, with γ = 0.05, t0 = 10, κ = 0.75, in plain Python."""
        first, target, rates = 0.4, 0.8, np.random.default_rng(0).uniform(size=30)
        state, update = start_averaging(jnp.array([first])), jax.jit(average_step)
        mu, error, log_average = np.log(10 * first), 0.0, 0.0
        for m, rate in enumerate(rates, start=1):
            state = update(state, jnp.array([rate]), jnp.array([target]))
            error = (1 - 1 / (m + 10)) * error + (target - rate) / (m + 10)
            log_step = mu - np.sqrt(m) / 0.05 * error
            log_average = m**-0.75 * log_step + (1 - m**-0.75) * log_average
            np.testing.assert_allclose(state.log_step[0], log_step, rtol=1e-12)
        np.testing.assert_allclose(averaged_step(state)[0], np.exp(log_average), rtol=1e-12)

    @pytest.mark.parametrize("first", [1e-3, 1e3])
    def test_finds_the_step_with_the_wanted_rate(self, first):
        """Acceptance falls with the step as 1/(1 + ε): the rate 0.8 has ε = 1/4. The averages settle within 10%."""

        def iterate(state, _):
            rate = 1 / (1 + jnp.exp(state.log_step))
            return average_step(state, rate, jnp.array([0.8])), None

        state, _ = jax.lax.scan(iterate, start_averaging(jnp.array([first])), length=2000)
        np.testing.assert_allclose(averaged_step(state)[0], 0.25, rtol=0.1)

    def test_a_part_that_did_not_run_stays(self):
        before = start_averaging(jnp.array([0.5, 0.7]))
        after = average_step(before, jnp.array([0.9, jnp.nan]), jnp.array([0.8, 0.8]))
        for old, new in zip(before, after, strict=True):
            assert old[1] == new[1]
        assert after.num_updates[0] == 1
        np.testing.assert_allclose(averaged_step(after)[1], 0.7, rtol=1e-15)


@pytest.mark.usefixtures("x64")
class TestMetric:
    @pytest.mark.parametrize("dense", [False, True])
    def test_against_numpy(self, dense):
        """Welford's sums to 1e-12, also far from the origin; then shrinkage towards the metric before, as in Stan."""
        points = np.random.default_rng(0).normal(size=(40, 3)) @ np.array([[2, 0, 0], [1, 0.1, 0], [0, 1, 3]]) + 1e4
        running, _ = jax.lax.scan(lambda r, x: (add_point(r, x), None), no_covariance(3, dense=dense), points)
        covariance = np.cov(points.T) if dense else points.var(axis=0, ddof=1)
        before = np.array([1.0, 4.0, 1e-8])
        floor = 1e-3 * (np.diag(before) if dense else before)
        metric = inverse_mass(running, jnp.diag(before) + 0.1 if dense else jnp.asarray(before))
        floor = floor + (
            1e-4 * np.eye(3) if dense else 0.0
        )  # the diagonal of the metric before, and nothing else of it
        np.testing.assert_allclose(running.mean, points.mean(axis=0), rtol=1e-13)
        np.testing.assert_allclose(metric, (40 * covariance + 5 * floor) / 45, rtol=1e-10, atol=1e-12)

    @pytest.mark.parametrize("dense", [False, True])
    @pytest.mark.parametrize("count", [0, 1])
    def test_too_few_points_give_a_usable_metric(self, dense, count):
        running = no_covariance(2, dense=dense)
        for _ in range(count):
            running = add_point(running, jnp.ones(2))
        metric = np.asarray(inverse_mass(running, jnp.eye(2) if dense else jnp.ones(2)))
        assert np.all(np.linalg.eigvalsh(metric if dense else np.diag(metric)) > 0)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "kernel", [pe.NUTS(), pe.RandomWalk(), pe.Cycle([pe.HMC(2), pe.RandomWalk()])], ids=["NUTS", "walk", "cycle"]
)
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_first_step_size_has_the_order_of_the_target(kernel, scale):
    """From a start one scale away the probe crosses its threshold within a factor of 100 of the scale."""
    density = lambda x: -0.5 * jnp.sum((x / scale) ** 2)  # noqa: E731
    state = initial_state(density, jnp.full(2, scale), gradient=kernel.uses_gradient)
    parameters = unit_parameters(kernel, 2, dense=False)
    sizes = jax.jit(lambda key: first_step_size(key, kernel, density, state, parameters))(jax.random.key(0))
    assert sizes.shape == kernel.target_acceptance.shape
    assert np.all((sizes > scale / 100) & (sizes < scale * 100))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("density", [lambda x: jnp.zeros(()), lambda x: jnp.where(x[0] == 0.5, 0.0, -jnp.inf)])
def test_first_step_size_ends(density):
    """A flat density accepts every step, a point mass none: the search stops, with a finite positive step."""
    state = KernelState(jnp.array([0.5]), jnp.zeros(()), jnp.zeros(1))
    sizes = jax.jit(
        lambda: first_step_size(
            jax.random.key(0), pe.NUTS(), density, state, unit_parameters(pe.NUTS(), 1, dense=False)
        )
    )()
    assert np.all(np.isfinite(sizes) & (sizes > 0))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("metric", ["diagonal", "dense"])
def test_update(metric):
    """A window's end renews the metric and forgets the window; the end of warm-up takes the averaged step."""
    warmup, kernel = WindowedWarmup(metric), pe.RandomWalk()
    parameters = unit_parameters(kernel, 2, dense=warmup.dense)
    adaptation = warmup.start(parameters)
    points = np.random.default_rng(0).normal(size=(30, 2)) * [1.0, 5.0]

    @jax.jit
    def jitted(adaptation, parameters, stage, point):
        info = KernelInfo(jnp.array([0.3]), jnp.asarray(False), jnp.asarray(False), jnp.asarray(1))
        state = KernelState(point, jnp.zeros(()), None)
        return warmup.update(kernel, adaptation, parameters, stage, state, info)

    def update(adaptation, parameters, point, *, tunes=True, learns=False, window=False, end=False):
        stage = Stage(tunes_step=tunes, learns_metric=learns, ends_window=window, ends_warmup=end)
        return jitted(adaptation, parameters, jax.tree.map(jnp.asarray, stage), jnp.asarray(point))

    start = parameters
    adaptation, parameters = update(adaptation, parameters, [100.0, 100.0], tunes=False, end=True)
    np.testing.assert_allclose(parameters.step_size, start.step_size, rtol=1e-15)
    adaptation, parameters = update(adaptation, parameters, [100.0, 100.0])
    assert float(adaptation.covariance.num_points) == 0, "a point outside the windows counted"
    assert float(parameters.step_size[0]) != float(start.step_size[0])
    for point in points:
        adaptation, parameters = update(adaptation, parameters, point, learns=True)
    np.testing.assert_array_equal(parameters.inverse_mass, start.inverse_mass)
    adaptation, parameters = update(adaptation, parameters, points[0], learns=True, window=True)
    seen = np.vstack([points, points[:1]])
    covariance = np.cov(seen.T) if warmup.dense else seen.var(axis=0, ddof=1)
    shrunk = (31 * covariance + 5e-3 * (np.eye(2) if warmup.dense else np.ones(2))) / 36
    np.testing.assert_allclose(parameters.inverse_mass, shrunk, rtol=1e-10)
    assert float(adaptation.covariance.num_points) == 0
    assert float(adaptation.averaging.num_updates[0]) == 0
    for _ in range(5):
        adaptation, parameters = update(adaptation, parameters, points[0])
    adaptation, parameters = update(adaptation, parameters, points[0], end=True)
    np.testing.assert_allclose(parameters.step_size, averaged_step(adaptation.averaging), rtol=1e-15)


@pytest.mark.parametrize("metric", ["full", None, 3, ["dense"], np.array(["dense"])])
def test_bad_metric(metric):
    with pytest.raises((TypeError, ValueError)) as error:
        pe.PseudoExtended(metric=metric)
    assert_sentence(error, "metric", "'diagonal', 'dense'")


@pytest.mark.usefixtures("x64")
def test_parameters_have_the_shapes_of_the_metric():
    for dense in (False, True):
        parameters: KernelParameters = unit_parameters(pe.NUTS(), 3, dense=dense)
        assert WindowedWarmup("dense" if dense else "diagonal").start(parameters).covariance.squares.shape == (
            (3, 3) if dense else (3,)
        )
