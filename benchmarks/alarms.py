"""How often warnings are false alarms, and how often a run that is wrong gets none: `python benchmarks/alarms.py`.

Good and bad runs are made of exact draws with a known autocorrelation, so that hundreds of them take minutes.
"""

import argparse
import dataclasses
from collections import Counter
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import pseudo_extended as pe

MEANS = np.array([[4.0, 4.0], [-4.0, -4.0]])


def two_normals(x: jax.Array) -> jax.Array:
    """Seven tenths here, three tenths there."""
    return jax.nn.logsumexp(jnp.log(jnp.array([0.7, 0.3])) - 0.5 * jnp.sum((x - MEANS) ** 2, axis=1))


def make(log_density: Callable, x: np.ndarray, **more: np.ndarray) -> pe.Result:
    """A result of given points, (chain, draw, d)."""
    zero = np.zeros(x.shape[:2])
    statistics = {"acceptance_rate": zero + 0.8, "diverging": zero > 0, "non_finite": zero > 0} | more
    return pe.Result(
        target=pe.Target(log_density, np.zeros(x.shape[-1])),
        unconstrained=x[:, :, None],
        log_weights=np.zeros((*x.shape[:2], 1)),
        statistics=statistics,
        method="exact draws",
        seed=0,
        seconds={},
        stopped=None,
        doubts=(),
    )


def autoregressive(rng: np.random.Generator, shape: tuple[int, ...], rho: float) -> np.ndarray:
    """A normal series of (chain, draw, …) with correlation rho between draws, from its stationary law."""
    x = rng.normal(size=shape)
    for t in range(1, shape[1]):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * x[:, t]
    return x


def labels(rng: np.random.Generator, chains: int, draws: int, stay: float, share: float = 0.3) -> np.ndarray:
    """Which mode a chain is in: a Markov chain that draws its mode anew with probability 1 - stay."""
    k = rng.random((chains, draws)) < share
    stays = rng.random((chains, draws)) < stay
    for t in range(1, draws):
        k[:, t] = np.where(stays[:, t], k[:, t - 1], k[:, t])
    return k.astype(int)


def evidence(rng: np.random.Generator, rho: float) -> dict[str, np.ndarray]:
    """Terms of an evidence that are log-normal and correlated."""
    both = autoregressive(rng, (4, 1000, 2), rho)
    return {"evidence_top": both[..., :1], "evidence_bottom": 0.5 * both[..., 1:]}


def of_squares(x: jax.Array) -> jax.Array:
    """A unit normal; here, so that its programs are compiled once."""
    return -0.5 * jnp.sum(x**2)


def normals(dim: int, rho: float) -> Callable[[np.random.Generator], pe.Result]:
    """Runs on a unit normal."""

    def run(rng: np.random.Generator) -> pe.Result:
        x = autoregressive(rng, (4, 1000, dim), rho)
        return make(of_squares, x, **evidence(rng, rho))

    return run


def mixture(stay: float, chains: int = 4, seen: Callable | None = None) -> Callable[[np.random.Generator], pe.Result]:
    """Runs on two normals whose chains stay in a mode for 1/(1 - stay) draws on average."""

    def run(rng: np.random.Generator) -> pe.Result:
        k = labels(rng, chains, 1000, stay)
        k = k if seen is None else seen(k)
        return make(two_normals, MEANS[k] + rng.normal(size=(*k.shape, 2)))

    return run


def student(freedom: float) -> Callable[[np.random.Generator], pe.Result]:
    """Runs on Student's t."""

    def run(rng: np.random.Generator) -> pe.Result:
        x = rng.standard_t(freedom, size=(4, 1000, 2))
        return make(lambda x: -0.5 * (freedom + 1) * jnp.sum(jnp.log1p(x**2 / freedom)), x)

    return run


def with_hot(seen: bool) -> Callable[[np.random.Generator], pe.Result]:
    """Two normals with a pseudo-sample that goes everywhere; the draws have both modes, or the first alone."""

    def run(rng: np.random.Generator) -> pe.Result:
        k = labels(rng, 4, 1000, 0.5) * seen
        result = make(two_normals, MEANS[k] + rng.normal(size=(4, 1000, 2)))
        hot = 6 * rng.normal(size=(4, 1000, 1, 2))
        log_weights = np.concatenate([np.zeros((4, 1000, 1)), np.full((4, 1000, 1), -np.inf)], axis=2)
        return dataclasses.replace(
            result,
            unconstrained=np.concatenate([result.unconstrained, hot], axis=2),
            log_weights=log_weights,
            statistics=result.statistics | {"beta": np.broadcast_to([1.0, 0.05], log_weights.shape)},
        )

    return run


def evidences_apart(rng: np.random.Generator) -> pe.Result:
    """Chains whose evidences differ by more than their errors."""
    result = normals(2, 0.3)(rng)
    top = result.statistics["evidence_top"] + 0.7 * rng.normal(size=(4, 1, 1))
    return dataclasses.replace(result, statistics=result.statistics | {"evidence_top": top})


def few_round_trips(rng: np.random.Generator) -> pe.Result:
    """Two pseudo-samples whose temperatures wander so slowly that there are some two round trips in a chain."""
    result = normals(2, 0.3)(rng)
    slow = autoregressive(rng, (4, 1000), 0.997)
    index = (slow > 0).astype(int)
    beta = np.stack([1 / (1 + np.exp(-8 * slow)), 1 / (1 + np.exp(8 * slow))], axis=2)
    beta = np.where(index[..., None] == np.arange(2), 1.0, beta)
    log_weights = np.where(index[..., None] == np.arange(2), 0.0, -50.0)
    rates = np.full(beta.shape, 0.8)
    return dataclasses.replace(
        result,
        unconstrained=np.repeat(result.unconstrained, 2, axis=2),
        log_weights=log_weights,
        statistics=result.statistics
        | {"carrier": index, "beta": beta, "move_acceptance": rates, "refresh_acceptance": rates},
    )


GOOD = {
    "normal, d = 2": normals(2, 0.3),
    "normal, d = 20": normals(20, 0.5),
    "two modes, 2.5 draws in each": mixture(0.6),
    "two modes, 2 draws in each": mixture(0.5),
    "Student's t, 5 degrees of freedom": student(5),
    "two modes and hot pseudo-samples": with_hot(True),
}
BAD = {
    "all chains in the same mode, as NUTS": mixture(1.0, seen=lambda k: 0 * k),
    "each chain in one mode": mixture(1.0, seen=lambda k: 0 * k + np.array([[0], [0], [0], [1]])),
    "two modes, 500 draws in each": mixture(0.998),
    "one of four chains never sees a mode": mixture(0.9, seen=lambda k: k * np.array([[0], [1], [1], [1]])),
    "a mode without draws, in which hot ascents end": with_hot(False),
    "Cauchy's tails": student(1),
    "a long autocorrelation (0.99)": normals(2, 0.99),
    "evidence that differs between chains": evidences_apart,
    "few round trips": few_round_trips,
}


def count(run: Callable[[np.random.Generator], pe.Result], number: int) -> tuple[int, Counter]:
    """Of so many runs, how many are warned of, and by which codes."""
    warned, codes = 0, Counter()
    for seed in range(number):
        result = run(np.random.default_rng(seed))
        if result.target.dim <= 2:
            result.modes()
        found = {message.code for message in result.warnings}
        # One pseudo-sample with all the weight is how some of these runs are made.
        found.discard("PE107")
        warned += bool(found)
        codes.update(found)
    return warned, codes


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="good runs of each kind; a quarter of it wrong ones")
    runs = parser.parse_args().runs
    for title, cases, number in (("good", GOOD, runs), ("wrong", BAD, runs // 4)):
        print(f"| {title} runs | warned | by |\n|---|---|---|")
        total = 0
        for name, run in cases.items():
            warned, codes = count(run, number)
            total += warned
            by = ", ".join(f"{code} ({times})" for code, times in codes.most_common(4))
            print(f"| {name} | {warned} of {number} | {by} |", flush=True)
        print(f"| together | {total / (number * len(cases)):.1%} | |\n", flush=True)


if __name__ == "__main__":
    main()
