"""What each method costs for one evaluation of the target, beside the bare cost of that evaluation in a jitted loop.

One chunk of each method runs in the loop's own compiled program, on one core, alternating in one process with two bare
loops: one that evaluates the density, and one its gradient, each time at a slightly different point. The best of
several rounds counts, because a busy machine only ever adds time. A method that is vectorised over chains is charged
for all evaluations of all its chains; one with N pseudo-samples evaluates the target N times at each step. What is left
above the bare cost is random numbers, the method's own arithmetic and the record of the draws.

A new method is one more row in `methods`. Run: python benchmarks/baselines.py
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import pseudo_extended as pe
from overhead import hundred_dimensions
from pseudo_extended.methods import AbstractMethod, AbstractPreparedMethod
from pseudo_extended.precision import in_double_precision
from pseudo_extended.run.program import build_programs, chunk_input
from pseudo_extended.warmup import stages

NUM_DRAWS, ROUNDS = 400, 5


def methods() -> list[tuple[str, AbstractMethod]]:
    """Every method, with settings under which it moves on both targets."""
    normal, zeta = pe.Normal(0.0, 3.0), 0.0
    return [
        ("plain random walk", pe.Plain(pe.RandomWalk())),
        ("plain HMC, 10 steps", pe.Plain(pe.HMC(10))),
        ("plain NUTS", pe.Plain(pe.NUTS())),
        ("pseudo-extended HMC, N = 5", pe.PseudoExtended(pe.Tempered(0.01), pe.HMC(10), 5)),
        ("index Gibbs, N = 8", pe.AdaptivePseudoExtended(8)),
        ("pseudo-extended NUTS, N = 5", pe.PseudoExtended(pe.Tempered(0.01), pe.NUTS(), 5)),
        (
            "equi-energy, 5 chains",
            # Small rings: a chunk copies them once, and the chunks of this benchmark are short.
            pe.EquiEnergy([-60, 2, 6, 20, 63], [1, 3, 8, 22, 60], burn_in=0, head_start=1, ring_capacity=200),
        ),
        ("parallel tempering HMC, 5 rungs", pe.ParallelTempering(np.geomspace(0.02, 1, 5), pe.HMC(10))),
        ("simulated tempering HMC", pe.SimulatedTempering(np.linspace(0.02, 1, 1000), pe.HMC(10))),
        ("annealed importance, 100 x HMC", pe.AnnealedImportance(kernel=pe.HMC(10), num_steps=100)),
        ("repelling-attracting", pe.RepellingAttracting(0.1)),
        ("continuous tempering, joint", pe.ContinuousTempering("joint", pe.HMC(10), base=normal, log_zeta=zeta)),
        ("continuous tempering, Gibbs", pe.ContinuousTempering("gibbs", pe.HMC(10), base=normal, log_zeta=zeta)),
    ]


def seconds_of(run: Callable[[], object]) -> float:
    """One timed call."""
    began = time.perf_counter()
    jax.block_until_ready(run())
    return time.perf_counter() - began


def bare_loops(target: pe.Target, num_evaluations: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Loops over the density and over its gradient, in which no evaluation can be left out or done ahead."""
    x = jnp.full(target.dim, 0.3)

    def density(x: Any) -> Any:
        return jax.lax.fori_loop(0, num_evaluations, lambda _, x: x + 1e-9 * target.log_target(x), x)

    def gradient(x: Any) -> Any:
        return jax.lax.fori_loop(0, num_evaluations, lambda _, x: x + 1e-9 * jax.grad(target.log_target)(x), x)

    density, gradient = jax.jit(density), jax.jit(gradient)
    return lambda: density(x), lambda: gradient(x)


def one_chunk(target: pe.Target, method: AbstractMethod) -> tuple[Callable[[], Any], int]:
    """A run of one chunk after a short warm-up, and how often it evaluates the target."""
    key = jax.random.key(0, impl="threefry2x32")
    numbers = np.arange(method.width) if method.width > 1 else np.asarray(0)
    x = np.random.default_rng(0).uniform(0, 1, (method.width, method.num_points, target.dim))
    if isinstance(method, AbstractPreparedMethod):
        prepared = method.prepare(key, target, x, lambda sentence: None)
        method, x = prepared.method, prepared.x
    x = x if method.width > 1 else x[0]
    programs = build_programs(target, method, capacity=NUM_DRAWS, thin=1, x=x)
    chain = programs.start(key, numbers, x)
    warmup = stages(200)
    chain, _ = programs.advance(chunk_input(key, 0, 200, NUM_DRAWS, warmup), numbers, chain)
    chunk = chunk_input(key, 0, NUM_DRAWS, NUM_DRAWS, None)
    record = programs.advance(chunk, numbers, chain)[1]
    num_evaluations = int(np.sum(record.statistics["num_evaluations"]))
    return lambda: programs.advance(chunk, numbers, chain), num_evaluations


@in_double_precision
def measure(target: pe.Target) -> list[tuple[str, float, float, str, float]]:
    """For each method: evaluations a draw, microseconds an evaluation, what it evaluates, and the bare microseconds."""
    num_bare = 20_000
    bare = bare_loops(target, num_bare)
    based = target.with_base(pe.Normal(0.0, 3.0))
    chunks = [
        (name, method, *one_chunk(based if isinstance(method, pe.AnnealedImportance) else target, method))
        for name, method in methods()
    ]
    runs = [*bare, *(run for _, _, run, _ in chunks)]
    for run in runs:
        jax.block_until_ready(run())
    seconds = np.min([[seconds_of(run) for run in runs] for _ in range(ROUNDS)], axis=0)
    density, gradient = 1e6 * seconds[:2] / num_bare
    rows = []
    for (name, method, _, count), total in zip(chunks, seconds[2:], strict=True):
        kernel = getattr(method, "kernel", None)
        uses_gradient = kernel is not None and kernel.uses_gradient
        what, cost = ("gradient", gradient) if uses_gradient else ("density", density)
        rows.append((name, count / NUM_DRAWS / method.width, 1e6 * total / count, what, cost))
    return rows


def main() -> None:
    """Print a table for a cheap and for a dearer target."""
    targets = {
        "20-mode mixture, d = 2": pe.problems.twenty_modes("a").target,
        "logistic regression, d = 100": hundred_dimensions(),
    }
    for title, target in targets.items():
        table = Table(title=f"{title}: microseconds for one evaluation of the target, one core")
        for heading in ("method", "evaluations a draw", "evaluates", "method", "bare", "method / bare"):
            table.add_column(heading, justify="right" if table.columns else "left")
        for name, each, cost, what, bare in measure(target):
            table.add_row(name, f"{each:.1f}", what, f"{cost:.2f}", f"{bare:.2f}", f"{cost / bare:.1f}")
        Console(width=120).print(table)


if __name__ == "__main__":
    main()
