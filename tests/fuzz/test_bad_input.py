"""Bad input to every public entry point, one argument at a time.

Whatever comes in, the call works, or it raises a ValueError or TypeError whose message is one line, ends in a full stop
and names the argument. Any other exception is a bug. Examples are derived from the tests' names, so a run is the same
every time. An argument that is a function is also tried as a function that returns junk.
"""

import re
import warnings
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import pseudo_extended as pe
from pseudo_extended.testing import check_invariance


def fuzz(max_examples):
    """Without shrinking: the junk is small as it is, and a call may take a second."""
    return settings(
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=max_examples,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )


CHEAP = fuzz(80)
"""For calls that only check their arguments."""
TRACES = fuzz(25)
"""For calls that trace a function or run a tiny chain."""


class Opaque:
    """An object that is nothing in particular, with a long name of several lines."""

    def __repr__(self):
        return "Opaque(\n" + "    and more,\n" * 20 + ")"


NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**31, 2**63, 2**64 + 1, 10**30, 10**400, -(10**400), Fraction(1, 3), Fraction(10**400, 3)]),
    st.floats(),
    st.sampled_from([0.5, -0.5, 1.0, np.float32(0.5), np.float64("nan"), np.int8(1), np.bool_(True), np.uint64(2**63)]),
    st.complex_numbers(max_magnitude=3),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    st.text(max_size=4),
    st.binary(max_size=3),
    st.builds(Opaque),
    st.sampled_from([..., NotImplemented, slice(3), range(3), np.datetime64("2020-01-01"), np.dtype(float)]),
    st.just(np.array(0.5)),
    st.builds(lambda: jax.random.key(0)),
    st.builds(lambda: jnp.array([0.5, 2.0])),
)
ARRAYS = hnp.arrays(
    dtype=st.sampled_from([np.float64, np.float32, np.int64, np.bool_, np.complex128, np.object_, "U2", "M8[D]"]),
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    elements=None,
)
JUNK = st.recursive(
    SCALARS | ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.sampled_from(["x", "a", "", 0]), inner, max_size=2)
        | st.sets(st.integers(0, 3), max_size=2)
    ),
    max_leaves=5,
)
"""Nothing here can be called."""
CLASSES = st.sampled_from([np.ndarray, jax.Array, dict, int, Opaque, pe.Normal, pe.NUTS, pe.Tempered, pe.Target, abs])
OBJECTS = st.sampled_from([pe.Normal(), pe.NUTS(), pe.Tempered(0.1), pe.Plain(pe.HMC(1))])
ANYTHING = JUNK | CLASSES | OBJECTS


def returns(values):
    """Functions, of anything, that return junk."""
    return values.map(lambda value: lambda *arguments: value)


def is_position(value):
    """Whether a density could be asked about it: then a run on it would be a good run, and compile."""
    try:
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(value)]
        return bool(leaves) and all(leaf.dtype.kind in "fiub" and np.all(np.isfinite(leaf)) for leaf in leaves)
    except (TypeError, ValueError):
        return False


def is_density(value):
    """Whether it is one number: a constant is a density."""
    return is_position(value) and not isinstance(value, (list, tuple, dict)) and np.shape(value) == ()


NO_DENSITY = JUNK.filter(lambda value: not is_density(value))


def attempt(call, *names):
    """Call, and hold any refusal against the rule; `names` are what the argument may be called."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()
    except (ValueError, TypeError) as error:
        text = str(error)
        assert text.strip(), "an empty message"
        assert text.endswith("."), f"no sentence: {text}"
        assert "\n" not in text, f"more than a line: {text}"
        assert any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names), f"not {names}: {text}"
        return None


def normal(x):
    return -0.5 * jnp.sum(x**2)


TARGET = pe.Target(normal, np.zeros(2))
MODEL = pe.Target(lambda p: normal(p["a"]) - p["s"], {"a": np.zeros(2), "s": 1.0}, bounds={"s": (0, 1)})
WITH_BASE = pe.Target(normal, np.zeros(2), base=pe.Normal(0.0, 2.0))
METHOD = pe.Plain(pe.RandomWalk())
RUN = {"init": np.zeros(2), "method": METHOD, "draws": 2, "warmup": 1, "chains": 1, "seed": 0, "progress": False}


def run(target=TARGET, **options):
    """As short as a run can be."""
    return pe.sample(target, **RUN | options)


def is_large(value, limit):
    """Whether it is a whole number so large that the run itself would be long."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value > limit


class TestSample:
    # The largest value of each count that costs nothing; those that are part of the program compile anew.
    @pytest.mark.parametrize(
        ("name", "limit"),
        [
            ("draws", 3),
            ("warmup", 3),
            ("chains", 2),
            ("thin", 1),
            ("chunk", 1),
            ("cores", None),
            ("seed", None),
        ],
    )
    @TRACES
    @given(value=ANYTHING)
    def test_counts(self, name, limit, value):
        assume(limit is None or not is_large(value, limit))
        attempt(lambda: run(**{name: value}), name)

    @pytest.mark.parametrize("power", [31, 32, 62, 63, 64, 100, 2000])
    @pytest.mark.parametrize("offset", [-1, 0])
    def test_large_seeds(self, power, offset):
        attempt(lambda: run(seed=2**power + offset), "seed")

    @TRACES
    @given(value=ANYTHING)
    def test_progress(self, value):
        attempt(lambda: run(progress=value), "progress")

    @TRACES
    @given(value=ANYTHING)
    def test_method(self, value):
        assume(value is not None)
        attempt(lambda: run(method=value), "method")

    @TRACES
    @given(value=JUNK | OBJECTS)
    def test_target(self, value):
        attempt(lambda: run(value), "target")

    @pytest.mark.parametrize(
        "target", [TARGET, MODEL, WITH_BASE, normal], ids=["target", "model", "with base", "function"]
    )
    @TRACES
    @given(value=JUNK)
    def test_init(self, target, value):
        assume(target is not normal or not is_position(value))
        attempt(lambda: run(target, init=value), "init")

    @pytest.mark.parametrize("target", [TARGET, MODEL, normal], ids=["target", "model", "function"])
    @TRACES
    @given(init=returns(JUNK))
    def test_init_as_a_function(self, target, init):
        assume(target is not normal or not is_position(init()))
        attempt(lambda: run(target, init=init), "init")

    @TRACES
    @given(function=returns(NO_DENSITY))
    def test_density_that_returns_junk(self, function):
        attempt(lambda: run(function), "target", "log_density")

    @pytest.mark.parametrize("name", ["log_prior", "log_likelihood"])
    @TRACES
    @given(function=returns(NO_DENSITY))
    def test_part_that_returns_junk(self, name, function):
        parts = {"log_prior": normal, "log_likelihood": normal} | {name: function}
        attempt(lambda: run(pe.Target(example=np.zeros(2), **parts)), name)

    @TRACES
    @given(function=returns(NO_DENSITY))
    def test_base_that_returns_junk(self, function):
        attempt(lambda: run(pe.Target(normal, np.zeros(2), base=pe.Base(function))), "base")

    @fuzz(12)
    @given(sampler=returns(JUNK))
    def test_sampler_that_returns_junk(self, sampler):
        target = pe.Target(normal, np.zeros(2), base=pe.Base(normal, sampler))
        attempt(lambda: run(target, init=None), "sampler", "sample_prior")


class TestTarget:
    @pytest.mark.parametrize("name", ["log_density", "base", "names", "dims", "coords", "bounds", "example"])
    @CHEAP
    @given(value=JUNK)
    def test_any_argument(self, name, value):
        arguments = {"log_density": normal, "example": np.zeros((2, 3)), name: value}
        attempt(lambda: pe.Target(**arguments), name)

    @pytest.mark.parametrize("name", ["base", "names", "dims", "coords", "bounds", "example"])
    @CHEAP
    @given(value=CLASSES)
    def test_classes(self, name, value):
        arguments = {"log_density": normal, "example": np.zeros((2, 3)), name: value}
        attempt(lambda: pe.Target(**arguments), name)

    @pytest.mark.parametrize("name", ["log_prior", "log_likelihood", "sample_prior"])
    @CHEAP
    @given(value=JUNK)
    def test_parts(self, name, value):
        arguments = {"log_prior": normal, "log_likelihood": normal, "sample_prior": abs, "example": 0.0, name: value}
        attempt(lambda: pe.Target(**arguments), name, "sampler")

    @pytest.mark.parametrize("name", ["names", "dims", "coords", "bounds"])
    @CHEAP
    @given(value=JUNK, other=JUNK)
    def test_options_of_a_model(self, name, value, other):
        """Names that exist, with junk behind them."""
        option = {"a": value, "s": other} if name != "coords" else {"a_dim_0": value}
        example = {"a": np.zeros(2), "s": 1.0}
        attempt(lambda: pe.Target(normal, example, **{name: option}), name)

    @CHEAP
    @given(low=JUNK, high=JUNK)
    def test_bounds(self, low, high):
        attempt(lambda: pe.Target(normal, np.zeros(2), bounds=(low, high)), "bounds")

    @CHEAP
    @given(labels=st.lists(JUNK, min_size=2, max_size=2))
    def test_labels(self, labels):
        attempt(lambda: pe.Target(normal, np.zeros((2, 3)), dims={"x": labels}), "dims", "dimension")
        attempt(lambda: pe.Target(normal, np.zeros(2), coords={"x_dim_0": labels}), "coords")
        attempt(lambda: pe.Target(normal, [0.0, 0.0], names=labels), "names")

    @CHEAP
    @given(position=JUNK)
    def test_unconstrain(self, position):
        for target in (TARGET, MODEL):
            attempt(lambda target=target: target.unconstrain(position), "position")


class TestBases:
    @CHEAP
    @given(value=ANYTHING)
    def test_normal(self, value):
        attempt(lambda: pe.Normal(mean=value), "mean")
        attempt(lambda: pe.Normal(scale=value), "scale")

    @CHEAP
    @given(mean=ARRAYS, scale=ARRAYS)
    def test_normal_in_a_target(self, mean, scale):
        attempt(lambda: pe.Target(normal, np.zeros(2), base=pe.Normal(mean, scale)), "mean", "scale")

    @CHEAP
    @given(value=JUNK | OBJECTS)
    def test_base(self, value):
        attempt(lambda: pe.Base(value), "log_density")
        attempt(lambda: pe.Base(normal, value), "sampler")


class TestInstruments:
    @pytest.mark.parametrize("kind", [pe.Tempered, pe.Stratified])
    @pytest.mark.parametrize("name", ["beta_min", "beta_max"])
    @CHEAP
    @given(value=ANYTHING)
    def test_range(self, kind, name, value):
        attempt(lambda: kind(**{name: value}), name)

    @CHEAP
    @given(value=ANYTHING)
    def test_correlation(self, value):
        attempt(lambda: pe.Stratified(correlation=value), "correlation")

    @pytest.mark.parametrize("name", ["log_prior", "log_g"])
    @CHEAP
    @given(value=JUNK)
    def test_functions_of_beta(self, name, value):
        attempt(lambda: pe.Tempered(**{name: value}), name)

    @pytest.mark.parametrize("name", ["log_prior", "log_g"])
    @TRACES
    @given(function=returns(JUNK))
    def test_functions_of_beta_that_return_junk(self, name, function):
        attempt(lambda: pe.Tempered(0.1, **{name: function}).check(TARGET, 2), name)

    @CHEAP
    @given(value=ANYTHING)
    def test_fixed(self, value):
        attempt(lambda: pe.Fixed(value), "beta")

    @CHEAP
    @given(value=ANYTHING)
    def test_ladder(self, value):
        attempt(lambda: pe.Ladder(value), "betas")
        attempt(lambda: pe.Ladder([0.1, 0.9], value), "log_g")

    @CHEAP
    @given(value=JUNK)
    def test_density(self, value):
        attempt(lambda: pe.Density(value), "log_q")

    @TRACES
    @given(function=returns(JUNK))
    def test_density_that_returns_junk(self, function):
        attempt(lambda: pe.Density(function).check(TARGET, 2), "log_q")

    @CHEAP
    @given(value=ANYTHING, more=ANYTHING)
    def test_per_particle(self, value, more):
        attempt(lambda: pe.PerParticle(value), "instruments")
        attempt(lambda: pe.PerParticle([value, more]), "instruments[0]", "instruments[1]")

    @CHEAP
    @given(num_particles=st.integers(1, 6))
    def test_numbers_that_do_not_fit(self, num_particles):
        for instrument in (
            pe.Ladder([0.1, 0.2, 0.9]),
            pe.PerParticle([pe.Fixed(0.5)] * 3),
            pe.Stratified(0.1, correlation=-0.3),
            pe.PerParticle([pe.Stratified(0.1)]),
        ):
            attempt(
                lambda instrument=instrument: instrument.check(TARGET, num_particles),
                "betas",
                "instruments",
                "correlation",
                "Stratified",
            )


class TestKernels:
    @pytest.mark.parametrize("kind", [pe.HMC, pe.NUTS, pe.MALA, pe.RandomWalk])
    @CHEAP
    @given(value=ANYTHING)
    def test_acceptance(self, kind, value):
        attempt(lambda: kind(target_acceptance=value), "target_acceptance")

    @CHEAP
    @given(value=ANYTHING)
    def test_lengths(self, value):
        attempt(lambda: pe.HMC(num_steps=value), "num_steps")
        attempt(lambda: pe.NUTS(max_depth=value), "max_depth")

    @pytest.mark.parametrize("kind", [pe.Cycle, pe.Mixture])
    @CHEAP
    @given(value=ANYTHING, more=ANYTHING)
    def test_parts(self, kind, value, more):
        attempt(lambda: kind(value), "kernels")
        attempt(lambda: kind([value, more]), "kernels[0]", "kernels[1]")

    @CHEAP
    @given(value=ANYTHING)
    def test_probabilities(self, value):
        attempt(lambda: pe.Mixture([pe.NUTS(), pe.MALA()], value), "probabilities")


class TestMethods:
    @CHEAP
    @given(value=ANYTHING)
    def test_plain(self, value):
        attempt(lambda: pe.Plain(kernel=value), "kernel")
        attempt(lambda: pe.Plain(metric=value), "metric")

    @pytest.mark.parametrize("name", ["instrument", "kernel", "num_particles", "metric"])
    @CHEAP
    @given(value=ANYTHING)
    def test_pseudo_extended(self, name, value):
        attempt(lambda: pe.PseudoExtended(**{name: value}), name)


@pytest.fixture(scope="module")
def result():
    return run(MODEL, init={"a": np.zeros(2), "s": 0.5}, draws=5)


class TestResult:
    @TRACES
    @given(value=JUNK | OBJECTS)
    def test_expect(self, result, value):
        attempt(lambda: result.expect(value), "f")

    @TRACES
    @given(function=returns(JUNK))
    def test_expect_of_a_function_that_returns_junk(self, result, function):
        attempt(lambda: result.expect(function), "f")

    @CHEAP
    @given(value=ANYTHING)
    def test_quantile(self, result, value):
        attempt(lambda: result.quantile(value), "probability")

    @CHEAP
    @given(value=ANYTHING)
    def test_resample(self, result, value):
        attempt(lambda: result.resample(seed=value), "seed")
        attempt(lambda: result.resample_index(value), "seed")

    @TRACES
    @given(value=ANYTHING)
    def test_to_arviz(self, result, value):
        attempt(lambda: result.to_arviz(seed=value), "seed")


def exact(rng, size):
    return rng.normal(size=(size, 1))


def stay(key, state):
    return state


class TestTools:
    @pytest.mark.parametrize("name", ["step", "exact", "statistics"])
    @TRACES
    @given(value=JUNK)
    def test_functions_of_check_invariance(self, name, value):
        arguments = {"step": stay, "exact": exact, "num_draws": 100, "num_steps": 1, name: value}
        attempt(lambda: check_invariance(**arguments), name)

    @pytest.mark.parametrize("name", ["step", "exact", "statistics"])
    @TRACES
    @given(function=returns(JUNK))
    def test_functions_of_check_invariance_that_return_junk(self, name, function):
        arguments = {"step": stay, "exact": exact, "num_draws": 100, "num_steps": 1, name: function}
        attempt(lambda: check_invariance(**arguments), name)

    @pytest.mark.parametrize("name", ["num_draws", "num_steps", "seed"])
    @TRACES
    @given(value=ANYTHING)
    def test_numbers_of_check_invariance(self, name, value):
        assume(name == "seed" or not is_large(value, 200))
        arguments = {"step": stay, "exact": exact, "num_draws": 100, "num_steps": 1, name: value}
        attempt(lambda: check_invariance(**arguments), name)

    @pytest.mark.parametrize("power", [32, 63, 64, 2000])
    def test_large_seeds_of_check_invariance(self, power):
        attempt(lambda: check_invariance(stay, exact, num_draws=100, num_steps=1, seed=2**power), "seed")

    @CHEAP
    @given(value=ANYTHING)
    def test_twenty_modes(self, value):
        attempt(lambda: pe.problems.twenty_modes(value), "scenario")


def test_the_rule_itself_can_fail():
    """A planted bug of each kind."""

    def fails(error):
        with pytest.raises((AssertionError, KeyError)):
            attempt(lambda: (_ for _ in ()).throw(error), "draws")

    for error in (
        KeyError("draws must be positive."),
        ValueError(""),
        ValueError("draws must be positive"),
        ValueError("it must be positive."),
        TypeError("all_draws must\nbe positive."),
    ):
        fails(error)
    attempt(lambda: (_ for _ in ()).throw(ValueError("draws must be positive.")), "draws")


def test_expect_of_complex_numbers_is_refused(result):
    with pytest.raises(
        TypeError, match=r"^f must return real numbers; got complex ones: take their real and imaginary"
    ):
        result.expect(lambda p: [p["s"], 1j * p["s"]])
