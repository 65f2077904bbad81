"""How often modes are split or merged: `python benchmarks/splitting.py`, on densities whose modes are known.

`exact` are independent draws from the density; `sampled` are runs of the default, of correlated and weighted draws.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

import pseudo_extended as pe

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.unit.landscapes import CASES, Case, exact_result


def exact(case: Case, seed: int, draws: int) -> pe.Result:
    """A result of independent draws."""
    return exact_result(case.log_density, case.draw(np.random.default_rng(seed), draws))


def sampled(case: Case, seed: int, draws: int) -> pe.Result:
    """A run of four chains with as many draws together."""
    dim = case.draw(np.random.default_rng(0), 1).shape[1]
    return pe.sample(case.log_density, np.zeros(dim), draws=draws // 4, seed=seed, progress=False)


def main() -> None:
    """Print a row for each density: how many modes it has, and how many were found how often."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--seeds", type=int, nargs=2, default=[20, 3], help="of exact draws, and of runs")
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    given = parser.parse_args()
    print("| density | modes | exact: found | sampled: found |\n|---|---|---|---|")
    for name in given.cases:
        cells = []
        for make, seeds in zip((exact, sampled), given.seeds, strict=True):
            found = Counter(len(make(CASES[name], seed, given.draws).modes()) for seed in range(seeds))
            cells.append(", ".join(f"{number} ({times})" for number, times in sorted(found.items())))
        print(f"| {name} | {CASES[name].num_modes} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
