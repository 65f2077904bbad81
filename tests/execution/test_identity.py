"""A chunk that is whole, but in another's place, or of another run: found by every way to read a store."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import pseudo_extended as pe
from pseudo_extended.cli import app
from pseudo_extended.run import stored
from pseudo_extended.store import files
from tests.execution import victim
from tests.execution.test_corruption import resume
from tests.execution.test_kill import assert_same

DRAWS = 600
CHUNK = 256


def sample(store=None, seed=7, **options):
    run = {"method": victim.METHOD, "draws": DRAWS, "warmup": 50, "chains": 3, "seed": seed, "progress": False}
    return pe.sample(victim.log_density, np.zeros(2), store=store, **run | options)


def load(store):
    return pe.load(store, victim.log_density)


@pytest.fixture(scope="module", autouse=True)
def small_chunks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "CHUNK_BYTES", 2**13)  # 256 draws: two chunks, and the beginning of a third
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory, small_chunks):
    store = tmp_path_factory.mktemp("finished") / "run.zarr"
    result = sample(store)
    return store, result


@pytest.fixture(scope="module")
def other(tmp_path_factory, small_chunks):
    """A run of the same shape, with another seed."""
    store = tmp_path_factory.mktemp("other") / "run.zarr"
    sample(store, seed=8)
    return store


@pytest.fixture
def store(finished, tmp_path):
    return Path(shutil.copytree(finished[0], tmp_path / "run.zarr"))


COLUMNS = ("weighted_points/x/c.{}.{}.0.0", "sample_stats/log_weight/c.{}.{}.0", "posterior/x/c.{}.{}.0")


@pytest.mark.parametrize(
    ("column", "one", "two"),
    [(COLUMNS[0], (0, 0), (0, 1)), (COLUMNS[1], (0, 1), (2, 1)), (COLUMNS[2], (0, 2), (1, 2))],
)
def test_exchanged_chunks_are_found(finished, store, column, one, two):
    a, b = store / column.format(*one), store / column.format(*two)
    contents = a.read_bytes(), b.read_bytes()
    assert contents[0] != contents[1]
    a.write_bytes(contents[1])
    b.write_bytes(contents[0])
    faults = pe.verify(store)
    assert faults == [
        f"{path} is whole, but is not the chunk that was written at its place." for path in sorted([a, b])
    ]
    if "posterior" not in column:  # which no Result is made of
        with pytest.raises(pe.StoreError, match=r"is whole, but is not the chunk that was written at its place"):
            load(store)
    assert_same(resume(store), finished[1])
    assert pe.verify(store) == []
    tree = xr.open_datatree(store, engine="zarr")
    whole = xr.open_datatree(finished[0], engine="zarr")
    xr.testing.assert_identical(tree["posterior"].to_dataset(), whole["posterior"].to_dataset())


def replace_by_other(store, other, names):
    for name in names:
        shutil.copyfile(other / name, store / name)


@pytest.mark.parametrize("place", ["c.0.1", "c.1.2"])
def test_chunks_of_another_run_are_found(finished, store, other, place):
    names = [str(path.relative_to(other)) for path in other.rglob(f"{place}*")]
    assert len(names) >= 10
    replace_by_other(store, other, names)
    assert len(pe.verify(store)) > 4  # some statistics are the same in both
    with pytest.raises(pe.StoreError, match="is not the chunk that was written at its place"):
        load(store)
    longer = pe.extend(store, victim.log_density, 50, progress=False)
    np.testing.assert_array_equal(longer.unconstrained[:, :DRAWS], finished[1].unconstrained)
    assert pe.verify(store) == []


@pytest.mark.parametrize("names", [["engine/seals"], ["engine/learned.npz"], ["engine/start.npz"]])
def test_files_of_another_run_are_found(finished, store, other, names):
    replace_by_other(store, other, names)
    assert any("belongs to another run" in fault for fault in pe.verify(store))
    assert_same(resume(store), finished[1])
    if names != ["engine/start.npz"]:  # which is needed only to prepare anew, and is not written again
        assert pe.verify(store) == []


def test_manifests_of_two_runs_are_refused(store, other):
    replace_by_other(store, other, ["engine/manifest.json"])
    for call in (resume, load, pe.verify):
        with pytest.raises(pe.StoreError, match=r"the two copies of the manifest, .*, are of different runs"):
            call(store)


def test_an_older_manifest_is_left_aside(finished, store):
    shutil.copyfile(store / "engine" / "manifest.json", store / "older")
    pe.extend(store, victim.log_density, 50, progress=False)
    shutil.move(store / "older", store / "engine" / "manifest.json")
    assert load(store).num_draws == DRAWS + 50
    assert "one copy of the manifest" in pe.verify(store)[0]
    assert resume(store).num_draws == DRAWS + 50


def edit(store, change):
    path = store / "zarr.json"
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("number", [700, 599, 10**9, -5])
def test_the_number_of_draws_is_not_taken_from_what_has_no_seal(finished, store, number):
    edit(store, lambda content: content["attributes"].update(num_draws=number))
    loaded = load(store)
    assert_same(loaded, finished[1])
    assert any(f"zarr.json of store {str(store)!r} says {number} draws" in note for note in loaded.notes)
    assert pe.verify(store) == [f"{store / 'zarr.json'} does not describe what was written."]


@pytest.mark.parametrize(
    "content", [b"[1]", b"\xff\xfe", b"{}", b'{"attributes": {"num_draws": "many"}}', b"[" * 10**5]
)
def test_metadata_that_cannot_be_read_are_a_sentence(finished, store, content):
    (store / "zarr.json").write_bytes(content)
    with pytest.raises(pe.StoreError, match=r"has no readable zarr.json: pe.resume writes it again\.$"):
        load(store)
    assert len(pe.verify(store)) == 1
    assert_same(resume(store), finished[1])
    assert pe.verify(store) == []


def test_an_older_number_of_draws_is_no_fewer_draws(tmp_path):
    store = tmp_path / "run.zarr"
    sample(store, draws=300)
    for name in ("zarr.json", "engine/seals"):
        shutil.copyfile(store / name, tmp_path / Path(name).name)
    pe.extend(store, victim.log_density, 300, progress=False)
    shutil.copyfile(tmp_path / "zarr.json", store / "zarr.json")
    assert load(store).num_draws == 600
    shutil.copyfile(tmp_path / "seals", store / "engine" / "seals")
    with pytest.raises(pe.StoreError, match="ended with 600 draws of each chain, and engine/seals says 300"):
        load(store)


def test_the_command(finished, store):
    runner = CliRunner()
    clean = runner.invoke(app, ["verify", str(finished[0])])
    assert clean.exit_code == 0
    assert clean.output == f"{finished[0]}: everything is as it was written\n"
    a, b = (store / "posterior" / "x" / name for name in ("c.0.0.0", "c.1.0.0"))
    a.write_bytes(b.read_bytes())
    (store / "engine" / "lane-0.a").write_bytes(b"")
    found = runner.invoke(app, ["verify", str(store)])
    assert found.exit_code == 1
    assert len(found.output.splitlines()) == 2, found.output
    assert f"{a} is whole, but" in found.output
    assert "lane-0.a is damaged" in found.output
    nowhere = runner.invoke(app, ["verify", str(store / "nowhere")])
    assert nowhere.exit_code == 1
    assert "does not exist" in nowhere.output


def test_labels_are_sealed_too(tmp_path):
    target = pe.Target(lambda x: -0.5 * (x**2).sum(), np.zeros(2), dims={"x": ["side"]}, coords={"side": ["l", "r"]})
    store = tmp_path / "run.zarr"
    run = {"method": pe.Plain(pe.HMC(2)), "draws": 20, "warmup": 10, "chains": 2, "seed": 1, "progress": False}
    pe.sample(target, np.zeros(2), store=store, **run)
    assert pe.verify(store) == []
    [chunk] = (
        path for path in (store / "posterior" / "side").rglob("*") if path.is_file() and path.name != "zarr.json"
    )
    chunk.write_bytes(chunk.read_bytes()[::-1])
    assert pe.verify(store) == [f"{chunk} is not the label that was written."]


def test_a_run_on_its_way_can_be_verified(tmp_path, monkeypatch):
    for name in ("LEAST_SECONDS", "SHARE_OF_TIME", "SECONDS_BETWEEN_VIEWS"):
        monkeypatch.setattr(stored, name, 0)
    store, found = tmp_path / "run.zarr", []

    def callback(run):
        if run.num_draws > (len(found) + 1) * 500:
            found.append(pe.verify(store))
            assert load(store).num_draws > 0
        return len(found) > 3

    sample(store, draws=10**6, callback=callback, time_limit=60)
    assert len(found) >= 4
    assert not any(found)


def test_seals_hold_for_the_draws_before_a_tail_grew(tmp_path):
    """A reader with the seals of a moment ago reads files of now."""
    store = tmp_path / "run.zarr"
    sample(store, draws=300)
    before = pe.store.Store.open(store).seals()
    pe.extend(store, victim.log_density, 300, progress=False)
    arrays = pe.store.Store.open(store).arrays
    for column in arrays.layout.columns:
        arrays.read_draws(column, 300, seals=before)
    [x] = (column for column in arrays.layout.columns if column.name == "x" and column.group == "posterior")
    path = arrays.file(x, 0, 1)
    values = bytearray(path.read_bytes())
    values[8] ^= 1
    arrays.write(x, 0, 1, np.frombuffer(bytes(values[:-4])).reshape(1, CHUNK, 2), durable=False)
    with pytest.raises(files.BrokenFileError, match="is not the chunk that was written"):
        arrays.read_draws(x, 300, seals=before)


def test_snapshots_of_another_run_do_not_stay(finished, store, other):
    """Where a lane can go on from its own, the others are of no use, and `verify` would find them for ever."""
    names = [f"engine/lane-{lane}.{slot}" for lane in range(3) for slot in ("a", "b", "chunk-0")]
    latest = {f"engine/lane-{lane}.{slot}" for lane in range(3) for slot in "ab" if slot in newest(store, lane)}
    replace_by_other(store, other, [name for name in names if name not in latest and (other / name).exists()])
    assert len(pe.verify(store)) >= 3
    assert_same(resume(store), finished[1])
    assert pe.verify(store) == []


def newest(store, lane):
    """The slot of the snapshot that a lane goes on from."""
    slots = [path for path in (store / "engine").glob(f"lane-{lane}.*") if path.suffix in (".a", ".b")]
    return max(slots, key=lambda path: files.read_sealed(path)["done"]).suffix
