"""pe.testing on a user's own kernel, instrument and method: what breaks a promise is named in a sentence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
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


@pytest.mark.parametrize(
    ("kernel", "names"),
    [
        (StaleGradient(3), ("gradient in the state of StaleGradient",)),
        (Deaf(), ("Deaf must leave the density invariant",)),
        (Idle(), ("Idle must move",)),
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


class Undeclared(pe.Plain):
    def points(self, target, state):
        points = super().points(target, state)
        return points._replace(statistics=points.statistics | {"energy": state.position})


@pytest.mark.parametrize(
    ("method", "names"),
    [
        (Shifted(pe.HMC(5)), ("the mean of x**1 under Shifted",)),
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
