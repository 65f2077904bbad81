"""What every instrument, kernel and method promises, whatever it is: a new row in a table buys every test."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.kernels import initial_state, unit_parameters
from pseudo_extended.run.program import build_programs, chunk_input
from pseudo_extended.warmup import stages

pytestmark = pytest.mark.usefixtures("x64")

TARGET = pe.Target(lambda x: -0.5 * jnp.sum(x**2) - jnp.sum(x**4), np.zeros(3))

INSTRUMENTS = {
    "tempered": pe.Tempered(0.05),
    "fixed": pe.Fixed(0.4),
    "ladder": pe.Ladder([0.1, 0.5, 0.8, 1.0]),
    "stratified": pe.Stratified(0.05),
    "stratified, weak": pe.Stratified(0.05, correlation=-0.1),
    "density": pe.Density(pe.Normal(0.0, 2.0)),
    "per particle": pe.PerParticle([pe.Fixed(0.2), pe.Tempered(0.1), pe.Density(pe.Normal()), pe.Fixed(1.0)]),
}
KERNELS = {
    "NUTS": pe.NUTS(),
    "HMC": pe.HMC(3),
    "MALA": pe.MALA(),
    "random walk": pe.RandomWalk(),
    "cycle": pe.Cycle([pe.NUTS(), pe.RandomWalk()]),
    "mixture": pe.Mixture([pe.MALA(), pe.Cycle([pe.HMC(2), pe.RandomWalk()])], [0.3, 0.7]),
}
METHODS = {
    "plain": pe.Plain(pe.NUTS()),
    "plain, dense": pe.Plain(pe.HMC(3), metric="dense"),
    "plain, mixture": pe.Plain(pe.Mixture([pe.MALA(), pe.RandomWalk()])),
    "pseudo-extended": pe.PseudoExtended(pe.Tempered(0.05), pe.NUTS(), 3),
    "pseudo-extended, cycle": pe.PseudoExtended(pe.Fixed(0.3), pe.Cycle([pe.MALA(), pe.RandomWalk()]), 2),
    "index Gibbs": pe.AdaptivePseudoExtended(3, base="target", instrument=pe.Tempered(0.1), width=1),
    "index Gibbs, ladder of NUTS": pe.AdaptivePseudoExtended(
        3, pe.NUTS(4), pe.Ladder([0.1, 0.5, 1.0]), base="target", metric="diagonal", width=1
    ),
    "index Gibbs, random walk": pe.AdaptivePseudoExtended(2, pe.RandomWalk(), pe.Fixed(0.2), base="target", width=1),
    "parallel tempering": pe.ParallelTempering([0.1, 0.4, 1.0], pe.RandomWalk(), metric="dense"),
    "simulated tempering": pe.SimulatedTempering([0.1, 0.4, 1.0], pe.MALA()),
    "equi-energy": pe.EquiEnergy([-1, 1, 3], [1.0, 3.0, 9.0], burn_in=2, head_start=2, ring_capacity=20).with_width(1),
    "repelling-attracting": pe.RepellingAttracting(0.5),
    "continuous tempering": pe.ContinuousTempering("gibbs", pe.HMC(2), base=pe.Normal(0.0, 2.0), log_zeta=0.0),
}
LEARNED = {pe.AdaptivePseudoExtended: ["log_step"], pe.EquiEnergy: [], pe.RepellingAttracting: []}
"""In warm-up, where it is not step sizes and metric: index Gibbs has its metric from the pilot; two tune nothing."""
NUM_PARTICLES = 4


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_instrument(name):
    instrument = INSTRUMENTS[name]
    instrument.check(TARGET, NUM_PARTICLES)
    extended = pe.ExtendedTarget(TARGET, instrument, NUM_PARTICLES)
    x = jax.random.normal(jax.random.key(0), (NUM_PARTICLES, TARGET.dim), float)
    flat = extended.start(jax.random.key(1), x)
    assert flat.shape == (extended.dim,)
    np.testing.assert_array_equal(extended.split(flat).x, x)
    np.testing.assert_array_equal(extended.join(extended.split(flat)), flat)
    terms = jax.jit(lambda flat: extended.terms(flat))(flat)
    assert terms.log_q.shape == terms.log_weight.shape == (NUM_PARTICLES,)
    assert terms.log_auxiliary.shape == ()
    betas = extended.betas(flat)
    assert betas.shape == (NUM_PARTICLES,)
    assert np.all(np.isnan(betas) | ((betas >= 0) & (betas <= 1)))
    value, gradient = jax.value_and_grad(extended.log_density)(flat)
    assert value.dtype == gradient.dtype == jnp.float64
    assert np.isfinite(value)
    assert np.all(np.isfinite(gradient))
    batched = jax.vmap(extended.log_density)(jnp.stack([flat, flat]))
    np.testing.assert_allclose(batched, value, rtol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_kernel(name):
    kernel = KERNELS[name]
    log_density = TARGET.log_target
    state = initial_state(log_density, jnp.array([0.3, -0.2, 0.1]), gradient=kernel.uses_gradient)
    parameters = unit_parameters(kernel, 3, dense=False)
    assert parameters.step_size.shape == kernel.target_acceptance.shape
    step = jax.jit(lambda key, state: kernel.step(key, log_density, state, parameters))
    moved = 0
    for i in range(20):
        new, info = step(jax.random.key(i), state)
        assert jax.tree.structure(new) == jax.tree.structure(state)
        np.testing.assert_allclose(new.log_density, log_density(new.position), rtol=1e-10)
        if kernel.uses_gradient:
            np.testing.assert_allclose(new.gradient, jax.grad(log_density)(new.position), rtol=1e-8, atol=1e-12)
        rates = np.asarray(info.acceptance_rate)
        assert rates.shape == kernel.target_acceptance.shape
        assert np.all(np.isnan(rates) | ((rates >= 0) & (rates <= 1)))
        assert not info.non_finite
        assert int(info.num_evaluations) >= 1
        moved += int(np.any(new.position != state.position))
        state = new
    assert moved >= 5


@pytest.mark.parametrize("name", METHODS)
def test_method(name):
    method = METHODS[name]
    method.check(TARGET)
    x = jax.random.normal(jax.random.key(0), (method.num_points, TARGET.dim), float)
    # Compiled: a method with many kernels takes long when it runs one operation after the other.
    chain = jax.jit(lambda key: method.init(key, TARGET, x))(jax.random.key(1))
    state, info = jax.jit(lambda key: method.step(key, TARGET, chain))(jax.random.key(2))
    assert jax.tree.structure(state) == jax.tree.structure(chain.state)
    adapted = method.adapt(TARGET, chain._replace(state=state), jax.tree.map(lambda plan: plan[0], stages(50)), info)
    same = jax.tree.map(lambda a, b: a.shape == b.shape and a.dtype == b.dtype, adapted, chain._replace(state=state))
    assert jax.tree.all(same)
    points = method.points(TARGET, state)
    assert points.x.shape == (method.num_points, TARGET.dim)
    assert points.log_weight.shape == (method.num_points,)
    declared = {statistic.name: len(statistic.dims) for statistic in method.statistics}
    assert {name: each.ndim for name, each in points.statistics.items()}.items() <= declared.items()
    report = method.report(info)
    assert all(part.shape == () for part in report)
    assert method.describe()


@pytest.mark.parametrize("name", METHODS)
def test_adaptation_is_over_when_the_draws_begin(name):
    """Warm-up changes the parameters; the draws leave them as they are, to the bit."""
    method = METHODS[name]
    x = np.random.default_rng(0).normal(size=(method.num_points, TARGET.dim))
    programs = build_programs(TARGET, method, capacity=128, thin=1, x=x)
    key, number = jax.random.key(0, impl="threefry2x32"), np.asarray(0)
    started = programs.start(key, number, x)
    warmed, _ = programs.advance(chunk_input(key, 0, 100, 128, stages(100)), number, started)
    drawn, _ = programs.advance(chunk_input(key, 0, 40, 128, None), number, warmed)
    learned = LEARNED.get(type(method), ["step_size", "inverse_mass"])
    for name in learned:
        assert not np.array_equal(getattr(started.parameters, name), getattr(warmed.parameters, name))
    for before, after in zip(jax.tree.leaves(warmed[1:]), jax.tree.leaves(drawn[1:]), strict=True):
        np.testing.assert_array_equal(before, after)
    assert not all(map(np.array_equal, jax.tree.leaves(warmed.state), jax.tree.leaves(drawn.state)))
