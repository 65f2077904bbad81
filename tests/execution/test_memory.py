"""Memory is asked for before it is needed."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.run import recorder, room

RUN = {"method": pe.Plain(pe.RandomWalk()), "draws": 20, "warmup": 5, "chains": 2, "seed": 1, "progress": False}


def normal(x):
    return -0.5 * jnp.sum(x**2)


def sample(init=(0.0, 0.0), **options):
    return pe.sample(normal, np.array(init), **RUN | options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"chains": 10**9}, r"chains must be fewer, .* of 1000000000 chains of 1 points in 2 dimensions .* GB free\.$"),
        ({"chunk": 10**12}, r"chunk must be smaller: 1000000000000 draws .* GB free\.$"),
        ({"method": pe.PseudoExtended(pe.Fixed(0.1), num_particles=10**10)}, "chains must be fewer, or num_particles"),
        ({"warmup": 10**12}, r"warmup must be smaller: 1000000000000 takes about .* GB free\.$"),
        ({"draws": 2**40, "thin": 2**40}, r"draws, thin and warmup must make fewer than 2⁶² iterations; got .*\.$"),
        (
            {"method": pe.EquiEnergy([-1, 1], [1.0, 3.0], ring_capacity=10**9)},
            r"method must remember less: the state of its chains takes about .* GB free\.$",
        ),
    ],
)
def test_what_cannot_begin_is_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        sample(**options)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: pe.AnnealedImportance(num_steps=10**12), "num_steps of AnnealedImportance"),
        (lambda: pe.from_prior_transform(normal, lambda u: u, 10**12), "ndim"),
        (lambda: pe.problems.boltzmann_machine(10**7), "units"),
        (
            lambda: pe.simulation_based_calibration(
                jnp.zeros, lambda key, x: x, normal, lambda x, y: normal(x - y), simulations=10**12
            ),
            "simulations",
        ),
    ],
)
def test_counts_of_what_is_no_run_are_asked_for_too(call, name):
    with pytest.raises(
        ValueError, match=rf"^{name} must be smaller: \d+ takes about .* GB; this machine has .* free\.$"
    ):
        call()


def test_draws_that_will_not_fit_are_told_of_before(monkeypatch, capsys):
    for module in (room, recorder):
        monkeypatch.setattr(module, "free_memory", lambda: 1e6)
    result = sample(draws=10**6, progress=True)
    sentence = r"draws = 1000000 of 2 chains take about 48.0 MB, .* Pass store= for room on disk, or thin=193 to keep"
    assert result.stopped == "memory"
    assert 0 < result.num_draws < 10**6
    assert any(re.search(sentence, warning) for warning in result.warnings), result.warnings
    assert "Pass store= for room on disk" in capsys.readouterr().err
    assert not any("Pass store=" in warning for warning in sample().warnings)


def test_what_other_processes_take_meanwhile_ends_the_run_too(monkeypatch):
    monkeypatch.setattr(recorder, "SECONDS_BETWEEN_LOOKS", 0.0)
    looks = iter([1e10, *[1e6] * 10**6])
    monkeypatch.setattr(recorder, "free_memory", lambda: next(looks))
    result = sample(draws=10**7, time_limit=60)
    assert result.stopped == "memory"
    assert 0 < result.num_draws < 10**7


def test_a_store_has_room(tmp_path, monkeypatch):
    for module in (room, recorder):
        monkeypatch.setattr(module, "free_memory", lambda: 1e6)
    result = sample(draws=2000, store=tmp_path / "run.zarr")
    assert result.num_draws == 2000
    assert not any("Pass store=" in warning for warning in result.warnings)
