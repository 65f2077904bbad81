"""Parallel and simulated tempering leave their joint distributions alone, and annealed weights are unbiased.

False alarms: α = 1e-4 for each of some 20 comparisons, with constant seeds. Every planted bug must be caught by the
very same call.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.kernels import AbstractKernel
from pseudo_extended.kernels.tempered import tempered_point
from pseudo_extended.methods import annealed_importance, parallel_tempering, simulated_tempering
from pseudo_extended.precision import double_precision
from pseudo_extended.testing import check_invariance


class Path1D(NamedTuple):
    """A path of normal densities on the line: γ_β ∝ N(centre(β), 1/precision(β))."""

    target: pe.Target
    mean: float
    """Of the target, as all that follow."""
    variance: float
    log_z: float
    """log ∫ γ."""
    base_variance: float
    """Infinite without a base."""

    def precision(self, beta):
        return beta / self.variance + (1 - beta) / self.base_variance

    def centre(self, beta):
        return beta * self.mean / self.variance / self.precision(beta)

    def log_mass(self, beta):
        """log ∫ γ_β by completing the square."""
        precision, centre = self.precision(beta), self.centre(beta)
        log_normal = -0.5 * np.log(2 * np.pi * np.array([self.variance, self.base_variance]))
        exponent = beta * self.mean**2 / self.variance - precision * centre**2
        base = 0.0 if np.isinf(self.base_variance) else (1 - beta) * log_normal[1]
        return beta * (self.log_z + log_normal[0]) + base + 0.5 * np.log(2 * np.pi / precision) - 0.5 * exponent

    def draw(self, rng, beta):
        beta = np.asarray(beta)
        return self.centre(beta) + rng.normal(size=beta.shape) / np.sqrt(self.precision(beta))


def without_base() -> Path1D:
    """Powers of exp(-x²/2)."""
    target = pe.Target(lambda x: -0.5 * jnp.sum(x**2), np.zeros(1))
    return Path1D(target, 0.0, 1.0, 0.5 * np.log(2 * np.pi), np.inf)


def with_base(base=None) -> Path1D:
    """From N(0, 2²) to a multiple of N(1, 1/2²)."""
    base = pe.Normal(0.0, 2.0) if base is None else base
    target = pe.Target(lambda x: -0.5 * jnp.sum((x - 1) ** 2) / 0.25 + 0.7, np.zeros(1), base=base)
    return Path1D(target, 1.0, 0.25, 0.7 + 0.5 * np.log(2 * np.pi * 0.25), 4.0)


def without_sampler() -> Path1D:
    return with_base(pe.Base(lambda x: jnp.sum(-0.125 * x**2) - 0.5 * jnp.log(8 * jnp.pi)))


WARM, COLD = [0.1, 0.35, 1.0], [0.0, 0.3, 1.0]
# Step sizes at which a good share of the proposals is rejected, so that the acceptance test is tested too.
SIZES = {pe.RandomWalk: 2.0, pe.HMC: 1.2, pe.MALA: 1.5, pe.NUTS: 1.0}


def fast_first(names, *fast):
    """Every case compiles a program of its own, for seconds: one of each kind always runs, the others are slow."""
    return [name if name in fast else pytest.param(name, marks=pytest.mark.slow) for name in names]


def start(method, path):
    """A chain with the shapes of its state, and with the fixed parameters."""
    return jax.jit(lambda: method.init(jax.random.key(0), path.target, jnp.zeros((1, 1))))()


MOVE = AbstractKernel.move_tempered


def stale(kernel, key, target, beta, state, *tuning):
    """The point moves, and what is known about it does not."""
    new, info = MOVE(kernel, key, target, beta, state, *tuning)
    return state._replace(position=new.position), info


def too_hot(kernel, key, target, beta, state, *tuning):
    """The kernel sees another temperature."""
    return MOVE(kernel, key, target, 0.5 * beta, state, *tuning)


def plant(monkeypatch, module, name, bug):
    """Of the kernel where the bug is in its move, else of the module of the method."""
    monkeypatch.setattr(AbstractKernel if name == "move_tempered" else module, name, bug)


# Parallel tempering: an exact state has an independent draw on every rung.


def run_parallel(path, betas, kernel, swaps):
    method = pe.ParallelTempering(
        betas, kernel, swaps=swaps, adapt_betas=False, step_size=SIZES[type(kernel)] / np.sqrt(0.2 + np.array(betas))
    )
    with double_precision():
        blank = start(method, path)

    def step(key, flat):
        each = jax.vmap(lambda u: tempered_point(path.target, u, gradient=kernel.uses_gradient))(flat[:, None])

        def once(i, state):
            return method.step(jax.random.fold_in(key, i), path.target, blank._replace(state=state))[0]

        # Twice: the even pairs and the odd ones.
        return jax.lax.fori_loop(0, 2, once, blank.state._replace(path=each)).position[:, 0]

    def exact(rng, size):
        return path.draw(rng, np.tile(betas, (size, 1)))

    def statistics(flat):
        return jnp.concatenate([flat, jnp.abs(flat), flat[1:] * flat[:-1], jnp.sum(flat)[None]])

    return check_invariance(step, exact, statistics=statistics, num_steps=2)


PARALLEL = {
    "random walk": (without_base, WARM, pe.RandomWalk(), "even_odd"),
    "random walk, random pair": (without_base, WARM, pe.RandomWalk(), "random_pair"),
    "NUTS": (without_base, WARM, pe.NUTS(max_depth=3), "even_odd"),
    "MALA, base": (with_base, WARM, pe.MALA(), "even_odd"),
    "HMC, base drawn from": (with_base, COLD, pe.HMC(3), "random_pair"),
    "random walk, base without sampler": (without_sampler, COLD, pe.RandomWalk(), "even_odd"),
}


@pytest.mark.parametrize("name", fast_first(PARALLEL, "random walk", "HMC, base drawn from"))
def test_parallel_tempering(name):
    make, betas, kernel, swaps = PARALLEL[name]
    report = run_parallel(make(), betas, kernel, swaps)
    assert report.passes(), report


def flipped(betas, delta):
    return jnp.exp(jnp.minimum(0.0, jnp.diff(betas) * (delta[1:] - delta[:-1])))


def half_the_step(betas, delta):
    return jnp.exp(jnp.minimum(0.0, 0.5 * jnp.diff(betas) * (delta[:-1] - delta[1:])))


def copies(swapped):
    """The colder point goes up, and the hotter stays."""
    return jnp.arange(swapped.size + 1) + jnp.concatenate([swapped, jnp.zeros(1, bool)])


@pytest.mark.parametrize(
    ("name", "bug"),
    [
        ("swap_acceptance", flipped),
        ("swap_order", copies),
        ("move_tempered", stale),
        pytest.param("swap_acceptance", half_the_step, marks=pytest.mark.slow),
        pytest.param("move_tempered", too_hot, marks=pytest.mark.slow),
    ],
)
def test_a_bug_in_parallel_tempering_is_caught(name, bug, monkeypatch):
    plant(monkeypatch, parallel_tempering, name, bug)
    report = run_parallel(without_base(), WARM, pe.RandomWalk(), "even_odd")
    assert report.p_value < 1e-4, report


@pytest.mark.slow
def test_a_bug_in_the_draw_of_the_base_is_caught():
    """A sampler that is not that of the base."""
    base = pe.Base(
        lambda x: jnp.sum(-0.125 * x**2) - 0.5 * jnp.log(8 * jnp.pi), lambda key: jax.random.normal(key, (1,)) * 1.7
    )
    report = run_parallel(with_base(base), COLD, pe.RandomWalk(), "even_odd")
    assert report.p_value < 1e-4, report


# Simulated tempering: an exact state has k by its mass, and x given k.


LOG_WEIGHTS = np.array([0.4, -0.5, 0.1])


def exact_tempered(path, betas):
    def exact(rng, size):
        mass = np.exp([path.log_mass(beta) for beta in betas] + LOG_WEIGHTS)
        level = rng.choice(len(betas), size=size, p=mass / mass.sum())
        return np.stack([path.draw(rng, np.array(betas)[level]), level], axis=1)

    return exact


def tempered(path, betas, kernel):
    return pe.SimulatedTempering(
        betas, kernel, log_weights=LOG_WEIGHTS, step_size=SIZES[type(kernel)] / np.sqrt(0.2 + np.array(betas))
    )


def run_simulated(path, betas, kernel):
    method = tempered(path, betas, kernel)
    with double_precision():
        blank = start(method, path)

    def step(key, flat):
        here = tempered_point(path.target, flat[:1], gradient=kernel.uses_gradient)
        state = blank.state._replace(path=here, level=flat[1].astype(int))
        state, _ = method.step(key, path.target, blank._replace(state=state))
        return jnp.stack([state.position[0], state.level.astype(float)])

    def statistics(flat):
        x, level = flat
        hot, cold = level == 0, level == 2
        return jnp.stack([x, jnp.abs(x), level, x * hot, x * cold, x**2 * hot, x**2 * cold, jnp.abs(x) * level])

    return check_invariance(step, exact_tempered(path, betas), statistics=statistics)


SIMULATED = {
    "HMC": (without_base, WARM, pe.HMC(3)),
    "random walk, base drawn from": (with_base, COLD, pe.RandomWalk()),
    "MALA, base without sampler": (without_sampler, COLD, pe.MALA()),
}


@pytest.mark.parametrize("name", fast_first(SIMULATED, "HMC", "random walk, base drawn from"))
def test_simulated_tempering(name):
    make, betas, kernel = SIMULATED[name]
    report = run_simulated(make(), betas, kernel)
    assert report.passes(), report


def no_weights(betas, delta, log_weight):
    return jax.nn.log_softmax(betas * delta)


def wrong_way_round(betas, delta, log_weight):
    return jax.nn.log_softmax((1 - betas) * delta + log_weight)


@pytest.mark.parametrize(
    ("name", "bug"),
    [
        ("level_log_probabilities", no_weights),
        ("move_tempered", stale),
        pytest.param("level_log_probabilities", wrong_way_round, marks=pytest.mark.slow),
        pytest.param("move_tempered", too_hot, marks=pytest.mark.slow),
    ],
)
def test_a_bug_in_simulated_tempering_is_caught(name, bug, monkeypatch):
    plant(monkeypatch, simulated_tempering, name, bug)
    report = run_simulated(without_base(), WARM, pe.RandomWalk())
    assert report.p_value < 1e-4, report


def weighted_errors(path, draw, num_draws=20_000):
    """z-scores of E[v f(x)] = c E_π[f] for f = x, x² (as ratios to f = 1), and of the evidence; v = importance.

    Each is a mean of independent terms, so |z| < 5 has a false alarm in 10⁶.
    """
    with double_precision():
        out = jax.jit(jax.vmap(lambda key, flat: draw(key, flat)))(*_inputs(path, num_draws))
    x, v = np.asarray(out.x)[:, 0, 0], np.exp(np.asarray(out.log_importance))
    top, bottom = (np.exp(np.asarray(out.statistics[f"evidence_{end}"]))[:, 0] for end in ("top", "bottom"))
    terms = [v * (x - path.mean), v * (x**2 - path.variance - path.mean**2), top - np.exp(path.log_z) * bottom]
    return np.array([term.mean() / (term.std() / np.sqrt(num_draws)) for term in terms])


def _inputs(path, num_draws):
    keys = jax.random.split(jax.random.key(3, impl="threefry2x32"), num_draws)
    return keys, exact_tempered(path, COLD)(np.random.default_rng(3), num_draws)


def simulated_errors():
    path = with_base()
    method = tempered(path, COLD, pe.RandomWalk())
    with double_precision():
        blank = start(method, path)

    def draw(key, flat):
        state = blank.state._replace(
            path=tempered_point(path.target, flat[:1], gradient=False), level=flat[1].astype(int)
        )
        return method.points(path.target, method.step(key, path.target, blank._replace(state=state))[0])

    return weighted_errors(path, draw)


def test_draws_of_simulated_tempering_are_weighted_right():
    """Rao-Blackwellised estimates of moments and evidence from exact states."""
    z = simulated_errors()
    assert np.all(np.abs(z) < 5), z


def test_wrong_weights_of_simulated_tempering_are_caught(monkeypatch):
    """All draws alike; or the weights w_k forgotten in the evidence."""
    points = pe.SimulatedTempering.points

    def alike(self, target, state):
        return points(self, target, state)._replace(log_importance=jnp.zeros(()))

    def forgotten(self, target, state):
        return points(self, target, state._replace(log_weight=jnp.zeros(2)))

    for bug in (alike, forgotten):
        monkeypatch.setattr(pe.SimulatedTempering, "points", bug)
        assert np.max(np.abs(simulated_errors())) > 5


# Annealed importance sampling: the mean of w f(x) is Z E[f], whatever the schedule and the kernel.

SCHEDULE = [0.0, 0.1, 0.4, 1.0]


def annealed_errors(kernel, path=None):
    path = with_base() if path is None else path
    method = pe.AnnealedImportance(SCHEDULE, kernel, step_size=1.0)
    with double_precision():
        blank = start(method, path)

    def draw(key, flat):
        return method.points(path.target, method.step(key, path.target, blank)[0])

    return weighted_errors(path, draw)


@pytest.mark.parametrize("kernel", [pe.RandomWalk(), pe.HMC(3)], ids=["random walk", "HMC"])
def test_annealed_weights_are_unbiased(kernel):
    z = annealed_errors(kernel)
    assert np.all(np.abs(z) < 5), z


@pytest.mark.usefixtures("x64")
def test_annealed_walks_move():
    path, method = with_base(), pe.AnnealedImportance(SCHEDULE, pe.RandomWalk(), step_size=1.0)
    chain = start(method, path)

    def ends_of(key):
        return path.target.draw_base(jax.random.split(key)[0]), method.step(key, path.target, chain)[0].position

    starts, ends = jax.jit(jax.vmap(ends_of))(jax.random.split(jax.random.key(1), 500))
    assert 0.2 < np.mean(ends != starts) < 1.0


@pytest.mark.parametrize("bug", [stale, too_hot])
def test_a_bug_in_annealed_importance_is_caught(bug, monkeypatch):
    plant(monkeypatch, annealed_importance, "move_tempered", bug)
    assert np.max(np.abs(annealed_errors(pe.RandomWalk()))) > 5


def test_walks_that_do_not_start_from_the_base_are_caught():
    base = pe.Base(
        lambda x: jnp.sum(-0.125 * x**2) - 0.5 * jnp.log(8 * jnp.pi), lambda key: jax.random.normal(key, (1,)) * 1.7
    )
    assert np.max(np.abs(annealed_errors(pe.RandomWalk(), with_base(base)))) > 5
