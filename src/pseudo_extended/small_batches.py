"""Programs whose batches of matrices are factorised in small batches, so that XLA's threads never wait for each other.

Up to jaxlib 0.11.1, a large batch of matrices is handed to XLA's pool of threads in pieces by a kernel that occupies a
thread of that pool while it waits for them. As many such kernels at a time as there are threads wait for ever: on two
cores, the Hessian of a Gaussian process at 80 points is enough. A batch that costs less than `WORK_PER_TASK` by
jaxlib's own count is not cut into pieces, and nothing waits. So every larger one is worked off in a loop over small
ones: the same kernel on the same matrices, and the same numbers.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn  # pyright: ignore[reportPrivateImportUsage]

WORK_PER_TASK = 200_000
"""Floating-point operations below which jaxlib keeps a batch together."""
FIRST_SAFE = (0, 11, 2)
"""The first jaxlib whose kernels leave the pool alone."""

_MATRIX_AXES = {
    "cholesky": 2, "eig": 2, "eigh": 2, "geqp3": 2, "geqrf": 2, "hessenberg": 2, "householder_product": 2, "lu": 2,
    "ormqr": 2, "qr": 2, "schur": 2, "svd": 2, "triangular_solve": 2, "tridiagonal": 2, "tridiagonal_solve": 1,
}  # fmt: skip
"""Axes of a primitive's first operand that are no batch."""
_CHEAP = ("cholesky", "lu", "triangular_solve")
"""At most the cube of a matrix's size, where others count up to ten times as much."""


def threads_may_wait_for_ever() -> bool:
    """Whether the jaxlib that is installed has the kernels that wait."""
    return jaxlib.version.__version_info__[:3] < FIRST_SAFE


def in_small_batches(program: ClosedJaxpr) -> ClosedJaxpr:
    """The same program with large batches of matrices cut into small ones; the very same object if it has none.

    >>> import numpy as np
    >>> program = jax.make_jaxpr(jnp.linalg.cholesky)(np.zeros((1000, 20, 20)))
    >>> safe = in_small_batches(program)
    >>> safe is program, in_small_batches(safe) is safe
    (False, True)
    >>> few = jax.make_jaxpr(jnp.linalg.cholesky)(np.zeros((10, 20, 20)))
    >>> in_small_batches(few) is few
    True
    """
    rewritten = _rewritten(program.jaxpr)
    return program if rewritten is program.jaxpr else program.replace(jaxpr=rewritten)


def primitives(program: Jaxpr) -> Iterator[str]:
    """Names of all primitives of a program, those of the functions that it calls included."""
    for equation in program.eqns:
        yield equation.primitive.name
        for inner in jax.tree.leaves(equation.params, is_leaf=_is_program):
            if _is_program(inner):
                yield from primitives(inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner)


def _is_program(value: Any) -> bool:
    return isinstance(value, Jaxpr | ClosedJaxpr)


def _rewritten(program: Jaxpr) -> Jaxpr:
    equations = [_safe(equation) for equation in program.eqns]
    if all(new is old for new, old in zip(equations, program.eqns, strict=True)):
        return program
    return program.replace(eqns=equations)


def _safe(equation: JaxprEqn) -> JaxprEqn:
    """The equation itself, or one that computes the same and waits for no thread."""
    largest = _largest_batch(equation)
    if largest is not None:
        return _in_a_loop(equation, largest)
    changed = {name: new for name, value in equation.params.items() if (new := _rewritten_parts(value)) is not value}
    return equation.replace(params=equation.params | changed) if changed else equation


def _rewritten_parts(value: Any) -> Any:
    """A parameter of an equation, with the programs in it rewritten: one, several, or none."""
    if isinstance(value, ClosedJaxpr):
        return in_small_batches(value)
    if isinstance(value, Jaxpr):
        return _rewritten(value)
    if not isinstance(value, tuple):
        return value
    parts = [_rewritten_parts(part) for part in value]
    if all(new is old for new, old in zip(parts, value, strict=True)):
        return value
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


def _largest_batch(equation: JaxprEqn) -> int | None:
    """How many matrices at a time are few enough; None if the equation has no more than that."""
    axes = _MATRIX_AXES.get(equation.primitive.name)
    if axes is None:
        return None
    operands = _operands(equation)
    shapes = [operand.shape for operand in operands]
    num_batch_axes = len(shapes[0]) - axes
    matrices = [shape[num_batch_axes:] for shape in shapes if len(shape) >= num_batch_axes + 2]
    size = max(math.prod(shape) * max(shape) for shape in matrices)
    cost = size * (1 if equation.primitive.name in _CHEAP else 10)
    if jnp.issubdtype(operands[0].dtype, jnp.complexfloating):
        cost *= 3
    largest = max(1, (WORK_PER_TASK - 1) // max(cost, 1))
    return largest if math.prod(shapes[0][:num_batch_axes]) > largest else None


def _operands(equation: JaxprEqn) -> list[jax.ShapeDtypeStruct]:
    arrays: list[Any] = [variable.aval for variable in equation.invars]
    return [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]


def _in_a_loop(equation: JaxprEqn, largest: int) -> JaxprEqn:
    """The call of a function that runs the equation's primitive on `largest` matrices at a time."""
    axes = _MATRIX_AXES[equation.primitive.name]
    operands = _operands(equation)
    batch = operands[0].shape[: len(operands[0].shape) - axes]
    run = partial(_bind, equation)
    call = jax.make_jaxpr(jax.jit(partial(_batch_by_batch, run, batch, largest)))(*operands)
    [inner] = call.jaxpr.eqns
    assert not call.consts
    return equation.replace(primitive=inner.primitive, params=inner.params, effects=inner.effects)


def _bind(equation: JaxprEqn, *operands: jax.Array) -> list[jax.Array]:
    results = equation.primitive.bind(*operands, **equation.params)
    return list(results) if equation.primitive.multiple_results else [results]


def _batch_by_batch(
    run: Callable[..., list[jax.Array]], batch: tuple[int, ...], largest: int, *operands: jax.Array
) -> list[jax.Array]:
    """`run` on operands with leading axes `batch`, `largest` of them at a time and the rest together."""
    num_matrices = math.prod(batch)
    whole = num_matrices - num_matrices % largest
    flat = [operand.reshape(num_matrices, *operand.shape[len(batch) :]) for operand in operands]
    pieces = [operand[:whole].reshape(-1, largest, *operand.shape[1:]) for operand in flat]
    results = [piece.reshape(whole, *piece.shape[2:]) for piece in jax.lax.map(lambda piece: run(*piece), pieces)]
    if whole < num_matrices:
        rest = run(*(operand[whole:] for operand in flat))
        results = [jnp.concatenate([result, last]) for result, last in zip(results, rest, strict=True)]
    return [result.reshape(*batch, *result.shape[1:]) for result in results]
