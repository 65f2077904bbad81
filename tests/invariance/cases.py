"""Extended targets of which exact draws can be made, one or more for each instrument.

An exact draw picks the pseudo-sample k that carries the target, with probability inversely proportional to the mass
of its instrument, then x_k ~ π and the others from theirs.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.special import betaln, ndtr

import pseudo_extended as pe
from pseudo_extended.problems.mixtures import NormalMixture

Exact = Callable[[np.random.Generator, int], np.ndarray]


class Case(NamedTuple):
    target: pe.Target
    instrument: pe.instruments.AbstractInstrument
    num_particles: int
    exact: Exact
    """Exact draws of the flat vector of the extended target."""

    @property
    def extended(self) -> pe.ExtendedTarget:
        return pe.ExtendedTarget(self.target, self.instrument, self.num_particles)


def logit(beta, low, high):
    return np.log(beta - low) - np.log(high - beta)


def flat(x, *auxiliary):
    """x: (size, particle, d)."""
    return np.concatenate([x.reshape(len(x), -1), *auxiliary], axis=1)


def with_target(rng, others, from_target, probabilities=None):
    """Replace one pseudo-sample of each row by a draw from the target's side; arrays (size, particle, …)."""
    size, particles = others.shape[:2]
    k = rng.choice(particles, size=size, p=probabilities)
    mixed = others.copy()
    mixed[np.arange(size), k] = from_target
    return mixed, k


def standard_normal(d):
    return pe.Target(lambda x: -0.5 * jnp.sum(x**2), np.zeros(d))


def rejection(rng, size, propose, log_ratio):
    """Draws of `propose` accepted with probability exp(log_ratio) ≤ 1."""
    kept = np.zeros((0,))
    while len(kept) < size:
        batch = propose(4 * size)
        log_accept = log_ratio(batch)
        assert np.all(log_accept <= 1e-12)
        batch = batch[np.log(rng.uniform(size=len(batch))) < log_accept]
        kept = batch if len(kept) == 0 else np.concatenate([kept, batch])
    return kept[:size]


def tempered_normal(d=1, particles=3, low=0.05, high=1.0) -> Case:
    """γ = exp(-x²/2) without a base: q(β) ∝ β^(-d/2), β's own distribution by inversion."""

    def exact(rng, size):
        u = rng.uniform(size=(size, particles))
        power = 1 - d / 2
        beta = (low**power + u * (high**power - low**power)) ** (1 / power)
        x = rng.normal(size=(size, particles, d)) / np.sqrt(beta)[..., None]
        x, k = with_target(rng, x, rng.normal(size=(size, d)))
        beta[np.arange(size), k] = rng.uniform(low, high, size)
        return flat(x, logit(beta, low, high))

    return Case(standard_normal(d), pe.Tempered(low, high), particles, exact)


def tempered_with_prior_and_g(d=2, particles=2, low=0.1, high=0.9) -> Case:
    """g(β) = β cancels Z(β) = 2π/β, so β is uniform under q; under the target it has density π(β) ∝ β."""
    instrument = pe.Tempered(low, high, log_prior=lambda beta: jnp.log(beta), log_g=lambda beta: jnp.log(beta))

    def exact(rng, size):
        beta = rng.uniform(low, high, (size, particles))
        x = rng.normal(size=(size, particles, d)) / np.sqrt(beta)[..., None]
        x, k = with_target(rng, x, rng.normal(size=(size, d)))
        beta[np.arange(size), k] = np.sqrt(low**2 + rng.uniform(size=size) * (high**2 - low**2))
        return flat(x, logit(beta, low, high))

    return Case(standard_normal(d), instrument, particles, exact)


def fixed_beta(d=2, particles=3, beta=0.3) -> Case:
    def exact(rng, size):
        x = rng.normal(size=(size, particles, d)) / np.sqrt(beta)
        return flat(with_target(rng, x, rng.normal(size=(size, d)))[0])

    return Case(standard_normal(d), pe.Fixed(beta), particles, exact)


def ladder() -> Case:
    betas, log_g = np.array([0.1, 0.4, 1.0]), np.array([-0.8, 0.3, 0.0])

    def exact(rng, size):
        x = rng.normal(size=(size, 3, 1)) / np.sqrt(betas)[:, None]
        share = np.sqrt(betas) * np.exp(-log_g)  # 1 / (Z(β) g)
        return flat(with_target(rng, x, rng.normal(size=(size, 1)), share / share.sum())[0])

    return Case(standard_normal(1), pe.Ladder(betas, log_g), 3, exact)


def own_density() -> Case:
    """A mixture of normals with a normal q."""
    density = NormalMixture(np.array([0.3, 0.7]), np.array([[-1.0], [1.5]]), np.array([0.2, 0.4]))

    def exact(rng, size):
        x = 0.5 + 2 * rng.normal(size=(size, 2, 1))
        return flat(with_target(rng, x, density.draw(rng, size))[0])

    return Case(pe.Target(density, np.zeros(1)), pe.Density(pe.Normal(0.5, 2.0)), 2, exact)


def own_density_positive() -> Case:
    """Exponential(1) on x > 0, with q = Exponential(1/2) in the user's space: both need the Jacobian of x = exp(u)."""
    target = pe.Target(lambda x: -jnp.sum(x), np.ones(1), bounds=(0, None))
    instrument = pe.Density(lambda x: -0.5 * jnp.sum(x) + jnp.log(0.5))

    def exact(rng, size):
        x = rng.exponential(2.0, size=(size, 2, 1))
        return flat(np.log(with_target(rng, x, rng.exponential(1.0, size=(size, 1)))[0]))

    return Case(target, instrument, 2, exact)


def tempered_interval(particles=2, low=0.2, high=1.0) -> Case:
    """Beta(2, 3) on (0, 1): the bijection comes before tempering, so x given β is Beta(2β, 3β), Z(β) = B(2β, 3β)."""
    target = pe.Target(lambda x: jnp.sum(jnp.log(x) + 2 * jnp.log1p(-x)), np.full(1, 0.5), bounds=(0, 1))

    def exact(rng, size):
        def log_ratio(beta):
            return betaln(2 * beta, 3 * beta) - betaln(2 * low, 3 * low)

        draw = rejection(rng, size * particles, lambda n: rng.uniform(low, high, n), log_ratio)
        beta = draw.reshape(size, particles)
        x = rng.beta(2 * beta, 3 * beta)[..., None]
        x, k = with_target(rng, x, rng.beta(2, 3, size=(size, 1)))
        beta[np.arange(size), k] = rng.uniform(low, high, size)
        return flat(np.log(x) - np.log1p(-x), logit(beta, low, high))

    return Case(target, pe.Tempered(low, high), particles, exact)


def normal_path(target, mean, scale, log_z_at_one) -> Exact:
    """A path from N(0, 2²), normalised, to a normal γ with Z = exp(log_z_at_one), β in (0, 1), N = 2."""
    low, high, particles = 0.0, 1.0, 2

    def exact(rng, size):
        def parts(beta):
            precision = beta / scale**2 + (1 - beta) / 4
            centre = beta * mean / scale**2 / precision
            log_z = (
                beta * (log_z_at_one - np.log(scale))
                - (1 - beta) * np.log(2)
                - 0.5 * np.log(precision)
                - 0.5 * (beta * mean**2 / scale**2 - precision * centre**2)
            )
            return precision, centre, log_z

        # log Z is convex along the path, so its largest value is at one end.
        top = max(parts(0.0)[2], parts(1.0)[2])
        draw = rejection(rng, size * particles, lambda n: rng.uniform(low, high, n), lambda b: parts(b)[2] - top)
        beta = draw.reshape(size, particles)
        precision, centre, _ = parts(beta)
        x = (centre + rng.normal(size=beta.shape) / np.sqrt(precision))[..., None]
        x, k = with_target(rng, x, mean + scale * rng.normal(size=(size, 1)))
        beta[np.arange(size), k] = rng.uniform(low, high, size)
        return flat(x, logit(beta, low, high))

    return exact


def path_to_normal_base() -> Case:
    target = pe.Target(lambda x: -0.5 * jnp.sum((x - 1) ** 2) / 0.25 + 0.7, np.zeros(1), base=pe.Normal(0.0, 2.0))
    log_z = 0.7 + 0.5 * np.log(2 * np.pi * 0.25)
    return Case(target, pe.Tempered(beta_min=0.0), 2, normal_path(target, 1.0, 0.5, log_z))


def path_to_prior() -> Case:
    """Prior N(0, 2²), likelihood of y = 1 with noise 1/2: conjugate, so the posterior and the evidence are known."""
    prior, noise, y = 2.0, 0.5, 1.0
    scale = (1 / prior**2 + 1 / noise**2) ** -0.5
    mean = y * scale**2 / noise**2
    target = pe.Target(
        example=np.zeros(1),
        log_prior=lambda x: jnp.sum(-0.5 * (x / prior) ** 2 - jnp.log(prior * jnp.sqrt(2 * jnp.pi))),
        log_likelihood=lambda x: jnp.sum(-0.5 * ((y - x) / noise) ** 2 - jnp.log(noise * jnp.sqrt(2 * jnp.pi))),
    )
    total = prior**2 + noise**2
    log_z = -0.5 * y**2 / total - 0.5 * np.log(2 * np.pi * total)
    return Case(target, pe.Tempered(beta_min=0.0), 2, normal_path(target, mean, scale, log_z))


def per_particle() -> Case:
    """A normal q, a fixed temperature and a free one, side by side."""
    beta, low, high = 0.3, 0.1, 0.9
    instrument = pe.PerParticle([pe.Density(pe.Normal(0.0, 2.0)), pe.Fixed(beta), pe.Tempered(low, high)])
    root = np.sqrt(2 * np.pi)
    mass = np.array([1.0, root / np.sqrt(beta), root * 2 * (np.sqrt(high) - np.sqrt(low)) / (high - low)])
    share = (1 / mass) / np.sum(1 / mass)

    def exact(rng, size):
        free = (np.sqrt(low) + rng.uniform(size=size) * (np.sqrt(high) - np.sqrt(low))) ** 2
        scale = np.stack([np.full(size, 2.0), np.full(size, beta**-0.5), free**-0.5], axis=1)
        x = scale[..., None] * rng.normal(size=(size, 3, 1))
        x, k = with_target(rng, x, rng.normal(size=(size, 1)), share)
        free = np.where(k == 2, rng.uniform(low, high, size), free)
        return flat(x, logit(free, low, high)[:, None])

    return Case(standard_normal(1), instrument, 3, exact)


def stratified(correlation) -> Case:
    """β through a Gaussian copula; Π_{j≠k} Z(β_j) by rejection from the copula itself."""
    low, high, particles = 0.1, 1.0, 3
    instrument = pe.Stratified(low, high, correlation=correlation)
    factor = instrument._factor(particles)

    def betas(noise):
        return low + (high - low) * ndtr(noise @ factor.T)

    def exact(rng, size):
        # By symmetry choose k first, accept the noise with Π_{j≠k} (low/β_j)^(1/2).
        k = rng.integers(particles, size=20 * size)
        noise = rng.normal(size=(20 * size, factor.shape[1]))
        log_accept = 0.5 * np.log(low / betas(noise))
        log_accept[np.arange(len(k)), k] = 0.0
        keep = np.flatnonzero(np.log(rng.uniform(size=len(k))) < log_accept.sum(axis=1))[:size]
        assert len(keep) == size
        k, noise = k[keep], noise[keep]
        x = rng.normal(size=(size, particles)) / np.sqrt(betas(noise))
        x[np.arange(size), k] = rng.normal(size=size)
        return flat(x[..., None], noise)

    return Case(standard_normal(1), instrument, particles, exact)


def one_particle() -> Case:
    """N = 1: the target itself, and β from its prior."""
    case = tempered_normal(particles=1)

    def exact(rng, size):
        return np.stack([rng.normal(size=size), logit(rng.uniform(0.05, 1.0, size), 0.05, 1.0)], axis=1)

    return case._replace(exact=exact)


CASES: dict[str, Callable[[], Case]] = {
    "tempered": tempered_normal,
    "tempered, prior and g": tempered_with_prior_and_g,
    "tempered, interval": tempered_interval,
    "tempered, normal base": path_to_normal_base,
    "tempered, prior base": path_to_prior,
    "fixed": fixed_beta,
    "ladder": ladder,
    "density": own_density,
    "density, positive": own_density_positive,
    "per particle": per_particle,
    "stratified": lambda: stratified(-0.3),
    "stratified, singular": lambda: stratified(None),
    "one particle": one_particle,
}
