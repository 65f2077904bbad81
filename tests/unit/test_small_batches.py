"""Large batches of matrices, cut into small ones: the same values and derivatives, wherever in a program they are."""

import jax
import jax.numpy as jnp
import jax.scipy.linalg as linalg
import numpy as np
import pytest
from jax.extend.core import jaxpr_as_fun
from jax.lax import linalg as lapack
from numpy.testing import assert_allclose

from pseudo_extended import small_batches
from pseudo_extended.compiled import Job, compile_once
from pseudo_extended.precision import double_precision
from pseudo_extended.small_batches import in_small_batches, primitives

SIZE = 6
RNG = np.random.default_rng(20)
SQUARE = RNG.normal(size=(11, SIZE, SIZE))
POSITIVE = SQUARE @ np.swapaxes(SQUARE, 1, 2) + SIZE * np.eye(SIZE)
TIMES = np.linspace(0.0, 1.0, SIZE)

FACTORISATIONS = {
    "cholesky": lambda a: jnp.linalg.cholesky(a),
    "triangular_solve": lambda a: linalg.solve_triangular(a, jnp.eye(SIZE), lower=True),
    "lu": lambda a: lapack.lu(a),
    "qr": lambda a: jnp.linalg.qr(a),
    "householder_product": lambda a: lapack.householder_product(a, a[0]),
    "eigh": lambda a: jnp.linalg.eigh(a),
    "eig": lambda a: lapack.eig(a),
    "svd": lambda a: jnp.linalg.svd(a),
    "schur": lambda a: lapack.schur(a),
    "hessenberg": lambda a: lapack.hessenberg(a),
    "tridiagonal": lambda a: lapack.tridiagonal(a),
    "tridiagonal_solve": lambda a: lapack.tridiagonal_solve(a[0], a[1] + 9.0, a[2], a),
    "solve": lambda a: jnp.linalg.solve(a, jnp.ones(SIZE)),
    "slogdet": lambda a: jnp.linalg.slogdet(a),
}


def gaussian_process(x: jax.Array) -> jax.Array:
    covariance = jnp.exp(x[0] - jnp.abs(TIMES[:, None] - TIMES) * jnp.exp(x[1])) + jnp.exp(x[2]) * jnp.eye(SIZE)
    root = jnp.linalg.cholesky(covariance)
    whitened = linalg.solve_triangular(root, jnp.sin(7 * TIMES), lower=True)
    return -0.5 * jnp.vdot(whitened, whitened) - jnp.sum(jnp.log(jnp.diag(root))) - 0.5 * jnp.vdot(x, x)


@pytest.fixture(autouse=True)
def _small_work(monkeypatch):
    """Batches of two are large here, so that small matrices do; results are compared where no thread waits at all."""
    monkeypatch.setattr(small_batches, "WORK_PER_TASK", 2 * SIZE**3 + 1)
    with double_precision():
        yield


def both(function, *arguments):
    program = jax.make_jaxpr(function)(*arguments)
    safe = in_small_batches(program)
    leaves = jax.tree.leaves(arguments)
    return program, safe, jaxpr_as_fun(program)(*leaves), jaxpr_as_fun(safe)(*leaves)


def unsafe(program, found):
    """Equations with a large batch, anywhere in the program."""
    for equation in program.eqns:
        if small_batches._largest_batch(equation) is not None:
            found.append(equation)
        for inner in jax.tree.leaves(equation.params, is_leaf=small_batches._is_program):
            if small_batches._is_program(inner):
                unsafe(getattr(inner, "jaxpr", inner), found)
    return found


@pytest.mark.parametrize("name", FACTORISATIONS)
def test_every_factorisation_has_the_same_bits(name):
    matrices = POSITIVE if name != "tridiagonal_solve" else SQUARE
    program, safe, before, after = both(jax.vmap(FACTORISATIONS[name]), matrices)
    assert unsafe(program.jaxpr, [])
    assert not unsafe(safe.jaxpr, [])
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("derivative", [lambda f: f, jax.grad, jax.hessian], ids=["value", "gradient", "hessian"])
def test_derivatives_are_the_same(derivative):
    x = RNG.normal(size=(9, 3))
    program, safe, before, after = both(jax.vmap(derivative(gaussian_process)), x)
    assert unsafe(program.jaxpr, [])
    assert not unsafe(safe.jaxpr, [])
    assert_allclose(after[0], before[0], rtol=1e-10, atol=1e-10)


def test_inside_of_every_control_flow():
    density = jax.vmap(jax.grad(gaussian_process))

    def walk(x):
        def step(x, _):
            return x + 0.01 * density(x), None

        x, _ = jax.lax.scan(step, x, None, length=2)
        x = jax.lax.while_loop(lambda x: jnp.sum(x**2) > 30.0, lambda x: x + 0.01 * jax.checkpoint(density)(x), x)
        x = jax.lax.cond(jnp.sum(x) > 0, lambda x: density(x), lambda x: 2 * jax.jit(density)(x), x)
        return jax.lax.fori_loop(0, 2, lambda i, x: jax.lax.switch(i % 2, [density, lambda x: -x], x), x)

    program, safe, before, after = both(walk, 3 * RNG.normal(size=(7, 3)))
    assert len(unsafe(program.jaxpr, [])) > 10
    assert not unsafe(safe.jaxpr, [])
    assert_allclose(after[0], before[0], rtol=1e-9)


def test_several_axes_of_batches_and_remainders():
    matrices = POSITIVE[:10].reshape(5, 1, 2, SIZE, SIZE)
    program, safe, before, after = both(jnp.linalg.cholesky, matrices)
    assert safe is not program
    np.testing.assert_array_equal(before[0], after[0])


def test_an_empty_batch_and_a_single_matrix_stay_as_they_are():
    for shape in [(0, SIZE, SIZE), (SIZE, SIZE), (1, 99, 99), (2, SIZE, SIZE)]:
        program = jax.make_jaxpr(jnp.linalg.cholesky)(np.zeros(shape))
        assert in_small_batches(program) is program


def test_programs_without_matrices_have_the_text_they_had(monkeypatch):
    def function(x):
        return {"a": jax.vmap(jax.grad(lambda u: jnp.sum(jnp.sin(u) ** 2)))(x)}

    x = np.zeros((50, 3))
    plain = jax.jit(function).lower(x).as_text()
    monkeypatch.setattr(small_batches, "FIRST_SAFE", (99,))
    assert Job(function, (x,)).lower().as_text() == plain


def test_a_job_is_rewritten_on_versions_that_may_wait_and_on_no_others(monkeypatch):
    def function(x, scale):
        return {"hessian": jax.vmap(jax.hessian(gaussian_process))(x["x"]) * scale, "nothing": None}

    x = {"x": RNG.normal(size=(9, 3))}
    monkeypatch.setattr(small_batches, "FIRST_SAFE", (0, 0, 0))
    assert Job(function, (x, 2.0)).lower().as_text() == jax.jit(function).lower(x, 2.0).as_text()
    [plain] = compile_once(Job(function, (x, 2.0)))
    monkeypatch.setattr(small_batches, "FIRST_SAFE", (99,))
    assert Job(function, (x, 2.0)).lower().as_text() != jax.jit(function).lower(x, 2.0).as_text()
    [safe] = compile_once(Job(function, (x, 2.0)))
    assert_allclose(safe(x, 2.0)["hessian"], plain(x, 2.0)["hessian"], rtol=1e-9)
    assert safe(x, 2.0)["nothing"] is None


def test_primitives_are_found_at_every_depth():
    def function(x):
        return jax.lax.scan(lambda c, _: (jnp.fft.fft(c).real, None), x, None, length=2)[0]

    assert "fft" in primitives(jax.make_jaxpr(jax.jit(function))(np.ones(4)).jaxpr)
