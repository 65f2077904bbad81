"""What the density of a prior integrates to: found where its draws can tell, and not claimed where they cannot."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.pilot.prior_mass import PriorMass, log_ratios, prior_mass

pytestmark = pytest.mark.usefixtures("x64")

# Five standard errors of four batches, t with 3 degrees of freedom: false alarm 2 %, and seeds are constants.


def mass_of(log_prior, sample_prior, example, seed=0, **options):
    target = pe.Target(
        log_prior=log_prior, log_likelihood=lambda p: 0.0, sample_prior=sample_prior, example=example, **options
    )
    return prior_mass(*jax.jit(lambda key: log_ratios(target, key))(jax.random.key(seed)))


@pytest.mark.parametrize("dim", [1, 5, 40])
@pytest.mark.parametrize("constant", [0.0, -5.0])
def test_a_constant_that_was_left_out(dim, constant):
    normaliser = 0.5 * dim * np.log(2 * np.pi) + dim * np.log(0.1)
    mass = mass_of(
        lambda x: -0.5 * jnp.sum((x / 0.1) ** 2) - normaliser + constant,
        lambda key: 0.1 * jax.random.normal(key, (dim,)),
        np.zeros(dim),
    )
    assert mass.is_known
    if constant == 0:
        assert mass == PriorMass()
    else:
        assert abs(mass.log - constant) < 5 * mass.error < 0.5


def test_a_bounded_parameter_takes_its_jacobian_along():
    mass = mass_of(lambda x: -3 * x, lambda key: jax.random.exponential(key) / 3, 1.0, bounds=(0, None))
    assert abs(mass.log + np.log(3)) < 5 * mass.error < 0.5


def test_nothing_is_claimed_where_the_fit_is_hopeless():
    """A funnel in 60 dimensions, whose draws and those of a normal fitted to them have nothing in common."""

    def draw(key):
        key_scale, key_rest = jax.random.split(key)
        log_scale = 3 * jax.random.normal(key_scale)
        return jnp.append(jnp.exp(log_scale) * jax.random.normal(key_rest, (60,)), log_scale)

    def log_prior(x):
        return -0.5 * jnp.sum((x[:-1] * jnp.exp(-x[-1])) ** 2) - 60 * x[-1] - 0.5 * (x[-1] / 3) ** 2

    assert not mass_of(log_prior, draw, np.zeros(61)).is_known


def test_draws_outside_of_their_own_density_say_nothing():
    mass = mass_of(lambda x: jnp.where(x[0] > 0, 0.0, -jnp.inf), lambda key: jax.random.normal(key, (1,)), np.ones(1))
    assert not mass.is_known
