"""Before the run: a density that is none is refused, and a start that is not finite is explained by parameter."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.run.preflight import check_densities

from .sentences import assert_sentence


def tiny(target, init=None, **options):
    given = {"method": pe.Plain(pe.HMC(1)), "draws": 2, "warmup": 0, "chains": 1, "seed": 0, "progress": False}
    return pe.sample(target, init, **given | options)


BAD_VALUES = {
    "vector": lambda p: -(p["a"] ** 2),
    "one entry": lambda p: -jnp.sum(p["a"] ** 2)[None],
    "int": lambda p: jnp.sum(p["a"] > 0),
    "bool": lambda p: p["b"] > 0,
    "complex": lambda p: p["b"] * 1j,
    "None": lambda p: None,
    "string": lambda p: "a",
    "tuple": lambda p: (p["b"], p["b"]),
    "dict": lambda p: p,
}
EXAMPLE = {"a": np.zeros(3), "b": 1.0}


def good(p):
    return -jnp.sum(p["a"] ** 2) - p["b"] ** 2


@pytest.mark.parametrize("name", BAD_VALUES)
class TestNotADensity:
    def test_log_density(self, name):
        with pytest.raises((ValueError, TypeError)) as error:
            tiny(pe.Target(BAD_VALUES[name], EXAMPLE), EXAMPLE)
        assert_sentence(error, "log_density", "float")

    def test_plain_function(self, name):
        with pytest.raises((ValueError, TypeError)) as error:
            tiny(BAD_VALUES[name], EXAMPLE)
        assert_sentence(error, "float")

    @pytest.mark.parametrize("part", ["log_prior", "log_likelihood"])
    def test_parts_of_a_model(self, name, part):
        parts = {"log_prior": good, "log_likelihood": good} | {part: BAD_VALUES[name]}
        with pytest.raises((ValueError, TypeError)) as error:
            tiny(pe.Target(example=EXAMPLE, **parts), EXAMPLE)
        assert_sentence(error, part, "float")

    def test_base(self, name):
        with pytest.raises((ValueError, TypeError)) as error:
            tiny(pe.Target(good, EXAMPLE, base=pe.Base(BAD_VALUES[name])), EXAMPLE)
        assert_sentence(error, "base", "float")


def test_an_error_of_the_users_own_keeps_its_type_and_gains_a_note():
    def broken(p):
        raise KeyError("data")

    with pytest.raises(KeyError, match="data") as error:
        tiny(pe.Target(broken, EXAMPLE), EXAMPLE)
    assert any("log_density" in note and "a: (3,)" in note for note in error.value.__notes__)


def test_numpy_instead_of_jax_is_explained():
    with pytest.raises(TypeError) as error:
        tiny(pe.Target(lambda p: -np.sum(np.asarray(p["a"]) ** 2), EXAMPLE), EXAMPLE)
    assert_sentence(error, "log_density", "jax.numpy")


def test_a_python_if_in_a_jax_function_is_explained():
    """It would run as a NumPy function; but who writes jax.numpy wants gradients."""

    def slip(x):
        return -jnp.sum(x**2) if x[0] > 0 else -2 * jnp.sum(x**2)

    with pytest.raises(TypeError) as error:
        tiny(slip, np.ones(2))
    assert_sentence(error, "log_density", "jnp.where", "pe.from_numpy")


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("indices", "out_of_bounds"), [([0, 1, 2], False), ([1, 2, 3], True), ([-1, 0], False)])
def test_indices_that_count_from_1_are_a_doubt(indices, out_of_bounds):
    """JAX would read the last entry in place of one past it."""
    target = pe.Target(lambda p: good(p) - jnp.sum(p["a"][np.array(indices)]), EXAMPLE)
    doubts = check_densities(target, pe.Plain())
    assert bool(doubts) == out_of_bounds
    if out_of_bounds:
        assert_sentence(doubts[0], "log_density", "index 3", "shape (3,)", "from 0")


@pytest.mark.usefixtures("x64")
def test_what_jax_itself_drops_is_no_doubt():
    def cholesky(p):
        factor = jnp.zeros((2, 2)).at[jnp.tril_indices(2)].set(p["a"])
        return good(p) - jnp.sum(factor**2) - jnp.sum(p["a"][np.array([0, 2])])  # which alone is looked at

    assert check_densities(pe.Target(cholesky, EXAMPLE), pe.Plain()) == []


@pytest.mark.usefixtures("x64")
def test_low_precision_is_a_doubt():
    target = pe.Target(lambda p: good(p).astype(jnp.float32), EXAMPLE)
    [doubt] = check_densities(target, pe.Plain())
    assert "float32" in doubt
    assert "log_density" in doubt
    assert check_densities(pe.Target(good, EXAMPLE), pe.Plain()) == []


@pytest.mark.slow
def test_doubts_reach_the_result():
    result = tiny(lambda x: -jnp.sum(x.astype(jnp.float32) ** 2), np.zeros(1))
    assert any("float32" in sentence for sentence in result.warnings)


@pytest.mark.slow
def test_a_python_number_is_a_density():
    """A constant on bounded parameters: the uniform distribution."""
    result = tiny(pe.Target(lambda x: 0.0, np.full(1, 0.5), bounds=(0, 1)), np.full(1, 0.5))
    assert np.all((result.points > 0) & (result.points < 1))


START = {"mu": np.zeros(2), "nu": 1.0, "tau": 1.0}


def one_bad(value):
    """A density that is `value` as long as nu < 50, whatever the others are."""
    return lambda p: jnp.where(p["nu"] < 50, value, -jnp.sum(p["mu"] ** 2) - p["nu"] - p["tau"] ** 2)


class TestStartsThatAreNotFinite:
    @pytest.mark.parametrize("value", [-jnp.inf, jnp.nan, jnp.inf])
    @pytest.mark.parametrize(
        "method",
        [pe.Plain(pe.HMC(1)), pe.Plain(pe.RandomWalk()), pe.PseudoExtended(num_particles=2)],
        ids=["HMC", "walk", "PE"],
    )
    def test_names_the_parameter(self, value, method):
        with pytest.raises(ValueError, match="'nu'") as error:
            tiny(pe.Target(one_bad(value), START), START, method=method)
        assert_sentence(error, "log density", "at the start", f"{float(value):g}", "nu = ")
        assert "'mu'" not in str(error.value)
        assert "'tau'" not in str(error.value)

    def test_names_a_bounded_parameter(self):
        target = pe.Target(
            lambda p: jnp.where(p["s"] > 10, -p["s"], -jnp.inf) - p["m"] ** 2,
            {"s": 1.0, "m": 0.0},
            bounds={"s": (0, None)},
        )
        with pytest.raises(ValueError, match="parameter 's'") as error:
            tiny(target, {"s": 1.0, "m": 0.0})
        assert_sentence(error)
        assert "'m'" not in str(error.value)

    def test_nowhere_finite(self):
        with pytest.raises(ValueError, match="no single parameter") as error:
            tiny(pe.Target(lambda p: jnp.nan * p["nu"], START), START)
        assert_sentence(error, "nan")

    def test_gradient(self):
        """√|nu - 1| is finite at nu = 1, its gradient is not; the batch allows no other start."""
        target = pe.Target(lambda p: -jnp.sum(p["mu"] ** 2) - jnp.sqrt(jnp.abs(p["nu"] - 1)) - p["tau"] ** 2, START)
        batch = jax.tree.map(lambda leaf: np.asarray(leaf)[None], START)
        with pytest.raises(ValueError, match="gradient") as error:
            tiny(target, batch)
        assert_sentence(error, "'nu'")
        assert "'mu'" not in str(error.value)
        assert "'tau'" not in str(error.value)

    def test_no_gradient_needed(self):
        target = pe.Target(lambda p: -jnp.sum(p["mu"] ** 2) - jnp.sqrt(jnp.abs(p["nu"] - 1)) - p["tau"] ** 2, START)
        batch = jax.tree.map(lambda leaf: np.asarray(leaf)[None], START)
        assert tiny(target, batch, method=pe.Plain(pe.RandomWalk())).num_draws == 2

    def test_base_that_vanishes_at_the_start(self):
        base = pe.Base(lambda p: jnp.where(p["nu"] < 50, -jnp.inf, -p["nu"]))
        target = pe.Target(good_start, START, base=base)
        with pytest.raises(ValueError, match="base") as error:
            tiny(target, START, method=pe.PseudoExtended(num_particles=2))
        assert_sentence(error, "-inf", "nu = ")

    def test_a_method_without_a_path_does_not_care_about_the_base(self):
        base = pe.Base(lambda p: jnp.where(p["nu"] < 50, -jnp.inf, -p["nu"]))
        assert tiny(pe.Target(good_start, START, base=base), START).num_draws == 2

    def test_prior_that_vanishes_at_the_start(self):
        target = pe.Target(
            example=START,
            log_prior=lambda p: jnp.where(p["nu"] < 50, -jnp.inf, -p["nu"]),
            log_likelihood=lambda p: -jnp.sum(p["mu"] ** 2) - p["tau"] ** 2,
        )
        with pytest.raises(ValueError, match="log_prior") as error:
            tiny(target, START)
        assert_sentence(error, "-inf", "'nu'")

    def test_instrument_that_vanishes_at_the_start(self):
        """Its weight there would be infinite, and all weights of the run nan."""
        instrument = pe.Density(lambda p: jnp.where(p["nu"] < 50, -jnp.inf, -p["nu"]))
        method = pe.PseudoExtended(instrument, pe.HMC(1), 2)
        with pytest.raises(ValueError, match="instrument") as error:
            tiny(pe.Target(good_start, START), START, method=method)
        assert_sentence(error)

    def test_says_how_often_it_tried(self):
        with pytest.raises(ValueError, match="100 values of the function init") as error:
            tiny(pe.Target(one_bad(-jnp.inf), START), lambda key: START)
        assert_sentence(error)


def good_start(p):
    return -jnp.sum(p["mu"] ** 2) - p["nu"] ** 2 - p["tau"] ** 2
