"""Fields and machines: a φ⁴ chain, solved by its transfer matrix, and a Boltzmann machine, enumerated."""

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import pseudo_extended as pe
from pseudo_extended.problems.boltzmann import Relaxation
from suite.priors import Box
from suite.problem import Problem, masses, moments

STIFFNESS, INVERSE_TEMPERATURE = 0.1, 20.0
FIELD = 0.02
"""A constant external field, which makes the two modes unequal."""
GRID = np.linspace(-3.0, 3.0, 1201)
"""Nodes of the transfer matrix: a tenth of the spread of a step at 256 sites."""


def _step(sites: int) -> float:
    return 1.0 / (sites + 1)


def _log_site(phi: np.ndarray, sites: int) -> np.ndarray:
    potential = (1 - phi**2) ** 2 / (4 * STIFFNESS) - FIELD * phi
    return -INVERSE_TEMPERATURE * _step(sites) * potential


def _log_bond(difference: np.ndarray, sites: int) -> np.ndarray:
    return -0.5 * INVERSE_TEMPERATURE * STIFFNESS * difference**2 / _step(sites)


def transfer(sites: int) -> tuple[float, Float[np.ndarray, "site node"]]:
    """log Z of the chain between walls at zero, and the marginal distribution of each site on the grid."""
    width = GRID[1] - GRID[0]
    bond = np.exp(_log_bond(GRID[:, None] - GRID, sites)) * width
    site, end = np.exp(_log_site(GRID, sites)), np.exp(_log_bond(GRID, sites))
    forward, log_scale = [end * site], 0.0
    for _ in range(sites - 1):
        following = (bond @ forward[-1]) * site
        scale = following.max()
        log_scale += np.log(scale)
        forward.append(following / scale)
    backward = [end]
    for _ in range(sites - 1):
        following = bond @ (backward[-1] * site)
        backward.append(following / following.max())
    marginal = np.stack(forward) * np.stack(backward[::-1])
    log_evidence = np.log(np.sum(forward[-1] * end) * width) + log_scale
    return float(log_evidence), marginal / marginal.sum(axis=1, keepdims=True)


def phi_four(sites: int) -> Problem:
    """A φ⁴ chain between walls at zero, in a weak field: two modes that only a whole wall moving can join."""
    log_evidence, marginal = transfer(sites)
    middle = sites // 2
    at_zero = len(GRID) // 2
    right = float(marginal[middle, at_zero + 1 :].sum() + 0.5 * marginal[middle, at_zero])

    def log_density(phi: Float[Array, " d"]) -> Float[Array, ""]:
        whole = jnp.concatenate([jnp.zeros(1), phi, jnp.zeros(1)])
        bonds = 0.5 * INVERSE_TEMPERATURE * STIFFNESS / _step(sites) * jnp.sum(jnp.diff(whole) ** 2)
        potential = jnp.sum((1 - phi**2) ** 2) / (4 * STIFFNESS) - FIELD * jnp.sum(phi)
        return -bonds - INVERSE_TEMPERATURE * _step(sites) * potential

    def side(phi: Float[Array, " d"]) -> Float[Array, " two"]:
        positive = jnp.where(phi[middle] > 0, 1.0, 0.0)
        return jnp.stack([positive, 1 - positive])

    first, second, fourth = (marginal @ GRID**power for power in (1, 2, 4))
    return Problem(
        "Gabrié, Rotskoff, Vanden-Eijnden (2022), PNAS 119; Noble et al. (2025), ICLR (LRDS)",
        Box.cube(sites, -3.0, 3.0),
        {
            "mass": masses(side, [right, 1 - right]),
            "mean": moments(lambda x: x, first, second),
            "square": moments(lambda x: x**2, second, fourth),
        },
        log_density=log_density,
        log_evidence=log_evidence,
    )


def boltzmann(units: int, seed: int = 0) -> Problem:
    """The relaxation of a Boltzmann machine, by enumeration of its states."""
    known = pe.problems.boltzmann_machine(units, seed=seed)
    assert known.mean is not None
    assert known.second_moment is not None
    return Problem(
        known.citation,
        Box.cube(known.target.dim, -20.0, 20.0),
        {"mean": moments(lambda x: x, known.mean, known.second_moment)},
        log_density=Relaxation(known.density.coupling, known.density.bias, None),
        log_evidence=known.log_evidence,
    )


FACTORIES: dict[str, Callable[[], Problem]] = {
    **{f"phi-four-{sites}": partial(phi_four, sites) for sites in (64, 128, 256)},
    "boltzmann-18": partial(boltzmann, 18),
}
