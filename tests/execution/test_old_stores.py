"""Stores that older versions wrote open, resume and extend with this one."""

import hashlib
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.run.without_target import load_without_target
from tests.execution.old_stores import DRAWS, METHODS, WARMING, target_of

FIXTURES = Path(__file__).parents[1] / "fixtures" / "store-0.1"
DIGESTS = json.loads((FIXTURES / "digests.json").read_text())
"""SHA-256 of the points and log weights of every store, as the version that wrote it loaded them."""


@pytest.fixture
def store(tmp_path, name):
    with tarfile.open(FIXTURES / f"{name}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "run.zarr"


def digest(result: pe.Result) -> str:
    return hashlib.sha256(result.unconstrained.tobytes() + result.log_weights.tobytes()).hexdigest()


def test_every_store_has_a_row():
    stores = {path.name.removesuffix(".tar.xz") for path in FIXTURES.glob("*.tar.xz")}
    assert stores == METHODS.keys() | WARMING.keys()
    assert DIGESTS.keys() == METHODS.keys()


@pytest.mark.parametrize("name", METHODS)
def test_opens_with_the_draws_that_were_written(store, name):
    loaded = pe.load(store, target_of(name))
    assert loaded.num_draws == DRAWS
    assert loaded.stopped is None
    assert digest(loaded) == DIGESTS[name]


@pytest.mark.parametrize("name", METHODS)
def test_extends(store, name):
    """The method is read from the store, so each of its types must be known by the name it had."""
    extended = pe.extend(store, target_of(name), 15, other_versions=True, progress=False)
    assert extended.num_draws == DRAWS + 15
    old, new = extended.unconstrained[:, :DRAWS], extended.unconstrained[:, DRAWS:]
    weights = extended.log_weights[:, :DRAWS]
    assert hashlib.sha256(old.tobytes() + weights.tobytes()).hexdigest() == DIGESTS[name]
    assert np.all(np.isfinite(new))
    for chain in new:
        assert len(np.unique(chain, axis=0)) > 1
    assert digest(pe.load(store, target_of(name))) == digest(extended)


@pytest.mark.parametrize("name", ["default"])
def test_the_carrier_has_its_name_whatever_the_store_calls_it(store, name):
    assert (store / "sample_stats" / "index").is_dir()
    with_target, without = pe.load(store, target_of(name)), load_without_target(store)
    for loaded in (with_target, without):
        assert "index" not in loaded.statistics
        assert loaded.statistic_axes["carrier"] == ()
    np.testing.assert_array_equal(with_target.statistics["carrier"], without.statistics["carrier"])
    assert with_target.travel is not None


@pytest.mark.parametrize("name", ["default", "plain-hmc"])
def test_resumes_after_the_last_draw(store, name):
    resumed = pe.resume(store, target_of(name), other_versions=True, progress=False)
    assert digest(resumed) == DIGESTS[name]


@pytest.mark.parametrize("name", WARMING)
def test_resumes_in_warm_up(store, name):
    resumed = pe.resume(store, target_of(WARMING[name]), other_versions=True, progress=False)
    assert resumed.num_draws == DRAWS
    assert resumed.stopped is None
    assert np.all(np.isfinite(resumed.unconstrained))
    assert np.mean(resumed.statistics["acceptance_rate"]) > 0.3


@pytest.mark.parametrize("name", ["plain-hmc"])
def test_the_versions_that_wrote_it_are_named_when_they_are_others(store, name):
    with pytest.raises(pe.StoreError, match=r"was made by other versions: .*other_versions=True"):
        pe.resume(store, target_of(name), progress=False)


@pytest.mark.parametrize("name", ["plain-hmc"])
def test_a_store_without_seals_says_so_and_gets_them(store, name):
    loaded = pe.load(store, target_of(name))
    assert any("an older version of this library wrote the store, without seals" in note for note in loaded.notes)
    assert [fault for fault in pe.verify(store) if "has no seals, because an older version" not in fault] == []
    extended = pe.extend(store, target_of(name), 15, other_versions=True, progress=False)
    assert any(f"the first {DRAWS} draws of each chain were written by a version" in note for note in extended.notes)
    assert pe.verify(store) == []
    assert any("sealed from now on" in note for note in pe.load(store, target_of(name)).notes)
    one, two = (store / "weighted_points" / "x" / f"c.{chain}.0.0.0" for chain in (0, 1))
    one.write_bytes(two.read_bytes())
    with pytest.raises(pe.StoreError, match="is not the chunk that was written at its place"):
        pe.load(store, target_of(name))


@pytest.mark.parametrize("name", ["plain-hmc", "plain-hmc-in-warm-up"])
@pytest.mark.parametrize("number", [30, 41, -5, 10**9])
def test_without_seals_the_number_of_draws_is_held_against_the_snapshots(store, name, number):
    path = store / "zarr.json"
    if not path.exists():
        path = store / "zarr.json"
        path.write_text(json.dumps({"attributes": {"num_draws": number}}))
    else:
        content = json.loads(path.read_bytes())
        content["attributes"]["num_draws"] = number
        path.write_text(json.dumps(content))
    with pytest.raises(pe.StoreError, match=rf"says {number}: "):
        pe.load(store, target_of(WARMING.get(name, name)))
