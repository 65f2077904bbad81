"""A likelihood and a prior transform: the space, what is shown, what is refused, and the evidence against truth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import pseudo_extended as pe
from pseudo_extended.models.prior_transform import HIGHEST, LOWEST, UnitCube

from ..unit.sentences import assert_sentence


def eggbox(theta):
    return (2 + jnp.prod(jnp.cos(theta / 2))) ** 5


def stretch(u):
    return 10 * jnp.pi * u


class TestUnitCube:
    def test_draws_are_uniform_also_where_they_wrap(self, x64):
        cube = UnitCube(3, (1,))
        z = np.random.default_rng(0).normal(size=(20_000, cube.dim))
        u = np.asarray(jax.vmap(cube)(z))
        for column in u.T:
            assert stats.kstest(column, "uniform").pvalue > 1e-3  # a false alarm in three hundred, of a fixed seed
        np.testing.assert_allclose(u, cube.many(z), rtol=1e-12)

    def test_never_reaches_a_face(self, x64):
        far = np.array([-50.0, -38.0, -9.0, 0.0, 9.0, 50.0])
        u = np.asarray(UnitCube(6, ())(jnp.asarray(far)))
        assert np.all((u >= LOWEST) & (u <= HIGHEST))
        assert np.all(np.isfinite(stats.norm.ppf(u)))
        assert np.all(np.diff(u) >= 0)

    def test_neighbours_across_the_seam(self, x64):
        cube = UnitCube(1, (0,))
        above, below = (float(cube(jnp.array([1.0, offset]))[0]) for offset in (1e-6, -1e-6))
        assert above < 1e-6
        assert below > 1 - 1e-6


class TestTarget:
    def test_names_and_dimensions(self):
        target = pe.from_prior_transform(eggbox, stretch, names=["x", "y"])
        assert [part.name for part in target.shown] == ["x", "y"]
        assert pe.from_prior_transform(eggbox, stretch, 2).shown[0].shape == (2,)
        assert pe.from_prior_transform(eggbox, stretch, 2, periodic=[0, 1]).dim == 4

    def test_derived_parameters_are_shown(self):
        def transform(u):
            return jnp.append(u, u[0] * u[1])

        target = pe.from_prior_transform(lambda t: -t[2], transform, 2, names=["a", "b", "product"])
        assert target.dim == 2
        assert [part.name for part in target.shown] == ["a", "b", "product"]

    def test_prior_is_normalised(self, x64):
        target = pe.from_prior_transform(eggbox, stretch, 2)
        z = np.array([0.3, -1.2])
        point = target.path_point(jnp.asarray(z))
        assert float(point.log_base) == pytest.approx(stats.norm.logpdf(z).sum())
        assert float(point.delta) == pytest.approx(float(eggbox(10 * np.pi * stats.norm.cdf(z))))

    def test_functions_of_numpy_that_assign_in_place(self):
        """Dynesty's examples write into the unit cube; UltraNest's copy it first."""

        def transform(cube):
            cube[0] = 10 * cube[0]
            cube[1] = stats.norm.ppf(cube[1])
            return cube

        target = pe.from_prior_transform(lambda t: -float(np.sum(np.asarray(t) ** 2)), transform, names=["a", "b"])
        assert not target.is_differentiable
        flat = np.array([[0.0, 1.5], [0.0, 1.5]])
        shown = target.view.show(flat, target.constrain)
        np.testing.assert_allclose(shown["a"], 5)
        np.testing.assert_allclose(shown["b"], 1.5)

    def test_vectorised_functions_get_rows(self, x64):
        shapes = set()

        def log_likelihood(theta):
            shapes.add(theta.shape)
            return -np.sum(theta**2, axis=1)

        target = pe.from_prior_transform(log_likelihood, lambda u: u - 0.5, 3, vectorised=True)
        values = jax.jit(jax.vmap(lambda z: target.path_point(z).delta))(np.zeros((5, 3)) + np.arange(5)[:, None])
        assert values.shape == (5,)
        assert shapes == {(2, 3), (5, 3)}  # two at the try-out, and then all at once

    @pytest.mark.parametrize(
        ("arguments", "options", "words"),
        [
            ((eggbox, stretch), {}, ["ndim", "names"]),
            ((eggbox, stretch, 0), {}, ["ndim", "0"]),
            ((3, stretch, 2), {}, ["log_likelihood"]),
            ((eggbox, stretch, 2), {"names": ["x"]}, ["names", "2"]),
            ((eggbox, stretch, 2), {"names": "xy"}, ["names"]),
            ((eggbox, stretch, 2), {"names": ["x", "x"]}, ["names"]),
            ((eggbox, stretch), {"names": ["x", "y"], "periodic": ["z"]}, ["periodic", "'z'"]),
            ((eggbox, stretch, 2), {"periodic": [2]}, ["periodic", "2"]),
            ((lambda t: t, stretch, 2), {}, ["log_likelihood", "(2,)"]),
            ((eggbox, lambda u: u[:, None], 2), {}, ["prior_transform", "(2, 1)"]),
            ((lambda t: np.nope(t), stretch, 2), {}, ["log_likelihood", "nope"]),
            ((lambda t: jnp.sum(t) if t[0] > 0 else 0.0, stretch, 2), {}, ["JAX", "jnp.where"]),
        ],
    )
    def test_refusals(self, arguments, options, words):
        with pytest.raises((TypeError, ValueError)) as refusal:
            pe.from_prior_transform(*arguments, **options)
        assert_sentence(refusal, *words)

    def test_init_is_refused(self):
        target = pe.from_prior_transform(eggbox, stretch, 2)
        with pytest.raises(ValueError, match="no inverse") as refusal:
            pe.sample(target, {"theta": np.ones(2)}, draws=10, progress=False)
        assert_sentence(refusal, "init")


QUICK = {"draws": 400, "warmup": 400, "seed": 1, "progress": False}


@pytest.mark.slow
def test_evidence_of_the_eggbox():
    """235.856 by quadrature; the issue asks for a tenth."""
    result = pe.sample(pe.from_prior_transform(eggbox, stretch, names=["x", "y"]), **QUICK)
    found = result.log_evidence
    assert abs(found.value - 235.856) < min(0.1, 5 * found.standard_error)
    assert len(result.modes()) == 18
    assert np.all((result.points["x"] > 0) & (result.points["x"] < 10 * np.pi))


@pytest.mark.slow
def test_a_mode_across_the_seam_is_one_mode():
    """An angle with a narrow mode at zero, which a coordinate that does not wrap cuts in two."""

    def log_likelihood(theta):
        return 50 * (jnp.cos(theta[0]) - 1) - 0.5 * (theta[1] / 0.1) ** 2

    def transform(u):
        return jnp.array([2 * jnp.pi * u[0], 4 * u[1] - 2])

    names = ["angle", "x"]
    exact = np.log(np.i0(50)) - 50 + np.log(0.1 * np.sqrt(2 * np.pi) / 4)
    for periodic, modes in ((["angle"], 1), (None, 2)):
        result = pe.sample(pe.from_prior_transform(log_likelihood, transform, names=names, periodic=periodic), **QUICK)
        assert abs(result.log_evidence.value - exact) < min(0.1, 5 * result.log_evidence.standard_error)
        assert len(result.modes()) == modes


@pytest.mark.slow
def test_numpy_functions_find_the_same_evidence():
    def log_likelihood(theta):
        return (2 + np.prod(np.cos(theta / 2), axis=1)) ** 5

    target = pe.from_prior_transform(log_likelihood, lambda u: 10 * np.pi * u, 2, vectorised=True)
    found = pe.sample(target, draws=1000, seed=1, progress=False).log_evidence
    assert abs(found.value - 235.856) < min(0.1, 5 * found.standard_error)


def test_one_function_of_jax_and_one_of_scipy_are_told_which_cannot_be_traced():
    def prior_transform(u):
        return jnp.array([10 * u[0], stats.norm.ppf(u[1])])

    with pytest.raises(TypeError) as error:
        pe.from_prior_transform(lambda theta: -jnp.sum(theta**2), prior_transform, ndim=2)
    assert_sentence(error, "jax.scipy instead of scipy", "prior_transform raised TracerArrayConversionError")
