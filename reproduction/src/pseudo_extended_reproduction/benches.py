"""Problems as the experiments use them: where chains start, what is measured, what a picture shows."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np

from pseudo_extended import problems
from pseudo_extended.results.result import Result, take_particle
from pseudo_extended.results.series import standard_error
from pseudo_extended.target import Target
from pseudo_extended.weights import draw_rows, importance

CANCERS = ("colon", "leukemia", "prostate")
ERROR = "its standard error"
"""Of a log predictive density, among the scores; a record of before it was computed has none."""
NUM_SHOWN = 4
"""Coefficients of a regression whose posterior is drawn."""


class Bench(NamedTuple):
    """A problem to be run."""

    title: str
    target: Target
    start: Any
    beta_range: tuple[float, float]
    """Where the temperatures of the paper's method may go."""
    score: Callable[[Result], dict[str, float]]
    """Errors against the truth, or held-out log predictive densities."""
    picture: Callable[[Result], np.ndarray]
    """Points (draw quantity), unweighted."""
    problem: Any
    """As `pe.problems` gives it."""


@lru_cache(maxsize=16)
def bench_of(name: str, run: int = 0) -> Bench:
    """The problem of that name; `run` chooses which data of a regression are held out, and nothing elsewhere."""
    kind, _, which = name.partition("-")
    if kind in CANCERS:
        return _regression(kind, run)
    return _KINDS[kind](which)


def _mixture(scenario: str) -> Bench:
    problem = problems.twenty_modes(scenario)
    truth = np.concatenate([problem.mean, problem.second_moment])

    def score(result: Result) -> dict[str, float]:
        x = result.points
        estimates = np.concatenate([result.expect(x).value, result.expect(x**2).value])
        return dict(zip(("E[X1]", "E[X2]", "E[X1²]", "E[X2²]"), estimates - truth, strict=True))

    start = _uniform_square
    return Bench(f"20-mode mixture ({scenario})", problem.target, start, (1e-3, 1.0), score, _points, problem)


def _illustration(which: str) -> Bench:
    del which
    problem = problems.illustration()

    def score(result: Result) -> dict[str, float]:
        return {"E[X]": float(result.expect(result.unconstrained).value[0] - problem.mean[0])}

    start = np.array([-1.0])
    return Bench("two normals on the line", problem.target, start, (1e-3, 1.0), score, _points, problem)


def _boltzmann(which: str) -> Bench:
    """The authors' relaxation (26 dimensions), or a machine of so many units from our generator."""
    if which == "authors":
        problem, title = problems.load_boltzmann(), "The authors' Boltzmann machine relaxation"
    else:
        problem = problems.boltzmann_machine(int(which), seed=0)
        title = f"Boltzmann machine relaxation, {which} units"

    def score(result: Result) -> dict[str, float]:
        x = result.unconstrained.reshape(-1, result.unconstrained.shape[-1])
        w = result.weights.ravel() / result.weights.sum()
        return moment_errors(problem, w @ x, (w[:, None] * x).T @ x)

    dim = problem.target.dim
    return Bench(f"{title}, d = {dim}", problem.target, np.zeros(dim), (0.1, 0.9), score, _points, problem)


def moment_errors(problem: problems.BoltzmannProblem, mean: np.ndarray, cross: np.ndarray) -> dict[str, float]:
    """Root mean square over the entries of both moments."""
    assert problem.mean is not None
    assert problem.cross_moment is not None
    return {
        "E[X]": float(np.sqrt(np.mean((mean - problem.mean) ** 2))),
        "E[XXᵀ]": float(np.sqrt(np.mean((cross - problem.cross_moment) ** 2))),
    }


def _regression(name: str, run: int) -> Bench:
    problem = problems.cancer(name, seed=run)
    shown = np.random.default_rng(0).choice(problem.density.prior.num_covariates, NUM_SHOWN, replace=False)

    def score(result: Result) -> dict[str, float]:
        log_p = result.map_points(problem.held_out.pointwise)  # (chain draw particle observation)
        p = np.einsum("cdp,cdpo->cdo", result.weights, np.exp(log_p))
        averaged = p.mean(axis=(0, 1))
        return {
            "log predictive density": float(np.log(averaged).sum()),
            ERROR: float(standard_error(np.sum(p / averaged, axis=-1))),  # to first order
            "mean log likelihood": float(np.einsum("cdp,cdpo->cd", result.weights, log_p).mean()),
        }

    def picture(result: Result) -> np.ndarray:
        x = result.map_points(lambda position: problem.coefficients(position)[shown])
        return np.concatenate(take_particle(x, result.resample_index()))

    return Bench(f"{name} data", problem.target, None, (0.0, 1.0), score, picture, problem)


def _toy(which: str) -> Bench:
    """θ and x, all of it extended; or "shared-N", the published programs' way with N copies of x and one θ."""
    shared = which.partition("-")[2]
    problem = problems.with_shared_theta(int(shared), 0.75) if shared else problems.theta_and_x()
    truth = problems.theta_and_x().mean_theta

    def score(result: Result) -> dict[str, float]:
        return {"E[θ]": float(result.expect(result.points["theta"]).value - truth)}

    start = {name: np.zeros_like(leaf) for name, leaf in _example(problem.target).items()}
    return Bench("θ and x", problem.target, start, (0.0, 1.0), score, _points, problem)


_KINDS: dict[str, Callable[[str], Bench]] = {
    "mixture": _mixture,
    "illustration": _illustration,
    "boltzmann": _boltzmann,
    "toy": _toy,
}


def _uniform_square(key: Any) -> Any:
    """Where Kou et al. and Tak et al. start."""
    return jax.random.uniform(key, (2,), float)


def _example(target: Target) -> dict[str, np.ndarray]:
    return jax.tree.unflatten(target.treedef, target.example)


def _points(result: Result) -> np.ndarray:
    """As many as there are draws; walks of annealed importance sampling by their weight among all of them."""
    drawn = take_particle(result.unconstrained, result.resample_index())
    drawn = drawn.reshape(-1, drawn.shape[-1])
    if result.log_importance is None:
        return drawn
    return drawn[draw_rows(importance(result.log_importance).reshape(1, -1), np.random.default_rng(0))[0]]
