"""What went wrong, in sentences."""

import numpy as np

from pseudo_extended.analysis.estimates import Weights
from pseudo_extended.weights import effective_number


def diagnose(
    statistics: dict[str, np.ndarray], weights: Weights, r_hat: np.ndarray, ess: np.ndarray, names: list[str]
) -> list[str]:
    """One sentence for each thing that a user should know before trusting the numbers."""
    sentences = []
    num_draws = int(np.prod(weights.shape[:2]))
    diverging = int(np.sum(statistics["diverging"]))
    non_finite = int(np.sum(statistics["non_finite"]))
    if diverging:
        sentences.append(
            f"{diverging} of {num_draws} draws after warm-up diverged: the step size is too large for some part of "
            "the extended target; raise target_acceptance."
        )
    if non_finite:
        sentences.append(
            f"the density or its gradient was not finite on the way to {non_finite} of {num_draws} draws; "
            "those moves were rejected."
        )
    if weights.shape[1] >= 4 and np.size(r_hat):
        worst = int(np.nanargmax(r_hat)) if np.any(np.isfinite(r_hat)) else 0
        if not r_hat[worst] <= 1.01:
            sentences.append(
                f"the chains disagree: R-hat is {r_hat[worst]:.2f} for {names[worst]} (1.01 is the usual limit), so "
                "they have not mixed, and no error in this summary can be trusted."
            )
        smallest = int(np.nanargmin(ess)) if np.any(np.isfinite(ess)) else 0
        if ess[smallest] < 100 * weights.shape[0]:
            sentences.append(
                f"the effective sample size is {ess[smallest]:.0f} for {names[smallest]}; "
                f"{100 * weights.shape[0]} is the usual least for {weights.shape[0]} chain(s)."
            )
    if weights.shape[2] > 1:
        largest = np.mean(np.max(weights, axis=2))
        if largest > 0.999:
            sentences.append(
                f"one of the {weights.shape[2]} pseudo-samples held all the weight (on average "
                f"{np.mean(effective_number(weights)):.3f} of them counted): the others help the chain to move, "
                "but add nothing to the estimates."
            )
    return sentences
