"""How the cost of the default method grows with the dimension, the number of pseudo-samples, and the chains.

Microseconds of a draw of one chain (all its pseudo-samples), measured in one process on one core after compilation, as
the difference between a long run and a short one of the same shape, so that the pilot and fixed costs cancel; beside
each, the microseconds of the bare gradients that such a draw needs (its leapfrog steps, as many as the default takes in
that dimension, and the refreshment), vectorised in the same way. Their ratio is the overhead of everything else.

Run: python benchmarks/scaling.py (some ten minutes); writes output/scaling.webp and prints Markdown.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import pseudo_extended as pe
from pseudo_extended.methods.adaptive.choices import kernel_for
from pseudo_extended.precision import double_precision

SHORT = 200
MORE = 8_000
"""Draws of all chains together by which a long run is longer."""


class Point(NamedTuple):
    """One measurement."""

    value: int
    draw: float
    """Microseconds of a draw of one chain."""
    gradients: float
    """Microseconds of its bare gradients."""


def log_density(x: jax.Array) -> jax.Array:
    """Two modes, at a distance that does not grow with the dimension, and a gradient of a few operations."""
    return jnp.logaddexp(
        -0.5 * jnp.sum((x - 2 / jnp.sqrt(x.size)) ** 2), -0.5 * jnp.sum((x + 2 / jnp.sqrt(x.size)) ** 2)
    )


def seconds_of(run: Callable[[int], pe.Result], more: int) -> float:
    """Seconds of one draw of all chains: the slope between two lengths, each the best of three, in turn."""
    run(SHORT)
    times = [[run(draws).seconds["run"] for draws in (SHORT, SHORT + more)] for _ in range(3)]
    short, long = np.min(times, axis=0)
    return (long - short) / more


def bare(dim: int, batch: int, num_gradients: int) -> float:
    """Seconds of so many gradients after each other, of a batch of points."""

    def loop(x: jax.Array) -> jax.Array:
        gradient = jax.vmap(jax.grad(log_density))
        return jax.lax.fori_loop(0, 1000 * num_gradients, lambda _, x: x + 1e-9 * gradient(x), x)

    with double_precision():
        x = jnp.zeros((batch, dim))
        compiled = jax.jit(loop).lower(x).compile()
        times = []
        for _ in range(3):
            began = time.perf_counter()
            jax.block_until_ready(compiled(x))
            times.append(time.perf_counter() - began)
    return min(times) / 1000


def normal_number() -> float:
    """Nanoseconds of one normal number in double precision, of 8000 at a time."""
    with double_precision():
        draw = jax.jit(lambda key: jnp.sum(jax.random.normal(key, (100, 8000)), axis=1))
        key = jax.random.key(0)
        times = []
        for _ in range(4):  # the first compiles
            began = time.perf_counter()
            jax.block_until_ready(draw(key))
            times.append(time.perf_counter() - began)
    return 1e9 * min(times) / 800_000


def measure(dim: int = 10, num_particles: int = 12, chains: int = 4) -> tuple[float, float]:
    """Microseconds of a draw of one chain, and of its bare gradients."""
    kernel = kernel_for(dim)
    method = pe.AdaptivePseudoExtended(num_particles, kernel)
    target = pe.Target(log_density, np.zeros(dim), base=pe.Normal(0.0, 2.0))

    def run(draws: int) -> pe.Result:
        return pe.sample(target, method=method, draws=draws, warmup=100, chains=chains, cores=1, seed=0, progress=False)

    draw = seconds_of(run, MORE // chains) / chains
    gradients = bare(dim, method.width * num_particles, kernel.num_steps + 1) / method.width
    return 1e6 * draw, 1e6 * gradients


def sweep(name: str, values: list[int]) -> list[Point]:
    """One line of the figure."""
    points = []
    for value in values:
        points.append(Point(value, *measure(**{name: value})))
        last = points[-1]
        print(
            f"| {name} = {value} | {last.draw:.1f} | {last.gradients:.1f} | {last.draw / last.gradients:.1f} |",
            flush=True,
        )
    return points


def main() -> None:
    """Measure, print and draw."""
    print("| | µs a draw and chain | µs of its bare gradients | ratio |\n|---|---|---|---|")
    sweeps = {
        "dim": ("dimension", sweep("dim", [2, 5, 10, 20, 50, 100, 200, 500])),
        "num_particles": ("pseudo-samples N", sweep("num_particles", [2, 5, 10, 20, 50])),
        "chains": ("chains", sweep("chains", [1, 2, 4, 16, 64])),
    }
    print(f"\na normal number: {normal_number():.0f} ns")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained", sharey=False)
    for axis, (label, points) in zip(axes, sweeps.values(), strict=True):
        values = [point.value for point in points]
        axis.loglog(values, [point.draw for point in points], "o-", label="a draw of one chain")
        axis.loglog(values, [point.gradients for point in points], "s--", color="0.5", label="its gradients alone")
        axis.set(xlabel=label, ylabel="µs", xticks=values, xticklabels=values)
        axis.minorticks_off()
        axis.legend(frameon=False)
    output = Path("output")
    output.mkdir(exist_ok=True)
    figure.savefig(output / "scaling.webp", dpi=150, pil_kwargs={"lossless": True, "method": 6})
    print(f"wrote {output / 'scaling.webp'}")


if __name__ == "__main__":
    main()
