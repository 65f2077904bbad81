"""The competitors' own steps leave their own distributions alone; planted bugs are caught by the same call.

False alarms: α = 1e-4 for each comparison, with constant seeds, as in test_invariance.py.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.kernels import KernelParameters, initial_state
from pseudo_extended.methods import Chain, continuous_tempering, equi_energy
from pseudo_extended.methods.continuous_tempering import TemperedState, draw_beta
from pseudo_extended.methods.energy_ladder import EnergyLadder
from pseudo_extended.methods.energy_rings import draw_points, empty_rings, file_points
from pseudo_extended.methods.equi_energy import EquiEnergyState
from pseudo_extended.methods.repelling_attracting import RepellingState
from pseudo_extended.problems.mixtures import NormalMixture
from pseudo_extended.testing import check_invariance

# The equi-energy sampler is adaptive: its rings grow with the history of the chains above, so no finite run of it
# leaves anything alone exactly. What is exact: with x_i ~ π_i independent, and every ring filled with independent draws
# of its chain's own π_i+1, one step leaves the product of the π_i alone, whatever the number of points in the rings,
# none included. (After it a chain may stand on a point of a ring, so a second step needs new ones.) So an exact state
# here is the chains and a few points that the rings are made of, and it makes one step.
#
# In two dimensions h = |x|²/2 of a standard normal is spread evenly over [0, ∞) by Lebesgue measure, so under π_i it
# has density ∝ exp{-max(h, H_i)/T_i}: flat up to H_i, with mass H_i, and exponential above it, with mass T_i.

NORMAL = pe.Target(lambda x: -0.5 * jnp.sum(x**2), np.zeros(2))
RINGS = pe.EquiEnergy(
    energies=[0.0, 1.0, 3.0], temperatures=[1.0, 1.5, 3.0], step_size=1.0, jump_probability=0.7, ring_capacity=3
)


def exact_points(rng, size):
    """One point of each chain, shape (size, 3, 2)."""
    energies, temperatures = RINGS.ladder.energies, RINGS.ladder.temperatures
    below = rng.uniform(size=(size, 3)) < energies / (energies + temperatures)
    tail = energies + temperatures * rng.exponential(size=(size, 3))
    radius = np.sqrt(2 * np.where(below, rng.uniform(size=(size, 3)) * energies, tail))
    angle = rng.uniform(0, 2 * np.pi, (size, 3))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)


def exact_state(rng, size, above=1):
    """The chains, and three points of each chain above the cold one; `above=0` plants the wrong chain's points."""
    filed = [exact_points(rng, size)[:, above : above + 2] for _ in range(3)]
    return np.concatenate([part.reshape(size, -1) for part in (exact_points(rng, size), *filed)], axis=1)


def equi_energy_state(flat) -> EquiEnergyState:
    x, filed = flat[:6].reshape(3, 2), flat[6:].reshape(3, 2, 2)
    rings = empty_rings(2, 3, 3, 2)
    for points in filed:
        ring = RINGS.ladder.ring(0.5 * jnp.sum(points**2, axis=1))
        rings = file_points(jnp.zeros(2), rings, points, ring, jnp.ones(2, bool))
    energy = 0.5 * jnp.sum(x**2, axis=1)
    return EquiEnergyState(x, energy, rings, jnp.asarray(10**6), jnp.zeros(()), jnp.asarray(False))


def equi_energy_report(exact=exact_state):
    def step(key, flat):
        new = RINGS.step(key, NORMAL, Chain(equi_energy_state(flat), (), ()))[0]
        return jnp.append(new.x.reshape(-1), flat[6:])

    def statistics(flat):
        x = flat[:6].reshape(3, 2)
        return jnp.concatenate([flat[:6], jnp.sum(x**2, axis=1), jnp.sum(x[:-1] * x[1:], axis=1)])

    return check_invariance(step, exact, statistics=statistics, num_draws=60_000, num_steps=1)


def test_equi_energy():
    report = equi_energy_report()
    assert report.passes(min_moved=0.9), report


def test_rings_are_often_empty_and_often_not():
    """Or the test above would test only half of the moves."""
    states = exact_state(np.random.default_rng(0), 2000)
    energies = RINGS.ladder.energies[1:]
    own, filed = (
        np.searchsorted(energies, 0.5 * np.sum(states[:, part].reshape(2000, -1, 2) ** 2, axis=2), side="right")
        for part in (slice(0, 2), [6, 7, 10, 11, 14, 15])
    )
    assert 0.1 < np.mean(np.all(own != filed, axis=1)) < 0.8


def all_rings_alike(uniform, rings, ring):
    """A jump to any ring with a point."""
    return draw_points(uniform, rings, jnp.argmax(rings.num_offered > 0, axis=1))


EQUI_ENERGY_BUGS = {
    "the proposal's density is forgotten": (EnergyLadder, "jump_log_ratio", EnergyLadder.walk_log_ratio),
    "the density above is not truncated": (
        EnergyLadder,
        "log_density_above",
        lambda self, energy: jnp.append(-energy[:-1] / self.temperatures[1:], 0.0),
    ),
    "a jump leaves its ring": (equi_energy, "draw_points", all_rings_alike),
    "a step in an empty ring may leave it": (
        equi_energy,
        "may_move",
        lambda stays_in_ring, ring, proposed: jnp.ones_like(stays_in_ring),
    ),
}


@pytest.mark.parametrize("name", EQUI_ENERGY_BUGS)
def test_a_bug_in_equi_energy_is_caught(name, monkeypatch):
    monkeypatch.setattr(*EQUI_ENERGY_BUGS[name])
    report = equi_energy_report()
    assert report.p_value < 1e-4, report


def test_rings_of_another_distribution_are_caught():
    report = equi_energy_report(partial(exact_state, above=0))
    assert report.p_value < 1e-4, report


# Repelling-attracting Metropolis leaves π(x) q(z|x) alone, and also when its forced moves give up after a few tries.

BIMODAL = NormalMixture(np.array([0.3, 0.7]), np.array([[-2.0], [2.0]]), np.array([0.25, 0.25]))
BIMODAL_TARGET = pe.Target(BIMODAL, np.zeros(1))
REPELLING = {
    "as published": pe.RepellingAttracting(1.0),
    "gives up at once": pe.RepellingAttracting(1.0, max_tries=1),
    "an ε that matters": pe.RepellingAttracting(1.0, log_epsilon=-3.0),
}


def repelling_report(method):
    def exact(rng, size):
        x = BIMODAL.draw(rng, size)[:, 0]
        return np.stack([x, x + method.scale * rng.normal(size=size)], axis=1)

    def step(key, flat):
        x, z = flat[:1], flat[1:]
        state = RepellingState(x, BIMODAL_TARGET.log_target(x), z, BIMODAL_TARGET.log_target(z), jnp.asarray(False))
        new = method.step(key, BIMODAL_TARGET, Chain(state, (), ()))[0]
        return jnp.concatenate([new.x, new.z])

    def statistics(flat):
        x, z = flat
        return jnp.stack([x, z, x * z, jnp.abs(x - z), BIMODAL(flat[:1]), jnp.abs(jnp.abs(x) - 2)])

    return check_invariance(step, exact, statistics=statistics, num_draws=20_000)


@pytest.mark.parametrize("name", REPELLING)
def test_repelling_attracting(name):
    report = repelling_report(REPELLING[name])
    assert report.passes(min_moved=0.5), report


class Repelling(pe.RepellingAttracting):
    """With a bug planted in it."""

    bug: str = "none"

    def log_ratio(self, state, moves):
        right = super().log_ratio(state, moves)
        plain = moves.log_density_x - state.log_density
        return plain if self.bug == "no correction by z" else right

    def forced_moves(self, key, target, state):
        moves = super().forced_moves(key, target, state)
        if self.bug == "goes on from where it gave up":
            return moves._replace(phase=jnp.asarray(3))
        if self.bug == "z may try for longer":  # the same random numbers, so the same x' and x*
            patient = pe.RepellingAttracting(self.scale).forced_moves(key, target, state)
            return jax.tree.map(lambda a, b: jnp.where(moves.phase == 2, a, b), patient, moves)
        return moves


REPELLING_BUGS = [
    ("no correction by z", 1000),
    ("goes on from where it gave up", 1),
    ("z may try for longer", 1),
]


@pytest.mark.parametrize(("bug", "max_tries"), REPELLING_BUGS)
def test_a_bug_in_repelling_attracting_is_caught(bug, max_tries):
    method = Repelling(1.0, max_tries=max_tries)
    object.__setattr__(method, "bug", bug)
    report = repelling_report(method)
    assert report.p_value < 1e-4, report


# Continuous tempering: γ = e³ exp{-(x - 1)²/(2 · 0.3)}, γ0 = N(0, 2), log ζ = 2.5. The mass of γ0^(1-β) (γ/ζ)^β in x is
# that of a normal, in closed form, so β is drawn from its own distribution by inversion on a fine grid, and x given β
# from a normal.

MEAN, VARIANCE, BASE_VARIANCE, LOG_ZETA = 1.0, 0.3, 2.0, 2.5
OFF_CENTRE = pe.Target(lambda x: 3.0 - 0.5 * jnp.sum((x - MEAN) ** 2) / VARIANCE, np.zeros(1))
TEMPERING = {
    variant: pe.ContinuousTempering(
        variant, pe.HMC(3), base=pe.Normal(0.0, np.sqrt(BASE_VARIANCE)), log_zeta=LOG_ZETA, step_size=0.5
    )
    for variant in ("joint", "gibbs")
}


def exact_tempered(rng, size):
    grid = np.linspace(0, 1, 20_001)

    def conditional(beta):
        precision = beta / VARIANCE + (1 - beta) / BASE_VARIANCE
        return beta * MEAN / VARIANCE / precision, precision

    mean, precision = conditional(grid)
    log_mass = grid * (3.0 - LOG_ZETA - 0.5 * MEAN**2 / VARIANCE) - 0.5 * (1 - grid) * np.log(2 * np.pi * BASE_VARIANCE)
    log_mass += 0.5 * precision * mean**2 - 0.5 * np.log(precision)
    mass = np.exp(log_mass - log_mass.max())
    cdf = np.append(0, np.cumsum(mass[1:] + mass[:-1]))
    beta = np.interp(rng.uniform(size=size) * cdf[-1], cdf, grid)
    mean, precision = conditional(beta)
    x = mean + rng.normal(size=size) / np.sqrt(precision)
    return np.stack([x, np.log(beta) - np.log1p(-beta)], axis=1)


def tempering_report(method):
    def two_steps(key, flat):
        beta, x = jax.nn.sigmoid(flat[1]), flat[:1]
        joint = method.variant == "joint"
        log_density = method.log_joint(OFF_CENTRE) if joint else method.log_given_beta(OFF_CENTRE, beta)
        kernel = initial_state(log_density, flat if joint else x, gradient=True)
        parameters = KernelParameters(jnp.array([0.5]), jnp.ones(kernel.position.size))

        def step(i, state):
            return method.step(jax.random.fold_in(key, i), OFF_CENTRE, Chain(state, parameters, ()))[0]

        new = jax.lax.fori_loop(0, 2, step, TemperedState(kernel, beta, jnp.zeros(())))
        return jnp.append(new.kernel.position[:1], jnp.log(new.beta) - jnp.log1p(-new.beta))

    def statistics(flat):
        x, u = flat
        return jnp.stack([x, u, x * u, x**2, (x - MEAN) * jax.nn.sigmoid(u)])

    return check_invariance(two_steps, exact_tempered, statistics=statistics, num_draws=20_000)


@pytest.mark.parametrize("variant", TEMPERING)
def test_continuous_tempering(variant):
    report = tempering_report(TEMPERING[variant])
    assert report.passes(min_moved=0.9), report


def beta_upside_down(key, delta):
    return 1 - draw_beta(key, delta)


def zeta_forgotten(self, target, x):
    path = target.with_base(self.base).path_point(x)
    return path.log_base, path.delta


def stale_density(self, key, target, moved):
    delta = self.parts(target, moved.position)[1]
    return TemperedState(moved, draw_beta(key, delta), delta)


TEMPERING_BUGS = {
    "no Jacobian of logit β": ("joint", continuous_tempering, "log_jacobian", lambda u: 0.0 * u),
    "ζ is forgotten": ("joint", pe.ContinuousTempering, "parts", zeta_forgotten),
    "β is drawn upside down": ("gibbs", continuous_tempering, "draw_beta", beta_upside_down),
    "the density stays that of the old β": ("gibbs", pe.ContinuousTempering, "at_new_beta", stale_density),
}


@pytest.mark.parametrize("name", TEMPERING_BUGS)
def test_a_bug_in_continuous_tempering_is_caught(name, monkeypatch):
    variant, *patch = TEMPERING_BUGS[name]
    monkeypatch.setattr(*patch)
    report = tempering_report(TEMPERING[variant])
    assert report.p_value < 1e-4, report
