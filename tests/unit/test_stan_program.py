"""The Stan programs of the benchmark: their log γ and log π^N against the library's own, where PyStan is installed."""

import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.problems import boltzmann_machine, twenty_modes

pytest.importorskip("httpstan")
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

pytestmark = pytest.mark.slow  # g++ needs a minute for each program

PROBLEMS = {"mixture": lambda: twenty_modes("b"), "boltzmann": lambda: boltzmann_machine(8, seed=1)}


@pytest.mark.parametrize("name", PROBLEMS)
def test_stan_samples_the_librarys_extended_target(name, x64):
    from stan_program import BETA_RANGE, program_and_data, run_stan
    from stan_services import build, run_nuts

    problem, num_particles, num_draws = PROBLEMS[name](), 3, 50
    result = run_stan(problem, num_particles, num_draws, 50, seed=0, chains=2)
    assert result.points.shape == (2, num_draws, num_particles, problem.target.dim)
    log_gamma = jax.vmap(problem.target.log_target)(result.points.reshape(-1, problem.target.dim))
    np.testing.assert_allclose(result.log_gamma.ravel(), log_gamma, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(result.weights.sum(axis=-1), 1)

    # lp__ is log π^N up to a constant, with the Jacobian of β and all
    program, data = program_and_data(problem)
    low, high = BETA_RANGE[program]
    data |= {"N": num_particles, "beta_min": low, "beta_max": high}
    run = run_nuts(build(program)[0], data, {}, draws=num_draws, warmup=50, seed=1, chain=1)
    numbers = range(1, num_particles + 1)
    x = [[run.draws[f"x.{i}.{j}"] for j in range(1, problem.target.dim + 1)] for i in numbers]
    share = (np.array([run.draws[f"beta.{i}"] for i in numbers]) - low) / (high - low)
    flat = np.concatenate([np.array(x).reshape(-1, num_draws), np.log(share / (1 - share))]).T
    extended = pe.ExtendedTarget(problem.target, pe.Tempered(low, high), num_particles)
    difference = np.asarray(jax.vmap(extended.log_density)(flat)) - run.draws["lp__"]
    np.testing.assert_allclose(difference, difference[0], atol=1e-6)


def test_stan_draws_are_the_same_for_a_seed():
    from stan_program import run_stan

    first, again, other = (run_stan(twenty_modes("a"), 2, 20, 20, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.points, again.points)
    assert not np.array_equal(first.points, other.points)
