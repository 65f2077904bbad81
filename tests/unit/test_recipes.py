"""Recipes: equal where the programs are, and where anything else is, another or none."""

from collections import OrderedDict
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended import compiled, recipes
from pseudo_extended.methods.adaptive import moves
from pseudo_extended.recipes import recipe
from pseudo_extended.tempering.moves import move_points

KEY = jax.random.key(7)
A = np.random.default_rng(0).normal(size=(50, 4))
FACTOR = {"of the value": 1.0, "of the slope": 1.0}


@jax.custom_jvp
def with_a_rule(x):
    return -FACTOR["of the value"] * jnp.sum(x**2)


@with_a_rule.defjvp
def _(primals, tangents):
    [x], [direction] = primals, tangents
    return with_a_rule(x), -2 * FACTOR["of the slope"] * jnp.vdot(x, direction)


def with_a_loop(x):
    def body(total, part):
        return 0.5 * total + part, jnp.where(total > 0, total, 0.0)

    total, parts = jax.lax.scan(body, 0.0, x)
    return -(total**2) - jnp.sum(parts) + jax.scipy.special.gammaln(jnp.exp(x[0]))


def with_a_matrix(x):
    covariance = jnp.exp(x[0]) * jnp.eye(4) + 1
    half = jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(covariance), x, lower=True)
    return -jnp.sum(half**2) - jnp.linalg.slogdet(covariance)[1]


DENSITIES = {
    "normal": lambda x: -jnp.sum(x**2),
    "of another width": lambda x: -2 * jnp.sum(x**2),
    "hardly of another": lambda x: -np.nextafter(2.0, 3.0) * jnp.sum(x**2),
    "regression": lambda x: jnp.sum(jax.nn.log_sigmoid(A @ x)) - jnp.sum(x**2),
    "regression on other data": lambda x: jnp.sum(jax.nn.log_sigmoid((A + 1e-12) @ x)) - jnp.sum(x**2),
    "a loop": with_a_loop,
    "a matrix": with_a_matrix,
    "a branch": lambda x: jax.lax.cond(x[0] > 0, lambda: -jnp.sum(x**2), lambda: -jnp.sum(x**4)),
    "a rule": with_a_rule,
    "a key": lambda x: -jnp.sum((x - jax.random.normal(KEY, (4,))) ** 2),
    "some entries": lambda x: -jnp.sum(x[np.array([0, 3])] ** 2) - jnp.sum(x**4),
    "functions of statistics": lambda x: jnp.sum(jax.scipy.stats.t.logpdf(x, 3.0) + jax.nn.softplus(x)),
}


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def of(log_density, method=None, dim=4, **options):
    return recipe(pe.Target(log_density, np.zeros(dim), **options), method or pe.AdaptivePseudoExtended())


def test_one_for_each_density():
    found = {name: of(density) for name, density in DENSITIES.items()}
    assert None not in found.values()
    assert len(set(found.values())) == len(found)
    assert found == {name: of(density) for name, density in DENSITIES.items()}


def test_rounding_of_methods_and_targets_counts():
    normal, methods = DENSITIES["normal"], [pe.AdaptivePseudoExtended(6), pe.Plain(pe.HMC(3)), pe.Plain(pe.NUTS())]
    methods += [pe.Plain(pe.HMC(3, target_acceptance=rate)) for rate in (0.7, np.nextafter(0.7, 1.0))]
    targets = [{"bounds": (0.0, 1.0)}, {"base": pe.Normal()}, {"base": pe.Normal(scale=2.0)}, {"dim": 3}]
    targets += [{"base": pe.Base(density)} for density in (DENSITIES["normal"], DENSITIES["of another width"])]
    targets += [{"symmetries": [pe.permutation()]}]
    found = [of(normal, method) for method in methods] + [of(normal, **options) for options in targets]
    assert None not in found
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("which", FACTOR)
def test_a_global_that_changed(monkeypatch, which):
    before = of(with_a_rule)
    monkeypatch.setitem(FACTOR, which, 3.0)
    assert of(with_a_rule) != before
    monkeypatch.undo()
    assert of(with_a_rule) == before


def test_a_sampler_that_changed(monkeypatch):
    def prior(width):
        return pe.Base(DENSITIES["normal"], lambda key: width * jax.random.normal(key, (4,)))

    assert len({of(DENSITIES["regression"], base=prior(width)) for width in (1.0, 2.0)} - {None}) == 2


class Kernel(NamedTuple):
    """What a user may have written."""

    step: float = 0.1


class TestNone:
    def test_functions_called_in_python(self):
        assert of(pe.from_numpy(lambda x: -np.sum(x**2), lambda x: -2 * x)) is None
        assert of(lambda x: jax.pure_callback(lambda x: -np.sum(x**2), jax.ShapeDtypeStruct((), float), x)) is None

    def test_classes_and_functions_of_users(self):
        assert of(DENSITIES["normal"], Kernel()) is None
        assert of(DENSITIES["normal"], lambda: None) is None
        instrument = pe.Tempered(0.1, log_g=lambda beta: -beta)
        assert of(DENSITIES["normal"], pe.PseudoExtended(instrument)) is None

    def test_what_prints(self):
        def talks(x):
            jax.debug.print("{}", x[0])
            return -jnp.sum(x**2)

        assert of(talks) is None


def test_a_library_that_somebody_changed(monkeypatch):
    before = of(DENSITIES["normal"])
    with monkeypatch.context() as patch:
        patch.setattr(moves, "refresh", lambda *_: None)
        assert of(DENSITIES["normal"]) is None
    with monkeypatch.context() as patch:
        patch.setattr(pe.HMC, "step", lambda *_: None)
        assert of(DENSITIES["normal"]) is None
    with monkeypatch.context() as patch:
        patch.setattr(moves, "refresh", move_points)
        assert of(DENSITIES["normal"]) not in (None, before)
    with monkeypatch.context() as patch:
        patch.setattr("pseudo_extended.kernels.leapfrog.MAX_ENERGY_ERROR", 10.0)
        assert of(DENSITIES["normal"]) not in (None, before)
    assert of(DENSITIES["normal"]) == before


def test_a_target_is_traced_once_in_a_run():
    traces = []
    target = pe.Target(lambda x: traces.append(1) or -jnp.sum(x**2), np.zeros(2))
    traces.clear()
    with recipes.one_run():
        first = recipe(target, 1)
        number = len(traces)
        assert recipe(target, 2) != first
        assert len(traces) == number
    assert recipe(target, 1) == first
    assert len(traces) > number


class NoNeedError(Exception):
    """Something was lowered."""


def refuse(jobs, lowered):
    raise NoNeedError


def sample(log_density):
    return pe.sample(log_density, np.zeros(2), draws=20, warmup=20, chains=2, seed=1, progress=False)


def rarely_used(x):
    return -jnp.sum(jnp.cosh(0.37 * x))


def test_a_second_run_lowers_nothing(monkeypatch):
    first = sample(rarely_used)
    monkeypatch.setattr(compiled, "_compile", refuse)
    np.testing.assert_array_equal(sample(lambda x: rarely_used(x)).unconstrained, first.unconstrained)
    with pytest.raises(NoNeedError):
        sample(lambda x: 2 * rarely_used(x))


@pytest.mark.parametrize("harm", ["none", "recipe", "program"])
def test_a_second_process(monkeypatch, tmp_path, harm):
    """As good as one: nothing in memory. What is broken is made again."""
    monkeypatch.setenv("PSEUDO_EXTENDED_CACHE", str(tmp_path / "cache"))

    def new_process():
        monkeypatch.setattr(compiled, "_compiled", OrderedDict())
        monkeypatch.setattr(compiled, "_recipes", OrderedDict())

    new_process()
    first = sample(rarely_used)
    files = list((tmp_path / "cache").glob("*.program-recipe" if harm == "recipe" else "*.program"))
    assert len(files) == 4
    new_process()
    if harm == "none":
        monkeypatch.setattr(compiled, "_compile", refuse)
    else:
        for file in files:
            file.write_bytes(file.read_bytes()[:-3] + b"abc")
    np.testing.assert_array_equal(sample(rarely_used).unconstrained, first.unconstrained)
