"""Methods as the experiments run them, by name.

hmc, ram, ee, pt, gs, gs-gibbs and default; hmc-stan starts where Stan does; st and ais with Graham and Storkey's
ladder, st-equal and ais-equal with temperatures equally spaced, as the paper's text has it. pe-5 is the paper's method
with N = 5 and free temperatures, pe-5-0.3 with all of them fixed, pe-5-box in a box as the authors' programs have it,
pe-5-wide with β in (0.001, 1), pe-5-0.1-long with a warm-up as long as the draws, as they have it. pe-5-authors is what
their program for the mixture does: the box, the mixture's weights as printed, the draws' as coded; pe-5-0.1-authors the
same with fixed temperatures.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pseudo_extended import problems
from pseudo_extended.instruments import Density, Fixed, Tempered
from pseudo_extended.kernels import HMC, NUTS
from pseudo_extended.methods import (
    AbstractMethod,
    AdaptivePseudoExtended,
    AnnealedImportance,
    ContinuousTempering,
    EquiEnergy,
    ParallelTempering,
    Plain,
    PseudoExtended,
    RepellingAttracting,
    SimulatedTempering,
)
from pseudo_extended.problems.mixtures import NormalMixture
from pseudo_extended.results.result import Result
from pseudo_extended.target import Target
from pseudo_extended.target.bases import Normal
from pseudo_extended.tempering.schedule import linear, sigmoidal
from pseudo_extended_reproduction.benches import CANCERS, Bench, bench_of

WARMUP = 1000
NUM_TEMPERATURES = 1000
NUM_WALKS = 20
"""Of annealed importance sampling, which has no chains, at the same time: three times as fast."""
BOXES = {"mixture-a": 10.0, "mixture-b": 100.0}
"""Half widths of the authors' boxes."""


class Setup(NamedTuple):
    """A method with what it needs to run."""

    method: AbstractMethod
    draws: int
    warmup: int
    target: Target | None = None
    """If another than the problem's own."""
    start: Any = None
    """If another than the problem's own."""
    thin: int = 1
    chains: int = 1
    reweigh: Callable[[Result], Result] | None = None
    """What is done to the weights before anything is estimated."""


def setup_of(name: str, problem: str, bench: Bench, draws: int) -> Setup:
    """The method of that name for a problem.

    >>> from pseudo_extended_reproduction.benches import bench_of
    >>> setup_of("pe-5-0.3", "mixture-a", bench_of("mixture-a"), 100).method.describe()
    'pseudo-extended NUTS, N = 5, Fixed'
    """
    kind, *rest = name.split("-")
    if kind == "pe":
        return _pseudo_extended(problem, bench, draws, int(rest[0]), rest[1:])
    if kind == "ram":
        return Setup(RepellingAttracting.tak_2018(problem[-1]), draws, 25_000)
    if kind == "ee":
        method = EquiEnergy.kou_2006().with_width(1)
        return Setup(method, draws, method.min_warmup)
    if kind == "pt":
        return Setup(ParallelTempering.kou_2006(), draws, 10_000)
    if kind in ("st", "ais", "gs"):
        return _along_a_path(name, problem, bench, draws)
    if name == "hmc-stan":
        return Setup(Plain(NUTS()), draws, WARMUP, start=_as_stan_starts)
    # The default, but for one chain: a program for two would advance one for nothing.
    method = {"hmc": Plain(NUTS()), "default": AdaptivePseudoExtended().with_width(1)}[kind]
    if problem not in CANCERS:
        return Setup(method, draws, WARMUP)
    # Ten thousand draws of six pseudo-samples with fourteen thousand parameters would be seven gigabytes.
    return _regression(method, draws, thin=max(draws // 1000, 1) if kind == "default" else 1)


def _regression(method: AbstractMethod, draws: int, thin: int = 1) -> Setup:
    """Warm-up is thinned as well: it is that many updates of the parameters."""
    return Setup(method, draws // thin, min(max(draws // thin, 50), WARMUP), thin=thin)


def _pseudo_extended(problem: str, bench: Bench, draws: int, num_particles: int, options: Sequence[str]) -> Setup:
    if problem == "illustration":
        q = Density(Normal(0.0, np.sqrt(2.0)))  # the paper's N(0, 2), with 2 a variance
        return Setup(PseudoExtended(q, NUTS(), num_particles), draws, WARMUP)
    target, reweigh, fixed = None, None, [float(option) for option in options if option[0].isdigit()]
    instrument = Fixed(fixed[0]) if fixed else Tempered(*((1e-3, 1.0) if "wide" in options else bench.beta_range))
    if "box" in options:
        target = boxed(bench.problem.density, BOXES[problem])
    elif "authors" in options:
        target = boxed(as_printed(problem, bench.problem.density), BOXES[problem])
        reweigh = weighed_by_scenario_a if fixed else weighed_without_two_pi
    method = PseudoExtended(instrument, NUTS(), num_particles)
    if problem in CANCERS:
        # The paper reduces the number of iterations "to give equal total computational cost": by N, we take it.
        return _regression(method, max(draws // num_particles, 1))
    return Setup(method, draws, draws if "long" in options else WARMUP, target, reweigh=reweigh)


def _as_stan_starts(key: Key[Array, ""]) -> Float[Array, " d"]:
    return jax.random.uniform(key, (2,), float, -2.0, 2.0)


def boxed(density: NormalMixture, half_width: float) -> Target:
    """In a box around zero, as Stan declares it: a bijection whose Jacobian is not tempered, so it is the base's."""
    return Target(
        example=np.zeros(2),
        log_prior=lambda x: jnp.zeros_like(x[0]),
        log_likelihood=density,
        bounds=(-half_width, half_width),
    )


def as_printed(problem: str, density: NormalMixture) -> NormalMixture:
    """With the weights that the paper prints: in (b) 1/distance, variances being distance/20; they sum to 7.476."""
    if problem == "mixture-a":
        return density
    return NormalMixture(0.05 / density.variances, density.means, density.variances)


def weighed_without_two_pi(result: Result) -> Result:
    """As the authors do where β is free: by γ(x)^(1-β) with a γ that lacks the 1/2π that the sampled one has."""
    return _picked(result, result.log_weights + (1 - result.statistics["beta"]) * np.log(2 * np.pi))


def weighed_by_scenario_a(result: Result) -> Result:
    """As the authors do where β is fixed, in (b) too: by γ(x)^(1-β) with the γ of scenario (a)."""
    return _picked(result, (1 - result.statistics["beta"]) * result.map_points(problems.twenty_modes("a").density))


def _picked(result: Result, log_weights: np.ndarray) -> Result:
    """With one pseudo-sample of each draw, by those weights."""
    index = replace(result, log_weights=log_weights).resample_index()
    return replace(result, log_weights=np.where(np.arange(log_weights.shape[-1]) == index[..., None], 0.0, -np.inf))


@lru_cache(maxsize=4)
def fitted_base(problem: str) -> problems.VariationalNormal:
    """The variational normal of Graham and Storkey; that of the authors themselves for their own machine."""
    if problem == "boltzmann-authors":
        return problems.load_mean_field()
    return problems.mean_field(bench_of(problem).problem.density)


def _along_a_path(name: str, problem: str, bench: Bench, draws: int) -> Setup:
    fitted = fitted_base(problem)
    target = Target(bench.target.log_density, np.zeros(bench.target.dim), base=fitted.base)
    kind, _, how = name.partition("-")
    if kind == "st":
        ladder = linear if how == "equal" else sigmoidal
        return Setup(SimulatedTempering(ladder(NUM_TEMPERATURES - 1), HMC(20, jitter=0)), draws, 10 * WARMUP, target)
    if kind == "ais":
        schedule, chains = "linear" if how == "equal" else "sigmoidal", min(NUM_WALKS, draws)
        method = AnnealedImportance(schedule, HMC(5, jitter=0), num_steps=NUM_TEMPERATURES).with_width(chains)
        return Setup(method, draws // chains, min(100, max(draws // 10, 20)), target, chains=chains)
    variant = "gibbs" if name == "gs-gibbs" else "joint"
    method = ContinuousTempering(variant, HMC(20, jitter=0), base=fitted.base, log_zeta=fitted.log_zeta, step_size=0.5)
    return Setup(method, draws, WARMUP)
