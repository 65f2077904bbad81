"""pe.testing on a user's own kernel, instrument and method: what breaks a promise is named in a sentence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.kernels import AbstractKernel, KernelInfo, Metric, initial_state
from pseudo_extended.testing import ContractError, check_instrument, check_kernel, check_method
from tests.unit.sentences import assert_sentence


class StaleGradient(pe.HMC):
    def step(self, key, log_density, state, parameters):
        new, info = super().step(key, log_density, state, parameters)
        return new._replace(gradient=state.gradient), info


class Deaf(pe.RandomWalk):
    """Accepts every proposal."""

    def step(self, key, log_density, state, parameters):
        position = state.position + parameters.step_size[0] * jax.random.normal(key, state.position.shape)
        _, info = super().step(key, log_density, state, parameters)
        return state._replace(position=position, log_density=log_density(position)), info


class Idle(pe.RandomWalk):
    def step(self, key, log_density, state, parameters):
        return state, super().step(key, log_density, state, parameters)[1]


class Diagonal(pe.RandomWalk):
    """Takes a dense metric for a diagonal one: its positions become matrices."""

    def step(self, key, log_density, state, parameters):
        key_noise, key_accept = jax.random.split(key)
        noise = jnp.sqrt(parameters.inverse_mass) * jax.random.normal(key_noise, state.position.shape)
        proposal = initial_state(log_density, state.position + parameters.step_size[0] * noise, gradient=False)
        accepted = jnp.log(jax.random.uniform(key_accept)) < proposal.log_density - state.log_density
        new = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), proposal, state)
        return new, super().step(key, log_density, state, parameters)[1]


class Turned(pe.RandomWalk):
    """Follows the gradient through the factor of the metric instead of its transpose, and does not correct for it."""

    @property
    def uses_gradient(self):
        return True

    def step(self, key, log_density, state, parameters):
        metric = Metric.from_inverse_mass(parameters.inverse_mass)
        key_noise, key_accept = jax.random.split(key)
        size = parameters.step_size[0]

        def drift(at):
            return metric.factor @ at.gradient if metric.factor.ndim == 2 else metric.force(at.gradient)

        def log_proposal(z, at):
            return -0.5 * jnp.sum((z - 0.5 * size * metric.force(at.gradient)) ** 2)

        z = 0.5 * size * drift(state) + jax.random.normal(key_noise, state.position.shape)
        proposal = initial_state(log_density, state.position + size * metric.velocity(z), gradient=True)
        log_ratio = proposal.log_density - state.log_density
        log_ratio += log_proposal(-z, proposal) - log_proposal(z, state)
        accepted = jnp.log(jax.random.uniform(key_accept)) < log_ratio
        new = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), proposal, state)
        rate, false = jnp.exp(jnp.minimum(log_ratio, 0.0))[None], jnp.asarray(False)
        return new, KernelInfo(rate, false, false, jnp.asarray(1))


class Undecided(pe.RandomWalk):
    def step(self, key, log_density, state, parameters):
        if state.log_density > 0:
            return state, None
        return super().step(key, log_density, state, parameters)


class Silent(pe.RandomWalk):
    def step(self, key, log_density, state, parameters):
        return super().step(key, log_density, state, parameters)[0]


class Rated(AbstractKernel):
    """Its acceptance rate is a number."""

    target_acceptance = 0.4
    uses_gradient = False

    def step(self, key, log_density, state, parameters):
        return pe.RandomWalk().step(key, log_density, state, parameters)


def test_the_kernel_with_a_bug_in_dense_metrics_is_right_with_diagonal_ones():
    assert check_kernel(Turned(), metric="diagonal").passes()


@pytest.mark.parametrize(
    ("kernel", "names"),
    [
        (StaleGradient(3), ("gradient in the state of StaleGradient",)),
        (Deaf(), ("Deaf with a diagonal metric must leave the density invariant",)),
        (Idle(), ("Idle with a diagonal metric must move",)),
        (
            Diagonal(target_acceptance=0.3),
            ("Diagonal with a dense metric must keep the shape (3,); got (3, 3)", "Metric.from_inverse_mass"),
        ),
        (Turned(), ("Turned with a dense metric must leave the density invariant",)),
        (Undecided(), ("step of Undecided", "that JAX can trace", "TracerBoolConversionError")),
        (Silent(), ("step of Silent", "must return a KernelState and a KernelInfo; got KernelState")),
        (Rated(), ("target_acceptance of Rated must be a vector", "got 0.4")),
    ],
)
def test_kernel(kernel, names):
    with pytest.raises(ContractError) as error:
        check_kernel(kernel)
    assert_sentence(error, *names)


class Shifted(pe.Plain):
    """Gives points that are not where the chain is."""

    def points(self, target, state):
        points = super().points(target, state)
        return points._replace(x=points.x + 0.3)


class Growing(pe.Plain):
    def step(self, key, target, chain):
        state, info = super().step(key, target, chain)
        return state._replace(position=jnp.append(state.position, 0.0)), info


class Stateful(pe.Plain):
    def init(self, key, target, x):
        return super().init(key, target, x).state


class Undeclared(pe.Plain):
    def points(self, target, state):
        points = super().points(target, state)
        return points._replace(statistics=points.statistics | {"energy": state.position})


@pytest.mark.parametrize(
    ("method", "names"),
    [
        (Shifted(pe.HMC(5)), ("the mean of x**1 under Shifted",)),
        (Stateful(pe.HMC(2)), ("init of Stateful must return a Chain", "got KernelState")),
        (Growing(pe.HMC(2)), ("the state after a step of Growing",)),
        (Undeclared(pe.HMC(2)), ("statistics of Undeclared must declare", "energy")),
    ],
)
def test_method(method, names):
    with pytest.raises(ContractError) as error:
        check_method(method)
    assert_sentence(error, *names)


class Hot(pe.Fixed):
    def betas(self, num_particles, auxiliary):
        return jnp.full(num_particles, 1.5)


def test_instrument():
    with pytest.raises(ContractError) as error:
        check_instrument(Hot(0.5))
    assert_sentence(error, "betas of Hot must be 4 numbers in [0, 1]")


def test_another_object_is_refused():
    for check, name in ((check_kernel, "kernel"), (check_method, "method"), (check_instrument, "instrument")):
        with pytest.raises(TypeError) as error:
            check(np.zeros(2))
        assert_sentence(error, f"{name} must be")
