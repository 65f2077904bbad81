"""Files cut off, changed or gone: a run goes on from the last good chunk or says what is broken; never wrong draws."""

import errno
import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import pseudo_extended as pe
from pseudo_extended.run import stored
from pseudo_extended.store import files
from tests.execution import victim
from tests.execution.test_kill import assert_same

DRAWS = 3000
COPIES = ("manifest.json", "manifest.backup.json")


def sample(store=None, **options):
    run = {"method": victim.METHOD, "draws": DRAWS, "warmup": 50, "chains": 3, "seed": 7, "progress": False, **options}
    return pe.sample(victim.log_density, np.zeros(2), store=store, **run)


def resume(store, **options):
    return pe.resume(store, victim.log_density, progress=False, **options)


@pytest.fixture(scope="module")
def whole():
    return sample()


@pytest.fixture(scope="module", autouse=True)
def small_chunks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "CHUNK_BYTES", 2**13)  # 256 draws
        patch.setattr(stored, "LEAST_SECONDS", 0.0)
        patch.setattr(stored, "SHARE_OF_TIME", 0)
        patch.setattr(stored, "SECONDS_BETWEEN_VIEWS", 0.0)
        yield


@pytest.fixture(scope="module")
def stopped(tmp_path_factory, small_chunks):
    """A store of a run that was stopped after some 1,700 draws, in the middle of a chunk."""
    store = tmp_path_factory.mktemp("stopped") / "run.zarr"
    sample(store, callback=lambda run: run.num_draws > 1700)
    return store


def damage(path: Path, how: str, rng: random.Random):
    data = bytearray(path.read_bytes())
    if how == "gone":
        path.unlink()
    elif how == "truncated":
        path.write_bytes(data[: rng.randrange(max(len(data), 1))])
    elif how == "zeros":  # as after a power cut on some file systems
        path.write_bytes(bytes(len(data)))
    elif data:
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)


def original(engine: Path, stopped: Path):
    """Whether a file of the damaged store is what it was."""

    def same(name):
        path = engine / name
        return path.exists() and path.read_bytes() == (stopped / "engine" / name).read_bytes()

    return same


@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 120))])
def test_damage_at_random_places(stopped, whole, tmp_path, seed):
    rng = random.Random(seed)
    store = Path(shutil.copytree(stopped, tmp_path / "run.zarr"))
    victims = sorted(path for path in store.rglob("*") if path.is_file())
    for path in rng.sample(victims, rng.randint(1, 4)):
        damage(path, rng.choice(["gone", "truncated", "zeros", "changed"]), rng)
    engine = store / "engine"
    beyond_repair = [
        names for names in (COPIES, ("start.npz", "learned.npz")) if not any(map(original(engine, stopped), names))
    ]
    if beyond_repair:
        with pytest.raises(pe.StoreError, match=beyond_repair[0][0]):
            resume(store)
        return
    assert_same(resume(store), whole)
    tree = xr.open_datatree(store, engine="zarr")
    np.testing.assert_array_equal(tree["weighted_points/x"].values, whole.unconstrained)


def test_every_snapshot_and_chunk_gone_but_one(stopped, whole, tmp_path):
    """From the state that is kept after a power of two of chunks, or from the very start."""
    store = Path(shutil.copytree(stopped, tmp_path / "run.zarr"))
    (store / "weighted_points" / "x" / "c.1.4.0.0").write_bytes(b"")
    said = []
    run = resume(store, callback=lambda run: said.append(run.status.done))
    assert_same(run, whole)
    # Lane 1 went on from chunk 4, the others from where they were.
    assert said[0] > 2 * 1700
    for path in (store / "engine").glob("lane-2.*"):
        path.unlink()
    assert_same(resume(store), whole)


def test_both_manifests_broken_is_said(stopped, tmp_path):
    store = Path(shutil.copytree(stopped, tmp_path / "run.zarr"))
    for name in ("manifest.json", "manifest.backup.json"):
        damage(store / "engine" / name, "truncated", random.Random(0))
    with pytest.raises(pe.StoreError, match=r"both copies of the manifest are unusable: .*manifest.json is damaged"):
        resume(store)


def test_reading_says_which_file_is_broken(stopped, tmp_path):
    store = Path(shutil.copytree(stopped, tmp_path / "run.zarr"))
    damage(store / "weighted_points" / "x" / "c.0.2.0.0", "changed", random.Random(0))
    with pytest.raises(pe.StoreError, match=r"c\.0\.2\.0\.0 is damaged"):
        pe.load(store, victim.log_density)
    with pytest.raises(Exception, match=r"(?i)checksum"):  # and zarr itself says so too
        _ = xr.open_datatree(store, engine="zarr")["weighted_points/x"].values
    (store / "weighted_points" / "x" / "c.0.2.0.0").unlink()
    with pytest.raises(pe.StoreError, match=r"c\.0\.2\.0\.0 is missing"):
        pe.load(store, victim.log_density)


@pytest.mark.parametrize("room", [7, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 30))])
def test_full_disk(tmp_path, whole, monkeypatch, room):
    """Writing fails after so many files; what was committed is safe, and the run goes on when there is room."""
    store = tmp_path / "run.zarr"
    sample(store, callback=lambda run: run.num_draws > 300)
    written, replace = [], files.replace_file

    def failing(path, *parts, durable=True):
        written.append(path)
        if len(written) > room:
            path.with_name(f"{path.name}.partial").write_bytes(parts[0][: len(parts[0]) // 2])
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        replace(path, *parts, durable=durable)

    with monkeypatch.context() as patch:
        for module in ("files", "arrays", "manifest", "lock"):
            patch.setattr(f"pseudo_extended.store.{module}.replace_file", failing)
        with pytest.raises(OSError, match="No space left") as caught:
            resume(store)
    if room > 4:  # before that, it is the manifest that could not be written
        assert "make room on the disk, and go on with pe.resume" in str(caught.value)
    assert pe.load(store, victim.log_density).num_draws > 300
    assert_same(resume(store), whole)


def test_newer_and_older_formats(stopped, tmp_path, monkeypatch):
    store = Path(shutil.copytree(stopped, tmp_path / "run.zarr"))
    content, _ = pe.store.manifest.read_manifest(store / "engine")

    def as_version(version):
        with monkeypatch.context() as patch:
            patch.setattr(pe.store.manifest, "VERSION", version)
            pe.store.manifest.write_manifest(store / "engine", content)

    as_version(99)
    with pytest.raises(pe.StoreVersionError, match=r"has format 99, .* knows formats up to 3: upgrade"):
        resume(store)
    as_version(0)
    with pytest.raises(pe.StoreVersionError, match=r"has format 0, .* cannot go on with: resume it with"):
        resume(store)
    monkeypatch.setitem(pe.store.manifest.MIGRATIONS, 0, lambda content: content | {"version": 1})
    assert resume(store).num_draws == DRAWS


def test_no_pickle_anywhere(stopped):
    for path in stopped.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert b"cnumpy" not in data
            assert not data.startswith((b"\x80\x04", b"\x80\x05"))
    for name in ("start.npz", "learned.npz"):
        for array in files.read_sealed(stopped / "engine" / name).values():
            assert array.dtype.kind != "O"
    code = json.loads(json.loads((stopped / "engine" / "manifest.json").read_bytes())["manifest"])["method"]
    assert code["class"] == "method/pseudo-extended"
