"""The same draws, bit for bit, however a run is cut up or scheduled."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe

RUN = {"draws": 60, "warmup": 120, "chains": 4, "seed": 3, "progress": False}


def mixture(x):
    means = jnp.array([[-2.0, 0.0], [2.0, 1.0], [0.0, 4.0]])
    return jax.nn.logsumexp(-0.5 * jnp.sum((x - means) ** 2, axis=1) / 0.09)


DESIGN = np.random.default_rng(0).normal(size=(40, 6))


def regression(x):
    """Has a matrix product, for which XLA picks a routine by shape."""
    return -jnp.sum(jnp.logaddexp(0.0, DESIGN @ x)) - 0.1 * jnp.sum(x**2)


METHODS = {
    "pseudo-extended NUTS": pe.PseudoExtended(pe.Tempered(0.01), pe.NUTS(max_depth=6), 3),
    "pseudo-extended HMC, dense": pe.PseudoExtended(pe.Fixed(0.2), pe.HMC(num_steps=5), 2, metric="dense"),
    "plain random walk": pe.Plain(pe.RandomWalk()),
    "cycle": pe.PseudoExtended(pe.Stratified(0.05), pe.Cycle([pe.MALA(), pe.RandomWalk()]), 3),
    "vectorised": pe.PseudoExtended(pe.Fixed(0.2), pe.HMC(num_steps=5), 2).with_width(3),
}


def assert_same(a: pe.Result, b: pe.Result):
    np.testing.assert_array_equal(a.unconstrained, b.unconstrained)
    np.testing.assert_array_equal(a.log_weights, b.log_weights)
    assert a.statistics.keys() == b.statistics.keys()
    for name, values in a.statistics.items():
        np.testing.assert_array_equal(values, b.statistics[name])


def row(name):
    """A row costs some ten runs: one worker takes all of it, and three rows are left for `make test-all`."""
    slow = [] if name in ("pseudo-extended HMC, dense", "vectorised") else [pytest.mark.slow]
    return pytest.param(name, marks=[pytest.mark.xdist_group(name), *slow])


@pytest.fixture(scope="module", params=[row(name) for name in METHODS])
def method(request):
    return METHODS[request.param]


@pytest.fixture(scope="module")
def reference(method):
    return pe.sample(mixture, np.zeros(2), method=method, **RUN)


@pytest.mark.parametrize("chunk", [7, pytest.param(500, marks=pytest.mark.slow)])
def test_chunk_size(method, reference, chunk):
    assert_same(reference, pe.sample(mixture, np.zeros(2), method=method, chunk=chunk, **RUN))


@pytest.mark.parametrize("cores", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_number_of_cores(method, reference, cores):
    assert_same(reference, pe.sample(mixture, np.zeros(2), method=method, cores=cores, **RUN))


def test_vectorised_with_any_company():
    """In a vectorised program of four, a chain's draws do not depend on which other chains, or how many, are in it."""
    method = pe.PseudoExtended(pe.Fixed(0.2), pe.HMC(num_steps=5), 2).with_width(4)
    together = pe.sample(mixture, np.zeros(2), method=method, **RUN)
    alone = pe.sample(mixture, np.zeros(2), method=method, **{**RUN, "chains": 1})
    np.testing.assert_array_equal(alone.unconstrained, together.unconstrained[:1])
    shifted = pe.sample(mixture, np.zeros(2), method=method, chunk=13, **{**RUN, "chains": 6})
    np.testing.assert_array_equal(shifted.unconstrained[:4], together.unconstrained)


@pytest.mark.slow
def test_another_width_is_the_same_chain_up_to_rounding():
    """XLA emits other instructions for another width; before chaos sets in, only the last digits differ."""
    short = {**RUN, "draws": 3, "warmup": 0}
    alone, vectorised = (
        pe.sample(
            mixture, np.zeros(2), method=pe.PseudoExtended(pe.Fixed(0.2), pe.NUTS(6), 2).with_width(width), **short
        )
        for width in (1, 4)
    )
    np.testing.assert_allclose(vectorised.unconstrained, alone.unconstrained, rtol=1e-9, atol=1e-9)


def test_fewer_chains_are_the_first_ones(method, reference):
    fewer = pe.sample(mixture, np.zeros(2), method=method, **{**RUN, "chains": 2})
    np.testing.assert_array_equal(fewer.unconstrained, reference.unconstrained[:2])


def test_fewer_draws_are_the_first_ones(method, reference):
    fewer = pe.sample(mixture, np.zeros(2), method=method, **{**RUN, "draws": 25})
    np.testing.assert_array_equal(fewer.unconstrained, reference.unconstrained[:, :25])


def test_another_seed_gives_other_draws(method, reference):
    other = pe.sample(mixture, np.zeros(2), method=method, **{**RUN, "seed": 4})
    assert np.mean(other.unconstrained == reference.unconstrained) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 2])
def test_matrix_products(width):
    """Chunks, cores and the company that a chain keeps within one program cannot matter."""
    method = pe.PseudoExtended(pe.Tempered(0.01), pe.HMC(num_steps=5), 3).with_width(width)
    reference = pe.sample(regression, np.zeros(6), method=method, **RUN)
    assert_same(reference, pe.sample(regression, np.zeros(6), method=method, chunk=9, cores=1, **RUN))
    padded = pe.sample(regression, np.zeros(6), method=method, **{**RUN, "chains": 3})
    np.testing.assert_array_equal(reference.unconstrained[:3], padded.unconstrained)


def test_the_default_method():
    """Its pilot too: what it learns depends on the seed, and on nothing in how the run is carried out."""
    reference = pe.sample(mixture, np.zeros(2), **RUN)
    other = pe.sample(mixture, np.zeros(2), chunk=7, cores=1, **{**RUN, "chains": 3, "draws": 50})
    np.testing.assert_array_equal(other.unconstrained, reference.unconstrained[:3, :50])
    np.testing.assert_array_equal(other.log_weights, reference.log_weights[:3, :50])
    assert other.notes == reference.notes


@pytest.mark.slow
def test_thinning_keeps_every_kth_state(method):
    thinned = pe.sample(mixture, np.zeros(2), method=method, thin=3, chunk=4, **RUN)
    assert_same(thinned, pe.sample(mixture, np.zeros(2), method=method, thin=3, chunk=50, **RUN))
    evaluations = thinned.unconstrained[0, 1:] != thinned.unconstrained[0, :-1]
    assert thinned.unconstrained.shape[1] == RUN["draws"]
    assert evaluations.any()


def test_the_users_precision_does_not_matter(method, reference):
    with jax.enable_x64(True):
        assert_same(reference, pe.sample(mixture, np.zeros(2), method=method, **RUN))


def test_the_seed_of_an_unseeded_run_repeats_it():
    first = pe.sample(mixture, np.zeros(2), method=METHODS["plain random walk"], **{**RUN, "seed": None})
    again = pe.sample(mixture, np.zeros(2), method=METHODS["plain random walk"], **{**RUN, "seed": first.seed})
    assert_same(first, again)
