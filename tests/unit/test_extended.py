"""The extended target: the identities of the paper, by hand, by finite differences and by quadrature.

Exact identities are compared at 1e-11 (sums of some ten terms of size 10, in another order). Quadrature is the
trapezoidal rule for analytic functions that vanish at both ends, and Gauss-Legendre in β; both converge faster than any
power, and the grids are fine enough for 1e-8.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.extended import Particles
from pseudo_extended.problems.mixtures import NormalMixture

N = 3


def log_g(beta):
    return 1.5 * jnp.log(beta) - beta


def log_prior(beta):
    return 0.7 * jnp.log(beta) + jnp.sin(beta)


def log_density(p):
    """Not normal, not symmetric, with a positive parameter."""
    return -0.5 * jnp.sum((p["mu"] - jnp.sin(p["sigma"])) ** 2) - p["sigma"] + 0.3 * jnp.cos(p["mu"][0] * p["mu"][1])


EXAMPLE, BOUNDS = {"mu": np.zeros(2), "sigma": 1.0}, {"sigma": (0, None)}
TARGETS = {
    "no base": pe.Target(log_density, EXAMPLE, bounds=BOUNDS),
    "normal base": pe.Target(log_density, EXAMPLE, bounds=BOUNDS, base=pe.Normal(0.5, 2.0)),
    "own base": pe.Target(
        log_density, EXAMPLE, bounds=BOUNDS, base=pe.Base(lambda p: -jnp.sum(jnp.cosh(p["mu"] / 4)) - 0.2 * p["sigma"])
    ),
    "prior": pe.Target(
        example=EXAMPLE,
        bounds=BOUNDS,
        log_prior=lambda p: -0.1 * jnp.sum(p["mu"] ** 2) - p["sigma"],
        log_likelihood=lambda p: -jnp.sum((p["mu"] - p["sigma"]) ** 2),
    ),
}


def own_q(p):
    return -0.2 * jnp.sum(jnp.abs(p["mu"]) ** 1.5) - 0.5 * p["sigma"]


SYMMETRIC = {
    "tempered": pe.Tempered(0.1, 0.95),
    "tempered, prior and g": pe.Tempered(0.1, 0.95, log_prior=log_prior, log_g=log_g),
    "fixed": pe.Fixed(0.3),
    "density, normal": pe.Density(pe.Normal(0.1, 1.7)),
    "density, own": pe.Density(own_q),
    "stratified": pe.Stratified(0.1),
    "stratified, regular": pe.Stratified(0.1, 0.9, correlation=-0.3),
}
INSTRUMENTS = SYMMETRIC | {
    "ladder": pe.Ladder([0.1, 0.4, 1.0], [0.5, -1.0, 0.2]),
    "per particle": pe.PerParticle([pe.Tempered(0.2, log_g=log_g), pe.Density(own_q), pe.Fixed(0.6)]),
}
FOR_ONE = {name: instrument for name, instrument in SYMMETRIC.items() if not isinstance(instrument, pe.Stratified)} | {
    "ladder": pe.Ladder([0.4], [0.8]),
    "per particle": pe.PerParticle([pe.Tempered(0.2, log_g=log_g)]),
}


def some_point(extended, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=extended.dim) * 0.8)


def evaluate(extended, *points, gradient=True):
    """Density, gradient and log weights at each point, from one compilation."""

    def at(flat):
        value = extended.log_density
        both = jax.value_and_grad(value)(flat) if gradient else (value(flat), flat)
        return *both, extended.terms(flat).log_weight

    return zip(*(np.asarray(part) for part in jax.jit(jax.vmap(at))(jnp.stack(points))), strict=True)


@pytest.fixture(params=TARGETS)
def target(request):
    return TARGETS[request.param]


@pytest.mark.usefixtures("x64")
class TestIdentities:
    @pytest.mark.parametrize("name", FOR_ONE)
    def test_one_pseudo_sample_is_the_target(self, target, name):
        """Value and gradient; what is left over is π(β) and the Jacobian of β, which know nothing of x."""
        instrument = FOR_ONE[name]
        extended = pe.ExtendedTarget(target, instrument, 1)
        flat = some_point(extended)
        x, u = extended.split(flat)

        def rest(u):
            has_beta = bool(u.size)
            beta = instrument.betas(1, u)
            prior = log_prior(beta)[0] if name == "tempered, prior and g" else 0.0
            return prior + jnp.sum(jnp.log(jax.nn.sigmoid(u) * jax.nn.sigmoid(-u))) if has_beta else jnp.zeros(())

        [(value, gradient, _)] = evaluate(extended, flat)
        (log_target, slope), (left, slope_left) = jax.jit(
            lambda x, u: (jax.value_and_grad(target.log_target)(x), jax.value_and_grad(rest)(u))
        )(x[0], u)
        np.testing.assert_allclose(value, log_target + left, rtol=1e-11)
        np.testing.assert_allclose(gradient[: target.dim], slope, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(gradient[target.dim :], slope_left, rtol=1e-9, atol=1e-11)

    @pytest.mark.parametrize("name", SYMMETRIC)
    @pytest.mark.parametrize("base", ["no base", "own base"])
    def test_exchange_of_pseudo_samples(self, base, name):
        """Density, weights and gradient follow an exchange of pseudo-samples together with their temperatures."""
        target, instrument, order = TARGETS[base], SYMMETRIC[name], np.array([2, 0, 1])
        extended = pe.ExtendedTarget(target, instrument, N)
        flat = some_point(extended)
        x, u = extended.split(flat)
        if isinstance(instrument, pe.Stratified):
            # The temperatures are Φ(A v): exchange the entries of s = A v, and go back to v.
            factor = instrument._factor(N)
            exchanged = jnp.asarray(np.linalg.pinv(factor) @ (factor @ np.asarray(u))[order])
        else:
            exchanged = u[order] if u.size else u
        other = extended.join(Particles(x[order], exchanged))
        np.testing.assert_allclose(extended.betas(other), extended.betas(flat)[order], rtol=1e-11)
        before, after = evaluate(extended, flat, other)
        np.testing.assert_allclose(after[0], before[0], rtol=1e-11)
        np.testing.assert_allclose(
            extended.split(after[1]).x, extended.split(before[1]).x[order], rtol=1e-9, atol=1e-11
        )
        np.testing.assert_allclose(after[2], before[2][order], rtol=1e-11, atol=1e-11)

    def test_a_ladder_is_not_symmetric(self):
        """The test above can fail."""
        extended = pe.ExtendedTarget(TARGETS["no base"], INSTRUMENTS["ladder"], N)
        flat = some_point(extended)
        other = extended.join(Particles(extended.split(flat).x[::-1], flat[:0]))
        assert abs(float(extended.log_density(other) - extended.log_density(flat))) > 1e-3

    @pytest.mark.parametrize("name", INSTRUMENTS)
    @pytest.mark.parametrize("base", ["no base", "prior"])
    def test_gradient_against_central_differences(self, base, name):
        """With h = 1e-5 the rule errs by h² f‴/6 ≈ 1e-10 and rounding by 1e-15·|f|/h ≈ 1e-9."""
        extended = pe.ExtendedTarget(TARGETS[base], INSTRUMENTS[name], N)
        flat, step = some_point(extended, seed=1), 1e-5
        offsets = step * np.eye(extended.dim)
        values, gradients, _ = zip(*evaluate(extended, flat, *(flat + offsets), *(flat - offsets)), strict=True)
        slope = (np.array(values[1 : 1 + extended.dim]) - np.array(values[1 + extended.dim :])) / (2 * step)
        np.testing.assert_allclose(gradients[0], slope, rtol=1e-6, atol=1e-6)

    @pytest.mark.parametrize("name", INSTRUMENTS)
    def test_split_undoes_join(self, name):
        extended = pe.ExtendedTarget(TARGETS["no base"], INSTRUMENTS[name], N)
        flat = some_point(extended)
        particles = extended.split(flat)
        assert particles.x.shape == (N, 3)
        np.testing.assert_array_equal(extended.join(particles), flat)
        x = np.arange(9.0).reshape(3, 3)
        start = extended.start(jax.random.key(0), jnp.asarray(x))
        assert start.shape == (extended.dim,)
        np.testing.assert_array_equal(extended.split(start).x, x)


def by_hand(target, x):
    """log γ and log γ0 of each row, from the user's functions and the log Jacobian u of sigma = exp(u)."""
    values = []
    for row in np.asarray(x):
        position = {"mu": row[:2], "sigma": np.exp(row[2])}
        log_base = 0.0
        if isinstance(target.base, pe.Normal):
            log_base = np.sum(-0.5 * ((row - 0.5) / 2.0) ** 2 - np.log(2.0) - 0.5 * np.log(2 * np.pi))
        elif target.base is not None:
            log_base = float(target.base.function(position)) + row[2]
        if target.log_density is not None:
            log_target = float(target.log_density(position)) + row[2]
        else:
            log_target = log_base + float(target.log_likelihood(position))
        values.append((log_target, log_base))
    return np.array(values).T


@pytest.mark.usefixtures("x64")
class TestByHand:
    def test_equation_7(self, target):
        """(1/N) Σ_i [γ(x_i)π(β_i) / γ_β(x_i)g(β_i)] Π_j γ_β(x_j)g(β_j), times dβ/du, in NumPy."""
        low, high = 0.1, 0.95
        extended = pe.ExtendedTarget(target, INSTRUMENTS["tempered, prior and g"], N)
        flat = some_point(extended)
        x, u = np.asarray(flat[:9]).reshape(3, 3), np.asarray(flat[9:])
        beta = low + (high - low) / (1 + np.exp(-u))
        log_target, log_base = by_hand(target, x)
        log_path = beta * log_target + (1 - beta) * log_base
        prior, g = np.asarray(log_prior(beta)), np.asarray(log_g(beta))
        ratio = np.exp(log_target + prior - log_path - g)
        jacobian = np.exp(-u) / (1 + np.exp(-u)) ** 2
        expected = np.log(ratio.sum() / N) + np.sum(log_path + g) + np.sum(np.log(jacobian))
        [(value, _, log_weight)] = evaluate(extended, flat, gradient=False)
        np.testing.assert_allclose(value, expected, rtol=1e-11)
        np.testing.assert_allclose(extended.betas(flat), beta, rtol=1e-13)
        weight = np.exp(log_weight)
        np.testing.assert_allclose(weight / weight.sum(), ratio / ratio.sum(), rtol=1e-11)

    @pytest.mark.parametrize(
        ("instrument", "beta", "g"),
        [
            (pe.Fixed(0.3), np.full(3, 0.3), np.zeros(3)),
            (pe.Ladder([0.1, 0.4, 1.0], [0.5, -1.0, 0.2]), np.array([0.1, 0.4, 1.0]), np.array([0.5, -1.0, 0.2])),
            (
                pe.PerParticle([pe.Fixed(0.2), pe.Ladder([0.5], [0.7]), pe.Fixed(1.0)]),
                np.array([0.2, 0.5, 1.0]),
                np.array([0.0, 0.7, 0.0]),
            ),
        ],
        ids=["fixed", "ladder", "per particle"],
    )
    def test_fixed_temperatures(self, target, instrument, beta, g):
        extended = pe.ExtendedTarget(target, instrument, N)
        flat = some_point(extended)
        log_target, log_base = by_hand(target, np.asarray(flat).reshape(3, 3))
        log_q = beta * log_target + (1 - beta) * log_base + g
        expected = np.log(np.mean(np.exp(log_target - log_q))) + np.sum(log_q)
        [(value, _, log_weight)] = evaluate(extended, flat, gradient=False)
        np.testing.assert_allclose(value, expected, rtol=1e-11)
        np.testing.assert_allclose(log_weight, log_target - log_q, rtol=1e-11, atol=1e-11)

    @pytest.mark.parametrize("name", ["density, normal", "density, own"])
    def test_a_general_q(self, target, name):
        """Eqs. 2 and 3; a q in the user's space takes the Jacobian with it, a normal is one on u already."""
        extended = pe.ExtendedTarget(target, INSTRUMENTS[name], N)
        flat = some_point(extended)
        x = np.asarray(flat).reshape(3, 3)
        log_target, _ = by_hand(target, x)
        if name == "density, normal":
            log_q = np.sum(-0.5 * ((x - 0.1) / 1.7) ** 2 - np.log(1.7) - 0.5 * np.log(2 * np.pi), axis=1)
        else:
            log_q = -0.2 * np.sum(np.abs(x[:, :2]) ** 1.5, axis=1) - 0.5 * np.exp(x[:, 2]) + x[:, 2]
        expected = np.log(np.mean(np.exp(log_target - log_q))) + np.sum(log_q)
        [(value, _, log_weight)] = evaluate(extended, flat, gradient=False)
        np.testing.assert_allclose(value, expected, rtol=1e-11)
        np.testing.assert_allclose(log_weight, log_target - log_q, rtol=1e-11, atol=1e-11)

    def test_stratified(self, target):
        """log h(v) is normal in the white noise; the weights are exp{(1-β)Δ} whatever h is."""
        instrument = INSTRUMENTS["stratified"]
        extended = pe.ExtendedTarget(target, instrument, N)
        flat = some_point(extended)
        beta = np.asarray(extended.betas(flat))
        log_target, log_base = by_hand(target, np.asarray(flat[:9]).reshape(3, 3))
        log_path = beta * log_target + (1 - beta) * log_base
        expected = np.log(np.mean(np.exp((1 - beta) * (log_target - log_base)))) + np.sum(log_path)
        expected -= 0.5 * float(jnp.sum(flat[9:] ** 2))
        [(value, _, _)] = evaluate(extended, flat, gradient=False)
        np.testing.assert_allclose(value, expected, rtol=1e-11)


# Quadrature on the line, N = 2.

MIXTURE = NormalMixture(np.array([0.35, 0.65]), np.array([[-1.2], [1.6]]), np.array([0.5, 0.7]))
LINE = np.linspace(-11, 11, 121)
FUNCTIONS = {"x": lambda x: x, "x²": np.square, "cos": lambda x: np.cos(2 * x), "step": lambda x: 1.0 * (np.abs(x) < 1)}


def unnormalised(x):
    return MIXTURE(x) + 1.3  # the constant must not matter


LINE_TARGETS = {
    "no base": pe.Target(unnormalised, np.zeros(1)),
    "normal base": pe.Target(unnormalised, np.zeros(1), base=pe.Normal(0.4, 2.0)),
}


def densities(target):
    """π on the grid (its probabilities), and log γ0 and Δ there."""
    path = jax.jit(jax.vmap(target.path_point))(jnp.asarray(LINE)[:, None])
    pi = np.exp(np.asarray(path.log_target))
    return pi / pi.sum(), np.asarray(path.log_base), np.asarray(path.delta)


def joint(extended, grids):
    """Probabilities and normalised weights on the product of `grids`, an axis for each coordinate."""
    points = jnp.asarray(np.stack(np.meshgrid(*grids, indexing="ij"), axis=-1).reshape(-1, len(grids)))
    log_p, log_weight = jax.jit(jax.vmap(lambda flat: (extended.log_density(flat), extended.terms(flat).log_weight)))(
        points
    )
    shape = tuple(len(grid) for grid in grids)
    density = np.exp(np.asarray(log_p) - np.max(log_p)).reshape(shape)
    return density, np.asarray(jax.nn.softmax(log_weight, axis=-1)).reshape(*shape, -1)


WITHOUT_AUXILIARY = {
    "fixed": pe.Fixed(0.3),
    "ladder": pe.Ladder([0.2, 0.7], [0.4, -0.6]),
    "density": pe.Density(pe.Normal(0.5, 2.0)),
    "density, own": pe.Density(lambda x: -jnp.sum(jnp.logaddexp(x, -x)) + 0.9),
    "per particle": pe.PerParticle([pe.Fixed(0.4), pe.Density(pe.Normal(-0.5, 1.5))]),
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("base", LINE_TARGETS)
class TestQuadrature:
    @pytest.mark.parametrize("name", WITHOUT_AUXILIARY)
    def test_theorem_2_1_and_marginals(self, base, name):
        """E[Σ w_i f(x_i)] is E[f] under the target, for any q (a step function is met exactly by both sums).

        The marginals are ½π + ½q for equal instruments; in general pseudo-sample i carries the target in a share of
        the draws that is proportional to 1/mass of its q_i.
        """
        target = LINE_TARGETS[base]
        density, weights = joint(pe.ExtendedTarget(target, WITHOUT_AUXILIARY[name], 2), (LINE, LINE))
        pi, log_base, delta = densities(target)
        for f in FUNCTIONS.values():
            weighted = weights[..., 0] * f(LINE)[:, None] + weights[..., 1] * f(LINE)[None, :]
            estimate = np.sum(density * weighted) / density.sum()
            np.testing.assert_allclose(estimate, np.sum(pi * f(LINE)), rtol=1e-8, atol=1e-8)

        def path(beta, log_g=0.0):
            return np.exp(log_base + beta * delta + log_g)

        normal = [np.exp(-0.5 * ((LINE - m) / s) ** 2) / s / np.sqrt(2 * np.pi) for m, s in ((0.5, 2.0), (-0.5, 1.5))]
        own = np.exp(-np.logaddexp(LINE, -LINE) + 0.9)
        parts = {
            "fixed": [path(0.3), path(0.3)],
            "ladder": [path(0.2, 0.4), path(0.7, -0.6)],
            "density": [normal[0], normal[0]],
            "density, own": [own, own],
            "per particle": [path(0.4), normal[1]],
        }[name]
        inverse = np.array([1 / q.sum() for q in parts])
        shares = inverse / inverse.sum()
        for i, q in enumerate(parts):
            marginal = density.sum(axis=1 - i) / density.sum()
            np.testing.assert_allclose(marginal, shares[i] * pi + (1 - shares[i]) * q / q.sum(), rtol=1e-7, atol=1e-12)

    @pytest.mark.parametrize("name", ["uniform", "prior and g"])
    def test_free_temperatures(self, base, name):
        """Four-dimensional: theorem 2.1, and the marginals of x_1 and of β_1 are halves of target and instrument."""
        low, high = 0.15, 0.95
        functions = {} if name == "uniform" else {"log_prior": log_prior, "log_g": log_g}
        target = LINE_TARGETS[base]
        extended = pe.ExtendedTarget(target, pe.Tempered(low, high, **functions), 2)
        line = LINE[::2]
        nodes, node_weights = np.polynomial.legendre.leggauss(12)
        beta = (low + high) / 2 + (high - low) / 2 * nodes
        u = np.log(beta - low) - np.log(high - beta)
        density, weights = joint(extended, (line, line, u, u))
        # From densities of u to densities of β: divide by dβ/du.
        slope = (beta - low) * (high - beta) / (high - low)
        measure = node_weights / slope
        density = density * measure[:, None] * measure
        density /= density.sum()
        pi, log_base, delta = (values[::2] for values in densities(target))
        pi = pi / pi.sum()
        for f in (np.square, np.cos):
            weighted = weights[..., 0] * f(line)[:, None, None, None] + weights[..., 1] * f(line)[None, :, None, None]
            np.testing.assert_allclose(np.sum(density * weighted), np.sum(pi * f(line)), rtol=1e-7)
        prior = np.exp(log_prior(beta)) if functions else np.ones(12)
        prior = prior * node_weights / np.sum(prior * node_weights)
        g = np.exp(log_g(beta)) if functions else np.ones(12)
        q = np.exp(log_base[:, None] + beta * delta[:, None]) * g * node_weights
        q /= q.sum()
        pair = density.sum(axis=(1, 3))
        np.testing.assert_allclose(pair, 0.5 * pi[:, None] * prior + 0.5 * q, rtol=1e-6, atol=1e-12)

    @pytest.mark.parametrize("correlation", [None, -0.6])
    def test_stratified_temperatures(self, base, correlation):
        """Theorem 2.1 with temperatures that depend on each other; the white noise by the trapezoidal rule."""
        target = LINE_TARGETS[base]
        extended = pe.ExtendedTarget(target, pe.Stratified(0.15, 0.95, correlation=correlation), 2)
        line, noise = LINE[::2], np.linspace(-6, 6, 21)
        grids = (line, line, *([noise] * extended.instrument.num_auxiliary(2)))
        density, weights = joint(extended, grids)
        density = density.reshape(len(line), len(line), -1)
        weights = weights.reshape(len(line), len(line), -1, 2)
        pi = densities(target)[0][::2]
        for f in (np.square, np.cos):
            weighted = weights[..., 0] * f(line)[:, None, None] + weights[..., 1] * f(line)[None, :, None]
            estimate = np.sum(density * weighted) / density.sum()
            np.testing.assert_allclose(estimate, np.sum(pi * f(line)) / pi.sum(), rtol=1e-6)


@pytest.mark.usefixtures("x64")
class TestWhereTheTargetVanishes:
    """Exponential target on the positive half line, base normal: Δ = -inf on the left."""

    target = pe.Target(lambda x: jnp.where(x[0] > 0, -x[0], -jnp.inf), np.ones(1), base=pe.Normal(0.0, 2.0))

    @pytest.mark.parametrize("instrument", [pe.Fixed(0.0), pe.Ladder([0.0, 1.0]), pe.Density(pe.Normal(0.0, 2.0))])
    def test_at_beta_zero_the_path_is_the_base(self, instrument):
        """Pseudo-sample 1 at -1 has weight zero, and the density is that of the base there times the target at 2."""
        extended = pe.ExtendedTarget(self.target, instrument, 2)
        flat = jnp.array([-1.0, 2.0])
        log_base = -0.5 * (1 / 2) ** 2 - np.log(2) - 0.5 * np.log(2 * np.pi)
        [(value, gradient, log_weight)] = evaluate(extended, flat)
        np.testing.assert_allclose(value, log_base - 2.0 - np.log(2), rtol=1e-13)
        assert log_weight[0] == -np.inf
        assert np.isfinite(log_weight[1])
        np.testing.assert_allclose(gradient, [0.25, -1.0], rtol=1e-12)

    @pytest.mark.parametrize(
        "instrument",
        [pe.Fixed(0.0), pe.Fixed(0.5), pe.Fixed(1.0), pe.Ladder([0.0, 1.0]), pe.Tempered(0.0), pe.Stratified(0.0)],
    )
    def test_density_is_zero_where_no_pseudo_sample_can_carry_the_target(self, instrument):
        extended = pe.ExtendedTarget(self.target, instrument, 2)
        flat = jnp.concatenate([jnp.array([-1.0, -2.0]), jnp.zeros(extended.dim - 2)])
        assert float(jax.jit(lambda point: extended.log_density(point))(flat)) == -np.inf

    @pytest.mark.parametrize("beta", [0.5, 1.0])
    def test_above_zero_the_instrument_vanishes_with_the_target(self, beta):
        extended = pe.ExtendedTarget(self.target, pe.Fixed(beta), 2)
        for x in itertools.permutations([-1.0, 2.0]):
            assert float(extended.log_density(jnp.array(x))) == -np.inf

    def test_beta_that_rounds_to_zero(self):
        """At u = -800 the free β is 0 as a double: the path is the base, not 0 · (-inf)."""
        extended = pe.ExtendedTarget(self.target, pe.Tempered(0.0), 2)
        flat = jnp.array([-1.0, 2.0, -800.0, 0.0])
        assert float(extended.betas(flat)[0]) == 0.0
        assert np.isfinite(float(extended.log_density(flat)))

    @pytest.mark.parametrize("value", [jnp.nan, jnp.inf])
    def test_what_is_no_density_is_density_zero(self, value):
        target = pe.Target(lambda x: jnp.where(x[0] > 0, -x[0], value), np.ones(1))
        extended = pe.ExtendedTarget(target, pe.Fixed(0.5), 2)
        assert float(extended.log_density(jnp.array([-1.0, 2.0]))) == -np.inf
