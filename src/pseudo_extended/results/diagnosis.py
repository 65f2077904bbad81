"""What went wrong, in sentences."""

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from pseudo_extended.results.estimates import Weights
from pseudo_extended.weights import effective_number, importance


def diagnose(
    x: Float[np.ndarray, "chain draw particle d"],
    weights: Weights,
    statistics: dict[str, np.ndarray],
    r_hat: Float[np.ndarray, " d"],
    ess: Float[np.ndarray, " d"],
    labels: list[str],
) -> list[str]:
    """One sentence for each thing that a user should know before trusting the numbers."""
    return [
        *_steps(x, statistics),
        *_rings(statistics),
        *_forced_moves(statistics),
        *_mixing(weights, r_hat, ess, labels),
        *_pseudo_samples(x, weights),
    ]


def diagnose_importance(log_importance: Float[np.ndarray, "chain draw"]) -> list[str]:
    """Whether the estimates rest on a few draws, whose own error nobody can estimate."""
    if not np.any(np.isfinite(log_importance)):
        return ["no draw has any weight: the path never met the target, and there is nothing to estimate from."]
    share = np.max(importance(log_importance)) / log_importance.size
    if log_importance.size >= 100 and share > 0.1:
        return [
            f"one of {log_importance.size} draws carries {100 * share:.0f} % of the weight of all: neither the "
            "estimates nor their errors can be trusted; more temperatures, more steps at each or a better base help."
        ]
    return []


def diagnose_evidence(statistics: dict[str, np.ndarray]) -> list[str]:
    """Whether some factor of the evidence rests on one draw of a chain, as where the ends of a ladder hardly meet."""
    for name in ("evidence_top", "evidence_bottom"):
        terms = statistics.get(name, np.zeros((1, 1, 1)))
        if not np.all(np.any(np.isfinite(terms), axis=1)):
            return [
                "log_evidence is not known: in some chain no draw says anything about a part of the path, as where the "
                "target vanishes at every draw from the base; run longer, or give a base that covers less besides it."
            ]
        if terms.shape[1] >= 100 and np.max(softmax(terms, axis=1)) > 0.1:
            return [
                "log_evidence rests on a few draws, and its error cannot be trusted: some part of the ladder was "
                "hardly visited; run longer, give a base closer to the target, or, where you gave betas, more of them."
            ]
    return []


def _steps(x: Float[np.ndarray, "chain draw particle d"], statistics: dict[str, np.ndarray]) -> list[str]:
    sentences = []
    num_draws = x.shape[0] * x.shape[1]
    stuck = np.flatnonzero(np.all(x == x[:, :1], axis=(1, 2, 3)))
    if x.shape[1] > 1 and stuck.size:
        which = f"chain {stuck[0]}" if stuck.size == 1 else f"each of chains {', '.join(map(str, stuck))}"
        sentences.append(f"{which} never moved: its draws are one point, and worth nothing.")
    elif np.mean(statistics["acceptance_rate"]) < 0.05:
        sentences.append(
            f"the mean acceptance rate is {np.mean(statistics['acceptance_rate']):.2g}: "
            "the step size did not settle; warm up for longer."
        )
    non_finite = np.count_nonzero(statistics["non_finite"])
    diverging = np.count_nonzero(np.logical_and(statistics["diverging"], np.logical_not(statistics["non_finite"])))
    if diverging:
        sentences.append(
            f"{diverging} of {num_draws} draws after warm-up diverged: the step size is too large for "
            "some part of the extended target; give the method a kernel with a higher target_acceptance, such as "
            "kernel=pe.NUTS(target_acceptance=0.95) or, in the place of the default's, "
            "kernel=pe.HMC(4, target_acceptance=0.95)."
        )
    if non_finite:
        sentences.append(
            f"the density or its gradient was not finite on the way to {non_finite} of {num_draws} draws, and those "
            "moves were rejected: a bound that is missing, or a base or q that vanishes where the target does not, "
            "shows like this."
        )
    return sentences


def _rings(statistics: dict[str, np.ndarray]) -> list[str]:
    """The equi-energy sampler: a cold chain that waits, and an H_0 that is none."""
    sentences = []
    if "started" in statistics and not np.all(statistics["started"]):
        waiting = int(np.sum(~statistics["started"]))
        sentences.append(
            f"the cold chain of EquiEnergy had not started in {waiting} of {statistics['started'].size} draws, which "
            "are worth nothing: set warmup to the method's least_warmup, or more."
        )
    if "below_first_energy" in statistics and np.any(statistics["below_first_energy"]):
        sentences.append(
            "energies of EquiEnergy start above the lowest -log density that was seen: the paper's sampler would be "
            "biased; here the cold chain is not, but the lowest ring is wider than it was meant to be. Lower the first."
        )
    return sentences


def _forced_moves(statistics: dict[str, np.ndarray]) -> list[str]:
    """Repelling-attracting Metropolis: moves that ran out of tries."""
    share = float(np.mean(statistics.get("gave_up", 0.0)))
    if share < 0.01:
        return []
    return [
        f"{share:.2g} of the steps of RepellingAttracting gave up a forced move: the draws are right, but few; a "
        "smaller scale, or more max_tries, may help."
    ]


def _mixing(
    weights: Weights, r_hat: Float[np.ndarray, " d"], ess: Float[np.ndarray, " d"], labels: list[str]
) -> list[str]:
    num_chains, num_draws = weights.shape[:2]
    if num_draws < 8:
        return [f"{num_draws} draws of a chain are too few for a standard error; 8 is the least."]
    if not np.all(np.isfinite(weights)):
        return ["some weights are not numbers, and neither is any estimate: the target and its base hardly overlap."]
    sentences = []
    worst = int(np.argmax(np.nan_to_num(r_hat, nan=-np.inf)))
    if r_hat[worst] > 1.01:
        sentences.append(
            f"the chains disagree: R-hat is {r_hat[worst]:.3f} for {labels[worst]}, and 1.01 is the usual limit. "
            + (
                "They have not mixed, and no error in this summary can be trusted: more draws, starts far apart, or a "
                "base of your own may help."
                if r_hat[worst] > 1.1
                else "Run longer: the errors are too small, and by a lot where the target has long arms or tails."
            )
        )
    fewest = int(np.argmin(np.nan_to_num(ess, nan=np.inf)))
    if ess[fewest] < 100 * num_chains:
        sentences.append(
            f"the effective sample size is {ess[fewest]:.0f} for {labels[fewest]}; "
            f"{100 * num_chains} is the usual least for {num_chains} chain(s)."
        )
    return sentences


def _pseudo_samples(x: Float[np.ndarray, "chain draw particle d"], weights: Weights) -> list[str]:
    num_particles = weights.shape[2]
    if num_particles == 1:
        return []
    sentences = []
    if np.mean(np.max(weights, axis=2)) > 0.999:
        sentences.append(
            f"one of the {num_particles} pseudo-samples held all the weight (on average "
            f"{np.mean(effective_number(weights)):.3f} of them counted): the others help the chain to move, "
            "but add nothing to the estimates."
        )
    # A normal target at β = 0.001 is 32 times as wide as at β = 1; a million times is not tempering but drifting.
    likely = weights > 0.01
    width = np.std(x[likely], axis=0) + 1e-300
    furthest = float(np.max(np.abs(x - np.median(x[likely], axis=0)) / width))
    if np.any(likely) and furthest > 1e6:
        sentences.append(
            f"a pseudo-sample went {furthest:.0e} standard deviations away: the instrument is probably improper, as "
            "for heavy tails at a small beta_min; raise beta_min, or give the target a base."
        )
    return sentences
