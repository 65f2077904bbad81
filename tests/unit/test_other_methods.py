"""The competitors' settings and pieces, one at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

import pseudo_extended as pe
from pseudo_extended.methods.continuous_tempering import draw_beta, log_end_densities
from pseudo_extended.methods.energy_rings import draw_points, empty_rings, file_points
from pseudo_extended.pilot.variational import fit_normal
from pseudo_extended.run.program import build_programs, chunk_input

from .sentences import assert_sentence

NORMAL = pe.Target(lambda x: -0.5 * jnp.sum(x**2), np.zeros(2))
RUN = {"draws": 40, "warmup": 60, "chains": 2, "seed": 3, "progress": False}
METHODS = {
    "equi-energy": pe.EquiEnergy([0, 1, 3], [1, 2, 5], burn_in=5, head_start=10, ring_capacity=4).with_width(1),
    "repelling-attracting": pe.RepellingAttracting([1.0, 2.0]),
    "continuous tempering": pe.ContinuousTempering("gibbs", pe.HMC(2), base=pe.Normal(), log_zeta=2.0),
}

DRAW_BETA = jax.jit(jax.vmap(draw_beta, in_axes=(0, None)))

BAD_SETTINGS = [
    (lambda: pe.EquiEnergy([0, 2, 1], [1, 2, 3]), ("energies", "increasing")),
    (lambda: pe.EquiEnergy([0.5], [1]), ("temperatures", "two or more")),
    (lambda: pe.EquiEnergy([0, 1], [1, 1]), ("temperatures", "increasing")),
    (lambda: pe.EquiEnergy([0, 1], [2, 3]), ("temperatures", "from 1", "2.0, 3.0")),
    (lambda: pe.EquiEnergy([0, 1, 2], [1, 2]), ("energies", "2 temperatures", "got 3")),
    (lambda: pe.EquiEnergy("low", [1, 2]), ("energies", "'low'")),
    (lambda: pe.EquiEnergy([0, 1], [1, 2], step_size=[0.1]), ("step_size", "2 of them")),
    (lambda: pe.EquiEnergy([0, 1], [1, 2], step_size=-1), ("step_size", "positive", "-1")),
    (lambda: pe.EquiEnergy([0, 1], [1, 2], jump_probability=1.0), ("jump_probability", "[0, 1)", "1.0")),
    (lambda: pe.EquiEnergy([0, 1], [1, 2], burn_in=-1), ("burn_in", "at least 0", "-1")),
    (lambda: pe.EquiEnergy([0, 1], [1, 2], head_start=0), ("head_start", "at least 1", "0")),
    (lambda: pe.EquiEnergy([0, 1], [1, 2], ring_capacity=2.5), ("ring_capacity", "whole number", "2.5")),
    (lambda: pe.RepellingAttracting(0.0), ("scale", "positive", "0.0")),
    (lambda: pe.RepellingAttracting([[1.0, 2.0], [0.0, 1.0]]), ("scale", "lower-triangular")),
    (lambda: pe.RepellingAttracting(max_tries=0), ("max_tries", "at least 1", "0")),
    (lambda: pe.RepellingAttracting(log_epsilon=-np.inf), ("log_epsilon", "finite")),
    (lambda: pe.RepellingAttracting.tak_2018("c"), ("scenario", "'a', 'b'", "'c'")),
    (lambda: pe.RepellingAttracting(np.ones(3)).check(NORMAL), ("scale", "length 2", "got 3")),
    (lambda: pe.ContinuousTempering("both"), ("variant", "'joint', 'gibbs'", "'both'")),
    (lambda: pe.ContinuousTempering(kernel=3), ("kernel", "pe.HMC()", "3")),
    (lambda: pe.ContinuousTempering(base="prior"), ("base", "pe.Normal()", "'prior'")),
    (lambda: pe.ContinuousTempering(base=pe.Normal), ("base", "Normal", "did you mean")),
    (lambda: pe.ContinuousTempering(log_zeta="one"), ("log_zeta", "'one'")),
    (lambda: pe.ContinuousTempering(step_size=0), ("step_size", "(0", "0")),
    (lambda: pe.ContinuousTempering(fit_radius=-1.0), ("fit_radius", "-1.0")),
    (lambda: pe.ContinuousTempering(base=pe.Normal(np.zeros(3))).check(NORMAL), ("base", "length 2", "got 3")),
]


@pytest.mark.parametrize(("make", "names"), BAD_SETTINGS)
def test_bad_settings_are_refused(make, names):
    with pytest.raises((ValueError, TypeError)) as error:
        make()
    assert_sentence(error, *names)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", METHODS)
def test_chunks_do_not_matter(name):
    """One program, whole or in two calls: all that a chain needs is in its state, whose sizes stay as they are."""
    x = np.random.default_rng(0).normal(size=(1, 2))
    method, key, number = METHODS[name], jax.random.key(0, impl="threefry2x32"), np.asarray(0)
    programs = build_programs(NORMAL, method, capacity=60, thin=1, x=x)
    start = programs.start(key, number, x)
    whole, record = programs.advance(chunk_input(key, 0, 60, 60, None), number, start)
    part, first = programs.advance(chunk_input(key, 0, 23, 60, None), number, start)
    part, second = programs.advance(chunk_input(key, 23, 37, 60, None), number, part)
    for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(part), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(record.x, np.concatenate([first.x[:23], second.x[:37]]))
    assert np.unique(record.x[:, 0, 0]).size > 3


@pytest.mark.usefixtures("x64")
def test_a_ring_is_a_uniform_sample_of_all_that_was_filed():
    """Twelve points, one ring of four: each is in it with probability 1/3, wherever in the row it came."""

    def fill(key):
        uniform = jax.random.uniform(key, (12,), float)

        def file(rings, i):
            point = jnp.full((1, 1), i, float)
            return file_points(uniform[i][None], rings, point, jnp.array([1]), jnp.array([True])), None

        return jax.lax.scan(file, empty_rings(1, 2, 4, 1), jnp.arange(12))[0]

    rings = jax.jit(jax.vmap(fill))(jax.random.split(jax.random.key(0), 20_000))
    held = np.asarray(rings.points)[:, 0, 1, :, 0].astype(int)
    assert np.all(np.asarray(rings.num_offered) == [[0, 12]])
    assert all(np.unique(row).size == 4 for row in held[:50])
    counts = np.bincount(held.ravel(), minlength=12)
    z = (counts - 20_000 / 3) / np.sqrt(20_000 * 2 / 9)
    assert np.all(np.abs(z) < 5), z
    # Drawn evenly from the four; nothing from the ring that is empty.
    one = jax.tree.map(lambda leaf: leaf[0], rings)
    uniform = (jnp.arange(8) + 0.5) / 8
    drawn, has_points = jax.jit(jax.vmap(lambda u: draw_points(u[None], one, jnp.array([1]))))(uniform)
    np.testing.assert_array_equal(np.asarray(drawn)[:, 0, 0], np.repeat(held[0], 2))
    assert np.all(has_points)
    assert not draw_points(jnp.zeros(1), one, jnp.array([0]))[1][0]


@pytest.mark.usefixtures("x64")
def test_equi_energy_starts_from_the_top():
    """Stages of burn_in + head_start steps; each chain files only after its own burn-in, and the cold one never."""
    method = METHODS["equi-energy"]
    chain = method.init(jax.random.key(0), NORMAL, jnp.ones((1, 2)))
    step = jax.jit(lambda key, chain: chain._replace(state=method.step(key, NORMAL, chain)[0]))
    moved_at = np.full(3, -1)
    filed_at = np.full(2, -1)
    for i in range(method.min_warmup + 5):
        before, chain = chain.state, step(jax.random.key(i), chain)
        moved = np.any(np.asarray(chain.state.x != before.x), axis=1)
        moved_at = np.where((moved_at < 0) & moved, i, moved_at)
        filed = np.asarray(chain.state.rings.num_offered).sum(axis=1) > 0
        filed_at = np.where((filed_at < 0) & filed, i, filed_at)
    assert method.min_warmup == 35
    assert np.all(filed_at == [20, 5])
    assert np.all((moved_at >= [30, 15, 0]) & (moved_at < [38, 25, 10])), moved_at
    assert np.all(np.asarray(chain.state.rings.num_offered).sum(axis=1) == [20, 35])
    np.testing.assert_allclose(chain.state.energy, 0.5 * jnp.sum(chain.state.x**2, axis=1))


def test_draws_before_the_cold_chain_are_reported():
    result = pe.sample(NORMAL, np.ones(2), method=METHODS["equi-energy"], **{**RUN, "warmup": 10})
    assert np.sum(~result.statistics["started"]) == 2 * 20
    assert any("had not started in 40 of 80 draws" in sentence for sentence in result.warnings)


def test_forced_moves_that_give_up_are_reported():
    result = pe.sample(NORMAL, np.zeros(2), method=pe.RepellingAttracting(1.0, max_tries=1), **RUN)
    assert 0.1 < np.mean(result.statistics["gave_up"]) < 0.9
    assert any("gave up" in sentence for sentence in result.warnings)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("delta", [-800.0, -3.0, -1e-7, 0.0, 1e-12, 0.4, 30.0, 800.0])
def test_end_densities_of_a_temperature(delta):
    log_p0, log_p1 = (float(part) for part in log_end_densities(jnp.asarray(delta)))
    if abs(delta) < 100:
        mass = quad(lambda beta: np.exp(beta * delta), 0, 1, epsabs=0)[0]
        np.testing.assert_allclose([log_p0, log_p1], [-np.log(mass), delta - np.log(mass)], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(log_p1 - log_p0, delta, rtol=1e-12)
    beta = np.asarray(DRAW_BETA(jax.random.split(jax.random.key(0), 2000), delta))
    assert np.all((beta >= 0) & (beta <= 1))
    rate = max(abs(delta), 1e-9)
    distance = beta if delta < 0 else 1 - beta
    assert stats.kstest(distance, lambda t: np.expm1(-rate * t) / np.expm1(-rate)).pvalue > 1e-4


@pytest.mark.usefixtures("x64")
def test_variational_fit_of_two_modes():
    """Both modes are found, each counts once, and the mass is right."""
    density = pe.problems.mixtures.NormalMixture(
        np.array([0.3, 0.7]), np.array([[-2.0, 0.0], [2.0, 1.0]]), np.array([0.1, 0.1])
    )
    starts = np.random.default_rng(0).uniform(-3, 3, (16, 2))
    fit = fit_normal(jax.random.key(0), lambda x: density(x) + 5.0, starts)
    np.testing.assert_allclose(fit.mean, [0.8, 0.7], atol=0.05)
    covariance = 0.1 * np.eye(2) + 0.21 * np.outer([4.0, 1.0], [4.0, 1.0])
    np.testing.assert_allclose(fit.scale @ fit.scale.T, covariance, rtol=0.05, atol=0.05)
    assert abs(fit.log_mass - 5.0) < 0.01


@pytest.mark.usefixtures("x64")
def test_a_fit_without_a_start_is_refused():
    with pytest.raises(ValueError, match="could not be fitted") as error:
        fit_normal(jax.random.key(0), lambda x: -jnp.inf * jnp.sum(x**2), np.ones((2, 1)))
    assert_sentence(error, "base", "log_zeta", "2 starts")


@pytest.mark.usefixtures("x64")
def test_a_targets_own_base_is_used_unless_another_is_asked_for():
    base = pe.Normal(1.0, 3.0)
    target = pe.Target(lambda x: -0.5 * jnp.sum(x**2), np.zeros(2), base=base)
    said = []
    prepare = {"key": jax.random.key(0), "target": target, "x": np.zeros((3, 1, 2)), "say": said.append}
    own = pe.ContinuousTempering(log_zeta=1.8).prepare(**prepare)
    assert own.method.base is None
    assert own.method.tempered(target).base is base
    assert own.notes == ()
    assert said == []
    fitted = pe.ContinuousTempering(base="fit").prepare(**prepare)
    np.testing.assert_allclose(fitted.method.base.mean, [0, 0], atol=1e-3)
    np.testing.assert_allclose(fitted.method.log_zeta, np.log(2 * np.pi), atol=1e-3)
    assert len(fitted.notes) == 2
    assert said == ["fitting a normal to the target"]
