"""The two bridges of the evidence, against sums that cannot overflow."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from pseudo_extended.tempering.bridges import bridges

NEAR = np.array([-0.3, 1.2, -4.0, 0.1])


def expected(log_weight, log_mass, fresh):
    """The same in logs throughout."""
    carries = log_softmax(log_weight)
    others = np.log1p(-np.exp(carries)) - np.log(len(log_weight) - 1)
    top = [logsumexp(others + 0.5 * log_weight), logsumexp(0.5 * fresh) - np.log(len(fresh))]
    bottom = [logsumexp(carries - 0.5 * log_weight), logsumexp(others - 0.5 * log_mass)]
    return top, bottom


@pytest.mark.parametrize("far", [-20.0, -800.0, -1600.0, -5000.0, -1e6])
def test_a_pseudo_sample_far_out_does_not_drown_the_others(far, x64):
    """Where the target is narrow, γ/q is exp(-5000) at hot pseudo-samples; it once made the mean of all others zero."""
    log_weight = np.append(NEAR, far)
    log_mass = np.append(0.2 * NEAR, -3.0)
    fresh = np.array([0.5, -1.0, 0.3, -700.0, -2.0])
    found = bridges(*(jnp.asarray(each) for each in (log_weight, log_mass, fresh)))
    for mine, theirs in zip(found, expected(log_weight, log_mass, fresh), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10)


def test_a_density_of_zero_counts_for_nothing(x64):
    log_mass, fresh = np.zeros(5), np.zeros(5)
    found = bridges(jnp.append(NEAR, -jnp.inf), jnp.asarray(log_mass), jnp.asarray(fresh))
    near = bridges(jnp.append(NEAR, -1e6), jnp.asarray(log_mass), jnp.asarray(fresh))
    np.testing.assert_allclose(found, near, rtol=1e-12)
