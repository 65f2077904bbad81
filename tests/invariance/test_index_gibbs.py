"""Index Gibbs leaves its extended target alone: every base, every local kernel, free and fixed temperatures.

In one dimension exact draws need no closed form: Z(β) and the distribution functions of γ_β are summed on a grid far
finer than what 10,000 draws can see. α = 1e-4 for each comparison, with constant seeds; each planted bug must be caught
by the very same call.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.kernels import KernelInfo, hamiltonian, leapfrog
from pseudo_extended.kernels.tempered import evaluator
from pseudo_extended.methods.adaptive import index, method, moves, target_moves
from pseudo_extended.methods.adaptive.method import AdaptivePseudoExtended
from pseudo_extended.methods.adaptive.parameters import AdaptiveParameters, fixed_path
from pseudo_extended.methods.adaptive.target_moves import TargetMoves, TargetParameters
from pseudo_extended.precision import double_precision
from pseudo_extended.problems.mixtures import NormalMixture
from pseudo_extended.tempering.path import Path, on_path
from pseudo_extended.testing import check_invariance

NUM_PARTICLES = 3
GRID = np.linspace(-14, 14, 20_001)
NODES = 5
LOG_G = np.array([1.5, -1.5, 0.8, 0.5, 0.0])

BIMODAL = NormalMixture(np.array([0.4, 0.6]), np.array([[-1.5], [2.0]]), np.array([0.3, 0.6]))
TRIMODAL = NormalMixture(np.full(3, 1 / 3), np.array([[-3.0], [0.0], [2.5]]), np.array([0.2, 0.5, 0.3]))
LEARNED = pe.NormalMixture([[-2.5], [2.0]], [[0.9], [1.2]], [0.3, 0.7])


def log_prior(x):
    return jnp.sum(-0.5 * (x / 2) ** 2) - 3.0  # not normalised: it need not be


class Case(NamedTuple):
    target: pe.Target
    betas: np.ndarray
    """At the nodes of the path."""
    learned: pe.NormalMixture | None = None
    instrument: pe.instruments.AbstractInstrument = pe.Tempered(0.0)
    log_g: np.ndarray = LOG_G


FREE = np.array([0.0, 0.1, 0.35, 0.6, 1.0])
CASES = {
    "normal base": Case(pe.Target(BIMODAL, np.zeros(1), base=pe.Normal(0.5, 2.0)), FREE),
    "learned mixture": Case(pe.Target(TRIMODAL, np.zeros(1)), FREE, LEARNED),
    "prior": Case(
        pe.Target(
            example=np.zeros(1),
            log_prior=log_prior,
            log_likelihood=lambda x: jnp.sum(-2 * (x**2 - 2) ** 2 / (1 + x**2)),
            sample_prior=lambda key: 2 * jax.random.normal(key, (1,), float),
        ),
        FREE,
    ),
    "prior, replaced": Case(
        pe.Target(
            example=np.zeros(1), log_prior=log_prior, log_likelihood=lambda x: jnp.sum(-((x - 1) ** 2) - 0.2 * x)
        ),
        FREE,
        LEARNED,
    ),
    "no base": Case(pe.Target(BIMODAL, np.zeros(1)), 0.15 + 0.85 * FREE, None, pe.Tempered(0.15)),
    "not up to the target": Case(
        pe.Target(BIMODAL, np.zeros(1), base=pe.Normal(0.0, 2.0)), 0.6 * FREE, None, pe.Tempered(0.0, 0.6)
    ),
    "bounds": Case(
        pe.Target(lambda x: jnp.sum(jnp.log(x) - x), np.ones(1), bounds=(0, None), base=pe.Normal(0.0, 1.5)), FREE
    ),
    "ladder": Case(
        pe.Target(BIMODAL, np.zeros(1), base=pe.Normal(0.5, 2.0)),
        np.array([0.0, 0.3, 0.7]),
        None,
        pe.Ladder([0.0, 0.3, 0.7], [0.4, -0.3, 0.2]),
    ),
    "fixed": Case(pe.Target(BIMODAL, np.zeros(1)), np.array([0.2]), None, pe.Fixed(0.2)),
}
KERNELS = {
    "one leapfrog step": pe.HMC(1),
    "HMC": pe.HMC(3),
    "MALA": pe.MALA(),
    "NUTS": pe.NUTS(max_depth=3),
    "random walk": pe.RandomWalk(),
}


def is_free(case: Case) -> bool:
    return isinstance(case.instrument, pe.Tempered)


def own(case: Case) -> pe.Target:
    return case.target if case.learned is None else case.target.with_base(case.learned)


def exact(case: Case):
    """(x, t, k) from the extended target, by sums over a grid."""
    with double_precision():
        path_points = jax.vmap(own(case).path_point)(jnp.asarray(GRID)[:, None])
    log_base, delta = np.asarray(path_points.log_base), np.asarray(path_points.delta)

    def x_given(rng, beta):
        order = np.argsort(beta)
        x = np.empty(beta.shape)
        uniform = rng.uniform(size=beta.size)
        for part in np.array_split(order, max(beta.size // 50, 1)):  # one distribution for close temperatures
            middle = beta[part].mean()
            log_density = log_base + middle * delta
            cdf = np.cumsum(np.exp(log_density - log_density.max()))
            x[part] = np.interp(uniform[part], cdf / cdf[-1], GRID)
        return x

    def log_z(beta):
        log_density = log_base + beta * delta
        return log_density.max() + np.log(np.sum(np.exp(log_density - log_density.max())))

    def t_from(rng, log_density):
        """From the density whose log is given at the middles of small cells of t, a row for each draw."""
        cdf = np.cumsum(np.exp(log_density - log_density.max(axis=-1, keepdims=True)), axis=-1)
        uniform = rng.uniform(size=len(cdf)) * cdf[:, -1]
        cell = np.sum(cdf <= uniform[:, None], axis=1)
        return (cell + rng.uniform(size=len(cdf))) / cdf.shape[1]

    def free(rng, size):
        fine = (np.arange(400) + 0.5) / 400
        nodes = np.linspace(0, 1, NODES)
        beta_fine, log_g_fine = np.interp(fine, nodes, case.betas), np.interp(fine, nodes, case.log_g)
        log_density = np.array([log_z(beta) for beta in beta_fine]) + log_g_fine
        share = np.exp(log_density - log_density.max())
        cell = rng.choice(fine.size, size=size * NUM_PARTICLES, p=share / share.sum())
        t = (cell + rng.uniform(size=cell.size)) / fine.size
        x = x_given(rng, np.interp(t, nodes, case.betas)).reshape(size, NUM_PARTICLES)
        t = t.reshape(size, NUM_PARTICLES)
        k = rng.integers(NUM_PARTICLES, size=size)
        carrier = x_given(rng, np.ones(size))
        x[np.arange(size), k] = carrier
        # The place of the carrier means nothing; the method draws it given x, like the others.
        t[np.arange(size), k] = t_from(rng, np.interp(carrier, GRID, delta)[:, None] * beta_fine + log_g_fine)
        return np.concatenate([x, t, k[:, None]], axis=1)

    def fixed(rng, size):
        betas = np.broadcast_to(case.betas, NUM_PARTICLES)
        log_g = case.instrument.log_g if isinstance(case.instrument, pe.Ladder) else np.zeros(NUM_PARTICLES)
        x = np.stack([x_given(rng, np.full(size, beta)) for beta in betas], axis=1)
        share = np.exp(-np.array([log_z(beta) for beta in betas]) - log_g)
        k = rng.choice(NUM_PARTICLES, size=size, p=share / share.sum())
        x[np.arange(size), k] = x_given(rng, np.ones(size))
        t = np.zeros((size, NUM_PARTICLES))
        return np.concatenate([x, t, k[:, None]], axis=1)

    return free if is_free(case) else fixed


def prepared(case: Case, kernel, target_kernel=None) -> AdaptivePseudoExtended:
    """The method with parameters that nobody tuned: step sizes and metrics differ from knot to knot.

    With a kernel for the target's own moves, all metrics have a factor in common, too.
    """
    method = AdaptivePseudoExtended(NUM_PARTICLES, kernel, case.instrument)
    with double_precision():
        path = (
            Path(jnp.asarray(case.betas), jnp.asarray(case.log_g)) if is_free(case) else fixed_path(method.temperatures)
        )
        knots = jnp.linspace(0.0, 1.0, NODES if is_free(case) else path.num_cells + 1)
        learned = None if case.learned is None else jax.tree.map(jnp.asarray, case.learned)
        log_step, more, own = jnp.log(0.9 - 0.4 * knots), {}, None
        if target_kernel is not None:
            # Moves of all cost about twelve evaluations: a step has them with probability 0.4, and 1.2 of the target.
            moves = TargetMoves(target_kernel, 0.75, 0.4)
            more = {"target_moves": moves, "shared_metric": jnp.array([[0.7]])}
            own = TargetParameters(jnp.log(0.8), jnp.array([[0.6]]), jnp.array(12.0), jnp.array(0.5))
        parameters = AdaptiveParameters(path, log_step, (1.5 - knots)[:, None], own)
    return AdaptivePseudoExtended(
        NUM_PARTICLES, kernel, case.instrument, learned_base=learned, parameters=parameters, **more
    )


def run(case: Case, kernel, num_steps=2, target_kernel=None):
    method = prepared(case, kernel, target_kernel)
    with double_precision():
        blank = method.init(jax.random.key(0), case.target, jnp.zeros((NUM_PARTICLES, 1)))
    evaluate = evaluator(own(case), gradient=method.needs_gradient)

    def chain_at(flat):
        x, t, k = jnp.split(flat, [NUM_PARTICLES, 2 * NUM_PARTICLES])
        points = jax.vmap(evaluate)(x[:, None])
        place = t if is_free(case) else blank.state.t
        return blank._replace(state=blank.state._replace(points=points, t=place, carrier=jnp.round(k[0]).astype(int)))

    def step(key, flat):
        state, _ = method.step(key, case.target, chain_at(flat))
        t = state.t if is_free(case) else jnp.zeros_like(state.t)
        return jnp.concatenate([state.points.position[:, 0], t, state.carrier[None].astype(float)])

    def statistics(flat):
        x, t, k = jnp.split(flat, [NUM_PARTICLES, 2 * NUM_PARTICLES])
        points = chain_at(flat).state.points
        path = blank.parameters.path
        state = index.draw_index(jax.random.key(0), method.temperatures, path, points, blank.state.last)
        weight = jax.nn.softmax(state.log_weight)
        carried = x[jnp.round(k[0]).astype(int)]
        others = jnp.where(jnp.arange(NUM_PARTICLES) == k[0], 0.0, x)
        extra = [weight @ x, weight[0], jnp.max(weight), carried, jnp.sum(others), jnp.sum(others**2), k[0]]
        beta = on_path(blank.parameters.path.beta, t) if is_free(case) else t
        return jnp.concatenate([x, beta, x * beta, jnp.stack(extra)])

    return check_invariance(step, exact(case), statistics=statistics, num_steps=num_steps)


@pytest.mark.parametrize("kernel_name", KERNELS)
@pytest.mark.parametrize("case_name", ["normal base", "learned mixture"])
def test_kernels(case_name, kernel_name):
    report = run(CASES[case_name], KERNELS[kernel_name])
    assert report.passes(), report


@pytest.mark.parametrize("case_name", [name for name in CASES if name not in ("normal base", "learned mixture")])
def test_bases_and_instruments(case_name):
    report = run(CASES[case_name], KERNELS["HMC"])
    assert report.passes(), report


@pytest.mark.parametrize("kernel_name", ["NUTS", "HMC"])
@pytest.mark.parametrize("case_name", ["normal base", "learned mixture", "fixed"])
def test_moves_of_the_target_alone_in_a_metric_that_all_share(case_name, kernel_name):
    report = run(CASES[case_name], KERNELS["HMC"], target_kernel=KERNELS[kernel_name])
    assert report.passes(), report


def patched(monkeypatch, module, name, function):
    monkeypatch.setattr(module, name, function)


def refresh_always(monkeypatch):
    original = moves.refresh
    patched(monkeypatch, moves, "refresh", lambda *given: original(*given[:-1], 0 * given[-1]))


def refresh_as_if_at_the_target(monkeypatch):
    original = moves.refresh
    patched(monkeypatch, moves, "refresh", lambda *given: original(*given[:-1], jnp.ones_like(given[-1])))


def carrier_at_its_old_temperature(monkeypatch):
    original = moves.move_points

    def move(key, kernel, target, state, beta, *rest):
        return original(key, kernel, target, state, jnp.where(beta == 1, 0.1, beta), *rest)

    patched(monkeypatch, moves, "move_points", move)


def g_forgotten_for_t(monkeypatch):
    original = index.cells_given

    def cells_given(path, delta):
        cells = original(path, delta)
        return original(path._replace(log_g=0 * path.log_g), delta)._replace(log_mass=cells.log_mass)

    patched(monkeypatch, index, "cells_given", cells_given)


def g_with_the_wrong_sign_in_the_weight(monkeypatch):
    original = index.cells_given

    def cells_given(path, delta):
        return original(path, delta)._replace(log_mass=original(path._replace(log_g=-path.log_g), delta).log_mass)

    patched(monkeypatch, index, "cells_given", cells_given)


def target_instead_of_its_ratio_to_the_base(monkeypatch):
    original = index.cells_given

    def cells_given(path, delta):
        cells = original(path, delta)
        return cells._replace(log_mass=0 * cells.log_mass)

    patched(monkeypatch, index, "cells_given", cells_given)


def cells_without_a_slope(monkeypatch):
    """t within its cell as if the density stayed as it is at its start."""
    original = index.draw_t
    patched(
        monkeypatch, index, "draw_t", lambda uniform, cells: original(uniform, cells._replace(slope=0 * cells.slope))
    )


def no_kinetic_energy(monkeypatch):
    original = moves.move_points

    def move(key, kernel, target, state, beta, step_size, *metric):
        end, info = original(key, kernel, target, state, beta, 2 * step_size, *metric)
        gained = end.log_density(beta) - state.log_density(beta)
        worse = jax.random.uniform(jax.random.fold_in(key, 7), beta.shape) > jnp.exp(gained)
        return jax.tree.map(lambda a, b: jnp.where(worse.reshape(-1, *(1,) * (a.ndim - 1)), b, a), end, state), info

    patched(monkeypatch, moves, "move_points", move)


def step_size_by_place(monkeypatch):
    """A step that depends on where the point is breaks the symmetry of the proposal."""
    original = moves.move_points

    def move(key, kernel, target, state, beta, step_size, *metric):
        return original(
            key, kernel, target, state, beta, step_size * jnp.where(state.position[:, 0] > 0.5, 2.0, 0.3), *metric
        )

    patched(monkeypatch, moves, "move_points", move)


def target_moves_at_another_temperature(monkeypatch):
    original = target_moves.move_point

    def move_point(key, kernel, target, point, beta, *rest):
        return original(key, kernel, target, point, 0.4 * beta, *rest)

    patched(monkeypatch, target_moves, "move_point", move_point)


def target_moves_of_another_pseudo_sample(monkeypatch):
    original = moves.Moves.__call__

    def call(self, key, state, parameters):
        return original(self, key, state._replace(carrier=(state.carrier + 1) % NUM_PARTICLES), parameters)

    monkeypatch.setattr(moves.Moves, "__call__", call)


def target_moves_as_often_as_it_pays(monkeypatch):
    """The number of moves depends on where in a mode the point is."""
    original = TargetMoves.move

    def move(self, key, target, point, parameters, number):
        return original(self, key, target, point, parameters, jnp.where(point.position[0] > 2.0, 0, number))

    monkeypatch.setattr(TargetMoves, "move", move)


def careful_moves_at_another_temperature(monkeypatch):
    original = target_moves.move_with_delay

    def move(key, target, beta, *rest):
        return original(key, target, 0.4 * beta, *rest)

    patched(monkeypatch, target_moves, "move_with_delay", move)


def target_moves_in_a_metric_by_place(monkeypatch):
    original = target_moves.move_point

    def move_point(key, kernel, target, point, beta, step_size, unit, factor):
        factor = factor * jnp.where(point.position[0] > 2.0, 2.0, 0.3)
        return original(key, kernel, target, point, beta, step_size, unit, factor)

    patched(monkeypatch, target_moves, "move_point", move_point)


def parts_of_the_density_swapped(monkeypatch):
    """What a move carries apart ends in the wrong places: log γ0 as Δ, and Δ as log γ0."""
    original = leapfrog.move_by_leapfrog

    def move(*given, **options):
        point, info = original(*given, **options)
        return point._replace(log_base=point.delta, delta=point.log_base), info

    patched(monkeypatch, hamiltonian, "move_by_leapfrog", move)


def half_a_kick_forgotten(monkeypatch):
    """The momentum at the end lacks its last half step, so the energy error is wrong."""
    original = leapfrog.leapfrog

    def trajectory(target, beta, start, momentum, step_size, metric, num_steps):
        end, last = original(target, beta, start, momentum, step_size, metric, num_steps)
        return end, last - 0.5 * step_size * metric.force(end.gradient(beta))

    patched(monkeypatch, leapfrog, "leapfrog", trajectory)


def jitter_by_place(monkeypatch):
    """A length that depends on where the trajectory starts."""
    original = leapfrog.leapfrog

    def trajectory(target, beta, start, momentum, step_size, *rest):
        return original(target, beta, start, momentum, step_size * (1 + 2 * (start.position[0] > 0.5)), *rest)

    patched(monkeypatch, leapfrog, "leapfrog", trajectory)


TARGET_BUGS = [
    target_moves_at_another_temperature,
    target_moves_of_another_pseudo_sample,
    target_moves_as_often_as_it_pays,
    target_moves_in_a_metric_by_place,
    careful_moves_at_another_temperature,
]
LEAPFROG_BUGS = [half_a_kick_forgotten, jitter_by_place]
BUGS = [
    refresh_always,
    refresh_as_if_at_the_target,
    carrier_at_its_old_temperature,
    g_forgotten_for_t,
    g_with_the_wrong_sign_in_the_weight,
    target_instead_of_its_ratio_to_the_base,
    cells_without_a_slope,
    no_kinetic_energy,
    step_size_by_place,
    parts_of_the_density_swapped,
    *LEAPFROG_BUGS,
]


# Far from the target, and not to be drawn from: no refreshment mends what a wrong move or index has done.
FAR = Case(
    pe.Target(BIMODAL, np.zeros(1), base=pe.Base(lambda x: jnp.sum(-0.5 * ((x - 3) / 2) ** 2))),
    FREE,
    log_g=np.array([-3.0, -1.0, 1.0, 3.0, 0.0]),
)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_bugs_are_caught(bug, monkeypatch):
    bug(monkeypatch)
    # A wrong end shows best on the shortest trajectory: over three steps of lengths that vary, most of it averages out.
    kernel = KERNELS["one leapfrog step" if bug in LEAPFROG_BUGS else "HMC"]
    report = run(CASES["normal base"] if "refresh" in bug.__name__ else FAR, kernel, num_steps=4)
    assert report.p_value < 1e-6, report


@pytest.mark.parametrize("bug", TARGET_BUGS, ids=lambda bug: bug.__name__)
def test_bugs_in_the_moves_of_the_target_are_caught(bug, monkeypatch):
    bug(monkeypatch)
    report = run(FAR, KERNELS["HMC"], num_steps=4, target_kernel=KERNELS["HMC"])
    assert report.p_value < 1e-6, report


@pytest.mark.parametrize("target_kernel", [None, "HMC"])
def test_without_bugs_nothing_is_caught(target_kernel):
    report = run(FAR, KERNELS["HMC"], num_steps=4, target_kernel=KERNELS.get(target_kernel))
    assert report.passes(), report


def test_standing_still_is_caught(monkeypatch):
    patched(monkeypatch, moves, "move_points", lambda key, kernel, target, state, beta, *rest: (state, _moved(beta)))
    patched(monkeypatch, moves, "refresh", lambda key, fresh, state, beta: (state, beta, beta < 2))
    original = method.draw_index

    def stay(key, temperatures, path, points, info, *rest):
        state = original(key, temperatures, path, points, info, *rest)
        return state._replace(t=info.t, carrier=info.carrier.argmax())

    patched(monkeypatch, method, "draw_index", stay)
    assert not run(CASES["normal base"], KERNELS["HMC"]).passes()


def _moved(beta):
    return KernelInfo(0 * beta, beta > 2, beta > 2, jnp.zeros(beta.shape, int))
