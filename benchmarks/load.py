"""Load: many chains, many draws, many dimensions, many runs, two processes on one store, and workers that die.

Each part runs in a process of its own and reports its time and the most memory it ever took.

Run: python benchmarks/load.py              some twenty minutes; --quick for a look at whether it works
     python benchmarks/load.py chains draws dimensions runs processes workers scheduler
"""

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import pseudo_extended as pe


def normal(x: Any) -> Any:
    """A standard normal, in as many dimensions as one likes."""
    return -0.5 * jnp.sum(x**2)


def two_normals(x: Any) -> Any:
    """Two normals, six apart in every coordinate."""
    return jnp.logaddexp(-0.5 * jnp.sum((x - 3) ** 2), -0.5 * jnp.sum((x + 3) ** 2))


def sample(target: Any, dim: int, **options: Any) -> pe.Result:
    """A plain run, unless told otherwise."""
    run: dict[str, Any] = {"method": pe.Plain(pe.HMC(2)), "seed": 1, "progress": False}
    return pe.sample(target, np.zeros(dim), **run | options)


def chains(directory: Path, quick: bool) -> str:
    """64 chains into a store."""
    result = sample(normal, 10, chains=8 if quick else 64, draws=200 if quick else 5_000, store=directory / "run.zarr")
    return f"{result.num_chains} chains of {result.num_draws:,} draws; faults: {len(pe.verify(directory / 'run.zarr'))}"


def draws(directory: Path, quick: bool) -> str:
    """A million stored draws in two dimensions, and reading them."""
    count = 10_000 if quick else 1_000_000
    sample(normal, 2, chains=1, draws=count, store=directory / "run.zarr")
    began = time.perf_counter()
    loaded = pe.load(directory / "run.zarr", normal)
    size = sum(path.stat().st_size for path in (directory / "run.zarr").rglob("*") if path.is_file())
    return f"{count:,} draws, {size / 2**20:.0f} MiB; {loaded.num_draws:,} read in {time.perf_counter() - began:.1f} s"


def dimensions(directory: Path, quick: bool) -> str:
    """The default in 2,000 dimensions."""
    dim = 100 if quick else 2_000
    result = sample(two_normals, dim, method=None, draws=100, chains=2, store=directory / "run.zarr")
    seconds = ", ".join(f"{name} {value:.0f} s" for name, value in result.seconds.items())
    return f"d = {dim:,}: {seconds}; {len(result.warnings)} warnings"


def runs(directory: Path, quick: bool) -> str:
    """A thousand small runs in one process, and how memory grows."""
    del directory
    count, sizes = 30 if quick else 1000, []
    for i in range(count):
        sample(normal, 2, draws=10, warmup=10, chains=1, seed=i)
        if i in (count // 4, count - 1):
            sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize())
    return f"{count:,} runs; {(sizes[1] - sizes[0]) / 2**20:+.0f} MiB between the first quarter and the end"


def processes(directory: Path, quick: bool) -> str:
    """Two processes on one store, both with resume=True."""
    command = [sys.executable, __file__, "--child", "one_of_two", str(directory / "run.zarr"), "1" if quick else "0"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = sorted(process.communicate()[0].strip() for process in both)
    return f"{said[0]!r} and {said[1]!r}; faults: {len(pe.verify(directory / 'run.zarr'))}"


def one_of_two(store: str, quick: str) -> str:
    """One process of two."""
    try:
        result = sample(normal, 2, draws=2_000 if quick == "1" else 200_000, chains=2, store=store, resume=True)
    except pe.StoreInUseError:
        return "refused"
    return f"{result.num_draws:,} draws"


def workers(directory: Path, quick: bool) -> str:
    """A Dask worker is killed under way."""
    from distributed import Client, LocalCluster

    del directory
    killed: list[int] = []
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:

        def kill(run: pe.Running) -> None:
            if run.num_draws and not killed:
                workers: Any = client.run(os.getpid)
                killed.append(workers.popitem()[1])
                os.kill(killed[0], signal.SIGKILL)  # a worker that this process started

        count = 2_000 if quick else 50_000
        result = sample(normal, 10, draws=count, chains=4, cluster=client, callback=kill)
    same = np.array_equal(result.unconstrained, sample(normal, 10, draws=count, chains=4).unconstrained)
    return f"{len(killed)} worker killed; the draws of one process: {'yes' if same else 'NO'}"


def scheduler(directory: Path, quick: bool) -> str:
    """The scheduler goes away, and the run goes on with another."""
    from distributed import Client, LocalCluster

    store, count = directory / "run.zarr", 2_000 if quick else 50_000
    options: dict[str, Any] = {"dashboard_address": ":0", "n_workers": 2, "threads_per_worker": 1}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        half = sample(
            normal, 10, draws=count, chains=4, cluster=client, store=store, callback=lambda run: run.num_draws > 0
        )
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        result = pe.resume(store, normal, progress=False, cluster=client)
    same = np.array_equal(result.unconstrained, sample(normal, 10, draws=count, chains=4).unconstrained)
    return f"{half.num_draws:,} draws, then {result.num_draws:,}; the draws of one process: {'yes' if same else 'NO'}"


PARTS: dict[str, Callable[[Path, bool], str]] = {
    "chains": chains,
    "draws": draws,
    "dimensions": dimensions,
    "runs": runs,
    "processes": processes,
    "workers": workers,
    "scheduler": scheduler,
}


def in_a_process(part: str, quick: bool) -> tuple[str, float, float, float]:
    """What a part says, its seconds, those of the processor, and the most memory it took, in bytes."""
    began, before = time.perf_counter(), processor_seconds()
    command = [sys.executable, __file__, "--child", part, "1" if quick else "0"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    seconds, used = time.perf_counter() - began, processor_seconds() - before
    lines = done.stdout.strip().splitlines()
    if done.returncode or len(lines) < 2:
        return f"FAILED with {done.returncode}", seconds, used, float("nan")
    return lines[-2], seconds, used, float(lines[-1])


def processor_seconds() -> float:
    """Of the processes that this one has started and waited for, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def child(part: str, *arguments: str) -> None:
    """In the process of a part."""
    if part == "one_of_two":
        print(one_of_two(*arguments))
        return
    with tempfile.TemporaryDirectory() as directory:
        print(PARTS[part](Path(directory), arguments[0] == "1"))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=f"of {', '.join(PARTS)}; all unless given")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(*arguments.child)
        return
    console = Console(width=120)
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before we began")
    table = Table("part", "what came of it", "seconds", "processor s", "peak memory", title="Load")
    for part in arguments.parts:
        said, seconds, used, peak = in_a_process(part, arguments.quick)
        table.add_row(part, said, f"{seconds:.0f}", f"{used:.0f}", f"{peak / 2**20:,.0f} MiB")
    console.print(table)


if __name__ == "__main__":
    main()
