"""The exoplanet evidence challenge (EPRV3): the number of planets in 200 velocities with correlated noise.

The parameters are uniform by construction: jitter 100^u − 1, offset, and for every planet the log of the period, u of
1000^u − 1 for the amplitude, the share of the Rayleigh law below the eccentricity, ω and the mean anomaly.
"""

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from suite import references
from suite.data import data_path
from suite.kepler import Rotated, eccentricity_from, red_noise, velocity
from suite.priors import Box
from suite.problem import Asked, Problem, masses

CITATION = "Nelson et al. (2020), AJ 159, arXiv 1806.04683 (exoplanet evidence challenge)"
EPOCH = 300.0
MEDIANS = {
    (1, 2): (-174.10, -175.8, -172.5),
    (1, 3): (-174.55, -181.8, -172.6),
    (2, 2): (-166.00, -167.1, -164.9),
    (2, 3): (-166.95, -175.4, -156.2),
    (3, 2): (-159.52, -160.2, -158.3),
    (3, 3): (-160.14, -162.1, -151.8),
    (4, 2): (-160.80, -163.1, -152.8),
    (4, 3): (-162.03, -165.7, -156.9),
}
"""log10 Z of two and three planets: median, lowest and highest of 16 to 22 teams and methods; not exact."""


def velocities(data_set: int) -> Float[np.ndarray, "time three"]:
    """Time since the epoch, velocity and standard error."""
    table = np.loadtxt(data_path(f"eprv3/rvs_{data_set:04d}.txt"))
    return table - np.array([EPOCH, 0.0, 0.0])


def noise(table: Float[np.ndarray, "time three"]) -> Rotated:
    """The noise of a data set, without jitter."""
    return Rotated(red_noise(table[:, 0]) + np.diag(table[:, 2] ** 2))


def planets(data_set: int, count: int) -> Problem:
    """A data set with this number of planets, d = 2 + 5 n."""
    table = velocities(data_set)
    time, measured, _ = table.T
    rotated = noise(table)

    def log_likelihood(x: Float[Array, " d"]) -> Float[Array, ""]:
        jitter, residual = jnp.expm1(jnp.log(100.0) * x[0]), measured - x[1]
        for planet in x[2:].reshape(count, 5):
            log_period, amplitude, share, omega, phase = planet
            orbit = jnp.stack([log_period, np.log(1000.0) * amplitude, eccentricity_from(share), omega, phase])
            residual = residual - velocity(time, orbit)
        return rotated.log_likelihood(residual, jitter)

    low = np.r_[0.0, -1000.0, np.tile([np.log(1.25), 0.0, 0.0, 0.0, 0.0], count)]
    high = np.r_[1.0, 1000.0, np.tile([np.log(1e4), 1.0, 1.0, 2 * np.pi, 2 * np.pi], count)]
    name = f"eprv3-{data_set}-{count}"
    known = references.load(name)
    problem = Problem(
        CITATION,
        Box(low, high),
        _asked(known, count),
        log_likelihood=log_likelihood,
        periodic=tuple(2 + 5 * planet + place for planet in range(count) for place in (3, 4)),
    )
    return references.with_evidence(name, problem)


def _asked(known: dict[str, object] | None, count: int) -> dict[str, Asked]:
    """For one planet, the probability that the period is within 1 % of the best, from the reference."""
    if count != 1 or known is None or "log_period" not in known:
        return {"jitter": masses(lambda x: jnp.stack([jnp.where(x[0] < 2.0, 1.0, 0.0)]), [1.0])}
    best = float(known["log_period"])  # pyright: ignore[reportArgumentType]
    share = float(known["share"])  # pyright: ignore[reportArgumentType]

    def near(x: Float[Array, " d"]) -> Float[Array, " two"]:
        inside = jnp.where(jnp.abs(x[2] - best) < 0.01, 1.0, 0.0)
        return jnp.stack([inside, 1 - inside])

    return {"mass": masses(near, [share, 1 - share])}


FACTORIES: dict[str, Callable[[], Problem]] = {
    f"eprv3-{data_set}-{count}": partial(planets, data_set, count)
    for data_set in (1, 2, 3, 4)
    for count in (0, 1, 2, 3)
}
