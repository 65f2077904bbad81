"""The default against NUTS on posteriors with one mode, side by side: nothing must be lost where NUTS is fine.

For every problem of `posteriors/`, method and seed, in a process of its own: the smallest effective sample size of the
quantities' means, evaluations of the density with *everything* counted (pilot, warm-up, draws), effective draws for
1,000 evaluations and their ratio to NUTS's, the largest R-hat, the largest error of a mean and of a mean square in
combined standard errors, and seconds. One estimator of errors serves all samplers. Where the library does not report
its evaluations, the pilot and the warm-up are run a second time with a density that counts (`counting.py`).

Records go to a file of JSON lines. Those of the default are kept by version of the library, so that after a change of
the library only the default is run again.

Run: python benchmarks/against_nuts.py ar1-20 schools --seeds 2 --methods default nuts numpyro
     python benchmarks/against_nuts.py --reference horseshoe  (a long NUTS run, kept in posteriors/references.json.xz)
"""

import argparse
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import cells
import posteriors
import pseudo_extended as pe
from posteriors import Moments, Posterior
from pseudo_extended.results import estimates
from pseudo_extended.results.series import r_hat
from samplers import CHAINS, Sampled, with_library, with_numpyro, with_nutpie

RECORDS = Path("output/against_nuts.jsonl")
REFERENCES = Path(__file__).parent / "posteriors" / "references.json.xz"
METHODS = {
    "default": "the default",
    "nuts": "pe.Plain(pe.NUTS())",
    "numpyro": "NumPyro's NUTS",
    "nutpie": "nutpie",
}


def known_references() -> dict[str, Any]:
    """The moments of all reference runs."""
    return json.loads(lzma.decompress(REFERENCES.read_bytes())) if REFERENCES.is_file() else {}


def reference(name: str, posterior: Posterior) -> Moments | None:
    """Exact moments, or those of the reference run, or None if there is none yet."""
    if posterior.moments is not None:
        return posterior.moments
    known = known_references()
    if name not in known:
        return None
    return Moments(**{part: np.array(known[name][part]) for part in Moments.__annotations__})


def largest_z(estimate: estimates.Estimate, truth: np.ndarray, error: np.ndarray) -> float:
    """The largest distance in combined standard errors."""
    return float(np.max(np.abs(estimate.value - truth) / np.hypot(estimate.standard_error, error)))


def measure(cell: cells.Cell) -> dict[str, Any]:
    """One problem, method and seed."""
    posterior = posteriors.load(cell["problem"])
    if cell["method"] == "reference":
        return measure_reference(posterior, cell["draws"], cell["seed"])
    runs: dict[str, Callable[[], Sampled]] = {
        "default": lambda: with_library(posterior, None, cell["draws"] or None, cell["seed"]),
        "nuts": lambda: with_library(posterior, pe.Plain(pe.NUTS()), cell["draws"], cell["seed"]),
        "numpyro": lambda: with_numpyro(posterior, cell["draws"], cell["seed"]),
        "nutpie": lambda: with_nutpie(posterior, cell["draws"], cell["seed"]),
    }
    sampled = runs[cell["method"]]()
    mean, square = (estimates.mean(sampled.values**power, sampled.weights) for power in (1, 2))
    ess, truth = float(np.min(mean.ess)), reference(cell["problem"], posterior)
    return {
        "dim": posterior.dim,
        "ess": ess,
        "evaluations": sampled.evaluations,
        "efficiency": 1000 * ess / sampled.evaluations,
        "r_hat": float(np.max(r_hat(estimates.contributions(sampled.values, sampled.weights)))),
        "z_mean": None if truth is None else largest_z(mean, truth.mean, truth.mean_error),
        "z_square": None if truth is None else largest_z(square, truth.square, truth.square_error),
        "wall": sampled.wall,
        "cpu": sampled.cpu,
        "notes": sampled.notes,
    }


def measure_reference(posterior: Posterior, draws: int, seed: int) -> dict[str, Any]:
    """Moments by a long run of NumPyro's NUTS with small steps."""
    sampled = with_numpyro(posterior, draws, seed, warmup=2000, acceptance=0.95)
    mean, square = (estimates.mean(sampled.values**power, sampled.weights) for power in (1, 2))
    moments = Moments(mean.value, square.value, mean.standard_error, square.standard_error)
    worst = float(np.max(r_hat(estimates.contributions(sampled.values, sampled.weights))))
    rounded = {part: [float(f"{number:.5g}") for number in value] for part, value in vars(moments).items()}
    return {"moments": rounded, "ess": float(np.min(mean.ess)), "r_hat": worst, "cpu": sampled.cpu}


def make_references(names: list[str], draws: int, limits: cells.Limits) -> None:
    """Run what has no exact moments, and keep them."""
    for name in names:
        if posteriors.load(name).moments is not None:
            print(f"{name}: exact")
            continue
        outcome = cells.run_cell({"problem": name, "method": "reference", "draws": draws, "seed": 1000}, limits)
        if "failed" in outcome:
            print(f"{name}: {outcome['failed']}")
            continue
        print(
            f"{name}: smallest ess {outcome['ess']:.0f}, largest R-hat {outcome['r_hat']:.4f}, {outcome['cpu']:.0f} s"
        )
        known = known_references()
        known[name] = {"ess": round(outcome["ess"]), "r_hat": round(outcome["r_hat"], 4), **outcome["moments"]}
        lines = ",\n".join(f'"{each}": {json.dumps(known[each])}' for each in sorted(known))
        REFERENCES.write_bytes(lzma.compress(f"{{\n{lines}\n}}\n".encode(), preset=9))


def cell_of(name: str, method: str, seed: int, draws: int, version: str) -> cells.Cell:
    """The key of a record; only the default's depends on the version of the library."""
    draws = 0 if method == "default" and draws == 1000 else draws  # 0: as many as the default makes
    key = {"problem": name, "method": method, "draws": draws, "seed": seed}
    return key | {"version": version} if method == "default" else key


def line(_: cells.Cell, outcome: dict[str, Any]) -> str:
    """What is printed as soon as a cell has ended."""
    z = " ".join(f"{outcome[part]:.1f}" if outcome[part] is not None else "-" for part in ("z_mean", "z_square"))
    return (
        f"ess {outcome['ess']:.0f} / {outcome['evaluations']:,} = {outcome['efficiency']:.3g} per 1,000; "
        f"R-hat {outcome['r_hat']:.3f}, z {z}; wall {outcome['wall']:.1f} s, cpu {outcome['cpu']:.1f} s"
    )


def table(rows: dict[str, dict[str, list[dict[str, Any]]]], yardstick: str) -> str:
    """Markdown: medians over seeds, and the ratio of effective draws per evaluation to those of NUTS."""
    headings = ["problem", "d", "method", "ess", "evaluations", "ess / 1,000", "ratio", "R-hat", "z mean", "z square"]
    lines, ratios = [], {}
    for name, methods in rows.items():
        base = _median(methods.get(yardstick, []), "efficiency")
        for method, outcomes in methods.items():
            good = [outcome for outcome in outcomes if "failed" not in outcome]
            if not good:
                lines.append([name, "", method, f"failed: {outcomes[0]['failed']}", *[""] * 8])
                continue
            ratio = _median(good, "efficiency") / base
            if method != yardstick and np.isfinite(ratio):
                ratios.setdefault(method, []).append(ratio)
            worst = {part: max(o[part] for o in good if o[part] is not None) if good[0][part] is not None else np.nan
                     for part in ("r_hat", "z_mean", "z_square")}  # fmt: skip
            lines.append([
                name, str(good[0]["dim"]), method, f"{_median(good, 'ess'):,.0f}",
                f"{_median(good, 'evaluations'):,.0f}", f"{_median(good, 'efficiency'):.3g}", f"{ratio:.2g}",
                f"{worst['r_hat']:.3f}", f"{worst['z_mean']:.1f}", f"{worst['z_square']:.1f}",
                f"{_median(good, 'wall'):.0f}", f"{_median(good, 'cpu'):.0f}",
            ])  # fmt: skip
    text = cells.markdown([*headings, "wall s", "cpu s"], lines)
    for method, found in ratios.items():
        mean = np.exp(np.mean(np.log(found)))
        text += f"\n\n{METHODS[method]}: geometric mean of {len(found)} ratios {mean:.3g}, smallest {min(found):.2g}"
    return text


def _median(outcomes: list[dict[str, Any]], part: str) -> float:
    found = [outcome[part] for outcome in outcomes if "failed" not in outcome]
    return float(np.median(found)) if found else np.nan


def main() -> None:
    """Run what is missing, and print the table."""
    cells.answer(measure)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="problem", help=f"of {', '.join(posteriors.FACTORIES)}")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["default", "nuts", "numpyro"])
    parser.add_argument("--yardstick", choices=METHODS, default="nuts", help="the method that ratios refer to")
    parser.add_argument("--seeds", type=int, default=2, help="number of seeds")
    parser.add_argument("--draws", type=int, default=1000, help="draws of each of the four chains")
    parser.add_argument("--seconds", type=float, default=600, help="limit of time for a cell")
    parser.add_argument("--gibibytes", type=float, default=6, help="limit of memory for a cell")
    parser.add_argument("--records", type=Path, default=RECORDS, help="file of JSON lines to go on with")
    parser.add_argument("--again", action="store_true", help="run cells that have a record, too")
    parser.add_argument("--reference", action="store_true", help="make the references of these problems instead")
    options = parser.parse_args()
    names, limits = options.names or list(posteriors.FACTORIES), cells.Limits(options.seconds, options.gibibytes)
    if unknown := set(names) - set(posteriors.FACTORIES):
        parser.error(f"problems must be of {', '.join(posteriors.FACTORIES)}; got {', '.join(sorted(unknown))}")
    if options.reference:
        make_references(names, options.draws, limits)
        return
    version, records = cells.library_version(), cells.Records(options.records)
    rows: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for name in names:
        for method in options.methods:
            wanted = [cell_of(name, method, seed, options.draws, version) for seed in range(options.seeds)]
            records.complete(wanted, limits, again=options.again, line=line)
            rows.setdefault(name, {})[method] = [records.get(cell) or {} for cell in wanted]
    print(f"\nlibrary {version}, {CHAINS} chains, medians of {options.seeds} seeds, largest R-hat and z\n")
    print(table(rows, options.yardstick))


if __name__ == "__main__":
    main()
