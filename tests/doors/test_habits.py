"""Habits of other libraries: their names are refused with ours, their seeds and their contexts work; saving after."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.run.habits import OURS, seed_from

from ..unit.sentences import assert_sentence
from .made import log_density, target, two_modes

QUICK = {"method": pe.Plain(pe.HMC(2)), "draws": 20, "warmup": 20, "chains": 2, "progress": False}


def normal(x):
    return -0.5 * jnp.sum(x**2)


class TestNames:
    @pytest.mark.parametrize("name", OURS)
    def test_of_others_are_refused_with_ours(self, name):
        with pytest.raises(TypeError) as refusal:
            pe.sample(normal, np.zeros(2), **{name: 500})
        assert_sentence(refusal, name)
        assert "{value}" not in str(refusal.value)

    def test_say_what_to_write(self):
        said = {
            "tune": "warmup=500",
            "num_samples": "draws=500",
            "random_seed": "seed=500",
            "symmetries": "with_symmetries",
        }
        for name, words in said.items():
            with pytest.raises(TypeError, match=words):
                pe.sample(normal, np.zeros(2), **{name: 500})
            with pytest.raises(TypeError, match=words):
                pe.start(normal, np.zeros(2), **{name: 500})

    def test_slips_of_the_pen(self):
        with pytest.raises(TypeError, match="warmup") as refusal:
            pe.sample(normal, np.zeros(2), warm_up=3)
        assert_sentence(refusal, "warm_up", "warmup")
        with pytest.raises(TypeError) as refusal:
            pe.sample(normal, np.zeros(2), qqqq=3)
        assert_sentence(refusal, "qqqq", "draws")


class TestSeeds:
    def test_a_key_of_jax(self):
        one, again, other = (
            pe.sample(normal, np.zeros(1), seed=key, **QUICK)
            for key in (jax.random.key(3), jax.random.PRNGKey(3), jax.random.key(4))
        )
        np.testing.assert_array_equal(one.points, again.points)
        assert not np.array_equal(one.points, other.points)
        np.testing.assert_array_equal(one.points, pe.sample(normal, np.zeros(1), seed=one.seed, **QUICK).points)

    def test_every_key_has_its_seed(self):
        keys = jax.random.split(jax.random.key(0), 1000)
        seeds = {seed_from(key) for key in keys}
        assert len(seeds) == 1000
        assert all(0 <= seed < 2**63 for seed in seeds)

    @pytest.mark.parametrize("seed", [1.5, "one", np.zeros(2), jnp.zeros(3, jnp.uint32)])
    def test_what_is_none(self, seed):
        with pytest.raises((TypeError, ValueError), match="seed") as refusal:
            pe.sample(normal, np.zeros(1), seed=seed, **QUICK)
        assert_sentence(refusal, "seed")


class TestContext:
    @pytest.mark.xdist_group("pymc")
    def test_of_pymc(self):
        pm = pytest.importorskip("pymc")
        with pm.Model():
            pm.Normal("mu")
            result = pe.sample(seed=1, **QUICK)
        assert result.labels == ["mu"]

    def test_no_model(self):
        with pytest.raises(TypeError, match="target") as refusal:
            pe.sample()
        assert_sentence(refusal, "target", "with model")


class TestSave:
    @pytest.mark.parametrize("fields", [{}, {"log_importance": np.linspace(0, 1, 800).reshape(4, 200)}])
    def test_is_loaded_as_it_was(self, tmp_path, fields):
        result = two_modes(doubts=("odd.",), stopped=None, **fields)
        path = result.save(tmp_path / "run.zarr")
        again = pe.load(path, target())
        for name in ("unconstrained", "log_weights", "weights"):
            np.testing.assert_array_equal(getattr(again, name), getattr(result, name))
        assert again.statistics.keys() == result.statistics.keys()
        for name, values in result.statistics.items():
            np.testing.assert_array_equal(again.statistics[name], values)
        assert (again.method, again.seed, again.doubts, again.notes) == (
            result.method,
            result.seed,
            result.doubts,
            result.notes,
        )

    def test_xarray_reads_it(self, tmp_path):
        xarray = pytest.importorskip("xarray")
        result = two_modes()
        path = result.save(tmp_path / "run.zarr")
        data = xarray.open_zarr(path, group="posterior")
        assert data["theta"].shape == (4, 200, 2)
        assert list(data["side"].to_numpy()) == ["left", "right_one"]

    def test_nothing_goes_on_from_it(self, tmp_path):
        path = two_modes().save(tmp_path / "run.zarr")
        with pytest.raises(pe.StoreError, match="saved") as refusal:
            pe.resume(path, log_density)
        assert_sentence(refusal, "saved")

    def test_never_over_another(self, tmp_path):
        two_modes().save(tmp_path / "run.zarr")
        with pytest.raises(pe.StoreError, match="holds a run"):
            two_modes().save(tmp_path / "run.zarr")
