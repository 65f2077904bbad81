"""What drawing the index and the temperatures costs, next to the gradients of a step, for the 20-mode mixture.

Base, path and moves are the default's own, as its pilot leaves them. Three jitted loops, in turn in one process: the
bare gradients of a step, the moves and refreshments of all pseudo-samples (the same gradients, and what HMC does with
them), and the draw of index and temperatures with the weights. Microseconds are the least of all rounds, ratios the
median of the rounds'.

Run: python benchmarks/beta_update.py (two minutes).
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pseudo_extended as pe
from pseudo_extended.generator import mixing
from pseudo_extended.kernels.tempered import evaluator
from pseudo_extended.methods.adaptive.index import draw_index
from pseudo_extended.precision import double_precision
from pseudo_extended.tempering.moves import draw_fresh, move_points, refresh
from pseudo_extended.tempering.path import on_path

NUM_ITERATIONS = 5_000
ROUNDS = 30


def looping(step: Callable[[Any, Any], Any], start: Any) -> Callable[[], float]:
    """Microseconds of one iteration of a jitted loop, each time it is called."""

    def loop(state: Any) -> Any:
        key = mixing(jax.random.key(0))  # as the programs of a run have it
        return jax.lax.fori_loop(0, NUM_ITERATIONS, lambda i, state: step(jax.random.fold_in(key, i), state), state)

    compiled = jax.jit(loop).lower(start).compile()

    def run() -> float:
        began = time.perf_counter()
        jax.block_until_ready(compiled(start))
        return 1e6 * (time.perf_counter() - began) / NUM_ITERATIONS

    return run


def main() -> None:
    """Print a row for each N."""
    problem = pe.problems.twenty_modes("a")
    print("| N × chains | gradients | moves and refreshment | index and temperatures | / moves | / gradients |")
    print("|---|---|---|---|---|---|")
    for num_particles, width in ((8, 2), (12, 2), (12, 4)):
        starts = np.random.default_rng(0).uniform(size=(1, num_particles, 2))
        prepared = pe.AdaptivePseudoExtended(num_particles).prepare(
            jax.random.key(0), problem.target, starts, lambda _: None
        )
        method, x = prepared.method, jnp.asarray(prepared.x[0])
        assert isinstance(method, pe.AdaptivePseudoExtended)
        assert method.learned_base is not None
        target = problem.target.with_base(method.learned_base)
        evaluate = evaluator(target, gradient=True)

        def gradients(key: Any, x: Any, evaluate: Any = evaluate) -> Any:
            del key
            return jax.lax.fori_loop(0, 3, lambda _, x: x + 1e-9 * jax.vmap(evaluate)(x).grad_delta, x)

        def moves(key: Any, chain: Any, method: Any = method, target: Any = target, evaluate: Any = evaluate) -> Any:
            state = chain.state
            beta = on_path(chain.parameters.path.beta, state.t)
            steps, scale = jnp.full(beta.shape, 0.5), chain.parameters.scale[jnp.zeros(beta.shape, int)]
            points, _ = move_points(key, method.kernel, target, state.points, beta, steps, scale)
            fresh = jax.vmap(evaluate)(draw_fresh(jax.random.fold_in(key, 2), target.draw_base, len(beta)))
            points, _, _ = refresh(jax.random.fold_in(key, 1), fresh, points, beta)
            return chain._replace(state=state._replace(points=points))

        def temperatures(key: Any, chain: Any, method: Any = method) -> Any:
            state = chain.state
            state = draw_index(key, method.temperatures, chain.parameters.path, state.points, state.last)
            moved = state.points._replace(delta=state.points.delta + 1e-9 * state.t)  # so that nothing is hoisted
            return chain._replace(state=state._replace(points=moved))

        def many(step: Callable[[Any, Any], Any], width: int = width) -> Callable[[Any, Any], Any]:
            return lambda key, states: jax.vmap(step)(jax.random.split(key, width), states)

        chain = method.init(jax.random.key(0), problem.target, x)
        chains, xs = (jax.tree.map(lambda leaf: jnp.stack([leaf] * width), part) for part in (chain, x))  # noqa: B023
        loops = [
            looping(many(step), start) for step, start in ((gradients, xs), (moves, chains), (temperatures, chains))
        ]
        rounds = np.array([[loop() for loop in loops] for _ in range(ROUNDS)])
        bare, moving, drawing = np.min(rounds, axis=0)
        ratios = np.median(rounds[:, 2:] / rounds[:, :2], axis=0)
        print(
            f"| {num_particles} × {width} | {bare:.1f} | {moving:.1f} | {drawing:.1f} "
            f"| {ratios[1]:.0%} | {ratios[0]:.0%} |",
            flush=True,
        )


if __name__ == "__main__":
    with double_precision():
        main()
