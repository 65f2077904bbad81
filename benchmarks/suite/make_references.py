"""Reference answers where there is no closed form: importance sampling at every mode, or quadrature.

Run: PSEUDO_EXTENDED_DATA=… python benchmarks/suite/make_references.py needles-circular-0 slcp eprv3-1-1 …
"""

import argparse
import fnmatch
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr

sys.path.insert(0, str(Path(__file__).parents[1]))

import suite
from suite import needles, one_planet, references, symmetric
from suite.importance import reference
from suite.problem import Problem

FREQUENCY_STEPS = 6
"""Frequencies of the search for pairs of periods, for each inverse of the time that the nights span."""


def pairs_of_periods(seed: int, *, eccentric: bool, window: float = 18.0, most: int = 80) -> np.ndarray:
    """Starts at the local maxima of the likelihood over pairs of frequencies, circular orbits, the rest fitted."""
    time, measured = needles.simulate(seed, eccentric=eccentric)
    low, high = 1 / needles.HIGH_PERIOD, 1 / needles.LOW_PERIOD
    step = 1 / (FREQUENCY_STEPS * np.ptp(time))
    frequencies = np.arange(low, high, step)
    angle = 2 * np.pi * frequencies[:, None] * time
    waves = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    first, second = np.triu_indices(len(frequencies), 1)
    fits = [_fits(waves, a, b, measured) for a, b in zip(
        np.array_split(first, 40), np.array_split(second, 40), strict=True
    )]  # fmt: skip
    squares, amplitudes = (np.concatenate(parts) for parts in zip(*fits, strict=True))
    surface = np.full((len(frequencies), len(frequencies)), np.inf)
    surface[first, second] = surface[second, first] = squares
    log_likelihood = -0.5 * len(time) * np.log(surface)
    is_peak = np.isfinite(surface)
    for rows, columns in ((0, 1), (1, 0), (1, 1), (1, -1)):
        for sign in (1, -1):
            neighbour = np.roll(log_likelihood, (sign * rows, sign * columns), (0, 1))
            is_peak &= log_likelihood >= np.where(np.isnan(neighbour), -np.inf, neighbour)
    chosen = np.flatnonzero(is_peak[first, second])
    heights = log_likelihood[first[chosen], second[chosen]]
    best = chosen[np.argsort(-heights)][:most]
    best = best[log_likelihood[first[best], second[best]] > heights.max() - window]
    starts = []
    for k in best:
        jitter = 0.5 * np.log(squares[k] / len(time))
        planets = []
        # The longer period comes second; the region is log period 1 < log period 2.
        for place, frequency in ((1, frequencies[second[k]]), (0, frequencies[first[k]])):
            cosine, sine = amplitudes[k, 1 + 2 * place : 3 + 2 * place]
            size, phase = np.hypot(cosine, sine), np.mod(np.arctan2(-sine, cosine), 2 * np.pi)
            if eccentric:
                planets += [-np.log(frequency), min(size, 19.0), 0.1, 0.01, phase]
            else:
                planets += [-np.log(frequency), min(size, 19.0), phase]
        starts.append([amplitudes[k, 0], jitter, *planets])
    return np.array(starts)


def _fits(waves: np.ndarray, a: np.ndarray, b: np.ndarray, measured: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums of squares and coefficients of the least-squares fit of two waves and a constant."""
    ones = np.ones((len(a), 1, len(measured)))
    design = np.concatenate([ones, waves[a], waves[b]], axis=1)
    normal = design @ design.transpose(0, 2, 1) + 1e-6 * np.eye(5)
    coefficients = np.linalg.solve(normal, (design @ measured)[:, :, None])[:, :, 0]
    residual = measured - np.einsum("nk,nkt->nt", coefficients, design)
    return np.sum(residual**2, axis=1), coefficients


def of_needles(name: str) -> dict[str, Any]:
    """Both labellings by symmetry: points with the shorter period first stand for all."""
    kind, seed = name.split("-")[1:]
    eccentric = kind == "eccentric"
    problem, second = suite.load(name), 7 if eccentric else 5
    starts = pairs_of_periods(int(seed), eccentric=eccentric)
    if eccentric:
        places = [place for place in range(problem.dim) if (place - 2) % 5 == 3 and place > 1]
        turned = []
        for angle in (1.0, 3.0, 5.0):
            copy = starts.copy()
            copy[:, places] = angle
            copy[:, [place + 1 for place in places]] -= angle
            copy[:, [place + 1 for place in places]] %= 2 * np.pi
            turned.append(copy)
        starts = np.concatenate(turned)
    found = reference(problem, starts, 0, region=lambda x: x[:, 2] < x[:, second], copies=2)
    share, error = float(found.value[0]), float(found.error[0])
    return found.record() | {"share": round(share / 2, 5), "share_error": float(f"{error / 2:.2g}")}


def of_factors(name: str) -> dict[str, Any]:
    """One pattern of signs stands for all."""
    problem = suite.load(name)
    count = int(np.log2(len(problem.asked["mass"].truth)))
    starts = [_prior_draw(problem, seed) for seed in range(20)]
    variables = {2: 8, 3: 12}[count]
    rows, columns = np.tril_indices(variables, 0, count)
    diagonal = np.flatnonzero(rows == columns)
    signs = np.sign(np.array(starts)[:, diagonal])
    folded = np.array(starts)
    folded[:, : len(rows)] *= signs[:, columns]
    found = reference(problem, folded, 0, region=lambda x: np.all(x[:, diagonal] > 0, axis=1), copies=2**count)
    return found.record()


def of_labels(name: str) -> dict[str, Any]:
    """Points with increasing means stand for all labellings."""
    problem = suite.load(name)
    count = problem.dim // 3
    draws = np.stack([_prior_draw(problem, seed) for seed in range(150)]).reshape(-1, 3, count)
    order = np.argsort(draws[:, 0], axis=1)
    starts = np.take_along_axis(draws, order[:, None], axis=2).reshape(-1, problem.dim)
    copies = int(np.prod(np.arange(1, count + 1)))
    found = reference(
        problem, starts, 0, region=lambda x: np.all(np.diff(x[:, :count], axis=1) > 0, axis=1), copies=copies
    )
    return found.record()


def of_mrna(_: str) -> dict[str, Any]:
    """Points with b < d stand for both."""
    problem = suite.load("mrna")
    draws = np.stack([_prior_draw(problem, seed) for seed in range(200)])
    draws[:, 2:4] = np.sort(draws[:, 2:4], axis=1)
    return reference(problem, draws, 0, region=lambda x: x[:, 2] < x[:, 3], copies=2).record()


def _prior_draw(problem: Problem, seed: int) -> np.ndarray:
    cube = np.random.default_rng([seed, 5]).uniform(0.02, 0.98, problem.dim)
    return np.asarray(problem.prior.from_cube(jnp.asarray(cube)))


def of_slcp(_: str) -> dict[str, Any]:
    """Quadrature in four coordinates; the fifth, the second mean given the first, by the normal distribution."""
    y = symmetric.slcp_data()
    coarse = _slcp_at(y, (64, 64, 72, 96))[0]
    fine, mean, square = _slcp_at(y, (80, 80, 90, 120))
    return {
        "log_evidence": round(fine, 6),
        "log_evidence_error": float(f"{max(abs(fine - coarse), 1e-6):.2g}"),
        "mean": [float(f"{number:.7g}") for number in mean],
        "square": [float(f"{number:.7g}") for number in square],
    }


def _slcp_at(y: np.ndarray, nodes: tuple[int, int, int, int]) -> tuple[float, np.ndarray, np.ndarray]:
    """log Z, means and mean squares of θ₁, θ₂, θ₃², θ₄², θ₅."""
    sides = [
        _nodes(low, 3.0, count) for low, count in zip((-3.0, 0.0, 0.0, -3.0), (*nodes[3:], *nodes[:3]), strict=True)
    ]
    (first, w_first), (a, w_a), (b, w_b), (c, w_c) = sides
    n, centre = len(y), y.mean(axis=0)
    spread = (y - centre).T @ (y - centre)
    logs, sums = [], []
    for theta, weight in zip(c.tolist(), w_c.tolist(), strict=True):
        s, t, x = np.meshgrid(a**2, b**2, first, indexing="ij")
        rho, gap = np.tanh(theta), 1 / np.cosh(theta) ** 2
        within = (spread[0, 0] / s**2 - 2 * rho * spread[0, 1] / (s * t) + spread[1, 1] / t**2) / gap
        u = (centre[0] - x) / s
        # θ₂ given the rest is normal with this mean and deviation
        middle, deviation = centre[1] - rho * t * u, t * np.sqrt(gap / n)
        high, low = (3 - middle) / deviation, (-3 - middle) / deviation
        share = np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
        log = -0.5 * (within + n * u**2) - n * (np.log(s * t) + 0.5 * np.log(gap) + np.log(2 * np.pi))
        log = log + np.log(deviation * np.sqrt(2 * np.pi)) + np.log(np.maximum(share, 1e-300))
        log = log + np.log(4 * weight * w_a[:, None, None] * w_b[:, None] * w_first)
        bell = [np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) for z in (low, high)]
        ratio = (bell[0] - bell[1]) / np.maximum(share, 1e-300)
        second = middle + deviation * ratio
        edges = (low * bell[0] - high * bell[1]) / np.maximum(share, 1e-300)
        second_square = middle**2 + 2 * middle * deviation * ratio + deviation**2 * (1 + edges)
        top = log.max()
        mass = np.exp(log - top)
        columns = [np.ones_like(x), x, second, s, t, theta + 0 * x, x**2, second_square, s**2, t**2, theta**2 + 0 * x]
        logs.append(top)
        sums.append([float(np.sum(mass * np.where(mass > 1e-30, column, 0.0))) for column in columns])
    scaled = np.exp(np.array(logs) - max(logs))[:, None] * np.array(sums)
    total = scaled.sum(axis=0)
    log_evidence = float(np.log(total[0]) + max(logs) - 5 * np.log(6))
    return log_evidence, total[1:6] / total[0], total[6:] / total[0]


def _nodes(low: float, high: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    places, weights = leggauss(count)
    return low + (high - low) * (places + 1) / 2, weights * (high - low) / 2


def of_planets(name: str) -> dict[str, Any]:
    """No planet by quadrature; one by the grid over periods."""
    data_set, count = (int(part) for part in name.split("-")[1:])
    if count == 0:
        return one_planet.no_planet(data_set)
    if count == 1:
        return one_planet.one_planet(data_set)
    raise ValueError(f"there is a reference for no planet and for one; got {name}.")


MAKERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "needles-*": of_needles,
    "factors-*": of_factors,
    "labels-*": of_labels,
    "mrna": of_mrna,
    "slcp": of_slcp,
    "eprv3-?-[01]": of_planets,
}


def main() -> None:
    """Make the references of the problems that are named, by pattern."""
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="problem")
    options = parser.parse_args()
    for name in suite.FACTORIES:
        if not any(fnmatch.fnmatch(name, pattern) for pattern in options.names):
            continue
        for pattern, maker in MAKERS.items():
            if fnmatch.fnmatch(name, pattern):
                found = maker(name)
                references.keep(name, found)
                print(name, found, flush=True)


if __name__ == "__main__":
    main()
