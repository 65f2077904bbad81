"""The paper's extended target as Stan programs of our own, and their weighted draws.

Eq. 7 of the paper with π(β) = g(β) uniform on (beta_min, beta_max), the base γ0 = 1 and N pseudo-samples:

    log π^N(x, β) = logsumexp_i [(1 - β_i) log γ(x_i)] + Σ_j β_j log γ(x_j),    w_i ∝ exp{(1 - β_i) log γ(x_i)}

The program is composed of the extension, which is the same for every target, and a target's log γ. Stan adds the
Jacobian of the bounds of β. log γ is saved with every draw, so that the weights come from the very density that was
sampled. beta_min > 0 makes the extended target proper, so x needs no box.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

import pseudo_extended as pe
from pseudo_extended.weights import normalise
from stan_services import build, run_nuts

EXTENSION = """
functions {{
  {function}
}}
data {{
  int<lower=1> N;
  int<lower=1> d;
  real<lower=0> beta_min;
  real<lower=beta_min, upper=1> beta_max;
  {data}
}}
parameters {{
  array[N] vector[d] x;
  vector<lower=beta_min, upper=beta_max>[N] beta;
}}
transformed parameters {{
  vector[N] log_gamma;
  for (i in 1:N) log_gamma[i] = log_density({arguments});
}}
model {{
  target += log_sum_exp((1 - beta) .* log_gamma) + dot_product(beta, log_gamma);
}}
"""

# A loop over squared distances is a quarter faster in Stan than one matrix product, where d is small.
MIXTURE = EXTENSION.format(
    function="""
  real log_density(vector x, vector log_scale, array[] vector means, vector precision) {
    vector[size(means)] terms;
    for (k in 1:size(means)) terms[k] = log_scale[k] - 0.5 * precision[k] * squared_distance(x, means[k]);
    return log_sum_exp(terms);
  }""",
    data="int<lower=1> K; vector[K] log_scale; array[K] vector[d] means; vector[K] precision;",
    arguments="x[i], log_scale, means, precision",
)

BOLTZMANN = EXTENSION.format(
    function="""
  real log_density(vector x, matrix Q, vector b) {
    vector[rows(Q)] y = abs(Q * x + b);
    return sum(y) + sum(log1p_exp(-2 * y)) - rows(Q) * log2() - 0.5 * dot_self(x);
  }""",
    data="int<lower=1> n; matrix[n, d] Q; vector[n] b;",
    arguments="x[i], Q, b",
)

BETA_RANGE = {MIXTURE: (0.001, 1.0), BOLTZMANN: (0.1, 0.9)}
"""As the authors ran them."""


class StanResult(NamedTuple):
    """Weighted points of all chains, and what they cost."""

    points: Float[np.ndarray, "chain draw particle d"]
    weights: Float[np.ndarray, "chain draw particle"]
    seconds: float
    """Of all chains, one after the other, warm-up included and compilation not."""
    build_seconds: float
    """Of the compilation; zero when it was cached."""
    log_gamma: Float[np.ndarray, "chain draw particle"]
    num_leapfrog: int
    """Leapfrog steps of the draws that were kept."""
    cpu_seconds: float


def program_and_data(problem: pe.problems.Problem | pe.problems.BoltzmannProblem) -> tuple[str, dict[str, Any]]:
    """The Stan program of a problem, and its data."""
    if isinstance(problem, pe.problems.BoltzmannProblem):
        density = problem.density
        n, d = density.coupling.shape
        return BOLTZMANN, {"n": n, "d": d, "Q": density.coupling.tolist(), "b": density.bias.tolist()}
    mixture = problem.density
    K, d = mixture.means.shape  # noqa: N806
    log_scale = np.log(mixture.weights) - 0.5 * d * np.log(2 * np.pi * mixture.variances)
    return MIXTURE, {
        "K": K,
        "d": d,
        "log_scale": log_scale.tolist(),
        "means": mixture.means.tolist(),
        "precision": (1 / mixture.variances).tolist(),
    }


def run_stan(
    problem: pe.problems.Problem | pe.problems.BoltzmannProblem,
    num_particles: int,
    draws: int,
    warmup: int,
    seed: int,
    *,
    chains: int = 1,
    centre: Float[np.ndarray, " d"] | None = None,
) -> StanResult:
    """Sample the extended target of `problem`; pseudo-samples start uniformly within 1 of `centre` (zero if None).

    β starts where the library's own instrument lets it: its logit on its range is uniform on (-2, 2).
    """
    program, data = program_and_data(problem)
    beta_min, beta_max = BETA_RANGE[program]
    module, build_seconds = build(program)
    data |= {"N": num_particles, "beta_min": beta_min, "beta_max": beta_max}
    shape = (num_particles, data["d"])
    rng, runs = np.random.default_rng([seed, num_particles]), []
    for chain in range(1, chains + 1):
        x = (0 if centre is None else centre) + rng.uniform(-1, 1, shape)
        beta = beta_min + (beta_max - beta_min) / (1 + np.exp(rng.uniform(-2, 2, num_particles)))
        init = {"x": x.tolist(), "beta": beta.tolist()}
        runs.append(run_nuts(module, data, init, draws=draws, warmup=warmup, seed=seed + 1, chain=chain))
    numbers = range(1, num_particles + 1)
    names = [f"x.{i}.{j}" for i in numbers for j in range(1, shape[1] + 1)]
    points = np.array([np.column_stack([run.draws[name] for name in names]) for run in runs])
    beta, log_gamma = (
        np.array([np.column_stack([run.draws[f"{name}.{i}"] for i in numbers]) for run in runs])
        for name in ("beta", "log_gamma")
    )
    return StanResult(
        points.reshape(chains, draws, *shape),
        normalise((1 - beta) * log_gamma),
        sum(run.seconds for run in runs),
        build_seconds,
        log_gamma,
        int(sum(run.draws["n_leapfrog__"].sum() for run in runs)),
        sum(run.cpu_seconds for run in runs),
    )
