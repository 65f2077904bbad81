"""The suite: published problems with known answers, the default and every peer, each cell in a process of its own.

A cell is a problem, a peer and a seed; its record says what the sampler estimated and what errors it stated, what it
cost (evaluations, seconds, memory), and which versions ran on which processor. A run that was stopped goes on with the
cells that are missing; records of the default are kept by version of the library. What failed is a result.

Run: python benchmarks/run_suite.py --problems unequal-10 --peers dynesty --seeds 1           (a cell)
     python benchmarks/run_suite.py --peers dynesty --seeds 3                                 (a column)
     python benchmarks/run_suite.py --seeds 5                                                 (all)
     python benchmarks/run_suite.py --tables docs/benchmark                                   (tables and pictures)

PSEUDO_EXTENDED_DATA names the directory with mrna.csv and eprv3/, for the problems that need them.
"""

import argparse
import fnmatch
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cells
import suite
from suite import answer, peers

RECORDS = Path(__file__).parent / "records" / "suite.jsonl"
OURS = ("default", "default-transform", "default-no-gradient", "nuts")


def processor() -> str:
    """The model of the processor."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


def measure(cell: cells.Cell) -> dict[str, Any]:
    """One problem, peer and seed."""
    import jax

    from samplers import Clock

    if cell["peer"] not in OURS:
        jax.config.update("jax_enable_x64", True)
    problem, peer = suite.load(cell["problem"]), peers.load(cell["peer"])
    with Clock() as clock:
        answered = peer(problem, cell["seed"])
    if cell["peer"] in OURS:
        jax.config.update("jax_enable_x64", True)
    package = peers.PACKAGES[cell["peer"]]
    return answer.record(problem, answered) | {
        "wall": round(clock.wall, 2),
        "cpu": round(clock.cpu, 2),
        "versions": {name: version(name) for name in dict.fromkeys((package, "jax"))},
        "python": platform.python_version(),
        "processor": processor(),
    }


def cell_of(problem: str, peer: str, seed: int, library: str) -> cells.Cell:
    """The key of a record; only those of this library depend on its source."""
    key = {"problem": problem, "peer": peer, "seed": seed}
    return key | {"version": library} if peer in OURS else key


def line(_: cells.Cell, outcome: dict[str, Any]) -> str:
    """What is printed as soon as a cell has ended."""
    evidence, error = outcome["log_evidence"], outcome["log_evidence_error"]
    stated = "" if evidence is None else f"log Z {evidence:.3f}" + ("" if error is None else f" ± {error:.3f}") + "; "
    return f"{stated}{outcome['evaluations']:,} evaluations, wall {outcome['wall']:.0f} s, cpu {outcome['cpu']:.0f} s"


def chosen(patterns: list[str] | None, names: list[str], option: str, parser: argparse.ArgumentParser) -> list[str]:
    """The names that match any of the patterns, in their order."""
    if not patterns:
        return names
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            parser.error(f"{option} must match one of {', '.join(names)}; got {pattern}.")
    return [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]


def main() -> None:
    """Run what is missing, or make the tables."""
    cells.answer(measure)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", metavar="problem", help="names or patterns such as 'shells-*'")
    parser.add_argument("--peers", nargs="+", metavar="peer", help=f"of {', '.join(peers.MODULES)}")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them")
    parser.add_argument("--seconds", type=float, default=600, help="limit of processor time for a cell")
    parser.add_argument("--gibibytes", type=float, default=4, help="limit of memory for a cell")
    parser.add_argument("--records", type=Path, default=RECORDS, help="file of JSON lines to go on with")
    parser.add_argument("--again", action="store_true", help="run cells that have a record, too")
    parser.add_argument("--tables", type=Path, metavar="directory", help="make the tables and pictures there instead")
    parser.add_argument("--pack", action="store_true", help="compress the records for the repository instead")
    options = parser.parse_args()
    names = chosen(options.problems, list(suite.FACTORIES), "--problems", parser)
    methods = chosen(options.peers, list(peers.MODULES), "--peers", parser)
    if options.tables:
        from suite import report

        report.write(cells.Records(options.records), names, methods, options.tables)
        return
    if options.pack:
        cells.Records(options.records).pack()
        return
    library, records = cells.library_version(), cells.Records(options.records)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    wanted = [cell_of(name, peer, seed, library) for seed in seeds for name in names for peer in methods]
    limits = cells.Limits(options.seconds, options.gibibytes, processor=True)
    records.complete(wanted, limits, again=options.again, line=line)


if __name__ == "__main__":
    main()
