"""How long one waits: from `python` to the summary, for six small problems, and for the same with a slow gradient.

For each sampler a process is started that imports, samples and summarises; wall and processor seconds count from the
start of the process. Then the same process does it again with another seed (what is compiled is compiled), and then a
second process does what the first did, with the same cache directory, which was empty before the first. Evaluations
are all of them, and errors are those of the suite. The slow versions are NumPy functions of which a value and its
gradient keep the processor busy for a millisecond.

With `--models` the problems are three models as users write them, in PyMC and in NumPyro (`suite/models.py`), and the
samplers are those of the libraries: the default, `pm.sample`, nutpie and NumPyro's NUTS.

Records go to a file of JSON lines; a run goes on where it was stopped.

Run: python benchmarks/time_to_answer.py --problems unequal-10 shells-5 --samplers default numpyro
     python benchmarks/time_to_answer.py --slow --problems unequal-10
     python benchmarks/time_to_answer.py --models
     python benchmarks/time_to_answer.py --tables
"""

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import cells

RECORDS = Path(__file__).parent / "records" / "time_to_answer.jsonl"
SAMPLERS = ("default", "blackjax-smc", "numpyro", "nutpie", "dynesty", "ultranest")
NAMES = ("twenty-b", "shells-5", "unequal-10", "boltzmann-18", "ar1-20", "two-thirds-32")
MODELS = ("mixture-8", "hierarchical-65", "factor-23")


def since_start() -> tuple[float, float]:
    """Wall and processor seconds of this process."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    began = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began, usage.ru_utime + usage.ru_stime


def measure(cell: cells.Cell) -> dict[str, Any]:
    """The first call and the second of one sampler on one problem."""
    if "library" in cell:
        return measure_model(cell)
    import jax

    import suite
    from suite import answer, peers, slow
    from suite.score import score

    is_ours = cell["sampler"] == "default"
    if not is_ours:
        jax.config.update("jax_enable_x64", True)
    problem = slow.slowed(cell["problem"]) if cell["slow"] else suite.load(cell["problem"])
    if is_ours and cell["slow"]:
        from suite.peers import ours

        run = ours.run_on_host(slow.host(cell["problem"]).slow())
    else:
        run = peers.load(cell["sampler"])
    calls, before = {}, (0.0, 0.0)
    for name, seed in (("first", cell["seed"]), ("again", cell["seed"] + 1000)):
        answered = run(problem, seed)
        outcome = answer.record(problem, answered)
        now = since_start()
        scored = score(problem, outcome)
        calls[name] = {
            "wall": round(now[0] - before[0], 2),
            "cpu": round(now[1] - before[1], 2),
            "evaluations": outcome["evaluations"],
            "ess": outcome["ess"],
            "mass": scored.mass,
            "moment": scored.moment,
            "evidence": scored.evidence,
        }
        before = since_start()
        if cell["slow"] or cell["process"] == 2:  # one call tells
            break
    return calls


def measure_model(cell: cells.Cell) -> dict[str, Any]:
    """The same for a model of PyMC or NumPyro; what compiles its parts counts as well."""
    from suite import model_peers

    calls, before = {}, (0.0, 0.0)
    if cell["sampler"] != "default" and cell["library"] == "numpyro":
        import jax

        jax.config.update("jax_enable_x64", True)
    for name, seed in (("first", cell["seed"]), ("again", cell["seed"] + 1000)):
        outcome = model_peers.run(cell["problem"], cell["library"], cell["sampler"], seed)
        now = since_start()
        calls[name] = {"wall": round(now[0] - before[0], 2), "cpu": round(now[1] - before[1], 2)} | outcome
        before = since_start()
        if cell["process"] == 2:
            break
    return calls


def line(_: cells.Cell, outcome: dict[str, Any]) -> str:
    """What is printed as soon as a cell has ended."""
    return "; ".join(
        f"{name}: wall {call['wall']:.1f} s, cpu {call['cpu']:.1f} s, {call['evaluations'] or 0:,} evaluations"
        for name, call in outcome.items()
        if isinstance(call, dict)
    )


def run_pair(records: cells.Records, cell: cells.Cell, limits: cells.Limits) -> None:
    """The first process with an empty cache directory, and the second with what the first left there."""
    pair = [cell | {"process": number} for number in (1, 2)]
    if all(records.get(each) for each in pair):
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        processes = pair[:1] if cell["slow"] else pair
        records.complete(processes, limits, again=True, line=line)


def table(records: cells.Records, names: list[str], samplers: list[str], seed: int, version: str) -> str:
    """Markdown: seconds, ratios to the default, evaluations and errors."""
    headings = [
        "problem", "sampler", "first call: wall, cpu", "/ default's cpu", "second call: cpu", "second process: cpu",
        "evaluations", "error of a mass", "of a moment / sd",
    ]  # fmt: skip
    lines = []
    for is_slow in (False, True):
        for name in names:
            base = None
            for sampler in samplers:
                cell = key(name, sampler, seed, version, is_slow=is_slow)
                first, second = (records.get(cell | {"process": number}) for number in (1, 2))
                if first is None:
                    continue
                label = name + (", 1 ms" if is_slow else "")
                if "failed" in first:
                    lines.append([label, sampler, f"failed: {first['failed']}", *[""] * 6])
                    continue
                call, again = first["first"], first.get("again")
                base = call["cpu"] if sampler == "default" else base
                lines.append([
                    label, sampler, f"{call['wall']:.0f} s, {call['cpu']:.1f} s",
                    f"{call['cpu'] / base:.2g}" if base else "",
                    f"{again['cpu']:.1f} s" if again else "",
                    f"{second['first']['cpu']:.1f} s" if second and "first" in second else "",
                    f"{call['evaluations']:,}",
                    "" if call["mass"] is None else f"{call['mass']:.2g}",
                    "" if call["moment"] is None else f"{call['moment']:.2g}",
                ])  # fmt: skip
    return cells.markdown(headings, lines)


def model_table(records: cells.Records, names: list[str], seed: int, version: str) -> str:
    """Markdown: seconds, ratios to the default, evaluations and effective sample sizes of models."""
    headings = [
        "model", "sampler", "first call: wall, cpu", "wall / default's", "second call: wall", "second process: wall",
        "evaluations", "least effective sample size", "R-hat",
    ]  # fmt: skip
    lines = []
    for name in names:
        for library, samplers in model_peers().items():
            base = None
            for sampler in samplers:
                cell = model_key(name, library, sampler, seed, version)
                first, second = (records.get(cell | {"process": number}) for number in (1, 2))
                if first is None:
                    continue
                if "failed" in first:
                    lines.append([f"{name}, {library}", sampler, f"failed: {first['failed']}", *[""] * 6])
                    continue
                call, again = first["first"], first.get("again")
                base = call["wall"] if sampler == "default" else base
                lines.append([
                    f"{name}, {library}", sampler, f"{call['wall']:.1f} s, {call['cpu']:.1f} s",
                    f"{call['wall'] / base:.2g}" if base else "",
                    f"{again['wall']:.1f} s" if again else "",
                    f"{second['first']['wall']:.1f} s" if second and "first" in second else "",
                    f"{call['evaluations']:,}" if call["evaluations"] else "",
                    f"{call['ess']:.0f}", f"{call['r_hat']:.3f}",
                ])  # fmt: skip
    return cells.markdown(headings, lines)


def model_peers() -> dict[str, tuple[str, ...]]:
    """What samples the models of each library."""
    from suite import model_peers as peers

    return peers.SAMPLERS


def model_key(name: str, library: str, sampler: str, seed: int, version: str) -> cells.Cell:
    """The key of a record of a model."""
    cell = {"problem": name, "library": library, "sampler": sampler, "seed": seed}
    cell["slow"] = False
    return cell | {"version": version} if sampler == "default" else cell


def run_models(records: cells.Records, names: list[str], seed: int, version: str, limits: cells.Limits) -> None:
    """All models that are missing."""
    for name in names:
        for library, samplers in model_peers().items():
            for sampler in samplers:
                run_pair(records, model_key(name, library, sampler, seed, version), limits)


def key(name: str, sampler: str, seed: int, version: str, *, is_slow: bool) -> cells.Cell:
    """The key of a record; only the default's depends on the version of the library."""
    cell = {"problem": name, "sampler": sampler, "seed": seed, "slow": is_slow}
    return cell | {"version": version} if sampler == "default" else cell


def main() -> None:
    """Run what is missing, or print the table."""
    cells.answer(measure)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS))
    parser.add_argument("--slow", action="store_true", help="the versions whose gradient takes a millisecond")
    parser.add_argument("--models", action="store_true", help="models of PyMC and NumPyro instead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600, help="limit of processor time for a cell")
    parser.add_argument("--records", type=Path, default=RECORDS, help="file of JSON lines to go on with")
    parser.add_argument("--tables", action="store_true", help="print the table instead")
    options = parser.parse_args()
    version, records = cells.library_version(), cells.Records(options.records)
    limits = cells.Limits(options.seconds, 4, processor=True)
    if options.models:
        if options.tables:
            print(model_table(records, list(MODELS), options.seed, version))
        else:
            run_models(records, list(MODELS), options.seed, version, limits)
        return
    if options.tables:
        print(table(records, options.problems, options.samplers, options.seed, version))
        return
    for name in options.problems:
        for sampler in options.samplers:
            cell = key(name, sampler, options.seed, version, is_slow=options.slow)
            run_pair(records, cell, limits)


if __name__ == "__main__":
    main()
