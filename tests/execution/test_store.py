"""A store while a run is on its way and after it: what others read, what is refused, and what is the same."""

import os
import shutil
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import pseudo_extended as pe
from pseudo_extended.cli import app
from pseudo_extended.run import recorder, stored
from pseudo_extended.store import DrawWriter
from tests.execution import victim
from tests.execution.test_kill import assert_same

RUN = {"method": victim.METHOD, "draws": 200, "warmup": 30, "chains": 2, "seed": 5, "progress": False}
DATA = np.array([0.5, 1.0, 2.5])


def model(data=DATA, centre=0.0, name="scale"):
    def log_density(p):
        return -0.5 * jnp.sum((data - p["centre"][0]) ** 2) / p[name] - p[name] - 0.5 * (p["centre"][0] - centre) ** 2

    return pe.Target(
        log_density,
        {"centre": np.zeros(1), name: 1.0},
        bounds={name: (0, None)},
        dims={"centre": ["place"]},
        coords={"place": ["here"]},
    )


INIT = {"centre": np.zeros(1), "scale": 1.0}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "run.zarr"
    pe.sample(model(), INIT, store=path, **RUN)
    return path


def test_xarray_and_arviz_read_it(store):
    result = pe.load(store, model())
    tree = xr.open_datatree(store, engine="zarr")
    np.testing.assert_array_equal(tree["weighted_points/x"].values, result.unconstrained)
    posterior = xr.open_dataset(store, engine="zarr", group="posterior")
    assert posterior.scale.dims == ("chain", "draw")
    assert list(posterior.place.values) == ["here"]
    index = tree["sample_stats/resampled_particle"].values[..., None]
    np.testing.assert_array_equal(posterior.scale.values, np.take_along_axis(result.points["scale"], index, 2)[..., 0])
    import arviz as az

    groups = {name: tree[name].to_dataset().load() for name in ("posterior", "sample_stats")}
    if az.__version__.startswith("0."):
        assert list(az.summary(az.InferenceData(**groups)).index) == ["centre[here]", "scale"]
    else:
        assert list(az.summary(xr.DataTree.from_dict(groups)).index) == ["centre[here]", "scale"]


@pytest.mark.slow
def test_resampled_points_follow_the_weights_and_not_the_schedule(tmp_path, monkeypatch):
    first, second = tmp_path / "a.zarr", tmp_path / "b.zarr"
    result = pe.sample(victim.log_density, np.zeros(2), store=first, **RUN)
    monkeypatch.setattr(stored, "CHUNK_BYTES", 2**10)
    pe.sample(victim.log_density, np.zeros(2), store=second, **RUN)
    a, b = (xr.open_datatree(path, engine="zarr").load() for path in (first, second))
    np.testing.assert_array_equal(a["posterior/x"], b["posterior/x"])
    index = a["sample_stats/resampled_particle"].values
    chosen = np.take_along_axis(result.weights, index[..., None], axis=2)
    # Points are chosen by weight: the mean weight of the chosen is Σw², with 400 draws good to a few hundredths.
    assert abs(chosen.mean() - np.mean(np.sum(result.weights**2, axis=2))) < 0.06


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        (
            model(data=DATA + np.array([0, 0, 1e-9])),
            r"the formula of its density is the same, but the arrays in it \(the data\)",
        ),
        (model(centre=1.0), r"the formula of its density, or a number or a shape in it, is another;"),
        (model(data=np.zeros(4), centre=1.0), r"is another, and so are the arrays in it \(the data\)"),
        (lambda p: p["width"] * 1.0, r"at a position of centre: \(1,\), scale: \(\) it raises KeyError: 'width'"),
        (model(name="width"), r"its position is centre: \(1,\), width: \(\), and was centre: \(1,\), scale: \(\)"),
    ],
)
def test_another_target_is_refused(store, target, sentence):
    for call in (pe.resume, lambda *arguments, **options: pe.extend(*arguments, 10, **options)):
        with pytest.raises(pe.StoreError, match=sentence):
            call(store, target, progress=False)


@pytest.mark.slow
def test_another_density_is_seen_where_its_formula_is_hidden(tmp_path):
    """What a Python function does that a density calls back, no formula tells: its values do."""

    def target(factor):
        def log_density(x):
            zero = jax.pure_callback(lambda x: np.float32(factor), jax.ShapeDtypeStruct((), np.float32), 0.0)
            return -0.5 * jnp.sum(x**2) * zero.astype(float)

        return log_density

    run = RUN | {"method": pe.Plain(pe.RandomWalk()), "draws": 5, "warmup": 0}
    pe.sample(target(1.0), np.ones(1), store=tmp_path / "run.zarr", **run)
    with pytest.raises(pe.StoreError, match="its log density has other values at the points where the run started"):
        pe.resume(tmp_path / "run.zarr", target(2.0), progress=False)


def test_other_versions_are_refused_unless_asked_for(store, monkeypatch, tmp_path):
    store = shutil.copytree(store, tmp_path / "run.zarr")
    monkeypatch.setattr("pseudo_extended.run.resume.fingerprint_versions", lambda: {"jax": "9.9"})
    with pytest.raises(pe.StoreError, match=r"made by other versions: .*jax was .* and is 9\.9.*other_versions=True"):
        pe.resume(store, model(), progress=False)
    with pytest.raises(pe.StoreError, match="its log density has other values at the points where the run started"):
        pe.resume(store, model(centre=1.0), other_versions=True, progress=False)
    resumed = pe.resume(store, model(), other_versions=True, progress=False)
    assert resumed.num_draws == 200
    assert "went on with other versions" in resumed.warnings[0]
    assert pe.resume(store, model(), progress=False).num_draws == 200  # from now on, these are its versions


def test_another_method_is_refused(store):
    with pytest.raises(pe.StoreError, match=r"method differs from that of store .*: kernel.num_steps was 2 and is 3"):
        pe.resume(store, model(), method=pe.PseudoExtended(pe.Fixed(0.3), pe.HMC(3), 2), progress=False)
    assert pe.resume(store, model(), method=victim.METHOD, progress=False).num_draws == 200


@pytest.mark.slow
def test_a_method_with_a_function_must_come_again(tmp_path):
    method = pe.PseudoExtended(pe.Density(lambda x: -0.1 * jnp.sum(x**2)), pe.HMC(2), 2)
    path = tmp_path / "run.zarr"
    run = RUN | {"method": method, "draws": 20, "warmup": 5}
    pe.sample(victim.log_density, np.zeros(2), store=path, **run)
    with pytest.raises(pe.StoreError, match=r"method must be given again: it holds a function"):
        pe.extend(path, victim.log_density, 10, progress=False)
    longer = pe.extend(path, victim.log_density, 10, method=method, progress=False)
    assert_same(longer, pe.sample(victim.log_density, np.zeros(2), **run | {"draws": 30}))
    other = pe.PseudoExtended(pe.Density(lambda x: -0.2 * jnp.sum(x**2)), pe.HMC(2), 2)
    with pytest.raises(pe.StoreError, match=r"method differs .*: the function that it holds is another"):
        pe.extend(path, victim.log_density, 10, method=other, progress=False)


def test_a_disk_that_is_always_busy_with_chunks_does_not_put_off_snapshots(tmp_path, monkeypatch):
    write = DrawWriter._write_whole

    def slowly(self, *args):
        time.sleep(0.02)
        write(self, *args)

    monkeypatch.setattr(DrawWriter, "_write_whole", slowly)
    monkeypatch.setattr(stored, "CHUNK_BYTES", 2**12)
    monkeypatch.setattr(stored, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(stored, "SHARE_OF_TIME", 10)
    path, newest = tmp_path / "run.zarr", set()

    def callback(run):
        if run.num_draws > 0:  # in warm-up there are no chunks
            newest.add(max((file.stat().st_mtime_ns for file in path.glob("engine/lane-0.[ab]")), default=0))
        return len(newest) == 4

    run = RUN | {"draws": 50_000, "chains": 1}
    result = pe.sample(victim.log_density, np.zeros(2), store=path, callback=callback, **run)
    assert result.stopped == "callback"
    assert result.num_draws < 50_000


@pytest.mark.slow
def test_a_second_process_is_refused_and_a_reader_is_not(tmp_path, monkeypatch):
    path = tmp_path / "run.zarr"
    script = (
        "import pseudo_extended as pe; from tests.execution import victim\n"
        f"try: pe.resume({str(path)!r}, victim.log_density, progress=False)\n"
        "except pe.StoreInUseError as error: print(error)\n"
        f"print(pe.load({str(path)!r}, victim.log_density).num_draws > 0)\n"
    )
    monkeypatch.setattr(stored, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(stored, "SHARE_OF_TIME", 0)
    monkeypatch.setattr(stored, "SECONDS_BETWEEN_VIEWS", 0.0)
    said = []

    def callback(run):
        del run
        if not pe.store.draws_shown(
            pe.store.Store.open(path)
        ).num_draws:  # readers see draws a moment after they were made
            return False
        with pytest.raises(pe.StoreInUseError):  # in this process too
            pe.resume(path, victim.log_density, progress=False)
        process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        said.append(process.stdout + process.stderr)
        return True

    run = RUN | {"draws": 10**6, "chains": 1}
    pe.sample(victim.log_density, np.zeros(2), store=path, callback=callback, **run)
    assert f"is being written by process {os.getpid()}" in said[0], said[0]
    assert "True" in said[0]
    assert pe.load(path, victim.log_density).stopped == "callback"


def test_a_second_run_is_refused(store):
    """The lock is on the open file, so it holds within a process as it does between two."""
    opened = pe.store.Store.open(store)
    opened.lock()
    with pytest.raises(pe.StoreInUseError, match=rf"is being written by process {os.getpid()} on .*: wait for it"):
        pe.resume(store, model(), progress=False)
    assert pe.load(store, model()).num_draws == 200
    opened.close()
    assert pe.resume(store, model(), progress=False).num_draws == 200


def test_what_cannot_be_a_store(store, tmp_path):
    with pytest.raises(pe.StoreError, match=r"holds a run already: pe\.resume goes on with it"):
        pe.sample(model(), INIT, store=store, **RUN)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letters.txt").write_text("dear")
    with pytest.raises(pe.StoreError, match=r"must name a new or empty directory"):
        pe.sample(model(), INIT, store=tmp_path / "full", **RUN)
    with pytest.raises(pe.StoreError, match=r"has no manifest: it is no run of ours"):
        pe.load(tmp_path / "full", model())
    with pytest.raises(pe.StoreError, match="does not exist"):
        pe.resume(tmp_path / "nowhere", model())
    with pytest.raises(TypeError, match=r"store must be a path such as 'run\.zarr'; got 3"):
        pe.sample(model(), INIT, store=3, **RUN)
    (tmp_path / "file").write_text("")
    with pytest.raises(pe.StoreError, match=r"store must name a directory that can be made; .*file/run.zarr' cannot: "):
        pe.sample(model(), INIT, store=tmp_path / "file" / "run.zarr", **RUN)
    with pytest.raises(ValueError, match="init"):  # a run that never began leaves no directory behind
        pe.sample(lambda x: -jnp.inf * jnp.sum(x**2), np.ones(1), store=tmp_path / "new", **RUN)
    assert not (tmp_path / "new").exists()


def test_memory_is_bounded_without_a_store(monkeypatch):
    monkeypatch.setattr(recorder, "free_memory", lambda: 4e6)
    result = pe.sample(victim.log_density, np.zeros(2), time_limit=60, **RUN | {"draws": None})
    assert result.stopped == "memory"
    assert result.num_draws > 1000
    assert "a store= has room" in result.warnings[0]
    enough = pe.sample(victim.log_density, np.zeros(2), target_ess=50, **RUN | {"draws": None})
    assert enough.stopped == "enough"


def test_a_long_store_is_thinned_on_reading(store, monkeypatch):
    whole = pe.load(store, model())
    half = pe.load(store, model(), draws=100)
    assert half.thinned == 2
    np.testing.assert_array_equal(half.unconstrained, whole.unconstrained[:, 1::2])
    monkeypatch.setattr(stored, "RESULT_BYTES", 10_000)
    few = pe.load(store, model())
    assert few.thinned > 2
    assert "the store has all" in few.warnings[0]


@pytest.mark.slow
def test_enough_in_a_store_is_where_it_is_in_memory(tmp_path):
    run = RUN | {"draws": None, "target_ess": 150}
    memory = pe.sample(victim.log_density, np.zeros(2), **run)
    path = tmp_path / "run.zarr"
    result = pe.sample(victim.log_density, np.zeros(2), store=path, **run)
    assert_same(memory, result)
    assert xr.open_datatree(path, engine="zarr")["posterior"].sizes["draw"] == memory.num_draws
    assert_same(pe.resume(path, victim.log_density, progress=False), memory)
    longer = pe.extend(path, victim.log_density, 50, progress=False)
    np.testing.assert_array_equal(longer.unconstrained[:, : memory.num_draws], memory.unconstrained)
    assert longer.num_draws == memory.num_draws + 50


def test_command(tmp_path, monkeypatch):
    path = tmp_path / "run.zarr"
    pe.sample(victim.log_density, np.zeros(2), store=path, callback=lambda run: run.num_draws > 0, **RUN)
    runner, place = CliRunner(), f"{victim.__file__}:log_density"
    shown = runner.invoke(app, ["info", str(path)])
    assert "pseudo-extended HMC, N = 2" in shown.output
    assert "of 200 draws each" in shown.output
    refused = runner.invoke(app, ["resume", str(path), f"{victim.__file__}:run", "--quiet"])
    assert refused.exit_code != 0
    done = runner.invoke(app, ["resume", str(path), place, "--quiet"])
    assert "2 chains × 200 draws" in done.output, done.output
    assert "finished" in runner.invoke(app, ["info", str(path)]).output
    more = runner.invoke(app, ["extend", str(path), "tests.execution.victim:log_density", "50", "--quiet"])
    assert "2 chains × 250 draws" in more.output
    missing = runner.invoke(app, ["resume", str(path), "nowhere.py:f"])
    assert missing.exit_code == 1
    assert "there is no 'nowhere.py'" in missing.output
    whole = pe.sample(victim.log_density, np.zeros(2), **RUN | {"draws": 250})
    assert_same(pe.load(path, victim.log_density), whole)


def test_interrupted_before_the_first_iteration_says_what_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "run.zarr"

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pseudo_extended.run.job.Threads", interrupt)
        with pytest.raises(KeyboardInterrupt, match=r"keeps what preparation found, and pe\.resume goes on"):
            pe.sample(victim.log_density, np.zeros(2), store=path, **RUN)
    whole = pe.sample(victim.log_density, np.zeros(2), **RUN)
    assert_same(pe.resume(path, victim.log_density, progress=False), whole)


@pytest.mark.slow
def test_stopped_in_warmup_goes_on_in_warmup(tmp_path):
    run = RUN | {"warmup": 3000}
    path = tmp_path / "run.zarr"
    with pytest.raises(RuntimeError, match=r"before every chain had a draw.*pe\.resume goes on from there"):
        pe.sample(victim.log_density, np.zeros(2), store=path, callback=lambda run: run.status.done > 100, **run)
    with pytest.raises(pe.StoreError, match="no draws yet"):
        pe.load(path, victim.log_density)
    began = time.monotonic()
    seen = []
    resumed = pe.resume(path, victim.log_density, progress=False, callback=lambda run: seen.append(run.status.done))
    assert_same(resumed, pe.sample(victim.log_density, np.zeros(2), **run))
    assert seen[0] > 100
    assert time.monotonic() - began < 120
