"""Our equi-energy sampler, repelling-attracting Metropolis, parallel tempering and HMC beside the published numbers.

The 20-mode mixture, scenarios (a) and (b), with the published settings: 50,000 draws, 20 runs, RMSE of four moments.
Each cell shows our RMSE with its Monte Carlo error and the published one. The published number is itself from 20 runs,
so it has an error too. A cell is marked with * where the two differ by more than two standard errors of their
difference: of 20 cells that agree, about one should be.

Run: python benchmarks/literature.py [--runs 20] [--samplers PT HMC] [--seed 0] [--burn-in 50000]
"""

import argparse
import time
from typing import NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import pseudo_extended as pe
from pseudo_extended.methods import AbstractMethod
from pseudo_extended_reproduction.summaries import differs, rmse_of

DRAWS, PUBLISHED_RUNS = 50_000, 20
SAMPLERS = ("EE", "RAM", "PT", "HMC")
MOMENTS = ("E[X1]", "E[X2]", "E[X1²]", "E[X2²]")


class Row(NamedTuple):
    """One sampler on one scenario."""

    sampler: str
    scenario: str
    method: AbstractMethod
    warmup: int
    published: tuple[float, float, float, float]


def rows(burn_in: int) -> list[Row]:
    """What the papers report; the equi-energy rows as quoted by Tak et al. (2018)."""
    equi_energy = pe.EquiEnergy.kou_2006(burn_in=burn_in, head_start=burn_in)
    tempering = pe.ParallelTempering.kou_2006()
    hmc = pe.Plain(pe.NUTS())
    ram_a, ram_b = (pe.RepellingAttracting.tak_2018(scenario) for scenario in "ab")
    return [
        Row("EE, Kou et al.", "a", equi_energy, equi_energy.min_warmup, (0.11, 0.14, 1.14, 1.48)),
        Row("EE, Kou et al.", "b", equi_energy, equi_energy.min_warmup, (0.07, 0.09, 0.75, 0.84)),
        Row("RAM, Tak et al.", "a", ram_a, 25_000, (0.09, 0.10, 0.90, 1.30)),
        Row("RAM, Tak et al.", "b", ram_b, 25_000, (0.04, 0.04, 0.26, 0.34)),
        Row("PT, Kou et al.", "a", tempering, 10_000, (0.18, 0.28, 1.82, 2.89)),
        Row("PT, Kou et al.", "b", tempering, 10_000, (0.12, 0.13, 1.15, 1.22)),
        Row("HMC, Nemeth et al.", "a", hmc, 1_000, (2.69, 3.96, 24.69, 33.65)),
        Row("HMC, Nemeth et al.", "b", hmc, 1_000, (0.27, 0.51, 3.12, 4.80)),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Published numbers, run again.")
    parser.add_argument("--runs", type=int, default=20, help="independent runs of each row (at least 3)")
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=SAMPLERS, help="rows to run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--burn-in", type=int, default=50_000, help="of each chain of EE, before and after its rings")
    arguments = parser.parse_args()
    runs = max(arguments.runs, 3)
    table = Table(title=f"RMSE over {runs} runs of {DRAWS:,} draws: ours ± its error (published), * where they differ")
    for heading in ("sampler", "scenario", *MOMENTS, "evaluations a draw", "seconds"):
        table.add_column(heading)
    marked, total = 0, 0
    for row in rows(arguments.burn_in):
        if row.sampler.split(",")[0] not in arguments.samplers:
            continue
        problem = pe.problems.twenty_modes(row.scenario)
        began = time.perf_counter()
        result = pe.sample(
            problem.target,
            lambda key: jax.random.uniform(key, (2,)),
            method=row.method,
            draws=DRAWS,
            warmup=row.warmup,
            chains=runs,
            seed=arguments.seed,
            progress=False,
        )
        seconds = time.perf_counter() - began
        x = result.points[:, :, 0]
        estimates = np.concatenate([x.mean(axis=1), (x**2).mean(axis=1)], axis=1)
        rmse, error = rmse_of(estimates - np.concatenate([problem.mean, problem.second_moment]))
        apart = differs(rmse, error, np.array(row.published), PUBLISHED_RUNS)
        marked, total = marked + int(apart.sum()), total + apart.size
        cells = [
            f"{ours:.3f} ± {theirs_error:.3f} ({theirs:.2f}){'*' if mark else ''}"
            for ours, theirs_error, theirs, mark in zip(rmse, error, row.published, apart, strict=True)
        ]
        evaluations = f"{np.mean(result.statistics['num_evaluations']):.1f}"
        table.add_row(row.sampler, row.scenario, *cells, evaluations, f"{seconds:.0f}")
    Console(width=150).print(table)
    print(f"{marked} of {total} cells differ by more than two standard errors.")


if __name__ == "__main__":
    main()
