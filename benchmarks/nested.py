"""Evidence and likelihood calls of the default beside dynesty's, on problems that nested samplers are tested with.

`python benchmarks/nested.py --problems eggbox shells-2 --seeds 1 2 3` prints a row for each problem and method. A call
of ours is a likelihood with its gradient, or without; all are counted, those of the pilot and of warm-up too. dynesty
runs with its defaults: 500 live points, multiple ellipsoids, and the sampler that it chooses for the dimension.
"""

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import pseudo_extended as pe
from counting import Counted


class Problem(NamedTuple):
    """A likelihood on the unit cube, its prior transform, and the log evidence."""

    log_likelihood: Callable[[Any], Any]
    prior_transform: Callable[[Any], Any]
    ndim: int
    log_evidence: float


def eggbox() -> Problem:
    """Eighteen equal modes (Feroz, Hobson and Bridges 2009)."""
    return Problem(lambda t: (2 + jnp.prod(jnp.cos(t / 2))) ** 5, lambda u: 10 * jnp.pi * u, 2, 235.856)


def shells(ndim: int) -> Problem:
    """Two Gaussian shells, of radius 2 and width 0.1 (Feroz, Hobson and Bridges 2009, who give the evidences)."""
    centre = 3.5 * np.eye(ndim)[0]

    def shell(t: Any, centre: np.ndarray) -> Any:
        radius = jnp.sqrt(jnp.sum((t - centre) ** 2) + 1e-300)
        return -0.5 * ((radius - 2) / 0.1) ** 2 - 0.5 * np.log(2 * np.pi * 0.01)

    known = {2: -1.75, 5: -5.67, 10: -14.59}
    return Problem(
        lambda t: jnp.logaddexp(shell(t, centre), shell(t, -centre)), lambda u: 12 * u - 6, ndim, known[ndim]
    )


def log_gamma(ndim: int) -> Problem:
    """Four modes with skewed and normal profiles (Beaujean and Caldwell 2013); the evidence is a product."""

    def skewed(t: Any, place: float) -> Any:
        z = 30 * (t - place)
        return z - jnp.exp(z) + np.log(30)

    normal = jax.scipy.stats.norm.logpdf
    num_skewed = (ndim + 2) // 2

    def log_likelihood(t: Any) -> Any:
        both = jnp.logaddexp(skewed(t[0], 1 / 3), skewed(t[0], 2 / 3))
        both += jnp.logaddexp(normal(t[1], 1 / 3, 1 / 30), normal(t[1], 2 / 3, 1 / 30)) - 2 * np.log(2)
        return both + jnp.sum(skewed(t[2:num_skewed], 2 / 3)) + jnp.sum(normal(t[num_skewed:], 2 / 3, 1 / 30))

    low, high = (np.diff(stats.loggamma(1, loc=place, scale=1 / 30).cdf([0, 1]))[0] for place in (1 / 3, 2 / 3))
    exact = np.log((low + high) / 2) + (num_skewed - 2) * np.log(high)
    return Problem(log_likelihood, lambda u: u, ndim, float(exact))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "eggbox": eggbox,
    "shells-2": lambda: shells(2),
    "shells-5": lambda: shells(5),
    "shells-10": lambda: shells(10),
    "loggamma-2": lambda: log_gamma(2),
    "loggamma-10": lambda: log_gamma(10),
}


def ours(problem: Problem, seed: int) -> tuple[float, float, int]:
    """log Z, its error and the calls, of the default with 1,000 draws."""
    counted = Counted(problem.log_likelihood)
    target = pe.from_prior_transform(counted, problem.prior_transform, problem.ndim)
    found = pe.sample(target, draws=1000, seed=seed, progress=False).log_evidence
    return found.value, found.standard_error, counted.count


def dynesty(problem: Problem, seed: int) -> tuple[float, float, int]:
    """The same of dynesty's static sampler."""
    sampler_class: Any = import_module("dynesty").NestedSampler
    with jax.enable_x64(True):
        functions = [jax.jit(function) for function in (problem.log_likelihood, problem.prior_transform)]
        log_likelihood, prior_transform = lambda t: float(functions[0](t)), lambda u: np.asarray(functions[1](u))
        sampler = sampler_class(log_likelihood, prior_transform, problem.ndim, rstate=np.random.default_rng(seed))
        sampler.run_nested(print_progress=False)
    found: Any = sampler.results
    return float(found.logz[-1]), float(found.logzerr[-1]), int(np.sum(found.ncall))


def main() -> None:
    """A table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    given = parser.parse_args()
    print("| problem | log Z | method | log Z found | calls |\n|---|---|---|---|---|")
    for name in given.problems:
        problem = PROBLEMS[name]()
        for method in (ours, dynesty):
            for seed in given.seeds:
                value, error, calls = method(problem, seed)
                found = f"{value:.3f} ± {error:.3f}"
                print(f"| {name} | {problem.log_evidence:.3f} | {method.__name__} | {found} | {calls:,} |", flush=True)


if __name__ == "__main__":
    main()
