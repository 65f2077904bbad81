"""A store of format 3, which version 0.2 wrote, opens, resumes and extends.

It is a run that was stopped under way, after 12 of 30 draws. Do not write it again: it is here because no later version
wrote it.
"""

import hashlib
import json
import tarfile
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "store-format-3" / "stopped.tar.xz"
DIGEST = "fc791f33f7fa75f3b420f1214ecaca475c54e786f26d6c7e159a5a440dafa45e"
"""SHA-256 of its points and log weights, as the version that wrote it loaded them."""
OPTIONS = {"other_versions": True, "progress": False}


def log_density(x):
    return -0.5 * jnp.sum((x - 1.0) ** 2)


def digest_of_the_first(result):
    first = result.unconstrained[:, :12], result.log_weights[:, :12]
    return hashlib.sha256(b"".join(part.tobytes() for part in first)).hexdigest()


@pytest.fixture
def store(tmp_path):
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "run.zarr"


def test_it_is_small_and_of_format_3(store):
    assert ARCHIVE.stat().st_size < 6_000
    manifest = json.loads(json.loads((store / "engine" / "manifest.json").read_bytes())["manifest"])
    assert manifest["version"] == 3


def test_opens_with_the_draws_that_were_written(store):
    assert pe.verify(store) == []
    loaded = pe.load(store, log_density)
    assert (loaded.num_draws, loaded.stopped, loaded.notes) == (12, "callback", ())
    assert digest_of_the_first(loaded) == DIGEST


def test_resumes_and_extends(store):
    resumed = pe.resume(store, log_density, **OPTIONS)
    assert (resumed.num_draws, resumed.stopped) == (30, None)
    # A run of today has other draws: the version that wrote it had another generator of random numbers. Its steps are
    # long, as its warm-up was short: a fifth of them are accepted.
    extended = pe.extend(store, log_density, 170, **OPTIONS)
    assert extended.num_draws == 200
    assert len(np.unique(extended.unconstrained[0, 12:, 0])) > 15
    np.testing.assert_array_equal(extended.unconstrained[:, :30], resumed.unconstrained)
    for result in (resumed, extended, pe.load(store, log_density)):
        assert digest_of_the_first(result) == DIGEST
    assert pe.verify(store) == []


def test_a_chunk_of_another_place_is_found(store):
    one, other = store / "sample_stats" / "log_weight" / "c.0.0.0", store / "sample_stats" / "lp" / "c.0.0"
    one.write_bytes(other.read_bytes())
    with pytest.raises(pe.StoreError, match="is not the chunk that was written at its place"):
        pe.load(store, log_density)
    assert digest_of_the_first(pe.resume(store, log_density, **OPTIONS)) == DIGEST
