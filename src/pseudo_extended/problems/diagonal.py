"""The diagonal D that makes W + D positive semi-definite with the smallest largest eigenvalue.

The semidefinite programme (Zhang, Sutton, Storkey and Ghahramani 2012, section 3)

    minimise t  subject to  0 ⪯ W + D ⪯ t I,  D diagonal,

and its dual: maximise ⟨A - B, W⟩ over positive semi-definite A and B with tr A = 1 and diag A = diag B. It is solved
by Newton's method on the logarithmic barrier. Any iterate gives a feasible point of the dual, so the distance from
the optimum is known and not hoped for.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

RELATIVE_GAP = 1e-9
BARRIER_GROWTH = 10.0
CENTRED = 0.25
MAX_NEWTON_STEPS = 500


class Diagonal(NamedTuple):
    """A feasible D, with what it achieves and a proof of how much better any other could be."""

    diagonal: Float[np.ndarray, " unit"]
    """The diagonal of D; W + D is positive semi-definite up to rounding."""
    largest_eigenvalue: float
    """λ_max(W + D)."""
    lower_bound: float
    """No feasible D has a smaller λ_max: the value of a feasible point of the dual."""

    @property
    def gap(self) -> float:
        """How far from optimal D is at most."""
        return self.largest_eigenvalue - self.lower_bound


def scalar_shift(weights: Float[np.ndarray, "unit unit"]) -> Diagonal:
    """D = -λ_min(W) I: the simplest choice, with a bound from the eigenvectors at both ends of the spectrum.

    >>> scalar_shift(np.array([[0.0, 1.0], [1.0, 0.0]])).largest_eigenvalue
    2.0
    """
    eigenvalues, vectors = np.linalg.eigh(weights)
    top, bottom = np.outer(vectors[:, -1], vectors[:, -1]), np.outer(vectors[:, 0], vectors[:, 0])
    diagonal = np.full(len(weights), -eigenvalues[0])
    largest = float(eigenvalues[-1] - eigenvalues[0])
    return Diagonal(diagonal, largest, _dual_bound(weights, top, bottom))


def optimal_diagonal(weights: Float[np.ndarray, "unit unit"], relative_gap: float = RELATIVE_GAP) -> Diagonal:
    """The solution of the programme, to a gap of `relative_gap` times the optimum.

    >>> weights = np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    >>> best, shift = optimal_diagonal(weights), scalar_shift(weights)
    >>> round(shift.largest_eigenvalue, 3), round(best.largest_eigenvalue, 3), best.gap < 1e-7
    (4.732, 4.5, True)
    """
    size = np.abs(np.linalg.eigvalsh(weights)).max()
    if size == 0:
        return Diagonal(np.zeros(len(weights)), 0.0, 0.0)
    scaled = weights / size
    diagonal, t = np.full(len(weights), 1.5), 3.0
    best = scalar_shift(scaled)
    sharpness = 1.0
    for _ in range(MAX_NEWTON_STEPS):
        upper, lower = _inverses(scaled, diagonal, t)
        largest = float(np.linalg.eigvalsh(scaled + np.diag(diagonal))[-1])
        bound = max(best.lower_bound, _dual_bound(scaled, upper, lower))
        if largest < best.largest_eigenvalue:
            best = Diagonal(diagonal, largest, bound)
        best = best._replace(lower_bound=bound)
        if best.gap <= relative_gap * best.largest_eigenvalue:
            break
        step, decrement = _newton(upper, lower, sharpness)
        if decrement < CENTRED:
            sharpness *= BARRIER_GROWTH
            step, decrement = _newton(upper, lower, sharpness)
        damping = 1 / (1 + decrement)  # stays inside: the barrier is self-concordant
        diagonal, t = diagonal + damping * step[:-1], t + damping * step[-1]
    return Diagonal(size * best.diagonal, float(size * best.largest_eigenvalue), float(size * best.lower_bound))


def _inverses(weights: np.ndarray, diagonal: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
    """(tI - W - D)^-1 and (W + D)^-1, from one decomposition."""
    eigenvalues, vectors = np.linalg.eigh(weights + np.diag(diagonal))
    return (vectors / (t - eigenvalues)) @ vectors.T, (vectors / eigenvalues) @ vectors.T


def _newton(upper: np.ndarray, lower: np.ndarray, sharpness: float) -> tuple[np.ndarray, float]:
    """The Newton step for (D, t) on sharpness · t - log det(tI - W - D) - log det(W + D), and its decrement."""
    size = len(upper)
    gradient = np.append(np.diag(upper) - np.diag(lower), sharpness - np.trace(upper))
    hessian = np.empty((size + 1, size + 1))
    hessian[:-1, :-1] = upper**2 + lower**2
    hessian[:-1, -1] = hessian[-1, :-1] = -np.sum(upper**2, axis=1)
    hessian[-1, -1] = np.sum(upper**2)
    step = -np.linalg.solve(hessian, gradient)
    return step, float(np.sqrt(max(-gradient @ step, 0.0)))


def _dual_bound(weights: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """⟨A - B, W⟩ after scaling: tr A = 1, and rows and columns of B such that diag B = diag A."""
    a = a / np.trace(a)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.sqrt(np.diag(a) / np.diag(b))
    if not np.all(np.isfinite(scale)):
        return 0.0  # no such scaling; the eigenvalues of W + D are not negative in any case
    return float(np.sum((a - scale[:, None] * b * scale) * weights))
