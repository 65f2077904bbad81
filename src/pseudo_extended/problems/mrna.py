"""The mRNA transfection posterior (Ballnus et al. 2017, model M1a): two rates that can change places, exactly."""

from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pseudo_extended.problems.files import data_file
from pseudo_extended.target import Target

BOUNDS = {"log_t0": (-2, 1), "log_k": (-5, 5), "log_b": (-5, 5), "log_d": (-5, 5), "log_sigma": (-2, 2)}
"""Of the uniform priors, in powers of ten."""


class Transfection(eqx.Module):
    """log p(y | parameters), y_i ~ N(μ(t_i), σ²)."""

    time: Float[np.ndarray, " point"]
    measured: Float[np.ndarray, " point"]

    def __call__(self, position: dict[str, Float[Array, ""]]) -> Float[Array, ""]:
        """Evaluate the log likelihood of the measurements."""
        t0, k, b, d, sigma = (10.0 ** position[name] for name in BOUNDS)
        z = (self.measured - fluorescence(jnp.asarray(self.time), t0, k, b, d)) / sigma
        return -0.5 * jnp.sum(z**2) - len(self.time) * (jnp.log(sigma) + 0.5 * jnp.log(2 * jnp.pi))


class TransfectionProblem(NamedTuple):
    """The posterior. What is known of it: b and d can change places, so b < d has probability 1/2."""

    target: Target
    """What to pass to `pe.sample`."""
    probability_b_is_slower: float
    """The exact probability of b < d, by symmetry."""
    density: Transfection
    """The log likelihood of the measurements."""
    citation: str
    """Where the problem comes from."""


def fluorescence(
    time: Float[Array, " point"],
    t0: Float[Array, ""],
    k: Float[Array, ""],
    b: Float[Array, ""],
    d: Float[Array, ""],
) -> Float[Array, " point"]:
    """k (e^(-bs) - e^(-ds)) / (d - b) with s = max(t - t0, 0), written so that nothing overflows and b may equal d.

    >>> fluorescence(jnp.array([0.5, 2.0]), 1.0, 1.0, 0.5, 0.5).tolist()         # the limit is k s e^(-bs)
    [0.0, 0.60653...]
    """
    s = jnp.maximum(time - t0, 0.0)
    gap = jnp.abs(d - b) * s
    is_small = gap < 1e-6
    ratio = jnp.where(is_small, 1 - gap / 2, -jnp.expm1(-gap) / jnp.where(is_small, 1.0, gap))
    return k * s * jnp.exp(-jnp.minimum(b, d) * s) * ratio


def mrna(directory: str | Path | None = None) -> TransfectionProblem:
    """The posterior of five parameters given one cell's fluorescence, with uniform priors on their logarithms.

    The data are read from `directory`, from where PSEUDO_EXTENDED_DATA says, or downloaded.
    """
    time, measured = np.genfromtxt(data_file("mrna.csv", directory), delimiter=",").T
    likelihood = Transfection(time, measured)
    volume = float(np.prod([high - low for low, high in BOUNDS.values()]))

    def sample_prior(key: Key[Array, ""]) -> dict[str, Float[Array, ""]]:
        keys = jax.random.split(key, len(BOUNDS))
        ends = zip(keys, BOUNDS.items(), strict=True)
        return {name: jax.random.uniform(key, (), float, low, high) for key, (name, (low, high)) in ends}

    target = Target(
        example={name: np.zeros(()) for name in BOUNDS},
        log_prior=lambda position: -jnp.log(volume) + 0.0 * position["log_k"],
        log_likelihood=likelihood,
        sample_prior=sample_prior,
        bounds=BOUNDS,
    )
    citation = "Ballnus et al. (2017), BMC Systems Biology 11; Leonhardt et al. (2014), Nanomedicine 10"
    return TransfectionProblem(target, 0.5, likelihood, citation)
