"""Stores that `Result.save` wrote: checked as those of runs are, and refused where a run would have to go on."""

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import pseudo_extended as pe
from pseudo_extended.cli import app
from pseudo_extended.pilot.report import CandidateReport, PilotReport, no_modes
from tests.execution import victim
from tests.execution.test_kill import assert_same

RUN = {"method": pe.Plain(pe.RandomWalk()), "draws": 60, "warmup": 20, "chains": 2, "progress": False}


def sample(seed, **options):
    return pe.sample(victim.log_density, np.zeros(2), seed=seed, **RUN | options)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Two saved results of the same shape, and the first of them as it was."""
    directory = tmp_path_factory.mktemp("saved")
    results = [sample(seed) for seed in (1, 2)]
    return [result.save(directory / f"{i}.zarr") for i, result in enumerate(results)], results[0]


@pytest.fixture
def store(saved, tmp_path):
    return Path(shutil.copytree(saved[0][0], tmp_path / "run.zarr"))


def test_it_is_whole_and_read_back(saved, store):
    assert pe.verify(store) == []
    assert_same(pe.load(store, victim.log_density), saved[1])


def replaced(path, other):
    path.write_bytes(other.read_bytes())


def one_bit(path, other):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def gone(path, other):
    path.unlink()


@pytest.mark.parametrize("damage", [replaced, one_bit, gone])
def test_every_damage_is_found_and_no_other_draws_are_read(saved, store, damage):
    (_, other), whole = saved
    names = [path.relative_to(store) for path in store.rglob("*") if path.is_file() and path.name != "lock"]
    assert len(names) > 20
    for name in names:
        before = (store / name).read_bytes()
        damage(store / name, other / name)
        changed = not (store / name).exists() or (store / name).read_bytes() != before
        try:
            found = pe.verify(store)
        except pe.StoreError as error:  # of a manifest
            found = [str(error)]
        assert bool(found) == changed, name
        said = ""
        try:
            assert_same(pe.load(store, victim.log_density), whole)
        except pe.StoreError as error:
            said = str(error)
        assert not said or said.endswith("."), said
        assert "pe.resume" not in said, said
        (store / name).write_bytes(before)


def test_nothing_goes_on_from_it(store):
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    for call in (
        lambda: pe.resume(store, victim.log_density),
        lambda: pe.extend(store, victim.log_density, 10),
        lambda: sample(1, store=store, resume=True),
    ):
        with pytest.raises(
            pe.StoreError, match=r"was saved after its run, without the state of the chains, so nothing"
        ):
            call()
    said = CliRunner().invoke(app, ["extend", str(store), f"{victim.__file__}:log_density", "10"])
    assert said.exit_code == 1
    assert "was saved after its run" in " ".join(said.output.split())
    assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} == before


def test_what_the_pilot_found_is_kept(saved, tmp_path):
    report = PilotReport(no_modes(2), (CandidateReport("normal", 1.5, -0.25, 0.1, True, 40),), "normal", 10)
    loaded = pe.load(dataclasses.replace(saved[1], pilot=report).save(tmp_path / "run.zarr"), victim.log_density)
    assert repr(loaded.pilot) == repr(report)
