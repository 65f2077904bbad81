"""Kill, damage and resume runs at random for a stated time, from a stated seed, and print one line about it.

    python tools/soak.py --seconds 3600 --seed 0

A process samples several runs at once, each into a store of its own. It is killed (SIGKILL) at a random moment, again
and again, and each time `pe.sample(…, resume=True)` goes on with all of them; their draws must be those of runs that
were never stopped, to the bit, and a reader must never see fewer of them than before. Half of the moments are random in
time, most of them after the first draws; the others are random among the phases of a run, so that brief ones, such as a
rename, are hit as often as long ones. The line counts both the processes that were killed and the runs that were under
way in them.

Copies of the stores that this leaves are damaged: bits, lengths, files that are gone, exchanged, from another run, from
an earlier time, or links. Whoever then reads such a copy must get the draws of the run, or one sentence: never other
draws, and never another exception. A damage counts if it changed a byte.
"""

import argparse
import json
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

import pseudo_extended as pe
from pseudo_extended.store import Store, draws_shown, has_manifest
from soak_damage import Copy, check_readers, damage
from soak_phases import PHASES, Phases
from soak_run import (
    DONE,
    DRAWS,
    RAW,
    SEEDS,
    WRONG,
    Truth,
    assert_same,
    begin_or_go_on,
    ended,
    fork,
    kill_when,
    or_end,
    values_of,
)

MEMORY = Path("/dev/shm")
"""A file system in memory, where there is one. SIGKILL loses nothing that was written, synced or not, and on a disk the
runs, which write all the time, wait for fsync during nine tenths of the soak."""
RUNS = 3
"""That a victim samples at once: to start it and to have its programs takes longer than a run."""
PATIENCE = 4
"""In times of an undisturbed run: so long a kill waits for a phase that may not come."""
KEPT = 8
"""Stores that were killed under way, for the damages."""
TRIALS_A_ROUND, VICTIMS_A_ROUND = 50, 10
TRIALS_A_COPY, TRIALS_A_RESUME = 20, 15


class Soak:
    """The state of a soak, which counts."""

    def __init__(self, directory: Path, seed: int):
        self.directory, self.rng = directory, random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.killed_in: Counter[str] = Counter()
        self.phases = Phases(RUNS)
        self.stores = [directory / f"run-{i}.zarr" for i in range(RUNS)]
        self.kept: list[Path] = []
        self.usual_seconds, self.usually_entered = 10.0, dict.fromkeys(PHASES, 1)
        self.seen = [0] * RUNS
        """Draws that a reader of each store has seen."""

    def references(self) -> None:
        """The draws of runs that were never stopped, and their stores."""
        # Programs outside the library's own cache, which every fork would compile anew: a third of its time.
        jax.config.update("jax_compilation_cache_dir", str(self.directory / "compiled"))
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)

        def write(seed: int) -> None:
            self.phases.watch()
            result = begin_or_go_on(self.directory / f"whole-{seed}.zarr", seed)
            np.savez(self.directory / f"whole-{seed}.npz", allow_pickle=False, **values_of(result))
            if seed == SEEDS[0]:
                result.save(self.directory / "saved.zarr")

        for seed in SEEDS:
            self.phases.clear()
            began = time.monotonic()
            assert ended(fork(lambda seed=seed: write(seed))) == DONE
            self.usual_seconds, self.usually_entered = time.monotonic() - began, self.phases.entered
        jax.config.update("jax_persistent_cache_min_compile_time_secs", math.inf)  # a kill must not leave half a file
        missing = [phase for phase, count in self.usually_entered.items() if not count and phase != "restoring"]
        assert not missing, f"a run does not report these phases: {missing}"

    def truth(self, seed: int) -> tuple[Truth, Truth]:
        """The values of a result, and those in the files."""
        opened = Store.open(self.directory / f"whole-{seed}.zarr")
        with np.load(self.directory / f"whole-{seed}.npz", allow_pickle=False) as file:
            whole = {name: file[name] for name in file.files}
        columns = opened.arrays.layout.columns
        return whole, {column.path: opened.arrays.read_draws(column, DRAWS) for column in columns}

    def kill(self) -> None:
        """Go on with all runs, and kill them somewhere."""
        self.phases.clear()
        status = kill_when(fork(self._victim), self._moment())
        assert status == -signal.SIGKILL, f"a run ended with {status} ({WRONG}: wrong draws, {RAW}: an exception)"
        self.counts["processes killed"] += 1
        self.counts["runs killed"] += int(self.phases.under_way.sum())
        self.counts["runs that came to their end"] += int(self.phases.ended.sum())
        self.killed_in.update(self.phases.current or {"elsewhere": 1})
        for i, store in enumerate(self.stores):
            if self.phases.ended[i]:
                self.seen[i] = 0
            self._look(i, store)
        for place in self.directory.glob("*.ended"):
            shutil.rmtree(place)

    def _moment(self) -> Callable[[], bool]:
        """What tells when to kill."""
        end = time.monotonic() + PATIENCE * self.usual_seconds
        if self.rng.random() < 0.5:
            phase, count = self.rng.choice(["opening", "draws", "draws"]), 1
            later = self.rng.uniform(0, self.usual_seconds)
        else:
            phase = self.rng.choice(PHASES)
            # Rather early than late: a run that goes on enters the later phases less often.
            count = math.ceil(max(self.usually_entered[phase], 1) ** self.rng.random())
            later = self.rng.choice([0.0, self.rng.uniform(0, 0.01)])

        def is_time() -> bool:
            if self.phases.entered[phase] < count and time.monotonic() < end:
                return False
            time.sleep(later)
            return True

        return is_time

    def _victim(self) -> None:
        """In a fork: go on with all runs, and begin those anew that come to their end, until somebody kills."""
        self.phases.watch()
        truths = [self.truth(seed)[0] for seed in SEEDS]
        threads = [threading.Thread(target=or_end, args=(self._runs, i, truths[i % 2])) for i in range(RUNS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _runs(self, i: int, whole: Truth) -> None:
        for again in range(10**6):
            self.phases.under_way[i] = 1
            result = begin_or_go_on(self.stores[i], SEEDS[i % 2])
            self.phases.under_way[i] = 0
            assert result.num_draws == DRAWS
            assert_same(result, whole)
            self.phases.ended[i] += 1
            self.stores[i].rename(f"{self.stores[i]}.{os.getpid()}-{again}.ended")  # half of it must not stay there

    def _look(self, i: int, store: Path) -> None:
        """At a store that a kill has left."""
        if not has_manifest(store):
            assert not self.seen[i], "the manifest is lost"
            return
        faults = [fault for fault in pe.verify(store) if "backup.json is missing" not in fault]
        assert not faults, f"after a kill: {faults}"
        opened = Store.open(store)
        if opened.manifest.prepared is not None and (store / "zarr.json").exists():
            shown = draws_shown(opened).num_draws
            assert shown >= self.seen[i], f"{self.seen[i]} draws were there before a kill, and {shown} after it"
            self.seen[i] = shown
            if shown and self.rng.random() < 0.03:
                self._keep(store)

    def _keep(self, store: Path) -> None:
        self.counts["kept"] += 1
        place = self.directory / f"kept-{self.counts['kept']}.zarr"
        shutil.copytree(store, place)
        self.kept.append(place)
        if len(self.kept) > KEPT:
            shutil.rmtree(self.kept.pop(self.rng.randrange(KEPT)))

    def damages(self) -> None:
        """Damage copies of what is kept."""
        report, seed = self.directory / "report.json", self.rng.randrange(2**32)
        status = ended(fork(lambda: self._damage(random.Random(seed), report)))
        assert status == DONE, f"damages of seed {seed} ended with {status} ({WRONG}: wrong draws, {RAW}: an exception)"
        self.counts.update(json.loads(report.read_text()))

    def _damage(self, rng: random.Random, report: Path) -> None:
        truths = {seed: self.truth(seed) for seed in SEEDS}
        finished = [self.directory / f"whole-{seed}.zarr" for seed in SEEDS]
        counts: Counter[str] = Counter()
        copy = None
        for i in range(TRIALS_A_ROUND):
            if copy is None or i % TRIALS_A_COPY == 0:
                if copy is not None:
                    shutil.rmtree(copy.root)
                copy = Copy(
                    rng.choice([*self.kept, *finished, self.directory / "saved.zarr"]), self.directory / "copy.zarr"
                )
            others = [each for each in (*self.kept, *finished) if each != copy.source]
            kinds = [damage(copy, others, rng) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
            effective = copy.changed()
            if not effective:
                continue
            resumes = i % TRIALS_A_RESUME == 0
            try:
                said = check_readers(copy, truths, resumes)
            except BaseException:
                shutil.rmtree(self.directory / "evidence.zarr", ignore_errors=True)
                shutil.copytree(copy.root, self.directory / "evidence.zarr", symlinks=True)
                sys.stderr.write(f"{kinds} of {copy.source}: {[str(each) for each in effective]}\n")
                raise
            counts["damages"] += min(len(kinds), len(effective))
            counts["damaged stores that were read"] += 1
            counts[f"{said} by the reader" if not resumes else f"{said} by resume"] += 1
            if resumes:
                copy.restore_all()
            else:
                copy.restore(effective)
        if copy is not None:
            shutil.rmtree(copy.root)
        report.write_text(json.dumps(counts))


def main() -> None:
    """Soak, and print the line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--directory", type=Path, help="to keep what was made; else it is removed")
    arguments = parser.parse_args()
    directory = arguments.directory or Path(tempfile.mkdtemp(prefix="soak-", dir=MEMORY if MEMORY.is_dir() else None))
    directory.mkdir(parents=True, exist_ok=True)
    os.environ["PSEUDO_EXTENDED_CACHE"] = str(directory / "programs")
    soak, began, failure = Soak(directory, arguments.seed), time.monotonic(), ""
    try:
        soak.references()
        while time.monotonic() - began < arguments.seconds:
            for _ in range(VICTIMS_A_ROUND):
                soak.kill()
            soak.damages()
    except AssertionError as error:
        failure = str(error) or "a fork ended as it should not, see above"
    counts = ", ".join(f"{count:,} {name}" for name, count in soak.counts.items() if name != "kept")
    outcome = f"FAILED: {failure}" if failure else "nothing lost, nothing wrong, nothing raw"
    print(f"soak: seed {arguments.seed}, {time.monotonic() - began:.0f} s: {counts}: {outcome}")
    phases = (f"{phase} {soak.killed_in[phase]:,}" for phase in (*PHASES, "elsewhere"))
    print(f"threads that were killed in each phase: {', '.join(phases)}")
    if arguments.directory is None and not failure:
        shutil.rmtree(directory)
    sys.exit(bool(failure))


if __name__ == "__main__":
    main()
