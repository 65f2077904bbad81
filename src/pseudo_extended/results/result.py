"""What a run returns: weighted points first, and everything that can be computed from them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int, PyTree

from pseudo_extended import checks
from pseudo_extended.messages import Message, kinds, recall
from pseudo_extended.pilot.report import PilotReport
from pseudo_extended.precision import in_double_precision
from pseudo_extended.results import estimates, exports, plots
from pseudo_extended.results.agreement import Agreement, compare_pilots, diagnose_pilots
from pseudo_extended.results.doubts import (
    Evidence,
    against_evidence,
    diagnose_result,
    evidence_in_words,
    notes_on_run,
)
from pseudo_extended.results.estimates import Estimate
from pseudo_extended.results.evidence import log_evidence
from pseudo_extended.results.finding import find_modes
from pseudo_extended.results.leave_one_out import LeaveOneOut, leave_one_out
from pseudo_extended.results.markup import result_html
from pseudo_extended.results.mode_warnings import diagnose_modes
from pseudo_extended.results.modes import Modes
from pseudo_extended.results.restriction import restrict
from pseudo_extended.results.series import r_hat
from pseudo_extended.results.stop_reason import StopReason
from pseudo_extended.results.summary import summarise
from pseudo_extended.results.to_arviz import result_to_arviz
from pseudo_extended.results.travel import Travel, travel
from pseudo_extended.target import Target
from pseudo_extended.target.labels import coordinates
from pseudo_extended.target.views import map_in_batches
from pseudo_extended.weights import draw_index, draw_rows, normalise, whole_weights


class Evaluations(NamedTuple):
    """How often the density was evaluated, by all chains; a value with its gradient counts once.

    >>> sum(Evaluations(pilot=1000, warmup=2000, draws=4000))
    7000
    """

    pilot: int
    warmup: int
    draws: int


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Result:
    """Weighted points from a run, and what follows from them.

    `points` and `weights` are the output: the estimate of E[f] is the mean over chains and draws of Σ_i w_i f(x_i).
    Everything else here is computed from the two.
    """

    target: Target
    unconstrained: Float[np.ndarray, "chain draw particle d"]
    """The points as the sampler saw them, on the unconstrained space."""
    log_weights: Float[np.ndarray, "chain draw particle"]
    """Log weights, each draw up to a constant of its own."""
    log_importance: Float[np.ndarray, "chain draw"] | None = None
    """How much each draw counts, in logs and up to one constant for all; None if all count alike."""
    statistics: dict[str, np.ndarray]
    """What the sampler reported for each draw: acceptance_rate, diverging, non_finite, num_evaluations, lp, beta, …"""
    statistic_axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the axes of each statistic, after chain and draw."""
    method: str
    """The method in words."""
    seed: int
    """The seed that gives these draws again."""
    seconds: dict[str, float]
    """What was waited for: `compile`, `prepare` (starts and pilot), and `run` (warm-up and draws)."""
    stopped: str | None
    """What ended the run before all its draws, a `StopReason` that equals its text, such as "time_limit"; or None."""
    doubts: tuple[str, ...]
    """What looked doubtful before the run."""
    notes: tuple[str, ...] = ()
    """What the method chose before the run, and why."""
    store: str | None = None
    """The directory that holds the run; None if it is in memory only."""
    pilot: PilotReport | None = None
    """What the default method saw before the chains started: modes, bases, and why it chose one of them."""
    evaluations: Evaluations | None = None
    """How often the density was evaluated, everything counted; None if the store does not know."""
    is_part: bool = False
    """Whether this is a part of a result, such as one of its modes: what lies outside of it has not been missed."""
    thinned: int = 1
    """Of a store too large for memory, this result holds every so-manieth draw."""

    @cached_property
    def weights(self) -> Float[np.ndarray, "chain draw particle"]:
        """Weights that sum to one within each draw, or to its importance where draws do not count alike (mean one)."""
        return whole_weights(self.log_weights, self.log_importance)

    @cached_property
    def points(self) -> PyTree:
        """The points in the user's own space and structure; every leaf has leading axes (chain, draw, particle)."""
        return self.show(self.unconstrained)

    @in_double_precision
    def show(self, unconstrained: Float[np.ndarray, "*leading d"]) -> PyTree:
        """Unconstrained vectors in the user's own space and structure."""
        unconstrained = checks.float_array("unconstrained", unconstrained, finite=False)
        if unconstrained.shape[-1:] != (self.target.dim,) or not unconstrained.size:
            raise ValueError(
                f"unconstrained must be vectors of {self.target.dim} numbers; got {checks.describe(unconstrained)}."
            )
        view, flat = self.target.view, unconstrained.reshape(-1, self.target.dim)
        constrain = self.target.constrain
        shown = map_in_batches(constrain, flat) if view is None else view.show(flat, constrain)
        return jax.tree.map(lambda leaf: leaf.reshape(*unconstrained.shape[:-1], *leaf.shape[1:]), shown)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C or SIGTERM ended the run before its time."""
        return self.stopped in (StopReason.INTERRUPTED, StopReason.TERMINATED)

    @property
    def num_chains(self) -> int:
        """The number of chains of the run."""
        return self.unconstrained.shape[0]

    @property
    def num_draws(self) -> int:
        """Draws of each chain."""
        return self.unconstrained.shape[1]

    @property
    def num_particles(self) -> int:
        """Pseudo-samples of each draw."""
        return self.unconstrained.shape[2]

    @in_double_precision
    def map_points(self, f: Callable[[PyTree], Any]) -> PyTree:
        """A JAX function of one position at every point; its leaves get leading axes (chain, draw, particle)."""
        try:
            if self.target.view is None:
                mapped = map_in_batches(
                    lambda u: f(self.target.constrain(u)), self.unconstrained.reshape(-1, self.target.dim)
                )
            else:  # what a model shows is computed once: it may be slow, or random
                mapped = map_in_batches(f, jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[3:]), self.points))
        except (TypeError, ValueError, OverflowError) as error:
            said = str(error).split("\n")[0].rstrip(".")[:200]
            raise TypeError(
                "f must be a JAX function of one position that returns arrays, or an array of its values at "
                f"result.points; calling it failed with {type(error).__name__}: {said}."
            ) from error
        return jax.tree.map(lambda leaf: leaf.reshape(*self.unconstrained.shape[:3], *leaf.shape[1:]), mapped)

    def expect(self, f: Callable[[PyTree], Any] | np.ndarray) -> Estimate:
        """E[f] under the target, with its error.

        `f` is a JAX function of one position that returns an array or a pytree of arrays; or, for values computed in
        any other way, an array of them with leading axes (chain, draw, particle).
        """
        if callable(f):
            values = self.map_points(f)
            if any(np.iscomplexobj(leaf) for leaf in jax.tree.leaves(values)):
                raise TypeError("f must return real numbers; got complex ones: take their real and imaginary parts.")
            if not jax.tree.leaves(values):
                raise TypeError("f must return an array or a pytree of arrays; it returned nothing.")
        else:
            values = checks.float_array("f", f, finite=False)  # a point of weight zero may have any value
            if values.shape[:3] != self.weights.shape:
                raise ValueError(
                    "f as an array must have leading axes (chain, draw, particle) of shape "
                    f"{self.weights.shape}; got shape {values.shape}."
                )
        return self._estimate(estimates.mean, values)

    def mean(self) -> Estimate:
        """The mean of every parameter."""
        return self._estimate(estimates.mean, self.points)

    def variance(self) -> Estimate:
        """The variance of every parameter."""
        return self._estimate(estimates.variance, self.points)

    def quantile(self, probability: float | Sequence[float]) -> Estimate:
        """A quantile of every parameter; for several probabilities, all of them along a first axis."""
        return self._estimate(lambda values, w: estimates.quantile(values, w, probability), self.points)

    def covariance(self) -> Estimate:
        """The covariance matrix of all coordinates, in the order of `labels`."""
        return estimates.covariance(self.coordinates, self.weights)

    @property
    def log_evidence(self) -> Evidence:
        """log Z with its error: the log of the mass of the target, if the base is normalised, and else of their ratio.

        Only methods that reach the base estimate it. Printed, it says what speaks against it; see `evidence_doubts`.
        """
        if "evidence_top" not in self.statistics:
            raise ValueError(
                "log_evidence needs a method that reaches a base: the default, pe.AdaptivePseudoExtended(), or "
                "pe.ParallelTempering or pe.SimulatedTempering with betas that start at 0, pe.AnnealedImportance or "
                "pe.ContinuousTempering; "
                f"got {self.method}."
            )
        return Evidence.of(self, self._log_evidence)

    @cached_property
    def labels(self) -> list[str]:
        """A name for every coordinate, such as `theta[Choate]`."""
        return coordinates(self.target.shown, self.target.shown_coords)

    def summary(
        self,
        var_names: str | Sequence[str] | None = None,
        *,
        filter_vars: str | None = None,
        hdi_prob: float | None = None,
        round_to: int | None = None,
    ) -> pd.DataFrame:
        """Weighted mean, standard deviation and quantiles of every coordinate, with Monte Carlo errors.

        `ess` is the effective sample size of the mean: how many independent draws from the target have its error.
        `r_hat` is the rank-normalised split R̂ of the series of weighted means Σ_i w_i x_i. Sentences about what went
        wrong are in `.attrs["warnings"]` and `warnings`.

        Args:
            var_names: Parameters or coordinates to show; with a leading `~` those to leave out; all unless given.
            filter_vars: "like" or "regex" makes `var_names` parts of names, or regular expressions, as in ArviZ.
            hdi_prob: Adds the ends of the shortest interval with this probability, such as `hdi_3%` and `hdi_97%`.
            round_to: Decimals to round to.
        """
        return summarise(self, self._r_hat, var_names, filter_vars, hdi_prob, round_to)

    @property
    def warnings(self) -> tuple[Message, ...]:
        """Sentences about what went wrong, or nothing; each has a `code`, which docs/howto/warnings.md explains.

        What only the modes tell, such as one without draws, is among them once `modes()` was called, as it is when the
        result is printed.
        """
        return (*self._warnings_of_draws, *self._warnings_of_modes)

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages: `warnings`, and after them what is for information, `notes` among it."""
        notes = [recall(note, kinds.NOTE) for note in self.notes if not kinds.SEARCH_UNSETTLED.says(note)]
        return (*self.warnings, *notes, *notes_on_run(self))

    @cached_property
    def _warnings_of_draws(self) -> tuple[Message, ...]:
        return diagnose_result(self, self.coordinates, self._r_hat, self.labels)

    @property
    def _warnings_of_modes(self) -> tuple[Message, ...]:
        """What the modes tell, if they were looked for, and the pilots."""
        modes = next(iter(self._modes.values()), None)
        of_modes = () if modes is None else diagnose_modes(modes, self.weights)
        return (*of_modes, *diagnose_pilots(self._agreement(modes)))

    @property
    def evidence_doubts(self) -> tuple[Message, ...]:
        """The warnings for which `log_evidence` must not be trusted: none, if it may be."""
        return against_evidence(self.warnings)

    @cached_property
    def travel(self) -> Travel | None:
        """How the pseudo-samples travelled between base and target; None for methods without a path."""
        return travel(self.statistics)

    def modes(self, *, min_mass: float = 0.005, min_depth: float = 1.0) -> Modes:
        """The modes in the weighted draws: place, mass with its error, evidence, width, and visits by each chain.

        Points belong to one mode if some way between them does not cross a valley of the log density, on the
        unconstrained space. A ring, a bent ridge or a heavy tail is one mode. Modes that no chain has visited are not
        here: no sampler can know of them.

        Args:
            min_mass: Modes with less mass than this are not told apart from their neighbours.
            min_depth: How deep a valley must be to separate two modes: the log density at the pass, below that at the
                lower of the two peaks.

        >>> import jax.numpy as jnp, pseudo_extended as pe
        >>> def log_density(x):
        ...     return jnp.logaddexp(-0.5 * jnp.sum((x - 4) ** 2), -0.5 * jnp.sum((x + 4) ** 2))
        >>> result = pe.sample(log_density, jnp.zeros(2), draws=200, seed=1, progress=False)
        >>> modes = result.modes()
        >>> len(modes), bool(abs(modes.mass.value[0] - 0.5) < 4 * modes.mass.standard_error[0])
        (2, True)
        >>> bool(np.all(np.abs(result.at(0).mean().value - modes.mean.loc[0]) < 1e-9))
        True
        """
        min_mass = checks.real("min_mass", min_mass, low=0, high=1, closed="()")
        min_depth = checks.real("min_depth", min_depth, low=0, closed="()")
        known = self._modes
        if (min_mass, min_depth) not in known:
            found = find_modes(self, min_mass=min_mass, min_depth=min_depth)
            told = (*diagnose_modes(found, self.weights), *diagnose_pilots(compare_pilots(self, found)))
            known[min_mass, min_depth] = found.with_doubts(against_evidence((*self._warnings_of_draws, *told)))
        return known[min_mass, min_depth]

    def at(self, mode: int, modes: Modes | None = None) -> "Result":
        """The result restricted to one of its modes: points outside have no weight, and the evidence is the mode's.

        `modes` is what `modes()` found, if it was called with arguments of your own.
        """
        found = self.modes() if modes is None else checks.instance("modes", modes, Modes, "what result.modes() returns")
        mode = checks.integer("mode", mode, minimum=0, maximum=len(found) - 1)
        return restrict(self, found.labels == mode)

    def pilot_agreement(self) -> Agreement | None:
        """How far the chains of independent pilots agree: on log Z and each mode's mass, in standard errors, and R-hat.

        None for a run with one pilot, whose chains all know the same modes; `pe.sample(…, pilots=2)` has two.
        """
        return self._agreement(self._shown_modes())

    def _agreement(self, modes: Modes | None) -> Agreement | None:
        known = self._agreements
        if id(modes) not in known:
            known[id(modes)] = compare_pilots(self, modes)
        return known[id(modes)]

    def resample_index(self, seed: int = 0) -> Int[np.ndarray, "chain draw"]:
        """Choose the pseudo-sample that stands for each draw, by its weights."""
        uniform = self._rng(seed).uniform(size=self.log_weights.shape[:-1])
        return draw_index(normalise(self.log_weights), uniform)

    def resample_draws(self, seed: int = 0) -> Int[np.ndarray, "chain draw"]:
        """Choose the draws that stand for each chain: all of them once, or by their importance where they have one."""
        if self.log_importance is None:
            return np.tile(np.arange(self.num_draws), (self.num_chains, 1))
        largest = self.log_importance.max(axis=1, keepdims=True)
        if not np.all(np.isfinite(largest)):
            raise ValueError("resampling needs a draw with positive weight in every chain; one chain has none.")
        return draw_rows(np.exp(self.log_importance - largest), self._rng(seed).spawn(1)[0])

    def resample(self, *, seed: int = 0) -> PyTree:
        """One unweighted point a draw, leading axes (chain, draw): for tools that know no weights.

        It throws information away, more the more evenly the weights are spread; `expect` and `summary` do not. Where
        draws do not count alike they are resampled too, within each chain and in order, so some come several times.
        """
        index, rows = self.resample_index(seed), self.resample_draws(seed)
        chains = np.arange(self.num_chains)[:, None]
        return jax.tree.map(lambda leaf: take_particle(leaf, index)[chains, rows], self.points)

    def to_arviz(self, *, seed: int = 0, log_likelihood: bool = False, prior: int | None = None) -> Any:
        """ArviZ's InferenceData (0.23) or DataTree (1.x).

        `posterior` is resampled, one unweighted point a draw (see `resample`); `sample_stats` has the weights as
        `log_weight`, normalised within a draw, the temperatures, the `index` that was resampled, and the sampler's
        statistics. A model of another library adds its `observed_data` and `constant_data`.

        Args:
            seed: Of the resampling, and of the prior.
            log_likelihood: Whether to compute the group of that name, the log likelihood of every observation at every
                resampled point, for LOO and its kin; only models of other libraries know it.
            prior: How many draws of the prior to put into the group `prior`: 500 unless given, if the prior of the
                target can be sampled; 0 for no such group.
        """
        return result_to_arviz(self, seed=seed, log_likelihood=log_likelihood, prior=prior)

    def loo(self, var_names: str | list[str] | None = None) -> LeaveOneOut:
        """Leave-one-out cross-validation: how well the model predicts each observation from the others.

        It is computed from all weighted points, by Pareto-smoothed importance sampling; nothing is resampled. Models
        of PyMC and NumPyro know the log likelihood of each observation, and so do Stan programs with a generated
        quantity `log_lik`; a density is one number, and does not. `pe.compare_predictions` ranks models by it.
        For ArviZ's own tools, `to_arviz(log_likelihood=True)` has the log likelihoods at resampled points.

        Args:
            var_names: Observed variables; all unless given.
        """
        return leave_one_out(self, var_names)

    to_dataframe = exports.to_dataframe
    to_anesthetic = exports.to_anesthetic
    to_getdist = exports.to_getdist
    save_getdist = exports.save_getdist
    to_chainconsumer = exports.to_chainconsumer

    plot_corner = plots.corner
    plot_marginals = plots.marginals
    plot_trace = plots.trace
    plot_journey = plots.journey
    plot_temperatures = plots.temperatures
    plot_pilot = plots.pilot
    plot_weights = plots.weights
    plot_modes = plots.modes
    plot_evidence = plots.evidence

    def save(self, path: str | Path) -> Path:
        """Write the draws to a store that does not exist yet, such as "run.zarr", and return its path.

        `pe.load`, xarray and ArviZ read it. The state of the chains is not in a result, so a run that is to be resumed
        or extended needs `pe.sample(…, store=)`.
        """
        # A store stands above results.
        return import_module("pseudo_extended.run.saving").save(self, path)

    def report(
        self,
        path: str | Path,
        *,
        title: str = "A run of pseudo-extended",
        truths: Any = None,
        check: bool = True,
    ) -> Path:
        """Write a report of the run as one HTML file that needs no network, and return its path.

        A verdict comes first, then modes, a summary that sorts and filters, pictures, what went wrong and what to do,
        the model check, settings and how to cite. Of a run that is still going, `pe.load(store, target).report(path)`
        shows what there is so far.

        Args:
            path: Where to write, such as "run.html"; a file that is there is replaced.
            title: The title of the page.
            truths: True values for the pictures: a mapping from names, or a sequence for what is shown.
            check: Whether to run `pe.check` on the model, which takes some seconds.
        """
        # A report also checks the model, so it stands above results and is imported when it is asked for.
        write = import_module("pseudo_extended.report").report
        return write(self, path, title=title, truths=truths, check=check)

    def __repr__(self) -> str:
        lines = [
            f"Result of {self.method}: {self.num_chains} chains × {self.num_draws} draws × "
            f"{self.num_particles} weighted points, seed {self.seed}",
            self.summary()[["mean", "mcse_mean", "sd", "q5", "q50", "q95", "ess", "r_hat"]]
            .map(lambda number: f"{number:.4g}")
            .to_string(max_rows=20),
        ]
        modes = self._shown_modes()
        if "evidence_top" in self.statistics:
            lines.append(self._evidence_line())
        if modes is not None and len(modes) > 1:
            lines += modes.lines()
        agreement = self._agreement(modes)
        if agreement is not None:
            lines.append(agreement.line())
        return "\n".join([*lines, *(f"! {message.line()}" for message in self.warnings)])

    _repr_html_ = result_html

    def _evidence_line(self) -> str:
        return evidence_in_words(self.log_evidence, self.evidence_doubts)

    def _shown_modes(self) -> Modes | None:
        """The modes for the printed result: not of weights that are NaN, nor uncalled for of a density in Python."""
        if not np.any(self.weights > 0) or not np.all(np.isfinite(self.weights)):
            return None
        is_slow = bool(self.target.host_functions)
        return next(iter(self._modes.values()), None) if is_slow else self.modes()

    @cached_property
    def coordinates(self) -> Float[np.ndarray, "chain draw particle d"]:
        """All coordinates in the user's space, flat, in the order of `labels`."""
        leaves = jax.tree.leaves(self.points)
        return np.concatenate([leaf.reshape(*self.weights.shape, -1) for leaf in leaves], axis=-1)

    @cached_property
    def _log_evidence(self) -> Estimate:
        return log_evidence(self.statistics["evidence_top"], self.statistics["evidence_bottom"])

    @cached_property
    def _r_hat(self) -> Float[np.ndarray, " d"]:
        return r_hat(estimates.contributions(self.coordinates, self.weights))

    @cached_property
    def _modes(self) -> dict[tuple[float, float], Modes]:
        """The modes that were looked for, by the arguments of `modes`."""
        return {}

    @cached_property
    def _agreements(self) -> dict[int, Agreement | None]:
        """The agreements of pilots, by the modes on whose masses they may agree, which `_modes` keeps."""
        return {}

    def _rng(self, seed: int) -> np.random.Generator:
        return np.random.default_rng([checks.integer("seed", seed, minimum=0), self.seed])

    def _estimate(self, estimator: Callable[..., Estimate], values: PyTree) -> Estimate:
        """`estimator` for every leaf of `values`."""
        leaves, treedef = jax.tree.flatten(values)
        parts = zip(*(estimator(leaf, self.weights) for leaf in leaves), strict=True)
        return Estimate(*(jax.tree.unflatten(treedef, part) for part in parts))


def take_particle(leaf: np.ndarray, index: Int[np.ndarray, "chain draw"]) -> np.ndarray:
    """One particle of each draw."""
    expanded = index.reshape(*index.shape, 1, *(1,) * (leaf.ndim - 3))
    return np.take_along_axis(leaf, expanded, axis=2)[:, :, 0]
