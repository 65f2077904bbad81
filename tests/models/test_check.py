"""pe.check: each finding must be able to be bad."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe

pytestmark = pytest.mark.xdist_group("check")
EXAMPLE = {"a": np.zeros(2), "s": 1.0}


def target(*, factor=1.0, **changes):
    parts = {
        "log_prior": lambda p: -0.5 * jnp.sum(p["a"] ** 2) - p["s"],
        "log_likelihood": lambda p: -((p["a"][0] + 2 * p["a"][1] - 1) ** 2) / p["s"] - p["a"][0] ** 4,
        "sample_prior": lambda key: {
            "a": factor * jax.random.normal(key, (2,)),
            "s": jax.random.exponential(jax.random.fold_in(key, 1)),
        },
    }
    return pe.Target(example=EXAMPLE, bounds={"s": (0, None)}, **parts | changes)


def verdicts(found):
    return {finding.what: finding.verdict for finding in found.findings}


def test_a_good_model_is_good_and_the_list_is_printed(capsys):
    found = pe.check(target())
    assert set(verdicts(found).values()) == {"good"}, str(found)
    assert found.ok
    printed = capsys.readouterr().out
    for what in ("shapes", "density", "gradient", "differences", "transforms", "prior", "tails", "precision", "price"):
        assert f"✓ {what}" in printed


@pytest.mark.parametrize(
    ("model", "what", "verdict"),
    [
        (lambda: target(factor=2.0), "prior", "bad"),
        pytest.param(lambda: target(log_prior=lambda p: -p["s"]), "prior", "bad", marks=pytest.mark.slow),
        (
            lambda: target(log_likelihood=lambda p: -((p["a"][0] + p["a"][1]) ** 2) - p["s"] ** 2),
            "parameters",
            "doubtful",
        ),
        pytest.param(
            lambda: target(log_likelihood=lambda p: -(p["a"][0] ** 2) - p["s"] ** 2),
            "parameters",
            "doubtful",
            marks=pytest.mark.slow,
        ),
        (lambda: pe.Target(lambda x: -(x[0] ** 2), np.zeros(2)), "parameters", "bad"),
        pytest.param(
            lambda: pe.Target(lambda x: -jnp.sum(jnp.log1p(x**2)) / 4, np.zeros(2)),
            "tails",
            "doubtful",
            marks=pytest.mark.slow,
        ),
        (lambda: pe.Target(pe.from_numpy(lambda x: -x @ x, lambda x: -x), np.zeros(2)), "differences", "bad"),
        pytest.param(
            lambda: pe.Target(pe.from_numpy(lambda x: -x @ x), np.zeros(2)),
            "gradient",
            "doubtful",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda: pe.Target(lambda x: jnp.sum(jnp.where(x > 0, -x, -jnp.inf)), np.zeros(2)),
            "density",
            "doubtful",
            marks=pytest.mark.slow,
        ),
        (lambda: pe.Target(lambda x: jnp.sum(jnp.log(-jnp.abs(x))), np.zeros(2)), "density", "bad"),
        pytest.param(
            lambda: pe.Target(lambda x: -jnp.sum(x.astype(jnp.float32) ** 2), np.zeros(2)),
            "shapes",
            "doubtful",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_is_wrong_is_found(model, what, verdict):
    made = model()
    init = None if made.base is not None else np.full(2, 0.5)
    found = pe.check(made, init, show=False)
    assert found[what].verdict == verdict, str(found)
