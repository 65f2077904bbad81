"""What a worker does, on a thread, a device or another machine: advance one lane by some iterations.

It takes the chain and gives it back, and keeps nothing, so it does not matter which worker does it, or how often.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pseudo_extended.compiled import Device
from pseudo_extended.generator import folded, own_key
from pseudo_extended.methods import AbstractMethod, Chain
from pseudo_extended.precision import double_precision, in_double_precision
from pseudo_extended.run.program import Programs, Record, build_programs_on, chunk_input
from pseudo_extended.store import DROPPED_STATE, RENAMED_STATE
from pseudo_extended.target import Target
from pseudo_extended.warmup import stages


class Keys(NamedTuple):
    """One stream for each use of randomness, so that a longer warm-up leaves the draws' own stream alone."""

    start: Key[Array, ""]
    init: Key[Array, ""]
    warmup: Key[Array, ""]
    draws: Key[Array, ""]
    prepare: Key[Array, ""]

    @staticmethod
    def of(seed: int) -> "Keys":
        """Derive all keys from the user's seed."""
        root = own_key(seed % 2**64)
        return Keys(*(folded(root, i) for i in range(len(Keys._fields))))


class Segment(NamedTuple):
    """Iterations `first`, `first + 1`, … of warm-up or, after it, of the draws."""

    warming: bool
    first: int
    num_iterations: int


class LaneInput(NamedTuple):
    """A lane as a worker needs it."""

    numbers: np.ndarray
    x: Float[np.ndarray, "... particle d"]
    chain: Chain | None
    """None before the first iteration."""


class AdvancedLane(NamedTuple):
    """A lane after a segment."""

    chain: Chain
    record: Record | None
    """The draws, (chain of the lane, draw, …); None in warm-up."""
    divergences: int
    num_evaluations: int
    """Of the density, by all chains of the lane."""
    seconds: float
    """Without those to start the chain."""


@dataclass(frozen=True)
class Work:
    """All that a worker must know of a run; it compiles the rest by itself."""

    target: Target
    method: AbstractMethod
    capacity: int
    thin: int
    seed: int
    num_warmup: int
    x: Float[np.ndarray, "... particle d"]
    """Starting points of a lane, for their shape."""


class LaneProgram:
    """The compiled programs of a run, on one device."""

    def __init__(self, work: Work, programs: Programs):
        self.programs = programs
        self.capacity, self.keys, self.warmup_plan = work.capacity, Keys.of(work.seed), stages(work.num_warmup)

    @staticmethod
    @in_double_precision
    def compile(work: Work, devices: Sequence[Device | None] = (None,)) -> "list[LaneProgram]":
        """Compile the programs for each device."""
        programs = build_programs_on(
            devices, work.target, work.method, capacity=work.capacity, thin=work.thin, x=work.x
        )
        return [LaneProgram(work, each) for each in programs]

    @in_double_precision
    def advance(self, lane: LaneInput, segment: Segment) -> AdvancedLane:
        """Run the segment, in as many calls as the capacity asks for."""
        chain = lane.chain
        if chain is None:
            chain = jax.block_until_ready(self.programs.start(self.keys.init, lane.numbers, lane.x))
        began, parts, done, num_evaluations = time.monotonic(), [], 0, 0
        key, plan = (self.keys.warmup, self.warmup_plan) if segment.warming else (self.keys.draws, None)
        while done < segment.num_iterations:
            count = min(segment.num_iterations - done, self.capacity)
            chunk = chunk_input(key, segment.first + done, count, self.capacity, plan)
            chain, record = jax.block_until_ready(self.programs.advance(chunk, lane.numbers, chain))
            counts = _to_host(record.statistics["num_evaluations"], lane.numbers.ndim, count)
            num_evaluations += int(counts.sum())
            if not segment.warming:
                parts.append(jax.tree.map(lambda leaf, n=count: _to_host(leaf, lane.numbers.ndim, n), record))
            done += count
        record = None
        if parts:
            record = parts[0] if len(parts) == 1 else jax.tree.map(lambda *each: np.concatenate(each, axis=1), *parts)
        divergences = 0 if record is None else int(record.statistics["diverging"].sum())
        return AdvancedLane(chain, record, divergences, num_evaluations, time.monotonic() - began)


def chain_leaves(chain: Chain) -> dict[str, np.ndarray]:
    """The arrays of a chain by their path, as NumPy arrays; random keys as their numbers."""
    return {jax.tree_util.keystr(path): _plain(leaf) for path, leaf in jax.tree_util.tree_flatten_with_path(chain)[0]}


def chain_from(leaves: dict[str, np.ndarray], like: Chain) -> Chain:
    """The chain again, shaped `like` this one; `ValueError` if it is another kind of chain."""
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    names = [jax.tree_util.keystr(path) for path, _ in paths]
    if set(names) != leaves.keys():
        leaves = {renamed_leaf(name): leaf for name, leaf in leaves.items()}
        leaves = {name: leaf for name, leaf in leaves.items() if name in names or name not in DROPPED_STATE}
    if set(names) != leaves.keys():
        raise ValueError("the arrays of the stored state are not those of this method")
    with double_precision():
        return jax.tree.unflatten(
            structure, [_like(leaves[name], leaf) for name, (_, leaf) in zip(names, paths, strict=True)]
        )


def renamed_leaf(name: str) -> str:
    """The path of an array in this version, from that of an older snapshot."""
    for old, new in RENAMED_STATE.items():
        name = re.sub(re.escape(old) + r"(?![A-Za-z0-9_])", new, name)
    return name


def _plain(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _like(array: np.ndarray, leaf: Any) -> Any:
    if _is_key(leaf):
        return jax.random.wrap_key_data(jnp.asarray(array), impl="threefry2x32")
    counts = array.shape == leaf.shape and np.issubdtype(leaf.dtype, np.integer)
    if counts and np.array_equal(array, array.astype(leaf.dtype)):  # older snapshots have some counts as floats
        return array.astype(leaf.dtype)
    if array.shape != leaf.shape or array.dtype != leaf.dtype:
        raise ValueError(f"the stored state has an array of shape {array.shape}; this method has {leaf.shape}")
    return array


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _to_host(leaf: Array, lane_ndim: int, count: int) -> np.ndarray:
    """The part of a buffer that was filled, with a leading axis of chains."""
    host = np.asarray(leaf)
    return (host if lane_ndim else host[None])[:, :count].copy()
