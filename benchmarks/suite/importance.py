"""Reference answers by importance sampling from a mixture of Student laws at modes that are given.

The mixture starts at Laplace's approximation of every mode, is refitted to its own weighted draws twice, and then
frozen: the last round is unbiased, and its error is that of independent draws. Coordinates that close a circle are
measured the short way round from each component, and a draw further than half the circle counts for nothing.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

from suite.on_host import OnHost
from suite.priors import Box
from suite.problem import Problem

FREEDOM = 5.0
ROUNDS = (20_000, 60_000, 200_000)
WINDOW = 14.0
"""Modes with less than exp(−14) of the mass of the heaviest by Laplace's approximation are left out."""


@dataclass(frozen=True)
class Mixture:
    """Student laws with weights, means and the roots of their scale matrices."""

    log_weights: Float[np.ndarray, " component"]
    means: Float[np.ndarray, "component d"]
    roots: Float[np.ndarray, "component d d"]
    periods: Float[np.ndarray, " d"]
    """The circumference of coordinates that close a circle; infinite for the others."""

    def draw(self, rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Points, and whether each lies within half a circle of the component that it came from."""
        weights = np.exp(self.log_weights - logsumexp(self.log_weights))
        component = rng.choice(len(weights), size=size, p=weights)
        normal = rng.normal(size=(size, self.means.shape[1]))
        scale = np.sqrt(FREEDOM / rng.chisquare(FREEDOM, size))
        step = np.einsum("nij,nj->ni", self.roots[component], normal) * scale[:, None]
        return self.means[component] + step, np.all(np.abs(step) < self.periods / 2, axis=1)

    def log_densities(self, points: np.ndarray) -> Float[np.ndarray, "component point"]:
        """The weighted log density of every component."""
        dim, rows = self.means.shape[1], []
        constant = gammaln((FREEDOM + dim) / 2) - gammaln(FREEDOM / 2) - 0.5 * dim * np.log(FREEDOM * np.pi)
        for log_weight, mean, root in zip(self.log_weights, self.means, self.roots, strict=True):
            z = np.linalg.solve(root, self.short(points - mean).T)
            log_root = np.sum(np.log(np.diag(root)))
            rows.append(
                log_weight + constant - log_root - 0.5 * (FREEDOM + dim) * np.log1p(np.sum(z**2, axis=0) / FREEDOM)
            )
        return np.stack(rows) - logsumexp(self.log_weights)

    def short(self, step: np.ndarray) -> np.ndarray:
        """A step the short way round."""
        finite = np.isfinite(self.periods)
        turned = step.copy()
        turned[..., finite] -= self.periods[finite] * np.round(step[..., finite] / self.periods[finite])
        return turned


@dataclass(frozen=True)
class Reference:
    """log Z, its error, and the probabilities of the problem's quantities, with theirs."""

    log_evidence: float
    log_evidence_error: float
    value: Float[np.ndarray, " quantity"]
    error: Float[np.ndarray, " quantity"]
    ess: float
    num_modes: int

    def record(self) -> dict[str, Any]:
        """What is kept."""
        return {
            "log_evidence": round(self.log_evidence, 5),
            "log_evidence_error": float(f"{self.log_evidence_error:.2g}"),
            "ess": round(self.ess),
            "modes": self.num_modes,
        }


def climb(problem: Problem, starts: Float[np.ndarray, "start d"]) -> Float[np.ndarray, "mode d"]:
    """Local maxima of log γ inside the prior's support, from the starts; the same maximum may come up again."""
    both = jax.jit(jax.value_and_grad(problem.log_gamma))
    bounds = None
    if isinstance(problem.prior, Box):
        width = problem.prior.high - problem.prior.low
        inner = 1e-6 * width * ~np.isin(np.arange(problem.dim), problem.periodic)
        low, high = problem.prior.low + inner, problem.prior.high - inner
        bounds, starts = list(zip(low, high, strict=True)), np.clip(starts, low, high)

    def negative(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = both(x)
        return (-float(value), -np.asarray(slope, float)) if np.isfinite(value) else (1e30, np.zeros(len(x)))

    return np.stack([minimize(negative, x, jac=True, method="L-BFGS-B", bounds=bounds).x for x in starts])


def laplace(problem: Problem, modes: Float[np.ndarray, "mode d"]) -> Mixture:
    """The normal approximation at every mode; curvatures that are no maximum's are replaced by the box's width."""
    density, hessian = jax.jit(problem.log_gamma), jax.jit(jax.hessian(problem.log_gamma))
    box = problem.prior if isinstance(problem.prior, Box) else None
    width = box.high - box.low if box is not None else 6 * problem.prior.sd  # pyright: ignore[reportAttributeAccessIssue]
    periods = np.full(problem.dim, np.inf)
    periods[list(problem.periodic)] = width[list(problem.periodic)]
    rows = []
    for mode in modes:
        values, vectors = np.linalg.eigh(-np.asarray(hessian(mode)) * np.outer(width, width))
        values = np.maximum(np.nan_to_num(values), 30.0)
        covariance = (vectors / values) @ vectors.T * np.outer(width, width)
        root = np.linalg.cholesky(covariance)
        rows.append((float(density(mode)) + np.sum(np.log(np.diag(root))), mode, root))
    heights = np.array([row[0] for row in rows])
    kept = distinct(np.stack([row[1] for row in rows]), heights, width, periods)
    kept = [k for k in kept if heights[k] > heights.max() - WINDOW]
    means, roots = np.stack([rows[k][1] for k in kept]), np.stack([rows[k][2] for k in kept])
    return Mixture(np.maximum(heights[kept], heights.max() - 6.0), means, 1.2 * roots, periods)


def distinct(places: np.ndarray, heights: np.ndarray, width: np.ndarray, periods: np.ndarray) -> list[int]:
    """The highest of every group of places closer than a thousandth of the width."""
    kept: list[int] = []
    for k in np.argsort(-heights):
        step = places[k] - places[kept] if kept else np.full((0, len(width)), np.inf)
        finite = np.isfinite(periods)
        step[:, finite] -= periods[finite] * np.round(step[:, finite] / periods[finite])
        if not np.any(np.max(np.abs(step) / width, axis=1) < 1e-3):
            kept.append(int(k))
    return kept


def reference(
    problem: Problem,
    starts: Float[np.ndarray, "start d"],
    seed: int,
    *,
    region: Any = None,
    copies: int = 1,
    rounds: tuple[int, ...] = ROUNDS,
) -> Reference:
    """Climb from the starts, and sample at the modes.

    With symmetries, `region` says which points stand for all `copies` of them, and the starts must lie there.
    """
    rng, host = np.random.default_rng(seed), OnHost(problem)
    mixture = laplace(problem, climb(problem, starts))
    points, log_weights = np.zeros((0, problem.dim)), np.zeros(0)
    for number, size in enumerate(rounds):
        points, counts = mixture.draw(rng, size)
        if isinstance(problem.prior, Box):
            points = _wrapped(problem, points)
            counts &= np.all((points >= problem.prior.low) & (points <= problem.prior.high), axis=1)
        if region is not None:
            counts &= region(points)
        parts = mixture.log_densities(points)
        inside = np.where(counts[:, None], points, problem.first)
        log_gamma = _log_gamma(problem, host, inside)
        log_weights = np.where(counts, log_gamma - logsumexp(parts, axis=0), -np.inf)
        if number < len(rounds) - 1:
            mixture = _refitted(mixture, points, log_weights, parts)
    weights = np.exp(log_weights - log_weights.max())
    total = weights.mean()
    error = float(np.std(weights) / np.sqrt(len(weights)) / total)
    counts = weights > 0
    values = np.asarray(jax.vmap(problem.quantities)(jnp.asarray(points[counts])))
    share = weights[counts] / weights.sum()
    value = share @ values
    return Reference(
        float(np.log(total) + log_weights.max() + np.log(copies)),
        error,
        value,
        np.sqrt(share**2 @ (values - value) ** 2),
        float(1 / np.sum(share**2)),
        len(mixture.means),
    )


def _wrapped(problem: Problem, points: np.ndarray) -> np.ndarray:
    assert isinstance(problem.prior, Box)
    places = list(problem.periodic)
    low, high = problem.prior.low[places], problem.prior.high[places]
    points = points.copy()
    points[:, places] = low + np.mod(points[:, places] - low, high - low)
    return points


def _log_gamma(problem: Problem, host: OnHost, points: np.ndarray, size: int = 8192) -> np.ndarray:
    ratio = np.concatenate([host.many(points[k : k + size]) for k in range(0, len(points), size)])
    return ratio + np.asarray(jax.vmap(problem.prior.log_density)(jnp.asarray(points)))


def _refitted(mixture: Mixture, points: np.ndarray, log_weights: np.ndarray, parts: np.ndarray) -> Mixture:
    """Means, scales and weights of the components by their shares of the weighted draws; tiny ones stay as they are."""
    weights = np.exp(log_weights - logsumexp(log_weights))
    shares = np.exp(parts - logsumexp(parts, axis=0)) * weights
    mass = shares.sum(axis=1)
    means, roots = mixture.means.copy(), mixture.roots.copy()
    for k, share in enumerate(shares):
        effective = share.sum() ** 2 / max(np.sum(share**2), 1e-300)
        if effective < 20 * points.shape[1]:
            continue
        step = mixture.short(points - mixture.means[k])
        middle = share @ step / mass[k]
        spread = (step - middle).T @ ((step - middle) * (share / mass[k])[:, None])
        means[k] = mixture.means[k] + middle
        roots[k] = np.linalg.cholesky(spread + 1e-9 * np.diag(np.diag(spread)))
    return Mixture(np.log(np.maximum(mass, 1e-4 * mass.max())), means, 1.05 * roots, mixture.periods)
