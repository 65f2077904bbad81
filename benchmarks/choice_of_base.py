"""A mixture at the modes against a broad normal, where there are more modes than a mixture can list.

Boltzmann machines of 24 units: the share of the target that the 40 heaviest modes hold, by the pilot's own measure, and
the effective sample size of the default with each of the two bases forced on it. Then Rosenbrock's density, whose ridge
is neither, with the base that the pilot chooses. docs/explanation/adaptive.md quotes both.

Run: python benchmarks/choice_of_base.py (some five minutes on one core); prints Markdown.
"""

import argparse
from unittest.mock import patch

import numpy as np

import pseudo_extended as pe
from pseudo_extended.pilot import preparation
from pseudo_extended.pilot.learned_base import claimed as claimed_share


def measured(target: object, dim: int, seed: int, chains: int) -> tuple[float, float, float]:
    """Smallest effective sample size, largest R-hat, seconds of sampling."""
    result = pe.sample(target, np.zeros(dim), seed=seed, draws=4000, chains=chains, progress=False)
    summary = result.summary()
    ess, r_hat = np.min(summary["ess"].to_numpy()), np.max(summary["r_hat"].to_numpy())
    return float(ess), float(r_hat), result.seconds["run"]


def machines(seeds: list[int]) -> None:
    """Both bases on each machine; the run of a machine has its seed."""
    print("| machine | held by 40 modes | mixture: ess, R-hat, s | broad normal: ess, R-hat, s | ratio of ess |")
    print("|---|---|---|---|---|")
    for seed in seeds:
        target = pe.problems.boltzmann_machine(24, seed=seed).target
        with patch.object(preparation, "claimed", wraps=claimed_share) as claimed:
            with patch.multiple(preparation, MAX_UNSEEN=1.0, MIN_CLAIMED=0.0):
                listed = measured(target, target.dim, seed, chains=2)
            [call] = claimed.call_args_list
        with patch.object(preparation, "MAX_UNSEEN", -1.0):
            broad = measured(target, target.dim, seed, chains=2)
        rows = (f"{ess:.0f}, {r_hat:.3f}, {seconds:.1f}" for ess, r_hat, seconds in (listed, broad))
        print(f"| {seed} | {claimed_share(*call.args):.2f} | {' | '.join(rows)} | {listed[0] / broad[0]:.2g} |")


def ridges(seeds: list[int]) -> None:
    """Rosenbrock's density, and ten times as wide in the exponent."""
    print("\n| ridge of width | seed | ess, R-hat, s |\n|---|---|---|")
    for factor in (2.0, 20.0):
        for seed in seeds:
            ess, r_hat, seconds = measured(
                lambda x, factor=factor: -(100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2) / factor, 2, seed, chains=4
            )
            print(f"| {np.sqrt(factor / 200):.1f} | {seed} | {ess:.0f}, {r_hat:.3f}, {seconds:.1f} |", flush=True)


def main() -> None:
    """Both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, nargs="*", default=list(range(1, 9)), help="seeds of the machines")
    parser.add_argument("--ridges", type=int, nargs="*", default=[0, 1, 2], help="seeds of the runs on ridges")
    options = parser.parse_args()
    machines(options.machines)
    ridges(options.ridges)


if __name__ == "__main__":
    main()
