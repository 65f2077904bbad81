"""Batch systems: one call that begins or goes on, SIGTERM, disks that refuse, and calls where no run can be."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.run import stored
from pseudo_extended.store import files
from tests.execution import victim
from tests.execution.test_kill import assert_same

RUN = {"method": pe.Plain(pe.RandomWalk()), "draws": 60, "warmup": 20, "chains": 2, "seed": 1, "progress": False}


def sample(store, target=victim.log_density, **options):
    return pe.sample(target, np.zeros(2), store=store, **RUN | options)


@pytest.fixture(scope="module")
def whole():
    return sample(None)


def test_one_call_begins_goes_on_and_is_done(tmp_path, whole):
    store = tmp_path / "run.zarr"
    stopped = sample(store, resume=True, callback=lambda run: run.num_draws > 0)
    assert stopped.stopped == "callback"
    assert_same(sample(store, resume=True), whole)
    assert_same(sample(store, resume=True), whole)
    assert_same(sample(store, resume=True, seed=None, draws=None), whole)  # what is not given is as it was
    longer = sample(store, resume=True, draws=90)
    assert_same(longer, sample(None, draws=90))
    assert sample(store, resume=True).num_draws == 90  # never fewer


@pytest.mark.parametrize("left", [[], ["lock"], ["lock", "owner", "start.npz", "0123456789abcdef.partial"]])
def test_a_directory_that_a_killed_run_left_before_its_manifest(tmp_path, whole, left):
    store = tmp_path / "run.zarr"
    (store / "engine").mkdir(parents=True)
    for name in left:
        (store / "engine" / name).write_bytes(b"half")
    assert_same(sample(store, resume=True), whole)
    assert not list(store.rglob("*.partial"))
    assert pe.verify(store) == []


def test_killed_at_every_file_before_the_manifest(tmp_path, whole, monkeypatch):
    """As kill -9 leaves it: nothing is removed and nothing is closed."""
    replace = files.replace_file
    for room in range(4):
        store, written = tmp_path / f"{room}.zarr", []

        def failing(path, *parts, durable=True, written=written, room=room, store=store):
            written.append(path)
            if len(written) > room:
                shutil.copytree(store, store.with_suffix(".killed"))
                raise KeyboardInterrupt
            replace(path, *parts, durable=durable)

        with monkeypatch.context() as patch:
            for module in ("files", "arrays", "manifest", "lock"):
                patch.setattr(f"pseudo_extended.store.{module}.replace_file", failing)
            with pytest.raises(KeyboardInterrupt):
                sample(store)
        assert_same(sample(store.with_suffix(".killed"), resume=True), whole)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"warmup": 30}, r"warmup must be that of the run in store .*, 20; got 30"),
        ({"chains": 3}, r"chains must be that of the run"),
        ({"seed": 2}, r"seed must be that of the run"),
        ({"thin": 2}, r"thin must be that of the run"),
        ({"method": pe.Plain(pe.HMC(3))}, r"method differs from that of store .*: kernel was kernel/random-walk"),
        ({"target": lambda x: -0.5 * jnp.sum(x**4)}, r"target differs from that of store .*: the formula"),
    ],
)
def test_another_run_is_never_gone_on_with(tmp_path_factory, options, sentence):
    store = tmp_path_factory.getbasetemp() / "another.zarr"
    if not store.exists():
        sample(store)
    with pytest.raises(pe.StoreError, match=sentence):
        sample(store, resume=True, **options)
    assert pe.verify(store) == []


def test_resume_needs_a_store_and_spares_what_is_none(tmp_path):
    with pytest.raises(ValueError, match=r"resume=True must come with store=.*; got None\.$"):
        sample(None, resume=True)
    with pytest.raises(ValueError, match="resume must be one of True, False; got 1"):
        sample(tmp_path / "run.zarr", resume=1)
    for name in ("letters.txt", "engine/letters.txt"):
        place = tmp_path / name.replace("/", "-")
        (place / name).parent.mkdir(parents=True)
        (place / name).write_text("dear")
        with pytest.raises(pe.StoreError, match="must name a new or empty directory"):
            sample(place, resume=True)
        assert (place / name).read_text() == "dear"


SCRIPT = """
import sys
import numpy as np, jax.numpy as jnp, pseudo_extended as pe
store = sys.argv[1] or None
def callback(run):
    if run.num_draws and not said:
        said.append(print("sampling", flush=True))
said = []
run = dict(method=pe.Plain(pe.RandomWalk()), draws=10**7, warmup=10, chains=2, seed=0, time_limit=100)
run |= dict(store=store, resume=store is not None)
result = pe.sample(lambda x: -0.5 * jnp.sum(x**2), np.zeros(2), callback=callback, **run)
print(result.stopped, result.interrupted, result.num_draws > 0, flush=True)
"""


def terminated(store):
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, store], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "sampling\n"
    process.send_signal(signal.SIGTERM)
    out, log = process.communicate(timeout=100)
    return process.returncode, out, log


def test_sigterm_writes_everything_and_ends_the_process(tmp_path):
    store = tmp_path / "run.zarr"
    code, out, log = terminated(str(store))
    assert (code, out) == (143, ""), log
    assert "draws of each chain" in log
    opened = pe.store.Store.open(store)
    assert opened.manifest.stopped == "terminated"
    assert opened.manifest.num_draws == pe.store.draws_shown(opened).num_draws > 0
    snapshots, broken = opened.snapshots.load(0)
    assert max(snapshot.done for snapshot in snapshots) - 10 >= opened.manifest.num_draws
    assert broken == pe.verify(store) == []


def test_sigterm_without_a_store_returns_the_draws():
    code, out, log = terminated("")
    assert (code, out) == (0, "terminated True True\n"), log


def test_the_handler_is_installed_for_a_run_and_only_where_there_is_none():
    seen = []
    sample(None, callback=lambda run: seen.append(signal.getsignal(signal.SIGTERM)))
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert callable(seen[0])
    own = lambda *_: None  # noqa: E731
    try:
        signal.signal(signal.SIGTERM, own)
        sample(None, callback=lambda run: seen.append(signal.getsignal(signal.SIGTERM)))
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert seen[-1] is own


def fails_under_way(store, monkeypatch, error):
    """A run whose writing fails after a while."""
    monkeypatch.setattr(stored, "CHUNK_BYTES", 2**10)
    started, real = [], os.open

    def failing(path, flags, *rest, **more):
        if started and flags & os.O_CREAT and str(store) in str(path):
            raise OSError(error, os.strerror(error), str(path))
        return real(path, flags, *rest, **more)

    monkeypatch.setattr("pseudo_extended.store.files.os.open", failing)

    def callback(run):
        if run.num_draws > 300:
            started.append(run)

    return sample(store, draws=10**6, callback=callback, time_limit=60)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (errno.ENOSPC, "make room on the disk"),
        (errno.EMFILE, r"raise the limit of open files \(ulimit -n\)"),
        pytest.param(errno.EACCES, "let this user write there", marks=pytest.mark.slow),
        pytest.param(errno.EROFS, "make the file system writable", marks=pytest.mark.slow),
        pytest.param(errno.EIO, "mend that", marks=pytest.mark.slow),
    ],
)
def test_a_disk_that_refuses_is_a_sentence_with_what_is_safe(tmp_path, monkeypatch, error, remedy):
    store = tmp_path / "run.zarr"
    with (
        monkeypatch.context() as patch,
        pytest.raises(
            pe.StoreWriteError, match=rf"could not be written: .*is safe.*: {remedy}, and go on with"
        ) as said,
    ):
        fails_under_way(store, patch, error)
    assert str(said.value).endswith(".")
    assert isinstance(said.value, OSError)
    said = re.search(r"is safe, (\d+) draws of each chain", str(said.value))
    assert said is not None
    resumed = sample(store, resume=True, callback=lambda run: run.num_draws >= 400)
    assert resumed.num_draws >= max(400, int(said[1]))
    assert int(said[1]) > 0


def test_a_result_that_cannot_be_saved_is_a_sentence_and_can_be_saved_elsewhere(tmp_path, monkeypatch, whole):
    real = os.open

    def failing(path, flags, *rest, **more):
        if flags & os.O_CREAT and "/weighted_points/" in str(path):
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        return real(path, flags, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr("pseudo_extended.store.files.os.open", failing)
        with pytest.raises(pe.StoreWriteError, match=r"could not be written: .*\. .* save it elsewhere, .*\.$"):
            whole.save(tmp_path / "run.zarr")
    whole.save(tmp_path / "elsewhere.zarr")
    assert_same(pe.load(tmp_path / "elsewhere.zarr", victim.log_density), whole)


def test_a_directory_that_is_removed_under_way_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "CHUNK_BYTES", 2**10)
    store = tmp_path / "run.zarr"

    def callback(run):
        if run.num_draws > 100:
            shutil.rmtree(store, ignore_errors=True)

    with pytest.raises(pe.StoreWriteError, match="was removed while the run was writing to it, and with it all of its"):
        sample(store, draws=10**6, callback=callback, time_limit=60)


def test_an_error_of_the_users_own_files_is_not_the_stores(tmp_path):
    def callback(run):
        raise FileNotFoundError(errno.ENOENT, "No such file", "my.csv")

    with pytest.raises(FileNotFoundError, match=r"my\.csv"):
        sample(tmp_path / "run.zarr", callback=callback)


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_directory_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(pe.StoreError, match="must name a directory that can be made"):
        sample(tmp_path / "closed" / "run.zarr")


def test_inside_jit_it_says_so(tmp_path):
    for call in (
        lambda: sample(None),
        lambda: pe.start(victim.log_density, np.zeros(2), **RUN),
        lambda: pe.resume(tmp_path / "run.zarr", victim.log_density),
        lambda: pe.check(victim.log_density, np.zeros(2)),
    ):
        with pytest.raises(TypeError, match=r"must not be called inside jax\.jit, .*; call it outside"):
            jax.jit(lambda x, call=call: (call(), x)[1])(1.0)


@pytest.mark.slow
def test_two_jobs_that_start_at_once_share_nothing(tmp_path):
    """Both find no run; one has the lock, and the other is refused or goes on after it."""
    script = (
        "import sys, numpy as np, pseudo_extended as pe\nfrom tests.execution import victim\n"
        "from tests.execution.test_batch import sample\n"
        "try: print(sample(sys.argv[1], resume=True).num_draws)\nexcept pe.StoreInUseError as error: print('in use')\n"
    )
    store = str(Path(tmp_path, "run.zarr"))
    both = [
        subprocess.Popen([sys.executable, "-c", script, store], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    said = sorted(process.communicate(timeout=200)[0].strip() for process in both)
    assert said[0] == "60"
    assert said[1] in ("60", "in use")
    assert pe.verify(store) == []
