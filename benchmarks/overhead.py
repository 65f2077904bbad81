"""Where the time of one leapfrog step goes: our joint NUTS, bare BlackJAX NUTS, and a bare gradient loop.

All three run on the same extended density, one chain on one core, with the same step size and metric, alternating in
one process; the best of several rounds counts, because a busy machine only ever adds time. What lies between them:

- ours / BlackJAX is what the library adds to a draw: one more evaluation of the density for its weights, the record
  of the draw, and the (idle) adaptation branch. A NUTS draw takes dozens of steps, so it should be close to 1.
- BlackJAX / loop is what NUTS itself costs: the tree (checks for U-turns against stored momenta and their sums, the
  multinomial draw of a proposal, random numbers for directions), all of it in small array operations inside nested
  while loops. XLA's CPU backend calls each of the some hundred small kernels of a loop body separately, a few tens of
  nanoseconds each, so the gap is nearly a constant number of microseconds, and vanishes as the density gets dearer.

Run: python benchmarks/overhead.py
"""

import time
from collections.abc import Callable
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import pseudo_extended as pe
from pseudo_extended.kernels import KernelParameters
from pseudo_extended.precision import in_double_precision
from pseudo_extended.run.program import build_programs, chunk_input

NUM_DRAWS, ROUNDS = 200, 5
KEY_SEED = 0


def hundred_dimensions() -> pe.Target:
    """A logistic regression: 100 coefficients, 200 rows."""
    rng = np.random.default_rng(0)
    design, truth = rng.normal(size=(200, 100)) / 10, rng.normal(size=100)
    labels = (rng.uniform(size=200) < 1 / (1 + np.exp(-design @ truth))).astype(float)

    def log_density(x):
        z = design @ x
        return jnp.sum(labels * z - jnp.logaddexp(0.0, z)) - 0.5 * jnp.sum(x**2)

    return pe.Target(log_density, np.zeros(100))


def seconds_of(run: Callable[[], object]) -> float:
    """One timed call."""
    began = time.perf_counter()
    jax.block_until_ready(run())
    return time.perf_counter() - began


@in_double_precision
def measure(target: pe.Target, num_particles: int, step_size: float) -> tuple[float, float, float, float]:
    """Microseconds a step of ours, of BlackJAX and of the loop, and the steps of a draw."""
    method = pe.PseudoExtended(pe.Tempered(1e-3), pe.NUTS(), num_particles)
    extended = method.extended(target)
    x = np.random.default_rng(1).uniform(0, 1, (num_particles, target.dim))
    key, inverse_mass = jax.random.key(KEY_SEED, impl="threefry2x32"), jnp.ones(extended.dim)

    programs = build_programs(target, method, capacity=NUM_DRAWS, thin=1, x=x)
    chain = programs.start(key, np.asarray(0), x)
    chain = chain._replace(parameters=KernelParameters(jnp.array([step_size]), inverse_mass))
    chunk = chunk_input(key, 0, NUM_DRAWS, NUM_DRAWS, None)

    bare: Any = blackjax.nuts(extended.log_density, step_size=step_size, inverse_mass_matrix=inverse_mass)

    def scan(state):
        def draw(state, t):
            state, info = bare.step(jax.random.fold_in(jax.random.fold_in(key, 0), t), state)
            return state, (state.position, info.num_integration_steps)

        return jax.lax.scan(draw, state, jnp.arange(NUM_DRAWS))

    def loop(position, num_steps):
        value_and_grad = jax.value_and_grad(extended.log_density)

        def leapfrog(_, carry):
            position, momentum, gradient = carry
            momentum = momentum + 0.5 * step_size * gradient
            position = position + step_size * momentum
            _, gradient = value_and_grad(position)
            return position, momentum + 0.5 * step_size * gradient, gradient

        return jax.lax.fori_loop(0, num_steps, leapfrog, (position, jnp.zeros_like(position), position))

    start = bare.init(chain.state.position)
    scan, loop = jax.jit(scan), jax.jit(loop)
    evaluations = programs.advance(chunk, np.asarray(0), chain)[1].statistics["num_evaluations"]
    steps_ours = int(np.sum(evaluations)) // num_particles
    steps_bare = int(np.sum(scan(start)[1][1]))
    runs = [
        (lambda: programs.advance(chunk, np.asarray(0), chain), steps_ours),
        (lambda: scan(start), steps_bare),
        (lambda: loop(chain.state.position, steps_bare), steps_bare),
    ]
    jax.block_until_ready(runs[2][0]())
    seconds = np.min([[seconds_of(run) for run, _ in runs] for _ in range(ROUNDS)], axis=0)
    ours, blackjax_nuts, bare_loop = (1e6 * s / steps for s, (_, steps) in zip(seconds, runs, strict=True))
    return ours, blackjax_nuts, bare_loop, steps_ours / NUM_DRAWS


def main() -> None:
    """Print the table."""
    mixture = pe.problems.twenty_modes("a").target
    cases = [("20-mode mixture", mixture, n, 0.05) for n in (2, 5, 20)]
    cases.append(("logistic regression, d = 100", hundred_dimensions(), 2, 0.3))
    table = Table(title="microseconds per leapfrog step, one chain, one core")
    for heading in ("target", "N", "steps a draw", "ours", "BlackJAX", "loop", "ours / BlackJAX", "BlackJAX / loop"):
        table.add_column(heading, justify="left" if heading == "target" else "right")
    for name, target, num_particles, step_size in cases:
        ours, bare, loop, steps = measure(target, num_particles, step_size)
        cells = (
            f"{steps:.0f}",
            f"{ours:.2f}",
            f"{bare:.2f}",
            f"{loop:.2f}",
            f"{ours / bare:.2f}",
            f"{bare / loop:.1f}",
        )
        table.add_row(name, str(num_particles), *cells)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
