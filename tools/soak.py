"""Kill, damage and resume runs at random for a stated time, from a stated seed, and print one line about it.

    python tools/soak.py --seconds 3600 --seed 0

A run writes to a store. It is killed (SIGKILL) at a random moment, again and again, and each time `pe.sample(…,
resume=True)` goes on with it; its draws must be those of a run that was never stopped, to the bit. Copies of the stores
that this leaves are damaged: bits, lengths, files that are gone, exchanged, from another run, from an earlier time, or
links. Whoever then reads such a copy must get the draws of the run, or one sentence: never other draws, and never
another exception. A damage counts if it changed a byte.

Every run is a fork of this process, which imports JAX and all that it needs, but not BlackJAX, which starts it: a
process in which XLA's threads run cannot be forked. So a kill costs a second.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox
import jax
import jax.experimental.checkify
import jax.numpy as jnp
import jax.scipy.stats
import numpy as np
import optax
import pandas as pd
import zarr

import pseudo_extended as pe
from pseudo_extended.store import Store, draws_shown

DRAWS, WARMUP, CHAINS = 6_000, 2_000, 3
PRELOADED = (equinox, jax.experimental.checkify, jax.scipy.stats, optax, pd, zarr)
SEEDS = (7, 8)
"""Of the run that is looked after, and of one of the same shape whose files are put among its own."""
KEPT = 6
"""Stores that were killed under way, for the damages."""
DAMAGES_EACH_TIME = 60
DONE, WRONG, RAW = 0, 3, 4


def log_density(x: Any) -> Any:
    """Two normals."""
    return jnp.logaddexp(-0.5 * jnp.sum((x - 2) ** 2), -0.5 * jnp.sum((x + 2) ** 2))


def sample(store: Path | None, seed: int = SEEDS[0]) -> pe.Result:
    """Begin, or go on."""
    write_often()
    method = pe.PseudoExtended(pe.Fixed(0.3), pe.RandomWalk(), 2)
    run: dict[str, Any] = {"draws": DRAWS, "warmup": WARMUP, "chains": CHAINS, "seed": seed, "progress": False}
    return pe.sample(log_density, np.zeros(2), method=method, store=store, resume=store is not None, **run)


def write_often() -> None:
    """Many small chunks, and snapshots all the time."""
    from pseudo_extended.run import stored

    stored.LEAST_SECONDS, stored.SECONDS_BETWEEN_VIEWS, stored.SHARE_OF_TIME = 0.02, 0.1, 4
    stored.CHUNK_BYTES = 2**14


def in_a_fork(work: Callable[[], None], seconds: float | None = None) -> int:
    """Do the work in a process of its own, killed after so many seconds; how it ended."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(DONE)
        except AssertionError:
            traceback.print_exc()
            os._exit(WRONG)
        except BaseException:
            traceback.print_exc()
            os._exit(RAW)
    if seconds is not None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            time.sleep(0.002)
        os.kill(child, signal.SIGKILL)  # of our own child, which is not waited for yet
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def assert_same(result: pe.Result, whole: dict[str, np.ndarray]) -> None:
    """The draws are the first ones of a run that was never stopped."""
    for name, values in values_of(result).items():
        np.testing.assert_array_equal(values, whole[name][:, : result.num_draws], err_msg=name)


def values_of(result: pe.Result) -> dict[str, np.ndarray]:
    """All that a result has of its draws."""
    return {"x": result.unconstrained, "log_weight": result.log_weights} | {
        f"statistic {name}": each for name, each in result.statistics.items()
    }


def damage(store: Path, others: list[Path], rng: random.Random) -> bool:
    """One damage at a random place; whether a byte is another than before."""
    files = sorted(path for path in store.rglob("*") if path.is_file() and path.name not in ("lock", "owner"))
    path = rng.choice(files)
    before = path.read_bytes()
    how = rng.choice(["bits", "bits", "cut", "longer", "zeros", "gone", "exchanged", "other", "link", "number"])
    if how == "bits" and before:
        data = bytearray(before)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
    elif how == "cut":
        path.write_bytes(before[: rng.randrange(max(len(before), 1))])
    elif how == "longer":
        path.write_bytes(before + rng.randbytes(rng.randint(1, 40)))
    elif how == "zeros":
        path.write_bytes(bytes(len(before)))
    elif how == "gone":
        path.unlink()
    elif how == "exchanged":
        alike = [each for each in files if each.stat().st_size == len(before) and each.suffix == path.suffix]
        twin = rng.choice([each for each in alike if each.parent == path.parent] or alike)
        path.write_bytes(twin.read_bytes())
        twin.write_bytes(before)
    elif how == "other":
        source = rng.choice(others) / path.relative_to(store)
        if source.is_file():
            path.write_bytes(source.read_bytes())
    elif how == "link":
        elsewhere = store.with_suffix(".elsewhere")
        elsewhere.write_bytes(before[::-1])
        path.unlink()
        path.symlink_to(elsewhere)
    elif how == "number":
        place = store / "zarr.json"
        content = json.loads(place.read_bytes()) if place.exists() else {"attributes": {}}
        content["attributes"]["num_draws"] = rng.choice([-5, 0, 1, DRAWS - 1, DRAWS + 40, 10**9])
        place.write_text(json.dumps(content))
        return True
    return not path.exists() or path.read_bytes() != before


def read_damaged(store: Path, whole: dict[str, np.ndarray], chunks: dict[str, np.ndarray], resumes: bool) -> str:
    """Hold all that can be read of a store against the truth; what happened."""
    said = "harmless"
    try:
        faults = pe.verify(store)
        if faults:
            said = "found"
        else:  # then everything that xarray sees must be right
            opened = Store.open(store)
            if opened.manifest.prepared is not None and (store / "zarr.json").exists():
                num_draws = draws_shown(opened).num_draws
                for column in opened.arrays.layout.columns:
                    values = opened.arrays.read_draws(column, num_draws)
                    np.testing.assert_array_equal(values, chunks[column.path][:, :num_draws], err_msg=column.path)
        assert_same(pe.load(store, log_density), whole)
    except pe.StoreError as error:
        said = one_sentence(error, "found")
    if resumes:
        try:
            write_often()
            result = pe.resume(store, log_density, progress=False)
            assert result.num_draws == DRAWS
            assert_same(result, whole)
            said = "mended"
        except pe.StoreError as error:
            said = one_sentence(error, "refused")
    return said


def one_sentence(error: Exception, said: str) -> str:
    """What happened, if it was told as it should be."""
    assert str(error).endswith("."), str(error)
    assert "\n" not in str(error), str(error)
    return said


class Soak:
    """The state of a soak, which counts."""

    def __init__(self, directory: Path, seed: int):
        self.directory, self.rng = directory, random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.store = directory / "run.zarr"
        self.kept: list[Path] = []
        self.usual_seconds = 10.0

    def references(self) -> None:
        """The draws of runs that were never stopped, and their stores."""

        def write() -> None:
            for seed in SEEDS:
                result = sample(self.directory / f"whole-{seed}.zarr", seed)
                np.savez(self.directory / f"whole-{seed}.npz", allow_pickle=False, **values_of(result))

        assert in_a_fork(write) == DONE
        began = time.monotonic()
        assert in_a_fork(lambda: sample(self.directory / "timed.zarr") and None) == DONE
        self.usual_seconds = time.monotonic() - began
        shutil.rmtree(self.directory / "timed.zarr")

    def truth(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """The values of a result, and those in the files."""
        opened = Store.open(self.directory / f"whole-{SEEDS[0]}.zarr")
        with np.load(self.directory / f"whole-{SEEDS[0]}.npz", allow_pickle=False) as file:
            whole = {name: file[name] for name in file.files}
        columns = opened.arrays.layout.columns
        return whole, {column.path: opened.arrays.read_draws(column, DRAWS) for column in columns}

    def kill(self) -> None:
        """Go on with the run, and kill it somewhere; if it came to its end, compare, and begin another."""
        ended = in_a_fork(self._go_on, self.rng.uniform(0, 1.1) * self.usual_seconds)
        if ended == -signal.SIGKILL:
            self.counts["kills"] += 1
            if Path(self.store, "engine", "manifest.json").exists():
                faults = [fault for fault in pe.verify(self.store) if "backup.json is missing" not in fault]
                assert not faults, f"after a kill: {faults}"
                self.counts["kills after the beginning"] += 1
            if Path(self.store, "zarr.json").exists() and self.rng.random() < 0.3:
                self._keep()
            return
        assert ended == DONE, f"a resumed run ended with {ended} (3: wrong draws, 4: an exception)"
        self.counts["runs that came to their end"] += 1
        self._keep()
        shutil.rmtree(self.store)

    def _go_on(self) -> None:
        result = sample(self.store)
        whole, _ = self.truth()
        assert result.num_draws == DRAWS
        assert_same(result, whole)

    def _keep(self) -> None:
        self.counts["kept"] += 1
        place = self.directory / f"kept-{self.counts['kept']}.zarr"
        shutil.copytree(self.store, place)
        self.kept.append(place)
        if len(self.kept) > KEPT:
            shutil.rmtree(self.kept.pop(self.rng.randrange(KEPT)))

    def damages(self) -> None:
        """Damage copies of what is kept."""
        if not self.kept:
            return
        report, seed = self.directory / "report.json", self.rng.randrange(2**32)
        ended = in_a_fork(lambda: self._damage(random.Random(seed), report))
        assert ended == DONE, f"damages of seed {seed} ended with {ended} (3: wrong draws, 4: an exception)"
        self.counts.update(json.loads(report.read_text()))

    def _damage(self, rng: random.Random, report: Path) -> None:
        whole, chunks = self.truth()
        counts: Counter[str] = Counter()
        for i in range(DAMAGES_EACH_TIME):
            source = rng.choice(self.kept)
            others = [self.directory / f"whole-{SEEDS[1]}.zarr", *(each for each in self.kept if each != source)]
            store = Path(shutil.copytree(source, self.directory / "damaged.zarr"))
            effective = sum(damage(store, others, rng) for _ in range(rng.choice([1, 1, 1, 2, 4])))
            try:
                counts[read_damaged(store, whole, chunks, i % 15 == 0)] += effective
            except BaseException:
                shutil.rmtree(self.directory / "evidence.zarr", ignore_errors=True)
                shutil.copytree(store, self.directory / "evidence.zarr", symlinks=True)
                raise
            counts["damages"] += effective
            elsewhere = store.with_suffix(".elsewhere")
            if elsewhere.exists():
                counts["links that were not written through"] += 1
                elsewhere.unlink()
            shutil.rmtree(store)
        report.write_text(json.dumps(counts))


def main() -> None:
    """Soak, and print the line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--directory", type=Path, help="to keep what was made; else it is removed")
    arguments = parser.parse_args()
    directory = arguments.directory or Path(tempfile.mkdtemp(prefix="soak-"))
    directory.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(directory / "cache"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    soak, began, failure = Soak(directory, arguments.seed), time.monotonic(), ""
    try:
        soak.references()
        while time.monotonic() - began < arguments.seconds:
            for _ in range(10):
                soak.kill()
            soak.damages()
    except AssertionError as error:
        failure = str(error)
    counts = ", ".join(f"{count:,} {name}" for name, count in soak.counts.items() if name != "kept")
    outcome = f"FAILED: {failure}" if failure else "nothing lost, nothing wrong, nothing raw"
    print(f"soak: seed {arguments.seed}, {time.monotonic() - began:.0f} s: {counts}: {outcome}")
    if arguments.directory is None and not failure:
        shutil.rmtree(directory)
    sys.exit(bool(failure))


if __name__ == "__main__":
    main()
