"""Boltzmann machine relaxations: a density on Rᵈ with 2ⁿ overlapping modes and exactly known moments (section 4.2).

A Boltzmann machine P(s) ∝ exp(½ sᵀWs + sᵀb) on {-1, 1}ⁿ is relaxed by x | s ~ N(Qᵀs, I) with QQᵀ = W + D, D diagonal.
The states then sum out one by one, and

    log γ(x) = -½ xᵀx + Σ_k log cosh(q_kᵀx + b_k),    E[X] = QᵀE[S],    E[XXᵀ] = QᵀE[SSᵀ]Q + I,
    log Z = log Σ_s exp(½ sᵀQQᵀs + sᵀb) + (d/2) log 2π - n log 2.

All exact numbers are those of the given Q, rounding and cut eigenvalues included: they use QQᵀ and never W.
"""

from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pseudo_extended import checks
from pseudo_extended.memory import check_fits
from pseudo_extended.problems.diagonal import Diagonal, optimal_diagonal, scalar_shift
from pseudo_extended.problems.enumeration import MAX_UNITS, Enumeration, enumerate_states
from pseudo_extended.problems.files import data_file
from pseudo_extended.target import Target

CITATION = "Graham and Storkey (2017), UAI; Zhang et al. (2012), NeurIPS; Nemeth et al. (2019), section 4.2"
MATRICES = 8
"""Of all units by all units, while a machine is made."""
EIGENVALUE_CUT = 1e-6
"""Directions with a smaller share of the largest eigenvalue are noise of the solver, and dropped from Q."""
FILES = {"machine": "params_and_moms.npz", "relaxation": "relaxations.npz"}


class Relaxation(eqx.Module):
    """log γ of a Boltzmann machine relaxation, not normalised."""

    coupling: Float[np.ndarray, "unit d"]
    """Q."""
    bias: Float[np.ndarray, " unit"]
    states: Enumeration | None
    """The machine enumerated, if it was: for exact draws."""

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """Evaluate the log density of the relaxation, log γ(x)."""
        return -0.5 * jnp.sum(x**2) + jnp.sum(log_cosh(jnp.asarray(self.coupling) @ x + self.bias))

    def draw(self, rng: np.random.Generator, size: int) -> Float[np.ndarray, "size d"]:
        """Independent draws: a state of the machine, then x given the state."""
        if self.states is None:
            raise ValueError("exact draws need the states enumerated; this problem was made with exact=False.")
        centre = self.states.draw(rng, size) @ self.coupling
        return centre + rng.normal(size=centre.shape)


class BoltzmannProblem(NamedTuple):
    """A relaxation with its ground truth, which is None if the states were not enumerated."""

    target: Target
    """What to pass to `pe.sample`."""
    mean: Float[np.ndarray, " d"] | None
    """E[X]."""
    second_moment: Float[np.ndarray, " d"] | None
    """E[X²], elementwise."""
    cross_moment: Float[np.ndarray, "d d"] | None
    """E[XXᵀ]."""
    log_evidence: float | None
    """log Z = log ∫γ(x)dx."""
    density: Relaxation
    """log γ, with an exact sampler."""
    diagonal: Diagonal | None
    """D and the proof of how good it is; None if Q was given."""
    citation: str
    """Where the problem comes from."""


def boltzmann_machine(
    units: int = MAX_UNITS,
    *,
    seed: int = 0,
    diagonal: str = "optimal",
    exact: bool = True,
    eigenvalue_scale: float = 6.0,
    eigenvalue_slope: float = 2.0,
    bias_scale: float = 0.1,
) -> BoltzmannProblem:
    """A random machine as in the paper: W = R diag(λ1 tanh(λ2 η)) Rᵀ with zero diagonal, b ~ N(0, 0.1²).

    `eigenvalue_scale` and `eigenvalue_slope` are λ1 and λ2. `diagonal` chooses D: "optimal" has the smallest largest
    eigenvalue of W + D (the paper's choice; modes as close as can be), "shift" is a multiple of the identity. The
    dimension d is the rank of W + D: units - 1 for the shift, and a few less at the optimum. `exact` enumerates the
    states for the truth, seconds for 28 units and impossible for more.

    >>> problem = boltzmann_machine(10, seed=1)
    >>> problem.target.dim, problem.diagonal.gap < 1e-7, round(problem.log_evidence, 3)
    (8, True, 56.432)
    """
    units = checks.integer("units", units, minimum=2)
    check_fits("units", units, 8 * MATRICES * units**2)
    seed = checks.integer("seed", seed, minimum=0)
    scale = checks.real("eigenvalue_scale", eigenvalue_scale, low=0, closed="()")
    slope = checks.real("eigenvalue_slope", eigenvalue_slope, low=0, closed="()")
    bias_scale = checks.real("bias_scale", bias_scale, low=0, closed="[)")
    _check_exact(exact, units)
    rng = np.random.default_rng(seed)
    upper, triangle = np.linalg.qr(rng.normal(size=(units, units)))
    rotation = upper * np.sign(np.diag(triangle))  # without the signs it would not be uniform
    weights = (rotation * (scale * np.tanh(slope * rng.normal(size=units)))) @ rotation.T
    weights = 0.5 * (weights + weights.T)
    np.fill_diagonal(weights, 0)
    return relax(weights, bias_scale * rng.normal(size=units), diagonal=diagonal, exact=exact)


def relax(
    weights: Float[np.ndarray, "unit unit"],
    bias: Float[np.ndarray, " unit"],
    *,
    diagonal: str = "optimal",
    exact: bool = True,
) -> BoltzmannProblem:
    """The relaxation of a given machine; the diagonal of `weights` says nothing about its states and is ignored.

    >>> relax(np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros(2)).cross_moment.round(4)
    array([[4.5232]])
    """
    weights, bias = checks.float_array("weights", weights), checks.float_array("bias", bias)
    if bias.ndim != 1 or weights.shape != (len(bias), len(bias)) or not np.allclose(weights, weights.T):
        raise ValueError(
            "weights must be a symmetric matrix with a row for each entry of bias; "
            f"got shapes {weights.shape} and {bias.shape}."
        )
    choose = {"optimal": optimal_diagonal, "shift": scalar_shift}[
        checks.choice("diagonal", diagonal, ("optimal", "shift"))
    ]
    _check_exact(exact, len(bias))
    weights = 0.5 * (weights + weights.T) - np.diag(np.diag(weights))
    chosen = choose(weights)
    eigenvalues, vectors = np.linalg.eigh(weights + np.diag(chosen.diagonal))
    keep = eigenvalues > EIGENVALUE_CUT * eigenvalues[-1]
    if not keep.any():
        raise ValueError("weights must couple some units; got a matrix of zeros off the diagonal.")
    return _problem(vectors[:, keep] * np.sqrt(eigenvalues[keep]), bias, chosen, exact)


def load_boltzmann(
    directory: str | Path | None = None, system: str = "relaxation", *, exact: bool = True
) -> BoltzmannProblem:
    """The authors' own parameters (section 4.2), out of a directory with their files, or downloaded.

    "relaxation" is their Q (28×26) and b; "machine" is their W and b of another draw, relaxed here with the optimal D,
    because their Q for it was not published.
    """
    name = FILES[checks.choice("system", system, FILES)]
    with np.load(data_file(name, directory), allow_pickle=False) as arrays:
        if system == "machine":
            return relax(arrays["weights"], arrays["biases"], exact=exact)
        return _problem(arrays["Q"], arrays["b"], None, exact)


def log_cosh(y: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """log cosh y without overflow.

    >>> log_cosh(jnp.array([0.0, 1000.0])).round(1)
    Array([  0. , 999.3], dtype=float32)
    """
    return jnp.abs(y) + jnp.log1p(jnp.exp(-2 * jnp.abs(y))) - jnp.log(2.0)


def _problem(coupling: np.ndarray, bias: np.ndarray, diagonal: Diagonal | None, exact: bool) -> BoltzmannProblem:
    units, dim = coupling.shape
    states = enumerate_states(coupling @ coupling.T, bias) if exact else None
    density = Relaxation(coupling, bias, states)
    target = Target(Relaxation(coupling, bias, None), np.zeros(dim))
    if states is None:
        return BoltzmannProblem(target, None, None, None, None, density, diagonal, CITATION)
    cross = coupling.T @ states.second_moment @ coupling + np.eye(dim)
    log_evidence = states.log_normaliser + 0.5 * dim * float(np.log(2 * np.pi)) - units * float(np.log(2))
    mean = coupling.T @ states.mean
    return BoltzmannProblem(target, mean, np.diag(cross).copy(), cross, log_evidence, density, diagonal, CITATION)


def _check_exact(exact: bool, units: int) -> None:
    if checks.choice("exact", exact, (True, False)) and units > MAX_UNITS:
        raise ValueError(f"exact must be False for more than {MAX_UNITS} units; got {units} units.")
