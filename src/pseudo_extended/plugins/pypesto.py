"""A sampler of pyPESTO: `pypesto.sample.sample(problem, n, PseudoExtendedSampler(starts=result))`.

The prior is uniform inside the bounds of the problem, times whatever priors the objective has; gradients of the
objective are used where it has them. The optima of a multi-start optimisation are the starts of the pilot.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from pypesto.result import McmcPtResult
from pypesto.sample import Sampler

from pseudo_extended import checks
from pseudo_extended.models.functions import from_numpy
from pseudo_extended.precision import double_precision
from pseudo_extended.results.result import Result
from pseudo_extended.run.sample import sample as run
from pseudo_extended.target import Target

WORSE = 30.0
"""Optima that are worse than the best by more than this, in -log posterior, are no places to start at."""
MAX_STARTS = 256


class PseudoExtendedSampler(Sampler):
    """The default method of pseudo-extended, as a sampler of pyPESTO.

    Args:
        starts: The result of a multi-start optimisation, or positions of the free parameters, one in each row; unless
            given, the position that pyPESTO hands over.
        **options: Keywords of `pe.sample`, such as `chains`, `warmup`, `seed` and `progress`. The number of draws is
            pyPESTO's number of samples over the number of chains.
    """

    def __init__(self, starts: Any = None, **options: Any):
        super().__init__()
        self.starts, self.given = starts, options
        self.result: Result | None = None
        """Everything that the run found: modes, evidence, plots."""

    def initialize(self, problem: Any, x0: Any) -> None:
        """Make the target of the problem, and choose the starts."""
        self.problem = problem
        self.target = target_of(problem)
        chosen = x0 if self.starts is None else self.starts
        self.init = _inside(problem, _positions(problem, chosen))

    def sample(self, n_samples: int, beta: float = 1.0) -> None:
        """Run; there is no other temperature than one, because the method has a path of its own."""
        if beta != 1.0:
            raise ValueError(f"beta must be 1: the method has temperatures of its own; got {checks.describe(beta)}.")
        chains = self.given.get("chains", 4)
        draws = -(-checks.integer("n_samples", n_samples, minimum=1) // chains)
        self.result = run(self.target, self.init, draws=draws, **self.given)

    def get_samples(self) -> Any:
        """One point of each draw with equal weights, all chains one after the other."""
        if self.result is None:
            raise ValueError("get_samples needs a run; call sample first.")
        found = self.result
        x = np.asarray(found.resample(seed=0)).reshape(-1, found.target.dim)
        values = np.array([float(self.problem.objective(row)) for row in x])
        ess = float(np.min(found.mean().ess))
        return McmcPtResult(
            trace_x=x[None],
            trace_neglogpost=values[None],
            trace_neglogprior=np.full((1, len(x)), np.nan),
            betas=[1.0],
            burn_in=0,
            time=sum(found.seconds.values()),
            auto_correlation=max(len(x) / ess - 1, 0.0),
            effective_sample_size=min(ess, float(len(x))),
            message="; ".join(map(str, found.warnings)) or found.method,
        )


def target_of(problem: Any) -> Target:
    """A problem as a target: a uniform prior inside its bounds, and minus its objective as the log likelihood."""
    low, high = np.asarray(problem.lb, float), np.asarray(problem.ub, float)
    if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high))):
        raise ValueError("problem must have finite bounds of all free parameters: they are the support of the prior.")
    log_volume = float(np.sum(np.log(high - low)))

    def draw(key: Any) -> Any:
        return jax.random.uniform(key, low.shape, float, low, high)

    return Target(
        log_prior=lambda x: jnp.zeros(()) - log_volume,
        log_likelihood=from_numpy(lambda x: -float(problem.objective(x)), _gradient(problem)),
        sample_prior=draw,
        example=0.5 * (low + high),
        bounds=(low, high),
        names="x",
        dims={"x": ["parameter"]},
        coords={"parameter": [problem.x_names[i] for i in problem.x_free_indices]},
    )


def _gradient(problem: Any) -> Callable[[Any], Any] | None:
    if not problem.objective.has_grad:
        return None
    return lambda x: -np.asarray(problem.objective(x, sensi_orders=(1,)), float)


def _positions(problem: Any, chosen: Any) -> np.ndarray:
    """Positions of the free parameters, one in each row: of a result of optimisation, the good optima."""
    optima = getattr(chosen, "optimize_result", None)
    if optima is None:
        rows = np.atleast_2d(np.asarray(chosen, float))
        if rows.shape[1] != problem.dim:
            raise ValueError(
                f"starts must have a column for each of the {problem.dim} free parameters; got {rows.shape}."
            )
        return rows
    found = [(float(each.fval), np.asarray(each.x, float)) for each in optima.list if each.x is not None]
    found = [(value, x) for value, x in found if np.isfinite(value)]
    if not found:
        raise ValueError("starts must hold an optimum with a finite objective; the result has none.")
    best = min(value for value, _ in found)
    rows = [x[problem.x_free_indices] for value, x in sorted(found, key=lambda pair: pair[0]) if value < best + WORSE]
    return np.array(rows[:MAX_STARTS])


def _inside(problem: Any, rows: np.ndarray) -> np.ndarray:
    """Positions strictly inside the bounds: an optimum at a bound would be infinitely far away."""
    with double_precision():
        room = 1e-6 * (problem.ub - problem.lb)
        return np.clip(rows, problem.lb + room, problem.ub - room)
