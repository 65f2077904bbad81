"""How well a ladder works, and the evidence along it, from the statistics of a parallel tempering run."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int, Shaped

from pseudo_extended.results.estimates import Estimate
from pseudo_extended.results.series import effective_sample_size, standard_error
from pseudo_extended.results.travel import count_round_trips

Statistics = Mapping[str, np.ndarray]


def swap_rates(statistics: Statistics) -> Estimate:
    """How often each pair of neighbours swaps when it is proposed; the hottest pair first."""
    return _mean(_series("swap_rates", statistics, "swap_acceptance"))


def communication_barrier(statistics: Statistics) -> Estimate:
    """The sum of all rejection rates: about the number of rungs that a ladder needs, at the least.

    With many rungs it hardly depends on the ladder, and the round trips of even-odd swaps come at a rate of at most
    1/(2 + 2Λ) an iteration (Syed et al. 2022). Swap rates near 1/2 need twice as many rungs as the barrier is long.
    """
    return _mean(np.sum(1 - _series("communication_barrier", statistics, "swap_acceptance"), axis=2))


def round_trips(statistics: Statistics) -> Int[np.ndarray, " chain"]:
    """How many times any replica went from one end of the ladder to the other and back, in each chain.

    >>> rungs = np.array([[0, 1, 2], [1, 0, 2], [1, 2, 0], [1, 0, 2], [0, 1, 2]])  # replica 0 climbs and comes back
    >>> round_trips({"replica": rungs[None]})
    array([1])
    """
    replica = _series("round_trips", statistics, "replica")
    top, bottom = (replica[:, :, rung, None] == np.arange(replica.shape[2]) for rung in (-1, 0))
    return count_round_trips(top.astype(int) - bottom)


def thermodynamic_integration(statistics: Statistics) -> Estimate:
    """log Z(β=1) - log Z(β_0) = ∫ E_β[Δ] dβ by the trapezium rule on the ladder, with its Monte Carlo error.

    The rule's own error, about (β_{k+1} - β_k)³/12 times the curvature of E_β[Δ] for each step, is not in it: use many
    rungs. `result.log_evidence` has no such error, and is defined where E_0[Δ] is infinite; this is here to compare.
    """
    beta = _series("thermodynamic_integration", statistics, "beta")
    delta = _series("thermodynamic_integration", statistics, "delta")
    return _mean(np.sum(0.5 * (delta[..., 1:] + delta[..., :-1]) * np.diff(beta, axis=2), axis=2))


def _series(what: str, statistics: Statistics, name: str) -> Shaped[np.ndarray, "chain draw rung"]:
    if name not in statistics or np.ndim(statistics[name]) != 3:
        raise ValueError(
            f"{what} needs {name!r} of each rung, as in the statistics of pe.ParallelTempering; "
            f"got statistics {sorted(statistics)}."
        )
    return statistics[name]


def _mean(series: Float[np.ndarray, "chain draw *entry"]) -> Estimate:
    return Estimate(series.mean(axis=(0, 1)), standard_error(series), effective_sample_size(series))
