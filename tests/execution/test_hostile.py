"""Stores that somebody else has made to do harm: nothing outside is written, no memory is taken, one sentence each."""

import contextlib
import hashlib
import io
import json
import os
import resource
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import pseudo_extended as pe
from pseudo_extended.store import file_names, files, manifest
from tests.execution import victim

CALLS = {
    "resume": lambda store: pe.resume(store, victim.log_density, progress=False),
    "load": lambda store: pe.load(store, victim.log_density),
    "verify": pe.verify,
}
RUN = {"method": pe.Plain(pe.RandomWalk()), "draws": 40, "warmup": 10, "chains": 2, "seed": 1, "progress": False}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    store = tmp_path_factory.mktemp("written") / "run.zarr"
    pe.sample(victim.log_density, np.zeros(2), store=store, **RUN)
    return store


@pytest.fixture
def store(written, tmp_path):
    return Path(shutil.copytree(written, tmp_path / "run.zarr"))


@pytest.fixture
def precious(tmp_path):
    """A file that is no business of any store."""
    path = tmp_path / "home" / "thesis.tex"
    path.parent.mkdir()
    path.write_text("ten years of work")
    return path


def refused(call, store, match=""):
    """In one sentence, without much memory."""
    with pytest.raises(pe.StoreError, match=match) as caught:
        call(store)
    with one_sentence_at_most():
        raise caught.value


@contextlib.contextmanager
def one_sentence_at_most():
    """Whatever is done to a store is done, or refused as `refused` asks."""
    before, said = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, "."
    try:
        yield
    except (pe.StoreError, pe.StoreVersionError) as error:
        said = str(error)
    assert said.endswith(".")
    assert "\n" not in said
    assert len(said) < 1500
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 * 1024


def rewrite(store, change):
    """The manifest, with both copies sealed as ours are."""
    path = store / "engine" / manifest.COPIES[0]
    content = json.loads(json.loads(path.read_bytes())["manifest"])
    change(content)
    text = json.dumps(content)
    for copy in manifest.COPIES:
        digest = hashlib.sha256(text.encode()).hexdigest()
        (store / "engine" / copy).write_text(json.dumps({"sha256": digest, "manifest": text}))


@pytest.mark.parametrize(
    "place", ["engine/lock", "engine/lane-0.a", "engine/seals", "zarr.json", "posterior/x/c.0.0.0"]
)
def test_no_link_is_followed_when_writing(store, precious, place):
    (store / place).unlink(missing_ok=True)
    (store / place).symlink_to(precious)
    refused(CALLS["resume"], store)
    assert precious.read_text() == "ten years of work"
    assert list(precious.parent.iterdir()) == [precious]


@pytest.mark.parametrize("place", ["engine", "posterior", "posterior/x", "weighted_points"])
def test_no_directory_that_is_a_link_is_written_to(store, tmp_path, place):
    outside = tmp_path / "outside"
    shutil.move(store / place, outside)
    (store / place).symlink_to(outside)
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    refused(CALLS["resume"], store, match="is a link, and nothing is written where a link may lead")
    assert {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} == before
    assert any("is a link, which a run never makes" in fault for fault in pe.verify(store))


def test_a_lock_that_is_another_name_of_a_file_does_not_empty_it(store, precious):
    (store / "engine" / "lock").unlink()
    os.link(precious, store / "engine" / "lock")
    CALLS["resume"](store)
    assert precious.read_text() == "ten years of work"


def test_temporary_names_cannot_be_foreseen_and_leave_nothing(store, precious, monkeypatch):
    names = []
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda path, to: (names.append(path.name), replace(path, to))[1])
    CALLS["resume"](store)
    assert len(names) > 20
    assert len(set(names)) == len(names)
    (store / "engine" / "left.partial").write_text("")
    CALLS["resume"](store)
    assert not list(store.rglob("*.partial"))


@pytest.mark.parametrize("name", ["../../outside", "..", "a/b", "zarr.json", "a\0b", "x" * 300])
@pytest.mark.parametrize("group", [True, False])
def test_no_name_leaves_the_store(store, tmp_path, name, group):
    def change(content):
        content["prepared"]["layout"]["columns"][-1]["group" if group else "name"] = name

    rewrite(store, change)
    for call in CALLS.values():
        refused(call, store, match="its manifest is none of ours: layout has an array")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.zarr"]


LARGE = 10**9


@pytest.mark.parametrize(
    ("change", "calls"),
    [
        (lambda c: (c["plan"].update(chains=LARGE), c["prepared"]["layout"].update(num_chains=LARGE)), CALLS),
        (lambda c: c["prepared"]["layout"].update(num_chains=LARGE), CALLS),
        (lambda c: c["prepared"]["layout"].update(chunk=LARGE), CALLS),
        (lambda c: c["prepared"]["layout"].update(width=LARGE), CALLS),
        (lambda c: c["prepared"]["layout"]["columns"][0].update(shape=[LARGE, LARGE]), ("load", "resume")),
        (lambda c: c.update(position=[["x", [LARGE, 10]]]), ("load", "resume")),
        (lambda c: c["prepared"]["layout"]["columns"][0].update(dtype="object"), CALLS),
        (lambda c: c["prepared"]["layout"]["columns"][0].update(dtype="float99"), CALLS),
        (lambda c: c["prepared"]["layout"]["columns"].clear(), ("load", "resume")),
    ],
)
def test_declared_sizes_take_no_memory(store, change, calls):
    rewrite(store, change)
    for name in calls:
        if name == "verify":
            with contextlib.suppress(pe.StoreError):
                assert CALLS[name](store)
        else:
            refused(CALLS[name], store)


JUNK = [None, True, -1, 1.5, "text", [], [1], {}, {"a": [1]}, 10**400, "x" * 10**5]


@pytest.mark.parametrize("name", [*manifest.Manifest.__dataclass_fields__, "surprise", "plan.chains", "plan.seed"])
def test_every_field_is_checked_by_its_type(written, tmp_path, name):
    store = Path(shutil.copytree(written, tmp_path / "run.zarr"))
    original = (store / "engine" / manifest.COPIES[0]).read_bytes()
    for junk in JUNK:
        where, _, last = name.rpartition(".")

        def change(content, where=where, last=last, junk=junk):
            (content[where] if where else content)[last] = junk

        (store / "engine" / manifest.COPIES[0]).write_bytes(original)
        rewrite(store, change)
        with one_sentence_at_most():
            pe.store.Store.open(store)
            for call in CALLS.values():  # what passes for a manifest is done
                with one_sentence_at_most():
                    call(store)


def test_a_manifest_that_is_very_deep_or_long_is_refused(store):
    for copy in manifest.COPIES:
        (store / "engine" / copy).write_text("[" * 10**6)
    refused(CALLS["load"], store, match="both copies of the manifest are unusable")
    for copy in manifest.COPIES:
        with (store / "engine" / copy).open("wb") as file:
            file.truncate(2**40)
    refused(CALLS["load"], store, match="more than can be read")


def bomb(shape, num_megabytes=0):
    """An npz file whose array says that it has a shape, and has so many megabytes of zeros."""
    buffer = io.BytesIO()
    method = zipfile.ZIP_STORED if num_megabytes == 0 else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(buffer, "w", method) as archive, archive.open("x.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array_header_1_0(member, {"descr": "<f8", "fortran_order": False, "shape": shape})
        for _ in range(num_megabytes):
            member.write(bytes(2**20))
    payload = buffer.getvalue()
    return files.MAGIC + hashlib.sha256(payload).digest() + payload


@pytest.mark.parametrize("name", ["start.npz", "seals", "lane-0.a"])
@pytest.mark.parametrize("header", [(2**28,), (2**62, 2**62), (-1,), (0, 2**62)])
def test_arrays_that_say_they_are_large(store, name, header):
    (store / "engine" / name).write_bytes(bomb(header))
    assert_little_memory(store)


def test_arrays_that_inflate(store):
    contents = bomb((2**28,), 2**11)
    assert len(contents) < 4 * 2**20
    for name in ("start.npz", "learned.npz", "seals", "lane-0.a"):
        (store / "engine" / name).write_bytes(contents)
    assert_little_memory(store)


def assert_little_memory(store):
    for call in CALLS.values():
        with one_sentence_at_most():
            call(store)


def test_what_is_no_plain_file_is_not_read(store):
    for place in ("engine/seals", "zarr.json", "weighted_points/x/c.0.0.0.0"):
        (store / place).unlink()
        os.mkfifo(store / place)
    refused(CALLS["load"], store)
    assert any("is no plain file" in fault for fault in pe.verify(store))


def test_a_chunk_as_large_as_a_disk_is_not_read(store):
    path = store / "weighted_points" / "x" / "c.0.0.0.0"
    with path.open("r+b") as file:
        file.truncate(2**40)
    refused(CALLS["load"], store, match=r"c\.0\.0\.0\.0 has 1099511627776 bytes and should have")


NAMES = [
    "a/b",
    "a_b",
    "zarr.json",
    "..",
    ".",
    "nul\0",
    "x" * 300,
    "x" * 299 + "y",
    "A",
    "a",
    "C:",
    "ünï",
    "%2F",
    "~",
    " ",
]


def test_every_name_has_a_place_of_its_own():
    places = file_names(NAMES)
    assert len({place.casefold() for place in places.values()}) == len(NAMES)
    for place in places.values():
        assert 0 < len(place.encode()) <= 200
        assert not place.startswith((".", "__"))
        assert "/" not in place
        assert "\0" not in place
    assert file_names(["mu", "model/mu"]) == {"mu": "mu", "model/mu": "model_mu"}


def test_parameters_of_any_name_are_stored(tmp_path):
    target = pe.Target(
        lambda x: -0.5 * sum((x[i] - i) ** 2 for i in range(len(NAMES))),
        [0.0] * len(NAMES),
        names=NAMES,
    )
    run = RUN | {"method": pe.Plain(pe.RandomWalk())}
    store = tmp_path / "run.zarr"
    result = pe.sample(target, [0.0] * len(NAMES), store=store, **run)
    tree = xr.open_datatree(store, engine="zarr")
    places = file_names(NAMES)
    assert set(tree["posterior"].data_vars) == set(places.values())
    for i, name in enumerate(NAMES):
        np.testing.assert_array_equal(tree["posterior"][places[name]].values, result.unconstrained[:, :, 0, i])
    assert pe.verify(store) == []
    assert pe.extend(store, target, 10, progress=False).num_draws == 50


def test_axes_and_labels_of_any_name_are_stored(tmp_path):
    dims = ["a/b", ".."]
    labels = {"a/b": ["one", "tw\0o"], "..": ["\ud800", "/", "ü"]}
    target = pe.Target(lambda x: -0.5 * (x**2).sum(), np.zeros((2, 3)), dims={"x": dims}, coords=labels)
    store = tmp_path / "run.zarr"
    pe.sample(target, np.zeros((2, 3)), store=store, **RUN)
    posterior = xr.open_dataset(store, engine="zarr", group="posterior")
    assert posterior["x"].shape == (2, 40, 2, 3)
    assert pe.verify(store) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.zarr"]


def test_a_process_that_was_forked_does_not_keep_the_lock(tmp_path):
    script = f"""
import os, sys, time
import numpy as np, pseudo_extended as pe
from tests.execution import victim
from pseudo_extended.store import Store
store = Store.open({str(tmp_path / "run.zarr")!r})
store.lock()
child = os.fork()
if not child:
    os.close(1), os.close(2)
    time.sleep(60)
    os._exit(0)
print(child, flush=True)
"""
    pe.sample(victim.log_density, np.zeros(2), store=tmp_path / "run.zarr", **RUN)
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    child = int(out.stdout)
    try:
        os.kill(child, 0)  # it is there
        assert CALLS["resume"](tmp_path / "run.zarr").num_draws == 40
    finally:
        os.kill(child, 9)


PLACES = ["zarr.json", "weighted_points/x/c.0.0.0.0", "posterior/x/zarr.json", "engine/lock", "engine/manifest.json"]
PLACES += [f"engine/{name}" for name in ("seals", "start.npz", "learned.npz", "lane-0.a", "lane-1.b")]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["a directory", "a ring of links"])
def test_what_is_in_the_place_of_a_file_is_a_sentence(store, place, kind):
    (store / place).unlink(missing_ok=True)
    if kind == "a directory":
        (store / place).mkdir()
    else:
        (store / place).symlink_to(store / place)
    open_files = num_open_files()
    for call in CALLS.values():
        with one_sentence_at_most():
            call(store)
    if "lock" not in place:
        assert pe.verify(store), "a run never makes one"
    assert num_open_files() <= open_files + 1


def num_open_files():
    listed = Path("/proc/self/fd")
    return len(list(listed.iterdir())) if listed.is_dir() else 0
