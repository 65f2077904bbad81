"""Instruments: their arguments, their temperatures, and the combinations that have no proper extended target."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest, spearmanr

import pseudo_extended as pe

from .sentences import assert_sentence

PLAIN = pe.Target(lambda x: -0.5 * jnp.sum(x**2), np.zeros(2))
WITH_BASE = pe.Target(lambda x: -0.5 * jnp.sum(x**2), np.zeros(2), base=pe.Normal(0.0, 3.0))
WITH_PRIOR = pe.Target(
    example=np.zeros(2), log_prior=lambda x: -0.1 * jnp.sum(x**2), log_likelihood=lambda x: -jnp.sum((x - 1) ** 2)
)

# One for each kind, with its number of auxiliary variables for N = 3.
INSTRUMENTS = {
    "tempered": (pe.Tempered(0.1, 0.9), 3),
    "fixed": (pe.Fixed(0.4), 0),
    "ladder": (pe.Ladder([0.1, 0.5, 1.0], [0.3, -0.2, 0.0]), 0),
    "density": (pe.Density(pe.Normal(0.0, 2.0)), 0),
    "stratified": (pe.Stratified(0.1), 2),
    "stratified, regular": (pe.Stratified(0.1, correlation=-0.2), 3),
    "per particle": (pe.PerParticle([pe.Tempered(0.1), pe.Fixed(0.3), pe.Density(pe.Normal())]), 1),
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", INSTRUMENTS)
def test_shapes(name):
    instrument, num_auxiliary = INSTRUMENTS[name]
    instrument.check(PLAIN, 3)
    assert instrument.num_auxiliary(3) == num_auxiliary
    auxiliary = instrument.start(jax.random.key(0), 3)
    assert auxiliary.shape == (num_auxiliary,)
    assert auxiliary.dtype == np.float64
    betas = np.asarray(instrument.betas(3, auxiliary))
    assert betas.shape == (3,)
    has_none = name == "density"
    assert np.all(np.isnan(betas)) if has_none else np.all((betas[:2] >= 0) & (betas[:2] <= 1))


IMPROPER = {
    "tempered": (pe.Tempered(beta_min=0.0), 2, "beta_min of Tempered"),
    "fixed": (pe.Fixed(0.0), 2, "beta of Fixed"),
    "ladder": (pe.Ladder([0.0, 1.0]), 2, "betas of Ladder"),
    "stratified": (pe.Stratified(beta_min=0.0), 2, "beta_min of Stratified"),
    "one of many": (pe.PerParticle([pe.Fixed(0.5), pe.Tempered(beta_min=0.0)]), 2, "beta_min of Tempered"),
}


@pytest.mark.parametrize("name", IMPROPER)
class TestImproper:
    def test_refused_without_a_base(self, name):
        instrument, num_particles, what = IMPROPER[name]
        with pytest.raises(ValueError, match="improper") as error:
            instrument.check(PLAIN, num_particles)
        assert_sentence(error, what, "infinite", "base")

    def test_refused_by_sample_before_any_work(self, name):
        instrument, num_particles, what = IMPROPER[name]
        method = pe.PseudoExtended(instrument, num_particles=num_particles)
        with pytest.raises(ValueError, match="improper") as error:
            pe.sample(PLAIN, np.zeros(2), method=method, progress=False)
        assert_sentence(error, what)

    @pytest.mark.parametrize("target", [WITH_BASE, WITH_PRIOR])
    def test_accepted_with_a_base(self, name, target):
        instrument, num_particles, _ = IMPROPER[name]
        instrument.check(target, num_particles)


@pytest.mark.parametrize(
    "instrument", [pe.Tempered(1e-3), pe.Fixed(1e-3), pe.Ladder([1e-3, 1]), pe.Stratified(1e-3)], ids=repr
)
def test_a_positive_beta_needs_no_base(instrument):
    instrument.check(PLAIN, 2)


@pytest.mark.parametrize("kind", [pe.Tempered, pe.Stratified])
@pytest.mark.parametrize(
    ("low", "high", "named"),
    [
        (-0.1, 1.0, "beta_min"),
        (1.0, 1.0, "beta_min"),
        (0.1, 1.1, "beta_max"),
        (0.1, 0.0, "beta_max"),
        (0.5, 0.5, "beta_min"),
        (0.6, 0.5, "beta_min"),
        (np.nan, 1.0, "beta_min"),
        (0.1, np.inf, "beta_max"),
        ("a", 1.0, "beta_min"),
        (0.1, None, "beta_max"),
    ],
)
def test_bad_range(kind, low, high, named):
    with pytest.raises((ValueError, TypeError)) as error:
        kind(low, high)
    assert_sentence(error, f"{named} of {kind.__name__}")


@pytest.mark.parametrize("beta", [-0.1, 1.1, np.nan, "a", None, [0.5]])
def test_bad_fixed(beta):
    with pytest.raises((ValueError, TypeError)) as error:
        pe.Fixed(beta)
    assert_sentence(error, "beta of Fixed")


@pytest.mark.parametrize(
    "betas", [[], 0.5, [0.5, 0.5], [0.9, 0.1], [-0.1, 0.5], [0.5, 1.1], [[0.1, 0.5]], "a", [np.nan]]
)
def test_bad_rungs(betas):
    with pytest.raises((ValueError, TypeError)) as error:
        pe.Ladder(betas)
    assert_sentence(error, "betas of Ladder")


@pytest.mark.parametrize("log_g", [[0.0], 0.0, [0.0, np.inf], "a", [[0.0, 0.0]]])
def test_bad_log_g_of_a_ladder(log_g):
    with pytest.raises((ValueError, TypeError)) as error:
        pe.Ladder([0.1, 0.9], log_g)
    assert_sentence(error, "log_g of Ladder")


def test_a_ladder_has_one_rung_for_each_pseudo_sample():
    with pytest.raises(ValueError, match="3 pseudo-samples") as error:
        pe.Ladder([0.1, 0.9]).check(PLAIN, 3)
    assert_sentence(error, "betas of Ladder", "got 2")


@pytest.mark.parametrize("instruments", [[], (), None, pe.Fixed(0.5), [pe.Fixed], [0.5], "ab", {"a": 1}])
def test_bad_parts(instruments):
    with pytest.raises(TypeError) as error:
        pe.PerParticle(instruments)
    assert_sentence(error, "instruments", "PerParticle")


def test_one_instrument_for_each_pseudo_sample():
    with pytest.raises(ValueError, match="3 pseudo-samples") as error:
        pe.PerParticle([pe.Fixed(0.5)]).check(PLAIN, 3)
    assert_sentence(error, "got 1")


@pytest.mark.parametrize("name", ["log_prior", "log_g"])
@pytest.mark.parametrize(
    "function",
    [
        lambda beta: jnp.sum(beta),
        lambda beta: beta[:-1],
        lambda beta: (beta > 0.5).astype(int),
        lambda beta: jnp.log(beta - 0.5),
        lambda beta: jnp.full(beta.shape, jnp.inf),
        lambda beta: None,
        lambda beta: "a",
        lambda beta: {"a": beta},
    ],
    ids=["scalar", "short", "int", "nan", "inf", "None", "string", "dict"],
)
def test_bad_functions_of_beta(name, function):
    instrument = pe.Tempered(0.1, 0.9, **{name: function})
    with pytest.raises((ValueError, TypeError)) as error:
        instrument.check(PLAIN, 4)
    assert_sentence(error, f"{name} of Tempered")


@pytest.mark.parametrize("name", ["log_prior", "log_g"])
def test_functions_of_beta_must_be_functions(name):
    with pytest.raises(TypeError) as error:
        pe.Tempered(0.1, **{name: 3})
    assert_sentence(error, f"{name} of Tempered")


@pytest.mark.parametrize(
    "log_q",
    [
        lambda x: -(x**2),
        lambda x: None,
        lambda x: "a",
        lambda x: (1.0, 2.0),
        lambda x: {"a": jnp.sum(x)},
        lambda x: jnp.sum(x) > 0,
        lambda x: jnp.sum(x) * 1j,
    ],
    ids=["vector", "None", "string", "tuple", "dict", "bool", "complex"],
)
def test_bad_density(log_q):
    with pytest.raises((ValueError, TypeError)) as error:
        pe.Density(log_q).check(PLAIN, 2)
    assert_sentence(error, "log_q of Density")


@pytest.mark.parametrize("log_q", [3, None, "normal", pe.Normal])
def test_density_needs_a_function_or_a_base(log_q):
    with pytest.raises(TypeError) as error:
        pe.Density(log_q).check(PLAIN, 2)
    assert_sentence(error, "log_q of Density")


def test_density_of_another_dimension():
    with pytest.raises(ValueError, match="Density") as error:
        pe.Density(pe.Normal([0.0, 0.0, 0.0])).check(PLAIN, 2)
    assert_sentence(error, "length 2", "got 3")


class TestStratified:
    @pytest.mark.parametrize("correlation", [0.1, -1.1, "a", np.nan])
    def test_bad_correlation(self, correlation):
        with pytest.raises((ValueError, TypeError)) as error:
            pe.Stratified(0.1, correlation=correlation)
        assert_sentence(error, "correlation of Stratified")

    def test_stronger_than_possible(self):
        pe.Stratified(0.1, correlation=-0.5).check(PLAIN, 3)
        with pytest.raises(ValueError, match="correlation") as error:
            pe.Stratified(0.1, correlation=-0.5).check(PLAIN, 4)
        assert_sentence(error, "-0.333")

    def test_one_pseudo_sample_has_nothing_to_avoid(self):
        with pytest.raises(ValueError, match="at least 2") as error:
            pe.Stratified(0.1).check(PLAIN, 1)
        assert_sentence(error)

    @pytest.mark.parametrize("num_particles", [2, 3, 7])
    @pytest.mark.parametrize("fraction", [None, 1.0, 0.9, 0.0])
    def test_factor_gives_the_correlation(self, num_particles, fraction):
        """A Aᵀ has ones on the diagonal and ρ elsewhere, to rounding; singular ones have a column less."""
        rho = -(1.0 if fraction is None else fraction) / (num_particles - 1)
        instrument = pe.Stratified(0.1, correlation=None if fraction is None else rho)
        factor = instrument._factor(num_particles)
        expected = np.full((num_particles, num_particles), rho) + (1 - rho) * np.eye(num_particles)
        np.testing.assert_allclose(factor @ factor.T, expected, atol=1e-14)
        assert factor.shape[1] == num_particles - (fraction in (None, 1.0))

    @pytest.mark.usefixtures("x64")
    def test_temperatures_are_uniform_and_avoid_each_other(self):
        """Each β is uniform on its range (K-S), and the rank correlation of two is that of the copula.

        For a normal copula Spearman's ρ is 6/π arcsin(r/2); its standard error for n pairs is about 1/√n, and 5 of
        them are allowed.
        """
        instrument, size = pe.Stratified(0.2, 0.8, correlation=-0.4), 4000
        noise = jax.vmap(lambda key: instrument.start(key, 3))(jax.random.split(jax.random.key(0), size))
        betas = np.asarray(jax.vmap(lambda v: instrument.betas(3, v))(noise))
        for column in betas.T:
            assert kstest((column - 0.2) / 0.6, "uniform").pvalue > 1e-4
        expected = 6 / np.pi * np.arcsin(-0.4 / 2)
        for i, j in ((0, 1), (0, 2), (1, 2)):
            assert abs(spearmanr(betas[:, i], betas[:, j]).statistic - expected) < 5 / np.sqrt(size)

    @pytest.mark.usefixtures("x64")
    def test_singular_case_sums_to_zero(self):
        instrument = pe.Stratified(0.0, 1.0)
        betas = instrument.betas(2, jnp.array([0.7]))
        np.testing.assert_allclose(jnp.sum(betas), 1.0, rtol=1e-14)  # Φ(s) + Φ(-s)


@pytest.mark.usefixtures("x64")
def test_tempered_covers_its_range():
    """β(u) is a + (b - a)σ(u), also far out."""
    instrument = pe.Tempered(0.2, 0.7)
    u = np.array([-800.0, -2.0, 0.0, 1.0, 800.0])
    betas = np.asarray(instrument.betas(5, jnp.asarray(u)))
    np.testing.assert_allclose(betas[1:4], 0.2 + 0.5 / (1 + np.exp(-u[1:4])), rtol=1e-14)
    np.testing.assert_allclose(betas[[0, 4]], [0.2, 0.7], rtol=1e-15)
