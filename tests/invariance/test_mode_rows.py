"""A row of g for each mode leaves the extended target alone, for every kernel and for rows of any kind.

In one dimension exact draws of (x, t) are draws from a table: cells of t, and a grid of x far finer than what 10,000
draws can see. α = 1e-4 for each comparison, with constant seeds; each planted bug must be caught by the very same call.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.kernels.tempered import evaluator
from pseudo_extended.methods.adaptive.index import draw_index
from pseudo_extended.methods.adaptive.method import AdaptivePseudoExtended
from pseudo_extended.methods.adaptive.parameters import AdaptiveParameters
from pseudo_extended.precision import double_precision
from pseudo_extended.problems.mixtures import NormalMixture
from pseudo_extended.tempering import labelled, mode_rows
from pseudo_extended.tempering.path import Path, on_path
from pseudo_extended.testing import check_invariance

NUM_PARTICLES, NODES, FINE = 3, 5, 400
GRID = np.linspace(-14, 14, 8_001)
BETAS = np.array([0.0, 0.1, 0.35, 0.6, 1.0])
ROWS = np.array([[2.0, -1.5, 0.5], [-1.5, 2.0, -0.5], [1.5, -1.5, 1.0], [1.5, -1.0, 0.0], [0.0, 0.0, 0.0]])
NOT_ANCHORED = ROWS + np.array([1.0, -1.5, 0.5])
TARGET = pe.Target(
    NormalMixture(np.full(3, 1 / 3), np.array([[-2.0], [0.0], [2.5]]), np.array([0.6, 0.8, 0.7])), np.zeros(1)
)
# Two modes, the first of them twice as in a padded base, and a broad part at two scales.
LEARNED = pe.NormalMixture(
    [[-2.5], [2.0], [0.0], [0.0], [-2.5]], [[0.9], [1.2], [2.0], [4.0], [0.9]], [0.15, 0.4, 0.2, 0.1, 0.15]
)
KERNELS = {"HMC": pe.HMC(3), "MALA": pe.MALA(), "NUTS": pe.NUTS(max_depth=3), "random walk": pe.RandomWalk()}


def exact(rows):
    """(x, t, k, labels) from the extended target with these rows of log g."""
    with double_precision():
        points = jax.vmap(TARGET.with_base(LEARNED).path_point)(jnp.asarray(GRID)[:, None])
        label = np.asarray(jax.vmap(LEARNED.label)(jnp.asarray(GRID)[:, None]))
    log_base, delta = np.asarray(points.log_base), np.asarray(points.delta)
    t_fine, nodes = (np.arange(FINE) + 0.5) / FINE, np.linspace(0, 1, NODES)
    beta = np.interp(t_fine, nodes, BETAS)
    log_g = np.stack([np.interp(t_fine, nodes, row) for row in rows.T])[label].T  # (cell, grid)
    log_q = log_base + beta[:, None] * delta + log_g
    q = np.exp(log_q - log_q.max())
    carrier_cdf = np.cumsum(np.exp(log_base + delta))

    def draws(rng, size):
        share = q.sum(axis=1)
        cell = rng.choice(FINE, size=size * NUM_PARTICLES, p=share / share.sum())
        x, uniform = np.empty(cell.size), rng.uniform(size=cell.size)
        for each in range(FINE):
            here = cell == each
            x[here] = np.interp(uniform[here], np.cumsum(q[each]) / share[each], GRID)
        t = ((cell + rng.uniform(size=cell.size)) / FINE).reshape(size, NUM_PARTICLES)
        x = x.reshape(size, NUM_PARTICLES)
        k = rng.integers(NUM_PARTICLES, size=size)
        carrier = np.interp(rng.uniform(size=size), carrier_cdf / carrier_cdf[-1], GRID)
        x[np.arange(size), k] = carrier
        # The place of the carrier means nothing; the method draws it given x, like the others.
        given_x = np.cumsum(q[:, np.searchsorted(GRID, carrier)], axis=0)
        cell = np.sum(given_x <= rng.uniform(size=size) * given_x[-1], axis=0)
        t[np.arange(size), k] = (cell + rng.uniform(size=size)) / FINE
        return np.concatenate([x, t, k[:, None], label[np.searchsorted(GRID, x)]], axis=1)

    return draws


def parts(flat):
    x, t, whole = jnp.split(flat, [NUM_PARTICLES, 2 * NUM_PARTICLES])
    whole = jnp.round(whole).astype(int)
    return x, t, whole[0], whole[1:]


def run(kernel, rows=ROWS, num_steps=2):
    """The method with parameters that nobody tuned."""
    with double_precision():
        knots = jnp.linspace(0.0, 1.0, NODES)
        path = Path(jnp.asarray(BETAS), jnp.asarray(rows))
        parameters = AdaptiveParameters(path, jnp.log(0.9 - 0.4 * knots), (1.5 - knots)[:, None])
        learned = jax.tree.map(jnp.asarray, LEARNED)
        method = AdaptivePseudoExtended(NUM_PARTICLES, kernel, learned_base=learned, parameters=parameters)
        blank = method.init(jax.random.key(0), TARGET, jnp.zeros((NUM_PARTICLES, 1)))
    evaluate = evaluator(TARGET.with_base(LEARNED), gradient=method.needs_gradient)

    def chain_at(flat):
        x, t, k, label = parts(flat)
        points = jax.vmap(evaluate)(x[:, None])
        return blank._replace(state=blank.state._replace(points=points, t=t, carrier=k, label=label))

    def step(key, flat):
        state, _ = method.step(key, TARGET, chain_at(flat))
        assert state.label is not None
        whole = jnp.append(state.carrier, state.label).astype(float)
        return jnp.concatenate([state.points.position[:, 0], state.t, whole])

    def statistics(flat):
        x, t, k, label = parts(flat)
        now = chain_at(flat).state
        drawn = draw_index(jax.random.key(0), method.temperatures, path, now.points, now.last, now.label)
        weight = jax.nn.softmax(drawn.log_weight)
        others = jnp.where(jnp.arange(NUM_PARTICLES) == k, 0.0, x)
        extra = [weight @ x, weight[0], jnp.max(weight), x[k], jnp.sum(others), jnp.sum(others**2), k.astype(float)]
        beta = on_path(path.beta, t)
        return jnp.concatenate([x, beta, x * beta, label * (1 + beta), label * x, jnp.stack(extra)])

    return check_invariance(step, exact(rows), statistics=statistics, num_steps=num_steps)


@pytest.mark.parametrize("kernel_name", KERNELS)
def test_kernels(kernel_name):
    report = run(KERNELS[kernel_name])
    assert report.passes(), report


def test_rows_that_are_not_zero_at_the_target():
    """Adaptation sees to it that they are, for the sake of the weights; the extended target does not depend on it."""
    report = run(KERNELS["HMC"], NOT_ANCHORED)
    assert report.passes(), report


def no_refreshments(monkeypatch):
    """They would mend what a wrong local move has done."""

    def refresh(key, fresh, rows, now, beta):
        return now, 0 * beta, now

    monkeypatch.setattr("pseudo_extended.methods.adaptive.moves.refresh_labelled", refresh)


def test_local_moves_alone(monkeypatch):
    no_refreshments(monkeypatch)
    report = run(KERNELS["HMC"], num_steps=16)
    assert report.passes(), report


def g_forgotten_in_local_moves(monkeypatch):
    no_refreshments(monkeypatch)
    monkeypatch.setattr("pseudo_extended.methods.adaptive.moves.settle", lambda key, rows, before, after: after)


def g_forgotten_in_refreshments(monkeypatch):
    original = labelled.refresh_labelled

    def refresh(key, fresh, rows, *rest):
        flat = rows.path._replace(log_g=0 * rows.path.log_g)
        return original(key, fresh, rows._replace(path=flat), *rest)

    monkeypatch.setattr("pseudo_extended.methods.adaptive.moves.refresh_labelled", refresh)


def g_upside_down(monkeypatch):
    original = labelled.Rows.log_ratio
    monkeypatch.setattr(labelled.Rows, "log_ratio", lambda rows, new, old: -original(rows, new, old))


def the_target_sees_rows_that_are_not_anchored(monkeypatch):
    def log_ratio(rows, new, old):
        return mode_rows.log_g_at(rows.path, new, rows.t) - mode_rows.log_g_at(rows.path, old, rows.t)

    monkeypatch.setattr(labelled.Rows, "log_ratio", log_ratio)


def label_not_computed_again(monkeypatch):
    """After a move the row is still that of the place where it began."""
    no_refreshments(monkeypatch)
    original = labelled.settle

    def settle(key, rows, before, after):
        return original(key, rows, before, after)._replace(label=before.label)

    monkeypatch.setattr("pseudo_extended.methods.adaptive.moves.settle", settle)


def row_of_the_first_mode_for_all(monkeypatch):
    monkeypatch.setattr(Path, "seen_from", lambda path, label: path._replace(log_g=path.log_g[:, 0 * label]))


BUGS = [
    g_forgotten_in_local_moves,
    g_forgotten_in_refreshments,
    g_upside_down,
    the_target_sees_rows_that_are_not_anchored,
    label_not_computed_again,
    row_of_the_first_mode_for_all,
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_bugs_are_caught(bug, monkeypatch):
    bug(monkeypatch)
    report = run(KERNELS["HMC"], NOT_ANCHORED if "anchored" in bug.__name__ else ROWS, num_steps=16)
    assert report.p_value < 1e-6, report
