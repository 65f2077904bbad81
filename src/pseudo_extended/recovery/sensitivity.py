"""`sensitivity`: the share of modes of a given mass and scale that the search would have found in a posterior."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import betaincinv

from pseudo_extended import checks
from pseudo_extended.methods import AdaptivePseudoExtended
from pseudo_extended.models import as_target
from pseudo_extended.precision import in_double_precision
from pseudo_extended.recovery.planting import Planted, Posterior, Searcher, as_plain_target, plant
from pseudo_extended.results import estimates
from pseudo_extended.results.result import Result
from pseudo_extended.run.progress import reporter
from pseudo_extended.run.sample import sample
from pseudo_extended.run.starts import starting_points
from pseudo_extended.target import Target

NUM_STARTS = 32
RUN = {"draws": 300, "warmup": 300, "progress": False}
"""Of a whole run on a planted posterior, and of the run that a bare target needs first."""


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity:
    """What share of planted modes was found; `print` shows the table."""

    trials: pd.DataFrame
    """A row for each planted mode: its mass, its scale, its distance from the mean in standard deviations of the
    posterior, whether the search found it, and whether a whole run sampled it (nan where none was made)."""
    finished: bool
    """Whether all trials were made; False if `time_limit` ended them."""

    def table(self) -> pd.DataFrame:
        """A row for each mass and scale: how many modes were planted, the share that was found, and its 95 % interval.

        The interval is Clopper and Pearson's, which covers for any number of trials.
        """
        found, sampled = self.trials["found"].to_numpy(bool), self.trials["sampled"].to_numpy(float)
        cells = self.trials[["mass", "scale"]].to_numpy(float)
        rows = []
        for mass, scale in dict.fromkeys(map(tuple, cells)):
            here = (cells[:, 0] == mass) & (cells[:, 1] == scale)
            number, hits = int(here.sum()), int(found[here].sum())
            low, high = binomial_interval(hits, number)
            row = {"mass": mass, "scale": scale, "planted": number, "found": hits / number, "low": low, "high": high}
            if np.any(np.isfinite(sampled)):
                runs = sampled[here & np.isfinite(sampled)]
                row |= {"runs": len(runs), "sampled": float(runs.mean()) if len(runs) else np.nan}
            rows.append(row)
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        lines = [
            "Modes planted in the posterior, and what share of them the search found (with a 95 % interval):",
            self.table().to_string(index=False, float_format=lambda value: f"{value:.3g}"),
            "A scale is a multiple of the posterior's own width, and a mass a probability.",
        ]
        if not self.finished:
            lines.append("! time_limit ended the trials before all were made.")
        return "\n".join(lines)


def binomial_interval(successes: int, number: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval for a probability.

    >>> [round(end, 3) for end in binomial_interval(0, 20)]
    [0.0, 0.168]
    """
    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else float(betaincinv(successes, number - successes + 1, tail))
    high = 1.0 if successes == number else float(betaincinv(successes + 1, number - successes, 1 - tail))
    return low, high


@in_double_precision
def sensitivity(
    target: Target | Result | Callable[..., Any] | Any,
    init: Any = None,
    *,
    masses: Sequence[float] = (0.3, 0.1, 0.01),
    scales: Sequence[float] = (1.0, 0.3, 0.1),
    trials: int = 20,
    spread: float = 4.0,
    runs: int = 0,
    max_evaluations: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Sensitivity:
    """Plant modes of known mass and scale in a posterior, and count how many of them the search for modes finds.

    No sampler can tell of a mode that it has not met. But it can be measured how often it would have met one: a normal
    with a probability of `mass`, `scale` times as wide as the posterior, is added to the density at a random place, and
    the search of the default's pilot is run again. The search is compiled once for all of them.

    Args:
        target: A result of a method that estimates the evidence, such as the default; or what `pe.sample` takes, which
            is then sampled shortly first.
        init: Where the searches start, as for `pe.sample`; for a result its own draws unless given.
        masses: Probabilities of the planted modes.
        scales: Their widths, as multiples of the posterior's.
        trials: Modes that are planted for each mass and scale.
        spread: How far away: places are drawn from a normal so many times as wide as the posterior.
        runs: In how many of the trials, for each mass and scale, a whole run is made as well, to see whether its draws
            have the mode with at least a third of its mass; each takes as long as a short run.
        max_evaluations: The budget of each search; that of the pilot unless given.
        time_limit: Seconds after which no further trial begins.
        seed: Of the places and the searches.
        progress: Whether to show progress on stderr.

    >>> import jax.numpy as jnp, pseudo_extended as pe
    >>> found = pe.sensitivity(
    ...     lambda x: -0.5 * jnp.sum(x**2), np.zeros(2), masses=[0.3], scales=[0.5], trials=4, progress=False
    ... )
    >>> found.table()[["planted", "found"]].values.tolist()
    [[4.0, 1.0]]
    """
    masses = [checks.real("masses", mass, low=0, high=1, closed="()") for mass in checks.entries("masses", masses)]
    scales = [checks.real("scales", scale, low=0, closed="()") for scale in checks.entries("scales", scales)]
    trials = checks.integer("trials", trials, minimum=1)
    runs = checks.integer("runs", runs, minimum=0, maximum=trials)
    spread = checks.real("spread", spread, low=0, closed="()")
    limit = np.inf if time_limit is None else checks.real("time_limit", time_limit, low=0, closed="()")
    rng = np.random.default_rng(checks.integer("seed", seed, minimum=0))
    if target_is_given := not isinstance(target, Result):
        model, init = as_target(target, init)
        result = sample(model, init, seed=seed, **RUN)
    else:
        result = target
    posterior = _posterior(result)
    starts = _starts(result, init if init is not None or target_is_given else None, seed)
    report, began, rows = reporter(progress), time.monotonic(), []
    report.say("compiling the search")
    searcher = Searcher(posterior, max_evaluations)
    cells = [(mass, scale) for mass in masses for scale in scales]
    finished = True
    try:
        for number in range(trials):  # cell by cell within a trial, so that a time limit leaves all cells alike
            for mass, scale in cells:
                if time.monotonic() - began > limit and rows:
                    finished = False
                    break
                planted = plant(rng, posterior, mass, scale, spread)
                key = jax.random.key(int(rng.integers(2**31)), impl="threefry2x32")
                if planted is None:
                    continue
                report.say(f"mode {len(rows) + 1} of {trials * len(cells)}")
                found = searcher.finds(key, planted, starts)
                sampled = _is_sampled(posterior, planted, mass, starts, number) if number < runs else np.nan
                far = float(np.linalg.norm(np.linalg.solve(posterior.root, planted.mean - posterior.mean)))
                rows.append({"mass": mass, "scale": scale, "distance": far, "found": found, "sampled": sampled})
    finally:
        report.close()
    if not rows:
        raise ValueError(
            "masses and scales must give modes that stand out of the posterior somewhere; none of those did: a smaller "
            "scale or a larger spread does."
        )
    return Sensitivity(pd.DataFrame(rows), finished)


def _posterior(result: Result) -> Posterior:
    """The moments of a result on its unconstrained space, and the mass of its density."""
    if "evidence_top" not in result.statistics:
        raise ValueError(
            "target must be a result with an evidence, such as one of the default method; "
            f"{result.method} estimates none."
        )
    u, weights = result.unconstrained, result.weights
    mean = np.asarray(estimates.mean_value(u, weights))
    covariance = np.asarray(estimates.covariance(u, weights).value)
    return Posterior(result.target, float(result.log_evidence.value), mean, np.linalg.cholesky(covariance))


def _starts(result: Result, init: Any, seed: int) -> Float[np.ndarray, "start d"]:
    if init is not None:
        key = jax.random.key(seed, impl="threefry2x32")
        return starting_points(result.target, AdaptivePseudoExtended(), init, key, 4).reshape(-1, result.target.dim)
    share = result.weights.ravel() / result.weights.sum()
    rows = np.random.default_rng(seed).choice(len(share), NUM_STARTS, p=share)
    return result.unconstrained.reshape(-1, result.target.dim)[rows]


def _is_sampled(
    posterior: Posterior, planted: Planted, mass: float, starts: Float[np.ndarray, "start d"], seed: int
) -> float:
    """1 if a whole run on the planted posterior gives the middle of the mode a third of its mass or more, else 0."""
    result = sample(as_plain_target(posterior, planted), starts, seed=seed, **RUN)
    near = planted.distances(result.unconstrained) < len(planted.mean)  # half of it, roughly
    return float(np.sum(result.weights[near]) / np.sum(result.weights) > mass / 6)
