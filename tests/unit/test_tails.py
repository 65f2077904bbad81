"""Tails without a mean are told of, and a light mode far out is not taken for one."""

import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.results.tails import TOO_HEAVY, heaviest_tails

from .landscapes import exact_result

SEEDS = range(40)


def called_heavy(draw, size=4000):
    """How often draws are said to have too heavy tails."""
    found = 0
    for seed in SEEDS:
        x = draw(np.random.default_rng(seed), size).reshape(4, -1, 1, 1)
        found += int(heaviest_tails(x, np.ones(x.shape[:3]), np.array([float(size)]))[0] > TOO_HEAVY)
    return found


@pytest.mark.parametrize("mass", [0.005, 0.01, 0.02, 0.05, 0.3])
@pytest.mark.parametrize("away", [8.0, 15.0])
def test_a_light_mode_is_no_heavy_tail(mass, away):
    """From below it looks like one: with a single fit, 40 of 40 runs with a mode of one per cent were warned of."""
    assert called_heavy(lambda rng, size: rng.normal(size=size) + away * (rng.random(size) < mass)) <= 1


@pytest.mark.parametrize("freedom", [0.8, 1.0])
def test_a_tail_without_a_mean_is_heavy(freedom):
    assert called_heavy(lambda rng, size: rng.standard_t(freedom, size)) >= 38


def test_in_one_direction():
    assert called_heavy(lambda rng, size: np.abs(rng.standard_cauchy(size))) >= 36


def test_a_tail_with_a_variance_is_not():
    assert called_heavy(lambda rng, size: rng.standard_t(4, size)) == 0


@pytest.mark.parametrize(("bounds", "warned"), [((None, None), True), ((-1e9, 1e9), False), ((-1e9, None), True)])
def test_between_two_bounds_every_moment_exists(bounds, warned):
    x = np.random.default_rng(0).standard_cauchy(size=(4000, 1))
    target = pe.Target(lambda p: -jnp.log1p(jnp.sum(p["a"] ** 2)), {"a": np.zeros(1)}, bounds={"a": bounds})
    shown = exact_result(target, x)
    shown.__dict__["points"] = {"a": x.reshape(4, 1000, 1, 1)}
    assert ("PE205" in {message.code for message in shown.warnings}) == warned
