"""Target: the flat vector, names, bounds, and the two ends of the path.

Values are compared at 1e-13: the same few operations in another order.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe

from .sentences import assert_sentence


def log_density(p):
    return -jnp.sum(p["theta"] ** 2) / p["tau"] - p["tau"] ** 2


EXAMPLE = {"theta": np.zeros((2, 3)), "tau": 1.0}
POSITION = {"theta": np.arange(6.0).reshape(2, 3) / 10, "tau": 0.8}


def model(**options):
    return pe.Target(log_density, EXAMPLE, bounds={"tau": (0, None)}, **options)


def test_flat_vector_goes_through_the_names_in_order():
    target = model()
    assert target.names == ("tau", "theta")
    assert target.dim == 7
    flat = np.asarray(target.unconstrain(POSITION))
    np.testing.assert_allclose(flat, np.r_[np.log(0.8), POSITION["theta"].ravel()], rtol=1e-15)


@pytest.mark.usefixtures("x64")
def test_constrain_undoes_unconstrain():
    position = model().constrain(model().unconstrain(POSITION))
    assert position.keys() == POSITION.keys()
    for name, value in POSITION.items():
        assert position[name].shape == np.shape(value)
        np.testing.assert_allclose(position[name], value, rtol=1e-15)


def test_unconstrain_is_double_whatever_the_users_precision():
    assert model().unconstrain(POSITION).dtype == np.float64


@pytest.mark.usefixtures("x64")
class TestPath:
    u = np.r_[-0.3, np.arange(6.0) / 10]

    def by_hand(self):
        tau, theta = np.exp(-0.3), np.arange(6) / 10
        return -np.sum(theta**2) / tau - tau**2, -0.3  # the user's log density, and the log Jacobian of tau = exp(u)

    def test_without_a_base(self):
        value, log_det = self.by_hand()
        path = model().path_point(jnp.asarray(self.u))
        assert float(path.log_base) == 0.0
        np.testing.assert_allclose(path.delta, value + log_det, rtol=1e-13)
        np.testing.assert_allclose(model().log_target(jnp.asarray(self.u)), value + log_det, rtol=1e-13)

    def test_normal_base_has_no_jacobian(self):
        value, log_det = self.by_hand()
        path = model(base=pe.Normal(0.0, 2.0)).path_point(jnp.asarray(self.u))
        log_base = np.sum(-0.5 * (self.u / 2) ** 2 - np.log(2 * np.sqrt(2 * np.pi)))
        np.testing.assert_allclose(path.log_base, log_base, rtol=1e-13)
        np.testing.assert_allclose(path.delta, value + log_det - log_base, rtol=1e-13)

    def test_own_base_has_the_jacobian(self):
        value, log_det = self.by_hand()
        path = model(base=pe.Base(lambda p: -p["tau"])).path_point(jnp.asarray(self.u))
        log_base = -np.exp(-0.3) + log_det
        np.testing.assert_allclose(path.log_base, log_base, rtol=1e-13)
        np.testing.assert_allclose(path.delta, value + log_det - log_base, rtol=1e-13)

    def test_prior_is_the_base_and_takes_the_jacobian(self):
        target = pe.Target(
            example=EXAMPLE,
            log_prior=lambda p: -(p["tau"] ** 2),
            log_likelihood=lambda p: -jnp.sum(p["theta"] ** 2) / p["tau"],
            bounds={"tau": (0, None)},
        )
        value, log_det = self.by_hand()
        path = target.path_point(jnp.asarray(self.u))
        np.testing.assert_allclose(path.log_base, -np.exp(-0.6) + log_det, rtol=1e-13)
        np.testing.assert_allclose(path.delta, -np.sum((np.arange(6) / 10) ** 2) / np.exp(-0.3), rtol=1e-13)
        np.testing.assert_allclose(target.log_target(jnp.asarray(self.u)), value + log_det, rtol=1e-13)

    def test_another_base_replaces_the_prior(self):
        target = pe.Target(
            example=EXAMPLE,
            log_prior=lambda p: -(p["tau"] ** 2),
            log_likelihood=lambda p: -jnp.sum(p["theta"] ** 2) / p["tau"],
            bounds={"tau": (0, None)},
            base=pe.Normal(),
        )
        value, log_det = self.by_hand()
        np.testing.assert_allclose(target.log_target(jnp.asarray(self.u)), value + log_det, rtol=1e-13)
        assert target.base.can_sample

    def test_end_of_the_path_does_not_depend_on_the_base(self):
        plain, with_base = model(), model(base=pe.Normal(1.0, 3.0))
        for function in (
            lambda t: t.log_target(jnp.asarray(self.u)),
            lambda t: jax.grad(t.log_target)(jnp.asarray(self.u)),
        ):
            np.testing.assert_allclose(function(with_base), function(plain), rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("value", [jnp.nan, jnp.inf])
    def test_what_is_no_log_density_is_density_zero(self, value):
        target = pe.Target(lambda x: jnp.where(x[0] > 0, value, 0.0), np.zeros(1))
        assert float(target.log_target(jnp.array([1.0]))) == -np.inf
        assert float(target.log_target(jnp.array([-1.0]))) == 0.0


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("example", "names"),
    [
        (np.zeros(2), ("x",)),
        (1.0, ("x",)),
        ([1.0, np.zeros(2)], ("x0", "x1")),
        ({"b": 1.0, "a": {"c": 2.0, "d": [3.0]}}, ("a.c", "a.d.0", "b")),
    ],
)
def test_names_of_any_pytree(example, names):
    def total(position):
        return -sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(position))

    target = pe.Target(total, example)
    assert target.names == names
    u = jnp.arange(float(target.dim))
    assert jax.tree.structure(target.constrain(u)) == jax.tree.structure(example)
    assert float(target.log_target(u)) == -float(jnp.sum(u**2))


def test_names_that_the_paths_make_equal_are_told_apart_or_refused():
    """{'a': {'b': …}} and {'a.b': …} would both be `a.b`: one of the two numbers must not get lost."""
    example = {"a": {"b": 1.0}, "a.b": 2.0}
    try:
        target = pe.Target(lambda p: -(p["a"]["b"] ** 2), example)
    except ValueError as error:
        assert_sentence(error, "a.b")
    else:
        assert target.dim == 2
        assert len(set(target.names)) == 2


def test_given_names():
    assert pe.Target(abs, np.zeros(2), names="theta").names == ("theta",)
    assert pe.Target(abs, [1.0, 2.0], names=["mu", "sigma"]).names == ("mu", "sigma")


@pytest.mark.parametrize("names", [["a", "b"], [], "", [3], ["a", "a"], 5, [None], "chain", "draw"])
def test_bad_names(names):
    with pytest.raises((ValueError, TypeError)) as error:
        pe.Target(abs, np.zeros(2), names=names)
    assert_sentence(error, "names")


def test_two_equal_names():
    with pytest.raises(ValueError, match="names") as error:
        pe.Target(abs, [1.0, 2.0], names=["a", "a"])
    assert_sentence(error, "differ")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"log_prior": abs},
        {"log_likelihood": abs},
        {"log_density": abs, "log_prior": abs},
        {"log_density": abs, "log_likelihood": abs},
        {"log_density": abs, "sample_prior": abs},
        {"log_prior": abs, "log_likelihood": abs, "base": pe.Normal(), "sample_prior": abs},
    ],
)
def test_a_density_that_is_not_given_once(arguments):
    with pytest.raises((TypeError, ValueError)) as error:
        pe.Target(example=np.zeros(2), **arguments)
    assert_sentence(error)


@pytest.mark.parametrize(
    "example", [None, {}, (), np.zeros(0), {"a": np.zeros((0, 2))}, "abc", {"a": "b"}, [np.nan], {"a": [1, "b"]}]
)
def test_bad_example(example):
    with pytest.raises((TypeError, ValueError)) as error:
        pe.Target(abs, example)
    assert_sentence(error, "example")


@pytest.mark.parametrize(
    "position",
    [
        np.zeros(7),
        {"theta": np.zeros((2, 3))},
        {**POSITION, "more": 1.0},
        {"theta": np.zeros((3, 2)), "tau": 1.0},
        {"theta": np.zeros((2, 3)), "tau": np.ones(1)},
        {"theta": np.full((2, 3), np.nan), "tau": 1.0},
        {"theta": "a", "tau": 1.0},
        None,
    ],
)
def test_a_position_that_does_not_fit(position):
    with pytest.raises((TypeError, ValueError)) as error:
        model().unconstrain(position)
    assert_sentence(error, "position")


@pytest.mark.parametrize(("tau", "inside"), [(1e-300, True), (0.0, False), (-1.0, False)])
def test_outside_bounds_names_the_parameter(tau, inside):
    sentence = model().outside_bounds({**POSITION, "tau": tau})
    if inside:
        assert sentence is None
    else:
        assert "'tau'" in sentence
        assert f"{tau:g}" in sentence


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [
        ("bounds", {"tua": (0, None)}, "'tua'"),
        ("bounds", (0, None), "bounds"),
        ("bounds", {"tau": 0}, "'tau'"),
        ("bounds", 3, "bounds"),
        ("dims", {"theta": ["a"]}, "'theta'"),
        ("dims", {"tau": ["a"]}, "'tau'"),
        ("dims", {"tua": []}, "'tua'"),
        ("dims", {"theta": 5}, "dims"),
        ("dims", {"theta": [1, 2]}, "dims"),
        ("dims", {"theta": ["a", "a"]}, "a"),
        ("dims", 5, "dims"),
        ("dims", 0, "dims"),
        ("dims", ["a"], "dims"),
        ("dims", np.zeros(3), "dims"),
        ("dims", {"theta": ["chain", "b"]}, "chain"),
        ("dims", {"theta": ["a", "draw"]}, "draw"),
        ("dims", {"theta": ["theta", "b"]}, "theta"),
        ("coords", {"theta_dim_0": [1, 2, 3]}, "theta_dim_0"),
        ("coords", {"nowhere": [1]}, "'nowhere'"),
        ("coords", {"theta_dim_0": 5}, "coords"),
        ("coords", ["a"], "coords"),
        ("base", 3, "base"),
        ("base", pe.Normal, "base"),
    ],
)
def test_bad_options(option, value, named):
    """What would only fail in `to_arviz`, after the run, is refused here."""
    options = {"bounds": {"tau": (0, None)}} | {option: value}
    with pytest.raises((TypeError, ValueError)) as error:
        pe.Target(log_density, EXAMPLE, **options)
    assert_sentence(error, named)


def test_one_dimension_has_one_length():
    with pytest.raises(ValueError, match="'school'") as error:
        pe.Target(abs, {"a": np.zeros(2), "b": np.zeros(3)}, dims={"a": ["school"], "b": ["school"]})
    assert_sentence(error)


def test_one_axis_one_name():
    with pytest.raises(ValueError, match="'a'") as error:
        pe.Target(abs, np.zeros((2, 2)), dims={"x": ["a", "a"]})
    assert_sentence(error, "dim")


def test_dims_and_coords_are_kept():
    target = pe.Target(abs, EXAMPLE, dims={"theta": ["row", "column"]}, coords={"row": ["u", "v"], "column": [1, 2, 3]})
    assert target.parameters[1].dims == ("row", "column")
    assert dict(target.coords) == {"row": ("u", "v"), "column": (1, 2, 3)}


def test_dates_stay_dates():
    days = np.array(["2020-01-01", "2020-01-02"], "datetime64[ns]")
    target = pe.Target(abs, np.zeros(2), dims={"x": ["day"]}, coords={"day": days})
    np.testing.assert_array_equal(np.asarray(dict(target.coords)["day"], "datetime64[ns]"), days)
    assert not isinstance(dict(target.coords)["day"][0], int)


def test_draw_base_needs_a_base():
    with pytest.raises(ValueError, match="base") as error:
        model().draw_base(jax.random.key(0))
    assert_sentence(error)
