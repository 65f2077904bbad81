"""Needles: two planets in 45 nightly radial velocities, whose periods have aliases; simulated, for any seed.

Uniform priors on the offset, the log of the jitter, and for each planet the log of the period, the amplitude and the
phase (circular orbits, d = 8); with eccentric orbits also a share of the Rayleigh law and ω (d = 12). The truth comes
from importance sampling at every mode that a search over pairs of periods finds, see `make_references.py`.
"""

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from suite import references
from suite.kepler import NEWTON_STEPS, RAYLEIGH, eccentricity_from, velocity
from suite.priors import Box
from suite.problem import Problem, masses

NUM_NIGHTS, NUM_VELOCITIES = 90, 45
TRUE_PERIODS = np.array([4.15, 17.3])
AMPLITUDES, SPREAD = np.array([5.0, 4.0]), 2.0
LOW_PERIOD, HIGH_PERIOD = 1.05, 50.0
MAX_AMPLITUDE = 20.0
WIDTH = 0.1
"""Log periods within it of the simulated one count as right; the aliases are further away."""
BOUNDS = {
    "offset": (-20.0, 20.0),
    "log_jitter": (np.log(0.1), np.log(20.0)),
    "log_period": (np.log(LOW_PERIOD), np.log(HIGH_PERIOD)),
    "amplitude": (0.0, MAX_AMPLITUDE),
    "share": (0.0, 1.0),
    "omega": (0.0, 2 * np.pi),
    "phase": (0.0, 2 * np.pi),
}
COMMON = ("offset", "log_jitter")
ORBITS = {False: ("log_period", "amplitude", "phase"), True: ("log_period", "amplitude", "share", "omega", "phase")}


def simulate(seed: int, *, eccentric: bool) -> tuple[Float[np.ndarray, " time"], Float[np.ndarray, " time"]]:
    """Nights, about the same hour, and velocities."""
    rng = np.random.default_rng([97, seed])
    nights = np.sort(rng.choice(NUM_NIGHTS, NUM_VELOCITIES, replace=False))
    time = nights + rng.uniform(-0.1, 0.1, NUM_VELOCITIES)
    phases, omegas = rng.uniform(0, 2 * np.pi, (2, 2))
    values = 3.0 + SPREAD * rng.normal(size=NUM_VELOCITIES)
    for period, amplitude, phase, omega in zip(TRUE_PERIODS, AMPLITUDES, phases, omegas, strict=True):
        orbit = np.array([np.log(period), np.log1p(amplitude), 0.3 if eccentric else 0.0, omega, phase])
        values = values + np.asarray(velocity(time, jnp.asarray(orbit)))
    return time, values


def needles(seed: int, *, eccentric: bool = False) -> Problem:
    """Two planets; the modes asked for are the two labellings of the periods that were simulated."""
    time, measured = simulate(seed, eccentric=eccentric)
    names = (*COMMON, *(f"{name}_{planet}" for planet in "12" for name in ORBITS[eccentric]))
    size = len(ORBITS[eccentric])

    def log_likelihood(x: Float[Array, " d"]) -> Float[Array, ""]:
        model, log_jitter = x[0], x[1]
        for planet in (x[2 : 2 + size], x[2 + size :]):
            model = model + _velocity(time, planet)
        z = (measured - model) * jnp.exp(-log_jitter)
        return -0.5 * jnp.sum(z**2) - len(time) * (log_jitter + 0.5 * np.log(2 * np.pi))

    right = np.log(TRUE_PERIODS)

    def labelling(x: Float[Array, " d"]) -> Float[Array, " three"]:
        periods = jnp.stack([x[2], x[2 + size]])
        first = jnp.where(jnp.max(jnp.abs(periods - right)) < WIDTH, 1.0, 0.0)
        second = jnp.where(jnp.max(jnp.abs(periods[::-1] - right)) < WIDTH, 1.0, 0.0)
        return jnp.stack([first, second, 1 - first - second])

    low, high = np.array([BOUNDS[name.rstrip("12").rstrip("_")] for name in names]).T
    key = name_of(seed, eccentric=eccentric)
    known = references.load(key)
    share = 0.5 if known is None else float(known["share"])
    problem = Problem(
        "ours: issue 21 of this library; aliases as in Dawson, Fabrycky (2010), ApJ 722",
        Box(low, high),
        {"mass": masses(labelling, [share, share, 1 - 2 * share])},
        log_likelihood=log_likelihood,
        periodic=tuple(i for i, name in enumerate(names) if name.startswith(("omega", "phase"))),
        names=names,
        in_numpy=partial(_in_numpy, time=time, measured=measured, size=size, volume=np.sum(np.log(high - low))),
    )
    return references.with_evidence(key, problem)


def name_of(seed: int, *, eccentric: bool) -> str:
    """The name of a problem of this kind."""
    return f"needles-{'eccentric' if eccentric else 'circular'}-{seed}"


def _velocity(time: np.ndarray, planet: Float[Array, " orbit"]) -> Float[Array, " time"]:
    if len(planet) == 3:
        log_period, amplitude, phase = planet
        return amplitude * jnp.cos(2 * np.pi * time * jnp.exp(-log_period) + phase)
    log_period, amplitude, share, omega, phase = planet
    orbit = jnp.stack([log_period, jnp.log1p(amplitude), eccentricity_from(share), omega, phase])
    return velocity(time, orbit)


def _in_numpy(
    x: Float[np.ndarray, "point d"], time: np.ndarray, measured: np.ndarray, size: int, volume: float
) -> Float[np.ndarray, " point"]:
    """log γ of many points."""
    model = x[:, :1]
    for planet in (x[:, 2 : 2 + size], x[:, 2 + size :]):
        model = model + _velocity_in_numpy(time, planet)
    z = (measured - model) * np.exp(-x[:, 1:2])
    return -0.5 * np.sum(z**2, axis=1) - len(time) * (x[:, 1] + 0.5 * np.log(2 * np.pi)) - volume


def _velocity_in_numpy(time: np.ndarray, planet: Float[np.ndarray, "point orbit"]) -> Float[np.ndarray, "point time"]:
    turns = 2 * np.pi * time * np.exp(-planet[:, :1])
    if planet.shape[1] == 3:
        return planet[:, 1:2] * np.cos(turns + planet[:, 2:])
    amplitude, omega = planet[:, 1:2], planet[:, 3:4]
    e = RAYLEIGH * np.sqrt(-2 * np.log1p(planet[:, 2:3] * np.expm1(-0.5 / RAYLEIGH**2)))
    mean = np.mod(turns + planet[:, 4:] + np.pi, 2 * np.pi) - np.pi
    anomaly = mean + 0.85 * e * np.sign(np.sin(mean))
    for _ in range(NEWTON_STEPS + 2):
        anomaly = anomaly - (anomaly - e * np.sin(anomaly) - mean) / (1 - e * np.cos(anomaly))
    scale = 1 - e * np.cos(anomaly)
    cosine, sine = (np.cos(anomaly) - e) / scale, np.sqrt(1 - e**2) * np.sin(anomaly) / scale
    return amplitude * (np.cos(omega) * (cosine + e) - np.sin(omega) * sine)


FACTORIES: dict[str, Callable[[], Problem]] = {
    name_of(seed, eccentric=eccentric): partial(needles, seed, eccentric=eccentric)
    for eccentric in (False, True)
    for seed in range(10)
}
