"""Mean-field solutions of a Boltzmann machine, and the normal base that they give its relaxation.

Graham and Storkey (2017) fit independent units, q(s) = Π (1 + m_i s_i)/2, from many starts; each solution m bounds the
machine's log normaliser from below by B(m), and gives the relaxation the mean Qᵀm and the covariance
Qᵀdiag(1 - m²)Q + I. Distinct solutions are mixed by exp B(m), and the normal has the mixture's moments.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp, xlogy

from pseudo_extended import checks
from pseudo_extended.problems.boltzmann import Relaxation
from pseudo_extended.problems.files import data_file
from pseudo_extended.target.bases import Normal

SWEEPS, TOLERANCE = 1000, 1e-10
SAME = 1e-4
"""Solutions nearer than this in every unit are one."""


class VariationalNormal(NamedTuple):
    """A normal approximation of a relaxation, and its guess of the relaxation's log Z."""

    base: Normal
    """The normal, as a base of a target."""
    log_zeta: float
    """The guess of log Z."""
    num_solutions: int | None
    """How many were mixed, where it is known."""


def mean_field(density: Relaxation, *, restarts: int = 100, seed: int = 0) -> VariationalNormal:
    """The base of Graham and Storkey for a relaxation.

    >>> from pseudo_extended.problems import boltzmann_machine
    >>> problem = boltzmann_machine(10, seed=1)
    >>> fitted = mean_field(problem.density)
    >>> -3 < fitted.log_zeta - problem.log_evidence < 0       # each solution is a bound from below
    True
    """
    checks.instance("density", density, Relaxation, "the density of a Boltzmann problem")
    restarts = checks.integer("restarts", restarts, minimum=1)
    rng = np.random.default_rng(checks.integer("seed", seed, minimum=0))
    coupling, bias = np.asarray(density.coupling), np.asarray(density.bias)
    units, dim = coupling.shape
    weights = coupling @ coupling.T
    own = np.diag(weights).copy()  # s_i² = 1: a constant, and no pull of a unit on itself
    np.fill_diagonal(weights, 0)
    found: list[tuple[float, Float[np.ndarray, " unit"]]] = []
    for _ in range(restarts):
        m = _solve(weights, bias, rng.uniform(-1, 1, size=units))
        if not any(np.max(np.abs(m - other)) < SAME for _, other in found):
            found.append((_bound(weights, bias, m), m))
    bounds, solutions = np.array([bound for bound, _ in found]), np.array([m for _, m in found])
    share = np.exp(bounds - logsumexp(bounds))
    means = solutions @ coupling
    mean = share @ means
    spread = np.einsum("k,ki,kj->ij", share, means - mean, means - mean)
    inner = coupling.T @ np.diag(share @ (1 - solutions**2)) @ coupling
    log_zeta = (
        float(np.asarray(logsumexp(bounds))) + 0.5 * own.sum() + 0.5 * dim * np.log(2 * np.pi) - units * np.log(2)
    )
    return VariationalNormal(
        Normal(mean, np.linalg.cholesky(spread + inner + np.eye(dim))), float(log_zeta), len(found)
    )


def load_mean_field(directory: str | Path | None = None) -> VariationalNormal:
    """The normal that the authors fitted to their own relaxation, `load_boltzmann()`, out of their files."""
    with np.load(data_file("var_moms.npz", directory), allow_pickle=False) as arrays:
        base = Normal(arrays["var_mean"], arrays["var_covar_chol"])
        return VariationalNormal(base, float(arrays["var_log_norm"]), None)


def _solve(weights: np.ndarray, bias: np.ndarray, m: Float[np.ndarray, " unit"]) -> Float[np.ndarray, " unit"]:
    """m_i = tanh(Σ_j W_ij m_j + b_i), unit after unit, which never lowers the bound."""
    for _ in range(SWEEPS):
        before = m.copy()
        for i in range(len(m)):
            m[i] = np.tanh(weights[i] @ m + bias[i])
        if np.max(np.abs(m - before)) < TOLERANCE:
            break
    return m


def _bound(weights: np.ndarray, bias: np.ndarray, m: Float[np.ndarray, " unit"]) -> float:
    up, down = (1 + m) / 2, (1 - m) / 2
    return float(0.5 * m @ weights @ m + bias @ m - np.sum(xlogy(up, up) + xlogy(down, down)))
