"""Plain functions: NumPy with and without gradients, vectorised or not, and functions that raise."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.models import as_target
from tests.unit.sentences import assert_sentence

CHEAP = {"draws": 20, "warmup": 20, "chains": 2, "seed": 0, "progress": False}
HMC = pe.Plain(pe.HMC(2))


def log_density(x):
    return np.logaddexp(-0.5 * np.sum((x - 3) ** 2, -1), -0.5 * np.sum((x + 3) ** 2, -1))


def gradient(x):
    right = 1 / (1 + np.exp(-6 * np.sum(x, -1, keepdims=True)))
    return 6 * right - 3 - x


def in_jax(x):
    return jnp.logaddexp(-0.5 * jnp.sum((x - 3) ** 2), -0.5 * jnp.sum((x + 3) ** 2))


@pytest.mark.parametrize("vectorised", [pytest.param(False, marks=pytest.mark.slow), True])
class TestDerivatives:
    @pytest.mark.slow
    def test_agree_with_jax_to_second_order_under_vmap(self, vectorised, x64):
        function = pe.from_numpy(log_density, gradient, vectorised=vectorised)
        x = np.random.default_rng(0).normal(size=(5, 4, 2))
        for own, exact, tolerance in (
            (function, in_jax, 1e-12),
            (jax.grad(function), jax.grad(in_jax), 1e-12),
            (jax.hessian(function), jax.hessian(in_jax), 1e-6),
        ):
            np.testing.assert_allclose(
                jax.jit(jax.vmap(jax.vmap(own)))(x), jax.vmap(jax.vmap(exact))(x), rtol=tolerance, atol=tolerance
            )

    def test_all_points_of_a_program_are_one_call_and_known_points_none(self, vectorised, x64):
        calls = []

        def counted(x):
            calls.append(np.shape(x))
            return log_density(x)

        batched = jax.jit(jax.vmap(jax.vmap(pe.from_numpy(counted, vectorised=vectorised))))
        x = np.arange(12.0).reshape(2, 3, 2)
        batched(x)
        assert calls == ([(6, 2)] if vectorised else [(2,)] * 6)
        batched(x)
        assert len(calls) == (1 if vectorised else 6)

    def test_bits_survive_the_border(self, vectorised):
        """XLA's threads know nothing of the context of double precision."""
        seen = []
        function = pe.from_numpy(lambda x: seen.append(x.dtype) or np.sum(x, -1), vectorised=vectorised)
        x = np.array([[1 / 3, 1e-17], [np.pi, 1e300]])
        with jax.enable_x64(True):
            value = np.asarray(jax.jit(jax.vmap(function))(x))
        np.testing.assert_array_equal(value, x.sum(axis=1))
        assert set(seen) == {np.dtype(np.float64)}


@pytest.mark.slow
def test_a_dict_of_parameters_with_bounds_gives_the_draws_of_the_jax_function():
    def model(xp):
        return lambda p: -0.5 * xp.sum((p["a"] / p["s"]) ** 2) - 2 * xp.log(p["s"]) - p["s"]

    def slope(p):
        z = p["a"] / p["s"] ** 2
        return {"a": -z, "s": np.sum(z * p["a"]) / p["s"] - 2 / p["s"] - 1}

    example = {"a": np.ones(2), "s": 1.0}
    results = [
        pe.sample(pe.Target(function, example, bounds={"s": (0, None)}), example, method=HMC, **CHEAP)
        for function in (pe.from_numpy(model(np), slope), model(jnp))
    ]
    np.testing.assert_allclose(results[0].points["a"], results[1].points["a"], rtol=1e-6, atol=1e-9)


class TestNoGradient:
    def test_methods_that_need_one_refuse_and_offer_the_way_out(self):
        with pytest.raises(TypeError) as error:
            pe.sample(log_density, np.zeros(2), method=HMC, **CHEAP)
        assert_sentence(error, "gradient", "pe.RandomWalk()", "pe.from_numpy")

    def test_hidden_in_another_function_it_still_refuses(self, x64):
        hidden = pe.from_numpy(log_density)
        with pytest.raises(TypeError, match=r"pe\.RandomWalk"):
            jax.grad(lambda p: hidden(p["x"]))({"x": jnp.zeros(2)})

    def test_a_random_walk_works(self):
        result = pe.sample(log_density, np.zeros(2), method=pe.Plain(pe.RandomWalk()), **CHEAP)
        assert np.ptp(result.points) > 0
        assert any("no gradient" in note for note in result.notes)

    def test_a_jax_function_stays_one(self):
        assert as_target(in_jax, np.zeros(2))[0].is_differentiable
        assert not as_target(log_density, np.zeros(2))[0].is_differentiable

    def test_the_default_lists_the_modes_that_differences_find(self):
        """From a broad normal the same run took twenty times the evaluations, with four times the error of log Z."""
        centres, scales = np.array([[4.0, 0, 3], [-5, 2, 0], [0, -6, 1]]), np.array([1.0, 0.3, 0.5])

        def three(x):
            z = (x[:, None] - centres) / scales[:, None]
            return np.logaddexp.reduce(-0.5 * np.sum(z**2, axis=2) - 3 * np.log(scales), axis=1) - np.log(3)

        target = pe.from_numpy(three, vectorised=True)
        result = pe.sample(target, np.zeros(3), draws=60, warmup=60, chains=2, seed=0, progress=False)
        assert any("chosen: a mixture of 3 normals" in note for note in result.notes)
        assert abs(result.log_evidence.value - 1.5 * np.log(2 * np.pi)) < 0.2
        assert sum(result.evaluations) < 80_000

    @pytest.mark.slow
    def test_the_default_finds_both_modes_by_itself(self):
        """Two normals six apart: half of the mass on each side, within five of its own errors, and log Z = log 4π."""
        result = pe.sample(log_density, np.array([3.0, 3.0]), draws=1000, chains=2, seed=1, progress=False)
        right = result.expect(lambda x: x[0] > 0)
        assert abs(right.value - 0.5) < 5 * right.standard_error < 0.2
        assert abs(result.log_evidence.value - np.log(4 * np.pi)) < 5 * result.log_evidence.standard_error < 0.3


class TestFunctionsThatRaise:
    def test_everywhere_is_refused_with_what_it_said(self):
        def broken(x):
            raise KeyError("no such column")

        with pytest.raises(ValueError, match="no such column") as error:
            pe.sample(pe.from_numpy(broken), np.zeros(2), method=pe.Plain(pe.RandomWalk()), **CHEAP)
        assert_sentence(error, "KeyError")
        assert isinstance(error.value.__cause__, KeyError)

    def test_here_and_there_counts_as_density_zero_and_is_reported(self):
        def half(x):
            if x[0] < 0:
                raise ArithmeticError("negative")
            return -0.5 * float(x @ x)

        method = pe.Plain(pe.RandomWalk())
        run = CHEAP | {"draws": 300, "warmup": 100}
        result = pe.sample(pe.from_numpy(half), np.ones(1), method=method, **run)
        assert np.all(result.points >= 0)
        [complaint] = [sentence for sentence in result.warnings if "negative" in sentence]
        assert_sentence(complaint, "ArithmeticError", "density zero", "times")

    @pytest.mark.slow
    def test_a_gradient_that_raises_is_a_rejection(self):
        def steep(x):
            if x[0] > 0.5:
                raise ArithmeticError("too steep")
            return -x

        function = pe.from_numpy(lambda x: -0.5 * float(x @ x), steep)
        result = pe.sample(function, np.zeros(1), method=HMC, **CHEAP)
        assert np.all(result.points <= 0.5)

    @pytest.mark.parametrize("value", [None, "high", np.zeros(3), [1.0, 2.0]])
    def test_what_is_no_number_is_named(self, value, x64):
        function = pe.from_numpy(lambda x: value)
        assert np.isnan(function(jnp.zeros(2)))
        [complaint] = function.complaints()
        assert_sentence(complaint, "log_density", "must")


@pytest.mark.parametrize("options", [{"gradient": 3}, {"vectorised": "yes"}])
def test_bad_options_are_refused(options):
    with pytest.raises((TypeError, ValueError)) as error:
        pe.from_numpy(log_density, **options)
    assert_sentence(error, *options)


def not_below_zero(x):
    """At the top of a module, so that another process can import it."""
    if x[0] < 0:
        raise ArithmeticError("negative")
    return -0.5 * float(x @ x)


def slow_at_first(theta):
    return -0.5 * float(np.sum((theta / 0.1) ** 2))


def twice(u):
    return 4 * u - 2


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


class TestPool:
    def test_other_processes_give_the_same_draws_and_their_errors_count(self, pool):
        run = CHEAP | {"method": pe.Plain(pe.RandomWalk()), "draws": 60}
        with_pool, without = (
            pe.sample(pe.from_numpy(not_below_zero, pool=each), np.ones(2), **run) for each in (pool, None)
        )
        np.testing.assert_array_equal(with_pool.points, without.points)
        [complaint] = [sentence for sentence in with_pool.warnings if "negative" in sentence]
        assert complaint in without.warnings

    def test_of_a_prior_transform(self, pool):
        target = pe.from_prior_transform(slow_at_first, twice, 2, pool=pool)
        result = pe.sample(target, method=pe.Plain(pe.RandomWalk()), **CHEAP)
        assert np.all(np.abs(result.points["theta"]) < 2)

    @pytest.mark.parametrize(
        ("options", "words"), [({"pool": 4}, ["pool", "4"]), ({"pool": map, "vectorised": True}, ["pool"])]
    )
    def test_refusals(self, options, words):
        with pytest.raises((TypeError, ValueError)) as refusal:
            pe.from_numpy(not_below_zero, **options)
        assert_sentence(refusal, *words)
