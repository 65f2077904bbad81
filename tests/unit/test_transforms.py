"""Bounds: Jacobians against autodiff, and round trips.

Tolerances: 1e-12 is some thousand roundings of doubles; inverting a bound at |u| ≤ 6 loses e^6 ≈ 400 of them.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pseudo_extended.target.transforms import bounds_from

from .sentences import assert_sentence

INF = np.inf
CASES = {
    "none": (None, None),
    "lower": (1.5, None),
    "upper": (None, -0.5),
    "both": (-1.0, 3.0),
    "infinite numbers": (-INF, INF),
    "mixed": (np.array([-INF, 0.0, -INF, -1.0, 2.0]), np.array([INF, INF, 2.0, 3.0, 2.5])),
    "a list with all but one kind": ([0.0, -INF, 0.0, -INF, 1.0], None),
}


@pytest.fixture(params=CASES)
def bounds(request):
    return bounds_from("x", CASES[request.param], (5,))


@pytest.mark.usefixtures("x64")
class TestBounds:
    def test_log_determinant_is_that_of_the_jacobian(self, bounds):
        points = jnp.asarray(np.random.default_rng(0).normal(size=(3, 5)) * 3)
        jacobians, log_dets = jax.jit(
            jax.vmap(lambda u: (jax.jacfwd(lambda u: bounds.constrain(u)[0])(u), bounds.constrain(u)[1]))
        )(points)
        for jacobian, log_det in zip(np.asarray(jacobians), np.asarray(log_dets), strict=True):
            assert np.all(jacobian == np.diag(np.diag(jacobian))), "an entry depends on another"
            np.testing.assert_allclose(log_det, np.linalg.slogdet(jacobian)[1], rtol=1e-12, atol=1e-12)

    def test_round_trip(self, bounds):
        u = jnp.linspace(-6, 6, 5)
        x, _ = bounds.constrain(u)
        np.testing.assert_allclose(bounds.unconstrain(x), u, rtol=0, atol=1e-11)

    def test_inside_the_bounds(self, bounds):
        x = np.asarray(bounds.constrain(jnp.linspace(-20, 20, 5))[0])
        assert np.all((x > bounds.lower) & (x < bounds.upper))

    def test_far_out_the_slope_is_still_finite(self, bounds):
        """A step far too large must not turn into a nan: at |u| = 700, exp(u) is still a double."""
        for u in (-700.0, 700.0):
            x, log_slope = bounds.constrain(jnp.full(5, u))
            assert np.all(np.isfinite(x))
            assert np.isfinite(log_slope)


@pytest.mark.usefixtures("x64")
def test_each_entry_has_its_own_bound():
    """In a parameter of mixed kinds no bound may slip to a neighbour: each entry against the table in the source."""
    lower, upper = CASES["mixed"]
    u = np.array([-0.7, 0.3, 1.1, -1.9, 0.4])
    expected = [
        u[0],
        0.0 + np.exp(u[1]),
        2.0 - np.exp(u[2]),
        -1.0 + 4.0 / (1 + np.exp(-u[3])),
        2.0 + 0.5 / (1 + np.exp(-u[4])),
    ]
    x, _ = bounds_from("x", (lower, upper), (5,)).constrain(jnp.asarray(u))
    np.testing.assert_allclose(x, expected, rtol=1e-14)


@pytest.mark.usefixtures("x64")
def test_outside_has_no_unconstrained_value():
    both = bounds_from("x", (0, 1), (4,))
    assert not np.any(np.isfinite(both.unconstrain(jnp.array([-0.5, 0.0, 1.0, 1.5]))))


@pytest.mark.usefixtures("x64")
def test_bounds_of_a_matrix_broadcast_and_are_flat():
    bounds = bounds_from("x", (np.array([[0.0], [1.0]]), None), (2, 3))
    np.testing.assert_array_equal(bounds.lower, [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (3, TypeError),
        ((1,), TypeError),
        ((1, 2, 3), TypeError),
        ("ab", TypeError),
        (("a", None), TypeError),
        (({}, None), TypeError),
        ((np.zeros(4), None), TypeError),
        ((1j, None), TypeError),
        ((1, 1), ValueError),
        ((2, 1), ValueError),
        ((np.nan, None), ValueError),
        ((None, np.nan), ValueError),
        ((INF, None), ValueError),
        ((None, -INF), ValueError),
        ((np.array([0.0, 0, 0, 0, 2]), 1), ValueError),
        ((-1e308, 1e308), ValueError),  # b - a is no double, so x(u) would be nan
    ],
)
def test_bad_bounds_are_refused(value, kind):
    with pytest.raises(kind) as error:
        bounds_from("sigma", value, (5,))
    assert_sentence(error, "'sigma'", "bounds")
