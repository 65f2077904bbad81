"""Independent pilots: chains of their own, joined into one result that says how far they agree."""

import dataclasses
import shutil

import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import pseudo_extended as pe
from pseudo_extended.results.estimates import mean
from pseudo_extended.results.pooling import pool
from pseudo_extended.store.parts import seed_of

from ..doors.made import two_modes
from ..unit.sentences import assert_sentence

PLAN = {"method": pe.AdaptivePseudoExtended(4), "draws": 60, "warmup": 60, "seed": 3, "progress": False}


def log_density(x):
    return jnp.logaddexp(jnp.log(0.7) - 0.5 * jnp.sum((x - 4) ** 2), jnp.log(0.3) - 0.5 * jnp.sum((x + 4) ** 2))


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A run with two pilots, in a store."""
    path = tmp_path_factory.mktemp("pilots") / "run.zarr"
    return pe.sample(log_density, jnp.zeros(2), pilots=2, chains=4, store=path, **PLAN), path


def one_sided(result):
    """The same result without the mode on the left: its points are others of the mode on the right."""
    x, rng = result.unconstrained.copy(), np.random.default_rng(0)
    left = x[..., 1] < 0
    x[left, 1:] = rng.normal([3.0, 1.0], 1.0, size=(int(left.sum()), 2))
    return dataclasses.replace(result, unconstrained=x)


class TestRun:
    def test_the_first_half_is_a_run_of_its_own(self, stored):
        result, _ = stored
        alone = pe.sample(log_density, jnp.zeros(2), chains=2, **PLAN)
        np.testing.assert_array_equal(result.unconstrained[:2, :, : alone.num_particles], alone.unconstrained)
        np.testing.assert_array_equal(result.statistics["pilot"][:, 0], [0, 0, 1, 1])
        assert not np.array_equal(result.unconstrained[2:, 0], result.unconstrained[:2, 0])
        assert result.seed == 3

    def test_is_loaded_and_goes_on(self, stored, tmp_path):
        result, path = stored
        loaded = pe.load(path, log_density)
        np.testing.assert_array_equal(loaded.unconstrained, result.unconstrained)
        np.testing.assert_array_equal(loaded.log_weights, result.log_weights)
        assert loaded.pilot_agreement().line() == result.pilot_agreement().line()
        again = pe.sample(log_density, jnp.zeros(2), pilots=2, chains=4, store=path, resume=True, **PLAN)
        np.testing.assert_array_equal(again.unconstrained, result.unconstrained)
        assert result.save(tmp_path / "copy.zarr").exists()
        assert pe.load(tmp_path / "copy.zarr", log_density).pilot_agreement() is not None

    def test_agreement_is_shown(self, stored):
        result, _ = stored
        assert "2 pilots: log evidences are" in repr(result)
        assert "2 pilots:" in result._repr_html_()
        assert list(result.pilot_agreement().table().index) == ["pilot 0", "pilot 1", "standard errors apart"]
        assert result.plot_pilot() is not None

    def test_a_part_that_has_not_begun(self, stored, tmp_path):
        _, path = stored
        shutil.copytree(path, tmp_path / "half.zarr")
        shutil.rmtree(tmp_path / "half.zarr" / "pilot-1")
        half = pe.load(tmp_path / "half.zarr", log_density)
        assert half.num_chains == 2
        assert "PE607" in {message.code for message in half.warnings}
        with pytest.raises(pe.StoreError, match="resume=True"):
            pe.resume(tmp_path / "half.zarr", log_density)

    def test_stores_that_were_exchanged_are_found(self, stored, tmp_path):
        _, path = stored
        store = shutil.copytree(path, tmp_path / "run.zarr")
        assert pe.verify(store) == []
        (store / "pilot-0").rename(store / "aside")
        (store / "pilot-1").rename(store / "pilot-0")
        (store / "aside").rename(store / "pilot-1")
        for call in (pe.verify, lambda store: pe.load(store, log_density), lambda store: pe.resume(store, log_density)):
            with pytest.raises(pe.StoreError, match="belongs to another run, or to another pilot of this one"):
                call(store)

    def test_a_damaged_chunk_of_a_part_is_found(self, stored, tmp_path):
        store = shutil.copytree(stored[1], tmp_path / "run.zarr")
        chunk = next((store / "pilot-1" / "weighted_points" / "x").glob("c.*"))
        chunk.write_bytes(chunk.read_bytes()[::-1])
        assert any(str(chunk) in fault for fault in pe.verify(store))

    @pytest.mark.parametrize(
        "content", ["", "[1]", '{"pilots": 1000000000, "seed": 3}', '{"pilots": -1, "seed": 3}', '{"pilots": "2"}']
    )
    def test_a_plan_that_is_none_is_a_sentence(self, stored, tmp_path, content):
        store = shutil.copytree(stored[1], tmp_path / "run.zarr")
        (store / "pilots.json").write_text(content)
        for call in (pe.verify, lambda store: pe.load(store, log_density)):
            with pytest.raises(pe.StoreError, match=r"has no pilots\.json that can be read: .*\.$"):
                call(store)

    def test_a_seed_that_is_not_given_is_that_of_the_store(self, stored, tmp_path):
        result, path = stored
        store = shutil.copytree(path, tmp_path / "run.zarr")
        run = {"pilots": 2, "chains": 4, "store": store, "resume": True} | PLAN
        again = pe.sample(log_density, jnp.zeros(2), **run | {"seed": None})
        np.testing.assert_array_equal(again.unconstrained, result.unconstrained)
        with pytest.raises(pe.StoreError, match="begun with 2 pilots and seed 3"):
            pe.sample(log_density, jnp.zeros(2), **run | {"seed": 4})


class TestAgreement:
    def test_numbers_are_those_of_each_half(self):
        parts = [two_modes(seed=seed, draws=300) for seed in (0, 1)]
        result = pool(parts, 0)
        modes, found = result.modes(), result.pilot_agreement()
        for pilot, chains in enumerate((slice(0, 4), slice(4, 8))):
            inside = (modes.labels[chains] == 1).astype(float)[..., None]
            alone = mean(inside, result.weights[chains])
            assert found.mass[pilot, 1] == pytest.approx(alone.value[0])
            assert found.log_evidence[pilot] == pytest.approx(parts[pilot].log_evidence.value)
        apart = abs(found.mass[0, 1] - found.mass[1, 1]) / np.hypot(*found.mass_error[:, 1])
        assert found.mass_sigmas[1] == pytest.approx(apart)
        assert found.r_hat < 1.05

    def test_a_mode_that_one_has_not_found_is_named(self):
        result = pool([two_modes(seed=0), one_sided(two_modes(seed=1))], 0)
        result.modes()
        [message] = [each for each in result.warnings if each.code == "PE508"]
        assert "pilot 1 never came to mode 1" in message
        assert message.severity == "severe"
        assert "PE508" in {each.code for each in result.evidence_doubts}

    def test_evidences_that_differ_are_told(self):
        other = two_modes(seed=1)
        statistics = other.statistics | {"evidence_top": other.statistics["evidence_top"] + 1.0}
        result = pool([two_modes(seed=0), dataclasses.replace(other, statistics=statistics)], 0)
        assert any(each.code == "PE506" and "log Z" in each for each in result.warnings)

    def test_pilots_that_agree_raise_no_alarm(self):
        """Of 30 pairs of exact runs none, where one in 20,000 is expected of normal errors at 4 of them."""
        for seed in range(30):
            result = pool([two_modes(seed=2 * seed, draws=100), two_modes(seed=2 * seed + 1, draws=100)], seed)
            codes = {message.code for message in result.warnings}
            assert not codes & {"PE506", "PE508"}

    def test_pilots_of_different_sizes(self):
        """One has fewer pseudo-samples, fewer draws, and a statistic less: everything still works."""
        small = two_modes(seed=1, particles=3, draws=120)
        statistics = {name: each for name, each in small.statistics.items() if name != "lp"}
        small = dataclasses.replace(small, statistics=statistics)
        result = pool([two_modes(seed=0), small], 7)
        assert result.weights.shape == (8, 120, 6)
        np.testing.assert_allclose(result.weights.sum(axis=2), 1)
        assert np.all(result.weights[4:, :, 3:] == 0)
        assert np.isnan(result.statistics["lp"][4:]).all()
        assert result.travel.round_trips.shape == (8,)
        assert np.all(result.travel.round_trips > 0)
        assert abs(float(result.mean().value["tau"]) - 1.0) < 0.2
        for name in ("corner", "journey", "temperatures", "weights", "evidence", "trace"):
            assert getattr(result, f"plot_{name}")() is not None
        assert "log evidence" in repr(result)


def test_one_pilot_has_no_agreement():
    assert two_modes().pilot_agreement() is None


def test_seeds():
    assert seed_of(5, 0) == 5
    assert len({seed_of(5, number) for number in range(10)} | {seed_of(6, 1)}) == 11


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pilots": 0}, ["pilots", "1"]),
        ({"pilots": 2, "chains": 3}, ["chains", "multiple", "3"]),
        ({"pilots": 2, "method": pe.Plain()}, ["pilots", "no pilot", "2"]),
    ],
)
def test_refusals(options, words):
    with pytest.raises((ValueError, TypeError)) as refusal:
        pe.sample(log_density, jnp.zeros(2), progress=False, **options)
    assert_sentence(refusal, *words)


def test_a_run_in_the_background_has_one():
    with pytest.raises(TypeError) as refusal:
        pe.start(log_density, jnp.zeros(2), pilots=2)
    assert_sentence(refusal, "pilots", "pe.sample")
