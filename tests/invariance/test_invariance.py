"""Every kernel × every instrument leaves the extended target alone; every planted bug is caught.

False alarms: α = 1e-4 for each of some 100 comparisons, with constant seeds. A planted bug must be caught by the very
same call.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import logsumexp

import pseudo_extended as pe
from pseudo_extended.kernels import AbstractKernel, KernelParameters, initial_state
from pseudo_extended.precision import double_precision
from pseudo_extended.run.program import _draw
from pseudo_extended.testing import check_invariance
from pseudo_extended.warmup import Stage

from .cases import CASES, Case, own_density, own_density_positive, stratified, tempered_interval, tempered_normal

# Step sizes at which a good share of the proposals is rejected, so that the acceptance test is tested too.
KERNELS: dict[str, tuple[AbstractKernel, list[float]]] = {
    "NUTS": (pe.NUTS(max_depth=4), [0.9]),
    "HMC": (pe.HMC(num_steps=4), [0.8]),
    "MALA": (pe.MALA(), [1.0]),
    "random walk": (pe.RandomWalk(), [1.0]),
    "cycle": (pe.Cycle([pe.HMC(num_steps=2), pe.RandomWalk()]), [0.9, 1.0]),
    "mixture": (pe.Mixture([pe.HMC(num_steps=3), pe.MALA()], [0.4, 0.6]), [0.9, 1.1]),
}


def statistics(extended: pe.ExtendedTarget, flat):
    """Coordinates, log density, weights, the weighted mean, and products between pseudo-samples."""
    x, weight = extended.split(flat).x, jax.nn.softmax(extended.terms(flat).log_weight)
    others = [jnp.sum(x[0] * x[-1]), jnp.sum(jnp.prod(jnp.abs(x), axis=0)), jnp.max(jnp.abs(x))]
    means = [extended.log_density(flat), jnp.sum(weight @ x)]
    spread = weight[:1] if extended.num_particles > 1 else weight[:0]
    return jnp.concatenate([flat, jnp.stack(means + others), spread])


def kernel_step(log_density, kernel, step_sizes, inverse_mass):
    def step(key, flat):
        state = initial_state(log_density, flat, gradient=kernel.uses_gradient)
        parameters = KernelParameters(jnp.asarray(step_sizes), inverse_mass)
        return kernel.step(key, log_density, state, parameters)[0].position

    return step


def run(case: Case, kernel, step_sizes, log_density=None, dense=False):
    extended = case.extended
    rng = np.random.default_rng(1)
    factor = np.tril(rng.normal(size=(extended.dim, extended.dim)) * 0.2) + np.eye(extended.dim)
    inverse_mass = factor @ factor.T if dense else rng.uniform(0.7, 1.4, extended.dim)
    step = kernel_step(log_density or extended.log_density, kernel, step_sizes, jnp.asarray(inverse_mass))
    return check_invariance(step, case.exact, statistics=partial(statistics, extended))


FIRST = list(CASES)[:2]
FAST = {"cycle": FIRST, "mixture": FIRST, "MALA": FIRST, "NUTS": list(CASES)[::3]}
"""Made of the others, HMC with one step, or slow to compile: their other cases are left to `make test-all`."""


def pairs():
    """Every kernel × every case."""
    for case_name in CASES:
        for kernel_name in KERNELS:
            slow = case_name not in FAST.get(kernel_name, CASES)
            yield pytest.param(case_name, kernel_name, marks=pytest.mark.slow if slow else ())


@pytest.mark.parametrize(("case_name", "kernel_name"), pairs())
def test_kernel_leaves_the_extended_target_alone(case_name, kernel_name):
    report = run(CASES[case_name](), *KERNELS[kernel_name])
    assert report.passes(), report


@pytest.mark.parametrize("kernel_name", KERNELS)
def test_kernel_with_a_dense_metric(kernel_name):
    report = run(tempered_normal(), *KERNELS[kernel_name], dense=True)
    assert report.passes(), report


@pytest.mark.parametrize(
    "case_name", [pytest.param(name, marks=pytest.mark.slow if name not in FIRST else ()) for name in CASES]
)
def test_the_methods_own_step(case_name):
    """The whole method, as the loop calls it, with its own weights."""
    case = CASES[case_name]()
    method = pe.PseudoExtended(case.instrument, pe.HMC(num_steps=3), case.num_particles)
    with double_precision():
        start = case.exact(np.random.default_rng(5), 1)[0]
        blank = method.init(jax.random.key(0), case.target, case.extended.split(jnp.asarray(start)).x)

    def step(key, flat):
        state = initial_state(case.extended.log_density, flat, gradient=True)
        parameters = KernelParameters(jnp.array([0.7]), jnp.ones(flat.size))
        return method.step(key, case.target, blank._replace(state=state, parameters=parameters))[0].position

    report = check_invariance(step, case.exact, statistics=partial(statistics, case.extended))
    assert report.passes(), report


# Planted bugs in the extended target: what each leaves out or gets wrong, and a case that has it.


def no_auxiliary(extended, flat):
    log_q, log_weight, _ = extended.terms(flat)
    return logsumexp(log_weight) + jnp.sum(log_q)


def one_weight_forgotten(extended, flat):
    log_q, log_weight, log_auxiliary = extended.terms(flat)
    return logsumexp(log_weight[:-1]) + jnp.sum(log_q) + log_auxiliary


def largest_weight_only(extended, flat):
    log_q, log_weight, log_auxiliary = extended.terms(flat)
    return jnp.max(log_weight) + jnp.sum(log_q) + log_auxiliary


def no_weights(extended, flat):
    log_q, _, log_auxiliary = extended.terms(flat)
    return jnp.sum(log_q) + log_auxiliary


def weights_summed_as_logs(extended, flat):
    log_q, log_weight, log_auxiliary = extended.terms(flat)
    return jnp.mean(log_weight) + jnp.sum(log_q) + log_auxiliary


def wrong_strata(extended, flat):
    log_q, log_weight, log_auxiliary = extended.terms(flat)
    return logsumexp(log_weight) + jnp.sum(log_q) + 0.8 * log_auxiliary


def no_jacobian_of_bounds(extended, flat):
    target = pe.Target(extended.target.log_density, extended.target.example[0])

    def log_density(u):
        return target.path_point(extended.target.constrain(u)).log_target

    x, u = extended.split(flat)
    delta = jax.vmap(log_density)(x)
    path = pe.target.PathPoint(jnp.zeros_like(delta), delta, delta)
    log_q, log_weight, log_auxiliary = extended.instrument.terms(extended.target, x, path, u)
    return logsumexp(log_weight) + jnp.sum(log_q) + log_auxiliary


BUGS = [
    (tempered_normal, no_auxiliary),
    (tempered_normal, one_weight_forgotten),
    (tempered_normal, largest_weight_only),
    (tempered_normal, no_weights),
    (tempered_normal, weights_summed_as_logs),
    (tempered_interval, no_jacobian_of_bounds),
    (own_density, one_weight_forgotten),
    (own_density, no_weights),
    (own_density_positive, no_jacobian_of_bounds),
    (partial(stratified, None), wrong_strata),
    (partial(stratified, -0.3), no_auxiliary),
    (CASES["tempered, prior and g"], no_auxiliary),
    (CASES["tempered, normal base"], one_weight_forgotten),
    (CASES["tempered, prior base"], no_weights),
    (CASES["fixed"], one_weight_forgotten),
    (CASES["ladder"], one_weight_forgotten),
    (CASES["per particle"], no_auxiliary),
    (CASES["one particle"], no_auxiliary),
]


@pytest.mark.parametrize(("make", "bug"), BUGS)
def test_a_bug_in_the_extended_target_is_caught(make, bug):
    case = make()
    report = run(case, pe.HMC(num_steps=4), [0.6], log_density=partial(bug, case.extended))
    assert report.p_value < 1e-4, report


@pytest.mark.parametrize("kernel_name", KERNELS)
def test_a_bug_in_the_density_is_caught_through_every_kernel(kernel_name):
    case = tempered_normal()
    report = run(case, *KERNELS[kernel_name], log_density=partial(no_auxiliary, case.extended))
    assert report.p_value < 1e-4, report


# Planted bugs in kernels.


def accept_always(key, state, log_density, step_size):
    """Langevin without the test."""
    noise = jax.random.normal(key, state.position.shape)
    return state.position + 0.5 * step_size**2 * state.gradient + step_size * noise


def step_that_depends_on_the_point(key, state, log_density, step_size):
    """A random walk whose scale grows with |x|, tested as if it were symmetric."""
    key_noise, key_accept = jax.random.split(key)
    scale = step_size * (0.5 + jnp.abs(state.position))
    position = state.position + scale * jax.random.normal(key_noise, state.position.shape)
    accept = jnp.log(jax.random.uniform(key_accept)) < log_density(position) - state.log_density
    return jnp.where(accept, position, state.position)


def part_chosen_by_the_point(key, state, log_density, step_size):
    """A mixture that picks its kernel by looking at where it is."""
    parts = (pe.RandomWalk(), pe.MALA())
    parameters = [KernelParameters(jnp.array([size]), jnp.ones(state.position.size)) for size in (0.2, step_size)]
    moved = [kernel.step(key, log_density, state, p)[0].position for kernel, p in zip(parts, parameters, strict=True)]
    return jnp.where(state.position[0] > 0.5, moved[0], moved[1])


@pytest.mark.parametrize("bug", [accept_always, step_that_depends_on_the_point, part_chosen_by_the_point])
def test_a_bug_in_a_kernel_is_caught(bug):
    _assert_caught(bug)


def _assert_caught(bug):
    case = tempered_normal()
    log_density = case.extended.log_density

    def step(key, flat):
        return bug(key, initial_state(log_density, flat, gradient=True), log_density, 1.0)

    report = check_invariance(step, case.exact, statistics=partial(statistics, case.extended))
    assert report.p_value < 1e-4, report


def test_a_kernel_that_stands_still_fails():
    report = check_invariance(lambda key, flat: flat, tempered_normal().exact)
    assert report.p_value > 1e-4
    assert not report.passes()


@pytest.mark.parametrize("thin", [1, 2])
@pytest.mark.parametrize(
    "kernel",
    [
        pe.Cycle([pe.RandomWalk(), pe.Cycle([pe.RandomWalk(), pe.RandomWalk()])]),
        pe.Mixture([pe.RandomWalk(), pe.Cycle([pe.HMC(2), pe.RandomWalk()])]),
        pe.NUTS(max_depth=3),
    ],
    ids=["nested cycle", "nested mixture", "NUTS"],
)
def test_a_draw_of_the_loop(kernel, thin):
    """The loop's own draw, keys and all: steps of one draw that share random numbers are caught here."""
    target, method = pe.Target(lambda x: -0.5 * jnp.sum(x**2), np.zeros(1)), pe.Plain(kernel)
    stage = Stage(*(jnp.asarray(False) for _ in Stage._fields))

    def step(key, flat):
        chain = method.init(key, target, flat[None])
        chain = chain._replace(parameters=KernelParameters(jnp.full(kernel.target_acceptance.shape, 1.3), jnp.ones(1)))
        return _draw(method, target, chain, key, thin, stage, jnp.asarray(False))[0].state.position

    report = check_invariance(
        step,
        lambda rng, size: rng.normal(size=(size, 1)),
        statistics=lambda x: jnp.concatenate([x, x**2]),
        num_draws=100_000,
        num_steps=2,
    )
    assert report.passes(), report
