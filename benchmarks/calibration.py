"""Simulation-based calibration of the default on five models with several modes: `python benchmarks/calibration.py`.

Every simulation is a line of `output/calibration/MODEL.jsonl`; more simulations are added to those there.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import pseudo_extended as pe

RECORDS = Path("output") / "calibration"
TIMES = np.array([0.0, 0.9, 2.1, 2.8, 4.3, 5.0])
COVARIATES = np.random.default_rng(0).normal(size=(8, 3))


class Case(NamedTuple):
    """A model in four functions, and quantities that tell its modes apart."""

    sample_prior: Callable[[Any], Any]
    sample_data: Callable[[Any, Any], Any]
    log_prior: Callable[[Any], Any]
    log_likelihood: Callable[[Any, Any], Any]
    quantities: dict[str, Callable[[Any, Any], Any]]
    bounds: Any = None


def normal(x: Any, scale: float) -> Any:
    """The log density of independent normals, without its constant."""
    return -0.5 * jnp.sum((x / scale) ** 2)


def spike_and_slab(b: Any) -> Any:
    """Half of the prior is narrow, half is wide."""
    narrow = -0.5 * (b / 0.1) ** 2 - jnp.log(0.1)
    return jnp.sum(jnp.logaddexp(narrow, -0.5 * (b / 2) ** 2 - jnp.log(2.0)))


def draw_spike_and_slab(key: Any) -> Any:
    """From that prior."""
    which, normal = jax.random.split(key)
    return jnp.where(jax.random.bernoulli(which, shape=(3,)), 0.1, 2.0) * jax.random.normal(normal, (3,))


def draw_mixture(key: Any, p: Any) -> Any:
    """Ten observations around either centre."""
    which, noise = jax.random.split(key)
    return p["centre"][jax.random.randint(which, (10,), 0, 2)] + jax.random.normal(noise, (10,))


CASES = {
    "centres": Case(
        lambda key: {"centre": 3 * jax.random.normal(key, (2,))},
        draw_mixture,
        lambda p: normal(p["centre"], 3.0),
        lambda p, y: jnp.sum(jnp.logaddexp(normal_at(y, p["centre"][0]), normal_at(y, p["centre"][1]))),
        {"in order": lambda p, y: 1.0 * (p["centre"][0] < p["centre"][1])},
    ),
    "square": Case(
        lambda key: {"a": 2 * jax.random.normal(key, (2,))},
        lambda key, p: p["a"] ** 2 + jax.random.normal(key, (2,)),
        lambda p: normal(p["a"], 2.0),
        lambda p, y: normal(y - p["a"] ** 2, 1.0),
        {"both positive": lambda p, y: 1.0 * jnp.all(p["a"] > 0)},
    ),
    "product": Case(
        lambda key: {"a": 2 * jax.random.normal(key, (2,))},
        lambda key, p: p["a"][0] * p["a"][1] + jax.random.normal(key, (5,)),
        lambda p: normal(p["a"], 2.0),
        lambda p, y: normal(y - p["a"][0] * p["a"][1], 1.0),
        {"first positive": lambda p, y: 1.0 * (p["a"][0] > 0)},
    ),
    "frequency": Case(
        lambda key: {"omega": jax.random.uniform(key, (), minval=0.5, maxval=6.0)},
        lambda key, p: jnp.sin(p["omega"] * TIMES) + 0.5 * jax.random.normal(key, TIMES.shape),
        lambda p: 0.0 * p["omega"],
        lambda p, y: normal(y - jnp.sin(p["omega"] * TIMES), 0.5),
        {"fast": lambda p, y: 1.0 * (p["omega"] > 3)},
        {"omega": (0.5, 6.0)},
    ),
    "selection": Case(
        lambda key: {"b": draw_spike_and_slab(key)},
        lambda key, p: COVARIATES @ p["b"] + jax.random.normal(key, (8,)),
        lambda p: spike_and_slab(p["b"]),
        lambda p, y: normal(y - COVARIATES @ p["b"], 1.0),
        {"number selected": lambda p, y: jnp.sum(1.0 * (jnp.abs(p["b"]) > 0.3))},
    ),
}


def normal_at(y: Any, mean: Any) -> Any:
    """The log density of each observation around a mean, without its constant."""
    return -0.5 * (y - mean) ** 2


def main() -> None:
    """Run what is missing, and print a row for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=40)
    parser.add_argument("--models", nargs="*", default=list(CASES))
    parser.add_argument("--pictures", type=Path, help="a directory for the histograms")
    chosen = parser.parse_args()
    RECORDS.mkdir(parents=True, exist_ok=True)
    print("| model | simulations | with warnings | smallest p-value | of | suspects | processor seconds |")
    print("|---|---|---|---|---|---|---|")
    for name in chosen.models:
        case, began = CASES[name], time.process_time()
        found = pe.simulation_based_calibration(
            case.sample_prior, case.sample_data, case.log_prior, case.log_likelihood, bounds=case.bounds,
            quantities=case.quantities, simulations=chosen.simulations, store=RECORDS / f"{name}.jsonl",
            draws=200, progress=False,
        )  # fmt: skip
        table = found.table()
        p = table[["p_ecdf", "p_bins"]].min(axis=1)
        warned = int(np.sum(found.runs["warnings"] != ""))
        print(f"| {name} | {len(found.ranks)} | {warned} | {p.min():.3f} | {p.idxmin()} ({2 * len(table)} tests) | "
              f"{', '.join(found.suspects) or 'none'} | {time.process_time() - began:.0f} |", flush=True)  # fmt: skip
        if chosen.pictures is not None:
            found.plot().savefig(chosen.pictures / f"calibration_{name}.png", dpi=80)


if __name__ == "__main__":
    main()
