"""Mean squared error × time, side by side: the paper's target under Stan's NUTS, our joint NUTS, and our default.

Every method gets the same density, the same starts in distribution, the same chains, warm-up and draws, one core, and
is run in turn for each seed in one process, so that a busy machine hits all alike. The error of a seed is that of the
estimate from all its chains together, and its time the seconds of all its chains one after the other, warm-up
included. More chains or longer ones would lower the first as they raise the second, so the product does not reward
either. Compilation is printed beside it, and not in it. Seconds are those of the processor, in all threads together:
what one would wait for on an idle machine with one core. The wall's seconds are in the records too.

Records go to a file of JSON lines; a run that was killed goes on where it was, and the table is made of the file.

Run: python benchmarks/paper_vs_ours.py --seeds 10 --problems a b --methods stan-2 stan-5 joint-2 joint-5 default
(the Stan rows need the extra `stan` and a C++ compiler).
"""

import argparse
import json
import lzma
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

import pseudo_extended as pe
from processor_clock import ProcessorClock
from pseudo_extended.problems.mixtures import NormalMixture

RECORDS = Path(__file__).parent / "records" / "stan.jsonl"
METHODS = ("stan-2", "stan-5", "joint-2", "joint-5", "default")
TITLES = {
    "stan-2": "(i) the paper's target, Stan's NUTS, N = 2",
    "stan-5": "(i) the paper's target, Stan's NUTS, N = 5",
    "joint-2": "(ii) our joint NUTS, N = 2",
    "joint-5": "(ii) our joint NUTS, N = 5",
    "default": "(iii) our default",
}
CHAINS = 4

Errors = Callable[[np.ndarray, np.ndarray], dict[str, float]]


class Case(NamedTuple):
    """A problem, where its chains start, and the mean squared errors of weighted points (point d) and (point)."""

    title: str
    problem: Any
    centre: Float[np.ndarray, " d"]
    beta_range: tuple[float, float]
    errors: Errors


class Outcome(NamedTuple):
    """Weighted points and what they cost."""

    points: Float[np.ndarray, "chain draw particle d"]
    weights: Float[np.ndarray, "chain draw particle"]
    seconds: float
    """Of the processor."""
    wall_seconds: float
    compile_seconds: float
    """On the wall."""
    description: str


def mixture(scenario: str) -> Case:
    """The 20-mode mixture."""
    problem = pe.problems.twenty_modes(scenario)

    def errors(x: np.ndarray, w: np.ndarray) -> dict[str, float]:
        error = w @ x - problem.mean
        return {"E[X1]": error[0] ** 2, "E[X2]": error[1] ** 2}

    return Case(f"20-mode mixture ({scenario})", problem, np.full(2, 0.5), (0.001, 1.0), errors)


def two_normals(dim: int = 10, distance: float = 10.0) -> Case:
    """Two normals of scales 1 and 0.5, mass 0.3 and 0.7: power tempering moves the mass by 2 to the power d."""
    means = np.array([[-1.0], [1.0]]) * np.full(dim, 0.5 * distance / np.sqrt(dim))
    density = NormalMixture(np.array([0.3, 0.7]), means, np.array([1.0, 0.25]))
    mean = density.weights @ means
    second = density.weights @ (means**2 + density.variances[:, None])
    problem = pe.problems.Problem(pe.Target(density, np.zeros(dim)), mean, second, density, "made for this benchmark")

    def errors(x: np.ndarray, w: np.ndarray) -> dict[str, float]:
        return {"mass of the 0.7 mode": float(w @ (x.sum(axis=1) > 0) - 0.7) ** 2}

    return Case(f"two normals, d = {dim}", problem, np.zeros(dim), (0.001, 1.0), errors)


def boltzmann(diagonal: str = "optimal") -> Case:
    """A Boltzmann machine relaxation of 28 units, as in the paper."""
    problem = pe.problems.boltzmann_machine(28, seed=0, diagonal=diagonal)
    dim = problem.target.dim

    def errors(x: np.ndarray, w: np.ndarray) -> dict[str, float]:
        cross = (w[:, None] * x).T @ x
        assert problem.mean is not None
        return {
            "E[X]": float(np.mean((w @ x - problem.mean) ** 2)),
            "E[XXᵀ]": float(np.mean((cross - problem.cross_moment) ** 2)),
        }

    return Case(f"Boltzmann machine relaxation, d = {dim}", problem, np.zeros(dim), (0.1, 0.9), errors)


CASES: dict[str, Callable[[], Case]] = {
    "a": lambda: mixture("a"),
    "b": lambda: mixture("b"),
    "boltzmann": boltzmann,
    "boltzmann-27": lambda: boltzmann("shift"),  # one direction less than units, and not three as with the optimal D
    "two": two_normals,
}
case_of = cache(lambda name: CASES[name]())


def run(case: Case, method: str, seed: int, draws: int, warmup: int) -> Outcome:
    """All chains of one seed."""
    kind, _, number = method.partition("-")
    if kind == "stan":
        from stan_program import run_stan  # only here: the other rows need no Stan

        stan = run_stan(case.problem, int(number), draws, warmup, seed, chains=CHAINS, centre=case.centre)
        costs = (stan.cpu_seconds, stan.seconds, stan.build_seconds)
        return Outcome(stan.points, stan.weights, *costs, f"Stan NUTS, N = {number}")
    joint = pe.PseudoExtended(pe.Tempered(*case.beta_range), pe.NUTS(), int(number)) if kind == "joint" else None
    with ProcessorClock() as clock:
        result = pe.sample(
            case.problem.target,
            case.centre,
            method=joint,
            draws=draws,
            warmup=warmup,
            chains=CHAINS,
            cores=1,
            seed=seed,
            progress=False,
        )
    wall = sum(value for part, value in result.seconds.items() if part != "compile")
    costs = (clock.of_last(wall), wall, result.seconds["compile"])
    return Outcome(result.unconstrained, result.weights, *costs, result.method)


def record(name: str, method: str, seed: int, draws: int, warmup: int) -> dict[str, Any]:
    """One line of the file: the estimate is the mean over chains and draws of Σ_i w_i f(x_i)."""
    case = case_of(name)
    outcome = run(case, method, seed, draws, warmup)
    weights = outcome.weights.ravel() / (outcome.weights.shape[0] * outcome.weights.shape[1])
    errors = case.errors(outcome.points.reshape(len(weights), -1), weights)
    return {
        "problem": name,
        "title": case.title,
        "method": method,
        "description": outcome.description,
        "seed": seed,
        "draws": draws,
        "warmup": warmup,
        "chains": CHAINS,
        "squared_errors": {part: float(f"{error:.6g}") for part, error in errors.items()},
        "seconds": round(outcome.seconds, 3),
        "wall_seconds": round(outcome.wall_seconds, 3),
        "compile_seconds": round(outcome.compile_seconds, 1),
        "day": time.strftime("%Y-%m-%d"),
    }


def load(path: Path, draws: int, warmup: int) -> dict[tuple[str, str, int], dict[str, Any]]:
    """Load the last record of every problem, method and seed with these settings; packed ones come first."""
    packed = path.with_name(path.name + ".xz")
    lines = lzma.decompress(packed.read_bytes()).decode().splitlines() if packed.is_file() else []
    lines += path.read_text().splitlines() if path.is_file() else []
    records = [json.loads(line) for line in lines if line.endswith("}")]  # a killed run may leave half a line
    return {
        (line["problem"], line["method"], line["seed"]): line
        for line in records
        if (line["draws"], line["warmup"], line["chains"]) == (draws, warmup, CHAINS)
    }


def table(records: list[dict[str, Any]]) -> str:
    """Markdown: for each problem and method RMSE, seconds, mean squared error × seconds, and the gain over Stan."""
    headings = ("method", "seeds", "RMSE", "seconds", "MSE × s (± its error)", "Stan's best / this", "compilation, s")
    lines = []
    for name in dict.fromkeys(line["problem"] for line in records):
        rows = {m: [r for r in records if (r["problem"], r["method"]) == (name, m)] for m in METHODS}
        rows = {method: found for method, found in rows.items() if found}
        first = next(iter(rows.values()))[0]
        lines += ["", f"{first['title']}: {', '.join(first['squared_errors'])}", ""]
        lines += [f"| {' | '.join(headings)} |", "|" + "---|" * len(headings)]
        summaries = {method: summarise(found) for method, found in rows.items()}
        stan = [s.product for method, s in summaries.items() if method.startswith("stan")]
        best = np.min(stan, axis=0) if stan else np.nan
        for method, summary in summaries.items():
            products = (f"{short(p)} ± {short(e, 1)}" for p, e in zip(summary.product, summary.error, strict=True))
            cells = (
                TITLES[method],
                str(len(rows[method])),
                ", ".join(short(rmse) for rmse in summary.rmse),
                f"{summary.seconds:.1f}",
                ", ".join(products),
                ", ".join(short(gain) for gain in best / summary.product),
                f"{max(r['compile_seconds'] for r in rows[method]):.0f}",
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def short(number: float, digits: int = 2) -> str:
    """A number of a few digits, without an exponent; rounding noise is zero."""
    return np.format_float_positional(np.round(number, 12), digits, fractional=False, trim="-")


class Summary(NamedTuple):
    """What the seeds of one method say; an entry for each estimate."""

    rmse: np.ndarray
    seconds: float
    product: np.ndarray
    """Mean squared error × mean seconds."""
    error: np.ndarray
    """The standard error of the product over seeds."""


def summarise(records: list[dict[str, Any]]) -> Summary:
    """Over the seeds of one problem and method."""
    squared = np.array([list(r["squared_errors"].values()) for r in records])
    seconds = float(np.mean([r["seconds"] for r in records]))
    mean, spread = squared.mean(axis=0), np.full(squared.shape[1], np.nan)
    if len(squared) > 1:
        spread = squared.std(axis=0, ddof=1) / np.sqrt(len(squared))
    return Summary(np.sqrt(mean), seconds, mean * seconds, spread * seconds)


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds")
    parser.add_argument("--draws", type=int, default=1000, help="draws of each of the four chains")
    parser.add_argument("--warmup", type=int, default=1000, help="warm-up of each chain")
    parser.add_argument("--records", type=Path, default=RECORDS, help="file of JSON lines to go on with")
    parser.add_argument("--again", nargs="*", choices=METHODS, default=[], help="methods to run again")
    options = parser.parse_args()
    options.records.parent.mkdir(parents=True, exist_ok=True)
    known = load(options.records, options.draws, options.warmup)
    for name in options.problems:
        for seed in range(options.seeds):
            for method in options.methods:
                if (name, method, seed) in known and method not in options.again:
                    continue
                line = record(name, method, seed, options.draws, options.warmup)
                known[name, method, seed] = line
                with options.records.open("a") as file:
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
                print(name, seed, method, line["squared_errors"], f"{line['seconds']} s", flush=True)
    print(f"\n{options.draws} draws after {options.warmup} of warm-up, {CHAINS} chains on one core")
    print(table([known[key] for key in known if key[0] in options.problems and key[1] in options.methods]))


if __name__ == "__main__":
    main()
