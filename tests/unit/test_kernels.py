"""Kernels, one step at a time: what they count, what they report, and that nothing but numbers comes out."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.kernels import KernelParameters, initial_state, unit_parameters

from .sentences import assert_sentence

KERNELS = {
    "NUTS": pe.NUTS(max_depth=5),
    "HMC": pe.HMC(num_steps=7),
    "MALA": pe.MALA(),
    "random walk": pe.RandomWalk(),
    "cycle": pe.Cycle([pe.HMC(num_steps=3), pe.RandomWalk(), pe.NUTS(max_depth=2)]),
    "mixture": pe.Mixture([pe.HMC(num_steps=3), pe.RandomWalk()], [0.5, 0.5]),
}


def watched(log_density, seen):
    """`log_density`, which appends to `seen` every point at which it is evaluated, at run time."""

    def wrapped(x):
        jax.debug.callback(lambda point: seen.append(np.array(point)), x)
        return log_density(x)

    return wrapped


def walk(kernel, log_density, start, step_size, num_steps):
    """A few steps one by one: positions, infos, and the points that each step evaluated."""
    seen = []
    density = watched(log_density, seen)
    state = jax.jit(lambda x: initial_state(log_density, x, gradient=kernel.uses_gradient))(jnp.asarray(start))
    step_sizes = jnp.full(kernel.target_acceptance.shape, step_size)
    parameters = KernelParameters(step_sizes, jnp.ones(len(start)))
    step = jax.jit(lambda key, state: kernel.step(key, density, state, parameters))
    positions, infos, evaluated = [], [], []
    for i in range(num_steps):
        seen.clear()
        state, info = step(jax.random.key(i), state)
        jax.effects_barrier()
        positions.append(np.asarray(state.position))
        infos.append(info)
        evaluated.append(np.array(seen).reshape(-1, len(start)))
    return np.array(positions), infos, evaluated


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", KERNELS)
def test_a_step_evaluates_the_density_as_often_as_it_says(name):
    """Counted by the host, not from the kernel's own account."""
    kernel = KERNELS[name]
    _, infos, evaluated = walk(kernel, lambda x: -0.5 * jnp.sum(x**2), [0.3, -0.2], 0.4, 12)
    assert [len(points) for points in evaluated] == [int(info.num_evaluations) for info in infos]
    if name == "NUTS":
        assert len({len(points) for points in evaluated}) > 1, "all trajectories had one length: too weak a test"


# Targets with walls. Behind them a density may say -inf, or nan (the log of a negative number).


def exponential(x):
    return jnp.where(jnp.all(x > 0), -jnp.sum(x), -jnp.inf)


def gamma(x):
    return jnp.sum(jnp.log(x) - x)


def slab(x):
    """Two half lines with a gap between them that a long step can jump over."""
    return jnp.where((x[0] > 0.0) & (x[0] < 0.6), -jnp.inf, -0.5 * jnp.sum((x - 0.3) ** 2))


WALLS = {"-inf": exponential, "nan": gamma, "slab": slab}
SIMPLE = {name: KERNELS[name] for name in ("NUTS", "HMC", "MALA", "random walk")}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("wall", WALLS)
@pytest.mark.parametrize("name", SIMPLE)
def test_walls(name, wall):
    """The step says `non_finite` exactly if the target was not finite where the move would have ended."""
    target = pe.Target(WALLS[wall], np.ones(1))
    value = jax.jit(jax.vmap(jax.value_and_grad(lambda x: target.log_target(x))))
    step_size = 0.35 if name == "HMC" else 0.6  # its trajectories have several steps, and some must stay clear
    positions, infos, evaluated = walk(SIMPLE[name], target.log_target, [0.8], step_size, 60)

    def is_bad(points):
        log_density, gradient = value(jnp.asarray(points))
        finite = np.isfinite(log_density) & (np.all(np.isfinite(gradient), axis=1) | (name == "random walk"))
        return not np.all(finite)

    # A trajectory of HMC may pass through a gap and come out again: only its end counts.
    expected = [is_bad(points[-1:] if name == "HMC" else points) for points in evaluated]
    assert any(expected), "no step met the wall"
    assert not all(expected), "no step stayed clear of it"
    assert [bool(info.non_finite) for info in infos] == expected
    assert np.all(np.isfinite(positions))
    assert np.all(np.isfinite(value(jnp.asarray(positions))[0])), "the chain went through the wall"
    assert len(np.unique(positions)) > 5, "the chain does not move"
    rates = np.array([info.acceptance_rate for info in infos])
    assert np.all((rates >= 0) & (rates <= 1))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["cycle", "mixture"])
@pytest.mark.slow
def test_walls_of_composed_kernels(name):
    """Draws stay numbers; rates are rates, or nan for the part of a mixture that did not run."""
    target = pe.Target(gamma, np.ones(1))
    positions, infos, _ = walk(KERNELS[name], target.log_target, [0.8], 0.6, 60)
    assert np.all(positions > 0)
    rates = np.array([info.acceptance_rate for info in infos])
    if name == "cycle":
        assert np.all((rates >= 0) & (rates <= 1))
    else:
        assert np.all(np.isnan(rates).sum(axis=1) == 1)
    assert any(bool(info.non_finite) for info in infos)
    assert not all(bool(info.non_finite) for info in infos)


@pytest.mark.usefixtures("x64")
def test_divergence_is_reported():
    """A step of 40 standard deviations in HMC multiplies the energy by far more than 1,000."""
    _, infos, _ = walk(pe.HMC(num_steps=7), lambda x: -0.5 * jnp.sum(x**2), [0.3], 40.0, 3)
    assert all(bool(info.diverging) for info in infos)
    _, infos, _ = walk(pe.HMC(num_steps=7), lambda x: -0.5 * jnp.sum(x**2), [0.3], 0.1, 3)
    assert not any(bool(info.diverging) for info in infos)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("dense", [False, True])
def test_random_walk_proposes_with_the_metric(dense):
    """On a flat density every proposal is accepted, so the moves have covariance step² · metric, within 5 errors."""
    factor = np.array([[2.0, 0.0], [-0.9, 0.5]])
    covariance = factor @ factor.T if dense else np.diag([4.0, 0.25])
    metric = jnp.asarray(covariance if dense else np.diag(covariance))
    flat = lambda x: jnp.zeros(())  # noqa: E731
    state = initial_state(flat, jnp.zeros(2), gradient=False)

    def move(key):
        return pe.RandomWalk().step(key, flat, state, KernelParameters(jnp.array([0.3]), metric))[0].position

    size = 4000
    moves = np.asarray(jax.jit(jax.vmap(move))(jax.random.split(jax.random.key(0), size)))
    expected = 0.09 * covariance
    variance = np.diag(expected)
    error = np.sqrt((np.outer(variance, variance) + expected**2) / size)
    assert np.all(np.abs(np.cov(moves.T) - expected) < 5 * error)


@pytest.mark.usefixtures("x64")
@pytest.mark.slow
def test_langevin_is_the_textbook_proposal_and_test():
    """x + h²/2 M∇ + h√M ξ, accepted with the ratio of π(y)q(x|y) and π(x)q(y|x), for a diagonal metric.

    ξ is recovered from the proposal; the acceptance rate is compared at 1e-10 (differences of squares of size 10).
    """
    step, metric, x = 0.7, np.array([1.5, 0.4]), np.array([0.3, -1.1])

    def log_density(x):
        return -jnp.sum(x**4) / 4 - 0.5 * x[0] * x[1]

    gradient = jax.jit(jax.grad(log_density))
    seen = []
    density = watched(log_density, seen)
    state = initial_state(log_density, jnp.asarray(x), gradient=True)
    move = jax.jit(
        lambda key: pe.MALA().step(key, density, state, KernelParameters(jnp.array([step]), jnp.asarray(metric)))[1]
    )

    def log_q(to, origin):
        centre = origin + 0.5 * step**2 * metric * np.asarray(gradient(jnp.asarray(origin)))
        return -0.5 * np.sum((to - centre) ** 2 / metric) / step**2

    for i in range(20):
        seen.clear()
        info = move(jax.random.key(i))
        jax.effects_barrier()
        [proposal] = seen
        log_ratio = float(log_density(jnp.asarray(proposal)) - log_density(jnp.asarray(x)))
        log_ratio += log_q(x, proposal) - log_q(proposal, x)
        np.testing.assert_allclose(info.acceptance_rate[0], min(1.0, np.exp(log_ratio)), rtol=1e-10)


@pytest.mark.usefixtures("x64")
@pytest.mark.slow
def test_mixture_runs_its_parts_with_their_probabilities():
    """400 steps: the share of a part with probability 0.2 lies within 5 standard errors of 0.02."""
    kernel = pe.Mixture([pe.MALA(), pe.RandomWalk()], [0.2, 0.8])
    density = lambda x: -0.5 * jnp.sum(x**2)  # noqa: E731
    state = initial_state(density, jnp.ones(1), gradient=True)
    parameters = unit_parameters(kernel, 1, dense=False)
    rates = jax.jit(jax.vmap(lambda key: kernel.step(key, density, state, parameters)[1].acceptance_rate))(
        jax.random.split(jax.random.key(0), 400)
    )
    ran = ~np.isnan(np.asarray(rates))
    assert np.all(ran.sum(axis=1) == 1)
    assert abs(ran[:, 0].mean() - 0.2) < 5 * 0.02


@pytest.mark.usefixtures("x64")
def test_each_part_has_its_own_step_size():
    """A cycle whose first part stands still (step 1e-9) moves by the second alone, and the other way round."""
    kernel = pe.Cycle([pe.RandomWalk(), pe.RandomWalk()])
    flat = lambda x: jnp.zeros(())  # noqa: E731
    state = initial_state(flat, jnp.zeros(3), gradient=False)
    far = {}
    for sizes in ((1.0, 1e-9), (1e-9, 1.0), (1e-9, 1e-9)):
        parameters = KernelParameters(jnp.array(sizes), jnp.ones(3))
        far[sizes] = float(jnp.max(jnp.abs(kernel.step(jax.random.key(0), flat, state, parameters)[0].position)))
    assert far[1e-9, 1e-9] < 1e-7
    assert far[1.0, 1e-9] > 1e-2
    assert far[1e-9, 1.0] > 1e-2
    assert far[1.0, 1e-9] != far[1e-9, 1.0], "both parts use one key"


@pytest.mark.usefixtures("x64")
def test_unit_parameters():
    kernel = KERNELS["cycle"]
    assert unit_parameters(kernel, 4, dense=False).inverse_mass.shape == (4,)
    np.testing.assert_array_equal(unit_parameters(kernel, 4, dense=True).inverse_mass, np.eye(4))
    assert unit_parameters(kernel, 4, dense=True).step_size.shape == (3,)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (partial(pe.HMC, 0), "num_steps of HMC"),
        (partial(pe.HMC, 1.5), "num_steps of HMC"),
        (partial(pe.HMC, target_acceptance=1.0), "target_acceptance of HMC"),
        (partial(pe.NUTS, 0), "max_depth of NUTS"),
        (partial(pe.NUTS, target_acceptance=0.0), "target_acceptance of NUTS"),
        (partial(pe.MALA, target_acceptance=-1), "target_acceptance of MALA"),
        (partial(pe.RandomWalk, target_acceptance="a"), "target_acceptance of RandomWalk"),
        (partial(pe.Cycle, []), "kernels of Cycle"),
        (partial(pe.Cycle, pe.NUTS()), "kernels of Cycle"),
        (partial(pe.Cycle, [pe.NUTS]), "kernels[0] of Cycle"),
        (partial(pe.Mixture, None), "kernels of Mixture"),
        (partial(pe.Mixture, [pe.NUTS(), 3]), "kernels[1] of Mixture"),
        (partial(pe.Mixture, [pe.NUTS()], [0.5]), "probabilities of Mixture"),
        (partial(pe.Mixture, [pe.NUTS(), pe.MALA()], [1.0]), "probabilities of Mixture"),
        (partial(pe.Mixture, [pe.NUTS(), pe.MALA()], [1.0, 0.0]), "probabilities of Mixture"),
        (partial(pe.Mixture, [pe.NUTS(), pe.MALA()], [0.6, 0.6]), "probabilities of Mixture"),
        (partial(pe.Mixture, [pe.NUTS(), pe.MALA()], "ab"), "probabilities of Mixture"),
    ],
)
def test_bad_arguments(make, named):
    with pytest.raises((TypeError, ValueError)) as error:
        make()
    assert_sentence(error, named)


def test_a_depth_that_no_tree_can_have():
    """2**63 states do not fit an integer; a trajectory would silently have a negative length."""
    with pytest.raises(ValueError, match="max_depth") as error:
        pe.NUTS(max_depth=200)
    assert_sentence(error)
