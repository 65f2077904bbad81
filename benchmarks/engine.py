"""What the run engine costs and gains: store, resume, memory, two cores, a cluster of two. Side by side in one run.

Variants take turns, several rounds of each. Of the rates on cores the best round counts, because a busy machine only
ever adds time. The overhead of the store is the median over rounds, with the quartiles, in wall-clock time and in
processor time of the process; the second is the one to trust on a machine that others use too.

Run: python benchmarks/engine.py            some ten minutes; --quick for a look at whether it works
     python benchmarks/engine.py overhead resume memory cores
"""

import argparse
import contextlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import pseudo_extended as pe
from pseudo_extended.methods import AbstractMethod
from pseudo_extended.run.stored import Stored
from pseudo_extended.store import DrawWriter
from pseudo_extended.store.disk import Disk

DIM = 10


def normal(x: Any) -> Any:
    """A standard normal, in as many dimensions as one likes."""
    return -0.5 * jnp.sum(x**2)


def slow_normal(num_steps: int) -> Callable[[Any], Any]:
    """A normal whose density takes a while: a recurrence, which no compiler can shorten or spread over cores."""

    def log_density(x: Any) -> Any:
        y = jax.lax.fori_loop(0, num_steps, lambda i, y: 0.999 * y + 0.001 * jnp.sin(y), x)
        return -0.5 * jnp.sum(x**2) - 1e-9 * jnp.sum(y**2)

    return log_density


def one_millisecond() -> Callable[[Any], Any]:
    """A density whose value and gradient take about 1 ms on this machine."""
    num_steps = 2000
    for _ in range(4):
        with jax.enable_x64(True):
            step = jax.jit(jax.value_and_grad(slow_normal(num_steps)))
            x = jnp.zeros(DIM)
            jax.block_until_ready(step(x))
            seconds = min(_seconds(lambda step=step, x=x: jax.block_until_ready(step(x))) for _ in range(30))
        num_steps = max(int(num_steps * 1e-3 / seconds), 10)
    return slow_normal(num_steps)


def _seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


class Clock:
    """A callback that notes the processor time at the end of the first chunk, when preparation is over."""

    began: float | None = None

    def __call__(self, run: pe.Running) -> None:
        """The first time."""
        self.began = time.process_time() if self.began is None else self.began


@contextlib.contextmanager
def own_time() -> Iterator[list[float]]:
    """A list whose sum is the processor time that the store itself takes, on the run's thread and on the disk's."""
    seconds: list[float] = []
    timed = [(Stored, "add"), (Stored, "commit"), (DrawWriter, "publish"), (Disk, "_do")]
    inside = threading.local()

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            if getattr(inside, "yes", False):
                return function(*args, **kwargs)
            inside.yes, began = True, time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                inside.yes = False
                seconds.append(time.thread_time() - began)

        return run

    with contextlib.ExitStack() as stack:
        for owner, name in timed:
            stack.enter_context(mock.patch.object(owner, name, wrapped(getattr(owner, name))))
        yield seconds


def in_turn(rounds: int, variants: dict[str, Callable[..., pe.Result]]) -> dict[str, np.ndarray]:
    """Seconds of warm-up and draws, (round, 2): by the wall clock and of the processor, by variant."""
    for run in variants.values():  # compiles
        run()
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, run in variants.items():
            clock = Clock()
            waited = run(callback=clock).seconds["run"]
            assert clock.began is not None
            seconds[name].append((waited, time.process_time() - clock.began))
    return {name: np.array(each) for name, each in seconds.items()}


def overhead(directory: Path, quick: bool) -> Table:
    """Of the store, on the 20-mode mixture."""
    table = Table(
        "method, 4 chains",
        "draws",
        "memory",
        "store",
        "wall-clock",
        "processor",
        "its own",
        title="Overhead of the store; its own: processor time in the code that writes, of the run's",
    )
    mixture = pe.problems.twenty_modes("a").target
    rows: list[tuple[str, AbstractMethod | None, int]] = [
        ("default", None, 2_000 if quick else 100_000),
        ("pseudo-extended NUTS, N = 5", pe.PseudoExtended(pe.Tempered(1e-2), pe.NUTS(), 5), 1000 if quick else 5_000),
    ]
    for name, method, draws in rows:

        def sample(store: Path | None = None, method: Any = method, draws: int = draws, callback: Any = None) -> Any:
            if store is not None:
                shutil.rmtree(store, ignore_errors=True)
            run: dict[str, Any] = {"method": method, "draws": draws, "seed": 1, "progress": False}
            return pe.sample(mixture, np.full(2, 5.0), store=store, callback=callback, **run)

        seconds = in_turn(
            2 if quick else 6, {"memory": sample, "store": lambda s=sample, **k: s(directory / "overhead.zarr", **k)}
        )
        with own_time() as own:
            in_turn(1, {"store": lambda s=sample, **k: s(directory / "overhead.zarr", **k)})  # twice, one to compile
        percent = 100 * (seconds["store"] / seconds["memory"] - 1)
        low, middle, high = np.quantile(percent, (0.25, 0.5, 0.75), axis=0)
        table.add_row(
            name,
            f"{draws}",
            *(f"{np.median(seconds[variant][:, 0]):.2f} s" for variant in ("memory", "store")),
            *(f"{middle[i]:+.1f} % ({low[i]:+.1f} to {high[i]:+.1f})" for i in range(2)),
            f"{100 * sum(own) / 2 / np.median(seconds['memory'][:, 1]):.1f} %",
        )
    return table


def resuming(directory: Path, quick: bool) -> Table:
    """How long until the first new draw, for a store that is checked in full before."""
    table = Table("draws of 4 chains", "store", "until it goes on", title=f"Time to resume, {DIM} dimensions")
    for draws in (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000):
        store = directory / f"resume-{draws}.zarr"
        run: dict[str, Any] = {"method": pe.Plain(pe.HMC(2)), "draws": draws, "seed": 1, "progress": False}
        pe.sample(normal, np.zeros(DIM), store=store, **run)
        size = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
        seconds = pe.extend(store, normal, 100, progress=False).seconds
        table.add_row(f"{4 * draws:,}", f"{size / 2**20:.0f} MiB", f"{seconds['prepare'] + seconds['compile']:.2f} s")
        shutil.rmtree(store)
    return table


def sample_in_little_memory(draws: str, store: str) -> None:
    """In a process of its own: all the memory it ever took, in bytes, on stdout."""
    began = time.perf_counter()
    result = pe.sample(
        normal,
        np.zeros(DIM),
        method=pe.Plain(pe.HMC(2)),
        draws=int(draws) // 4,
        seed=1,
        progress=False,
        store=store or None,
    )
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result.summary()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.write(f"{peak * 1024} {after * 1024} {seconds}\n")


def memory(directory: Path, quick: bool) -> Table:
    """The most that a process takes, with a store and without."""
    columns = (
        "draws in all",
        "store: peak",
        "after summary()",
        "seconds",
        "memory: peak",
        "after summary()",
        "seconds",
    )
    table = Table(*columns, title=f"Memory against draws, {DIM} dimensions, 4 chains")
    for draws in (10**4, 10**5) if quick else (10**5, 10**6, 10**7):
        cells = []
        for store in (str(directory / "memory.zarr"), ""):
            if draws > 10**6 and not store:
                cells += ["", "", ""]  # several gigabytes
                continue
            command = [sys.executable, __file__, "--child", str(draws), store]
            out = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            shutil.rmtree(directory / "memory.zarr", ignore_errors=True)
            cells += [f"{float(out[0]) / 2**20:.0f} MiB", f"{float(out[1]) / 2**20:.0f} MiB", f"{float(out[2]):.0f}"]
        table.add_row(f"{draws:,}", *cells)
    return table


def cores(directory: Path, quick: bool) -> Table:
    """One core, two cores, and two processes of a cluster."""
    from distributed import Client, LocalCluster

    del directory
    table = Table(
        "target, 4 chains",
        "1 core",
        "2 cores",
        "gain",
        "processor",
        "cluster of 2",
        "gain",
        title="Iterations a second, all chains; processor time of 2 cores relative to 1",
    )
    mixture = pe.problems.twenty_modes("a").target
    rows: list[tuple[str, Any, Any, AbstractMethod | None, int]] = [
        ("1 ms a gradient, HMC", one_millisecond(), np.zeros(DIM), pe.Plain(pe.HMC(4)), 50 if quick else 300),
        ("20-mode mixture, default", mixture, np.full(2, 5.0), None, 2_000 if quick else 20_000),
        (
            "20-mode mixture, PE NUTS",
            mixture,
            np.full(2, 5.0),
            pe.PseudoExtended(pe.Tempered(1e-2), pe.NUTS(), 5),
            500 if quick else 5_000,
        ),
    ]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        for name, target, init, method, draws in rows:
            warmup = 50 if "ms" in name else 1000

            def sample(
                target: Any = target,
                init: Any = init,
                method: Any = method,
                draws: int = draws,
                warmup: int = warmup,
                **options: Any,
            ) -> pe.Result:
                run: dict[str, Any] = {"method": method, "draws": draws, "warmup": warmup, "seed": 1, "progress": False}
                return pe.sample(target, init, **run, **options)

            seconds = in_turn(
                1 if quick else 2,
                {
                    "one": lambda s=sample, **k: s(cores=1, **k),
                    "two": lambda s=sample, **k: s(cores=2, **k),
                    "cluster": lambda s=sample, **k: s(cluster=client, **k),
                },
            )
            best = {key: each.min(axis=0) for key, each in seconds.items()}
            rate = {key: 4 * (draws + warmup) / wall for key, (wall, _) in best.items()}
            table.add_row(
                name,
                f"{rate['one']:,.0f}",
                f"{rate['two']:,.0f}",
                f"{rate['two'] / rate['one']:.2f}",
                f"{best['two'][1] / best['one'][1]:.2f}",
                f"{rate['cluster']:,.0f}",
                f"{rate['cluster'] / rate['one']:.2f}",
            )
    return table


PARTS = {"overhead": overhead, "resume": resuming, "memory": memory, "cores": cores}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=f"of {', '.join(PARTS)}; all unless given")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        sample_in_little_memory(*arguments.child)
        return
    console = Console(width=120)
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before we began")
    with tempfile.TemporaryDirectory() as directory:
        for part in arguments.parts:
            console.print(PARTS[part](Path(directory), arguments.quick))


if __name__ == "__main__":
    main()
