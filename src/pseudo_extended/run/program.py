"""The compiled programs of a run: start a chain, and advance it by a chunk of draws. The only scan over draws.

One program advances one chain (or a fixed number of them, vectorised), by any number of iterations up to its
capacity, in warm-up and after it. So a run compiles it once, and no draw can depend on how the run is cut up.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from pseudo_extended.compiled import Device, Job, compile_once
from pseudo_extended.generator import mixing, own_key
from pseudo_extended.memory import check_state
from pseudo_extended.methods import AbstractMethod, Chain, StepInfo
from pseudo_extended.recipes import recipe
from pseudo_extended.run.packed import Packed, packed, unpacked
from pseudo_extended.run.packed import Record as Record
from pseudo_extended.target import Target
from pseudo_extended.warmup import Stage

CHUNK_BYTES = 2**21
MAX_CAPACITY = 4096


class ChunkInput(NamedTuple):
    """The iterations to run, the same for every chain of a vectorised program."""

    key: Key[Array, ""]
    first: Int[np.ndarray, ""]
    """Draw (or iteration of warm-up) to begin with; draw t of chain c uses fold_in(fold_in(key, c), t)."""
    num_iterations: Int[np.ndarray, ""]
    """How many, at most the capacity."""
    adapts: Bool[np.ndarray, ""]
    """Whether this is warm-up."""
    stages: Stage
    """What each iteration of warm-up does, padded to the capacity."""


class Programs(NamedTuple):
    """Compiled for one target and method."""

    start: Callable[..., Chain]
    """(key, chain number, starting points) -> chain."""
    advance: Callable[..., tuple[Chain, Record]]
    """(chunk input, chain number, chain) -> the chain after it, and the records of its draws."""


def build_programs(
    target: Target, method: AbstractMethod, *, capacity: int, thin: int, x: Float[np.ndarray, "... n d"]
) -> Programs:
    """Compile both programs, for as many chains at a time as the method is wide, which start at points like `x`."""
    return build_programs_on((None,), target, method, capacity=capacity, thin=thin, x=x)[0]


def build_programs_on(
    devices: Sequence[Device | None],
    target: Target,
    method: AbstractMethod,
    *,
    capacity: int,
    thin: int,
    x: Float[np.ndarray, "... n d"],
) -> list[Programs]:
    """The same for each of several devices, side by side; None is where JAX puts it."""
    dynamic, static = eqx.partition((target, method), eqx.is_array)
    # A flat list: labels and functions in the tree's structure are no business of the compiled program.
    arrays, structure = jax.tree.flatten(dynamic)
    axis = 1 if method.width > 1 else 0
    """Of the draws, in what a program records."""

    # Both under `jit`, so that asking for the shapes and compiling trace them once. They hold no array of the run.
    @jax.jit
    def start(arrays: list[Array], key: Any, numbers: Any, x: Any) -> Chain:
        target, method = eqx.combine(jax.tree.unflatten(structure, arrays), static)
        root = mixing(key)
        return _for_each(lambda number, x: method.init(jax.random.fold_in(root, number), target, x), axis)(numbers, x)

    @jax.jit
    def draw(arrays: list[Array], chunk: ChunkInput, keys: Any, i: Array, chain: Chain) -> tuple[Chain, Record]:
        target, method = eqx.combine(jax.tree.unflatten(structure, arrays), static)
        stage = jax.tree.map(lambda plan: jnp.asarray(plan)[i], chunk.stages)
        adapts, first = jnp.asarray(chunk.adapts), chunk.first

        def of_chain(key: Key[Array, ""], chain: Chain) -> tuple[Chain, Record]:
            return _draw(method, target, chain, jax.random.fold_in(key, first + i), thin, stage, adapts)

        return _for_each(of_chain, axis)(keys, chain)

    def advance(arrays: list[Array], chunk: ChunkInput, numbers: Any, chain: Chain) -> tuple[Chain, Packed]:
        root = mixing(chunk.key)
        keys = _for_each(lambda number: jax.random.fold_in(root, number), axis)(numbers)

        def keep(i: Array, carry: tuple[Chain, Packed]) -> tuple[Chain, Packed]:
            chain, record = draw(arrays, chunk, keys, i.astype(number.dtype), carry[0])
            # Not within `vmap`, which would make a scatter of it: a dozen small kernels in every draw.
            put = partial(jax.lax.dynamic_update_index_in_dim, index=i, axis=axis)
            return chain, jax.tree.map(put, carry[1], packed(record, axis))

        number = jnp.zeros((), chunk.first.dtype)
        record = jax.eval_shape(draw, arrays, chunk, keys, number, chain)[1]
        blank = jax.eval_shape(partial(packed, num_axes=axis), record)
        buffers = jax.tree.map(
            lambda leaf: jnp.zeros((*leaf.shape[:axis], capacity, *leaf.shape[axis:]), leaf.dtype), blank
        )
        return jax.lax.fori_loop(0, chunk.num_iterations, keep, (chain, buffers))

    numbers = np.arange(method.width) if axis else np.asarray(0)
    key = own_key(0)
    chunk = chunk_input(key, 0, 0, capacity, None)

    @cache
    def chain() -> Chain:
        chain = jax.eval_shape(start, arrays, key, numbers, x)
        check_state(chain)
        return chain

    made_from = recipe(target, method, capacity, thin, x.shape, x.dtype.str)
    first, rest = (None if made_from is None else f"{made_from} {part}" for part in ("start", "advance"))
    jobs = [
        job
        for device in devices
        for job in (
            Job(start, (arrays, key, numbers, x), device, quick=True, name="the start of a chain", recipe=first),
            Job(advance, (arrays, chunk, numbers), device, name="warm-up and draws", recipe=rest, last=chain),
        )
    ]
    compiled = compile_once(*jobs)
    return [
        _programs(arrays, device, *pair)
        for device, pair in zip(devices, zip(compiled[::2], compiled[1::2], strict=True), strict=True)
    ]


def _for_each(function: Callable[..., Any], num_axes: int) -> Callable[..., Any]:
    """`function` of one chain, for all chains of a program if they have an axis."""
    return jax.vmap(function) if num_axes else function


def _programs(
    arrays: list[Any], device: Device | None, start: Callable[..., Chain], advance: Callable[..., Any]
) -> Programs:
    here = arrays if device is None else jax.device_put(arrays, SingleDeviceSharding(device))

    def advanced(chunk: ChunkInput, numbers: Any, chain: Chain) -> tuple[Chain, Record]:
        chain, many = advance(here, chunk, numbers, chain)
        return chain, unpacked(many)

    return Programs(
        lambda key, numbers, x: start(here, key, numbers, x),
        advanced,
    )


def lane_shapes(target: Target, method: AbstractMethod, x: Float[np.ndarray, "... n d"]) -> tuple[Chain, Record]:
    """Shapes of the chain of a lane that starts at points like `x`, and of one draw of it, without compiling."""

    def one(number: Any, x: Any) -> tuple[Chain, Record]:
        key = jax.random.fold_in(jax.random.key(0, impl="threefry2x32"), number)
        chain = method.init(key, target, x)
        return chain, _record(method, target, chain, key)

    width = method.width
    return jax.eval_shape(jax.vmap(one) if width > 1 else one, np.arange(width) if width > 1 else np.asarray(0), x)


def chunk_input(key: Key[Array, ""], first: int, count: int, capacity: int, plan: Stage | None) -> ChunkInput:
    """The input for draws `first` to `first + count`; `plan` is the whole of warm-up, or None after it."""
    stages = Stage(*(np.zeros(capacity, bool) for _ in Stage._fields))
    if plan is not None:
        for padded, stage in zip(stages, plan, strict=True):
            padded[:count] = stage[first : first + count]
    return ChunkInput(key, np.asarray(first), np.asarray(count), np.asarray(plan is not None), stages)


def capacity_for(target: Target, method: AbstractMethod) -> int:
    """Draws in a chunk: about two megabytes of them, so that memory is bounded and a copy costs nothing."""
    bytes_a_draw = 8 * method.num_points * (target.dim + 4)
    return int(np.clip(2 ** int(np.log2(max(CHUNK_BYTES / bytes_a_draw, 1))), 16, MAX_CAPACITY))


def _draw(
    method: AbstractMethod,
    target: Target,
    chain: Chain,
    key: Key[Array, ""],
    thin: int,
    stage: Stage,
    adapts: Bool[Array, ""],
) -> tuple[Chain, Record]:
    """`thin` steps, of which the last is kept; in warm-up each draw is one update of the parameters."""
    # A key that steps are folded from is never used for a step itself: the two would share random numbers.
    state, info = method.step(key if thin == 1 else jax.random.fold_in(key, 0), target, chain)
    report = method.report(info)
    if thin > 1:

        def again(j: Array, carry: tuple[PyTree, Any, StepInfo]) -> tuple[PyTree, Any, StepInfo]:
            state, _, so_far = carry
            state, info = method.step(jax.random.fold_in(key, j), target, chain._replace(state=state))
            return state, info, so_far.plus(method.report(info))

        state, info, report = jax.lax.fori_loop(1, thin, again, (state, info, report))
        report = report._replace(acceptance_rate=report.acceptance_rate / thin)
    chain = chain._replace(state=state)
    # Only what warm-up changes passes through the branch: what does not is not copied.
    tuned = jax.lax.cond(
        adapts, lambda: method.adapt(target, chain, stage, info)[1:], lambda: (chain.parameters, chain.adaptation)
    )
    chain = Chain(chain.state, *tuned)
    points = method.points(target, chain.state)
    statistics = points.statistics | report._asdict()
    return chain, Record(points.x, points.log_weight, statistics, points.log_importance)


def _record(method: AbstractMethod, target: Target, chain: Chain, key: Key[Array, ""]) -> Record:
    """Make a record for its shapes only."""
    stage = Stage(*(jnp.asarray(False) for _ in Stage._fields))
    return _draw(method, target, chain, key, 1, stage, jnp.asarray(False))[1]
