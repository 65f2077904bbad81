"""What went wrong, in messages."""

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from pseudo_extended.messages import Message, kinds
from pseudo_extended.results.estimates import Weights
from pseudo_extended.results.evidence import compare_chains
from pseudo_extended.results.tails import TOO_HEAVY, heaviest_tails
from pseudo_extended.weights import effective_number, importance

REACHED = 0.1
"""A rate of draws from the base at the target from which on divergences of local moves are a note: every tenth such
draw is then independent of the last. A chain that such draws take out of a region gets into it as often: they keep the
target, and are reversible."""
NOWHERE = 1e20
"""A distance on the unconstrained scale that no choice of units explains."""


def diagnose(
    x: Float[np.ndarray, "chain draw particle d"],
    weights: Weights,
    statistics: dict[str, np.ndarray],
    r_hat: Float[np.ndarray, " d"],
    ess: Float[np.ndarray, " d"],
    labels: list[str],
) -> list[Message]:
    """One message for each thing that a user should know before trusting the numbers."""
    return [
        *_steps(x, statistics),
        *_reach(x, weights, labels),
        *_rings(statistics),
        *_forced_moves(statistics),
        *_mixing(weights, r_hat, ess, labels),
        *_pseudo_samples(x, weights),
    ]


def diagnose_importance(log_importance: Float[np.ndarray, "chain draw"]) -> list[Message]:
    """Whether the estimates rest on a few draws, whose own error nobody can estimate."""
    if not np.any(np.isfinite(log_importance)):
        return [kinds.NO_WEIGHT()]
    share = np.max(importance(log_importance)) / log_importance.size
    if log_importance.size >= 100 and share > 0.1:
        return [kinds.FEW_HOLD_ALL(draws=log_importance.size, percent=100 * share)]
    return []


def diagnose_evidence(statistics: dict[str, np.ndarray]) -> list[Message]:
    """Whether some factor of the evidence rests on one draw of a chain, and whether the chains agree on it."""
    if "evidence_top" not in statistics:
        return []
    both = [statistics[name] for name in ("evidence_top", "evidence_bottom")]
    for terms in both:
        if not np.all(np.any(np.isfinite(terms), axis=1)):
            return [kinds.EVIDENCE_UNKNOWN()]
        if terms.shape[1] >= 100 and np.max(softmax(terms, axis=1)) > 0.1:
            return [kinds.EVIDENCE_OF_FEW()]
    alone = compare_chains(*both)
    if alone.raised > alone.within:
        low, high = alone.values.min(), alone.values.max()
        return [kinds.EVIDENCE_DISAGREES(low=low, high=high, within=alone.within, error=alone.raised)]
    return []


def _steps(x: Float[np.ndarray, "chain draw particle d"], statistics: dict[str, np.ndarray]) -> list[Message]:
    found = []
    num_draws = x.shape[0] * x.shape[1]
    stuck = np.flatnonzero(np.all(x == x[:, :1], axis=(1, 2, 3)))
    if x.shape[1] > 1 and stuck.size:
        which = f"chain {stuck[0]}" if stuck.size == 1 else f"each of chains {', '.join(map(str, stuck))}"
        found.append(kinds.STUCK(which=which))
    elif np.mean(statistics["acceptance_rate"]) < 0.05:
        found.append(kinds.LOW_ACCEPTANCE(rate=np.mean(statistics["acceptance_rate"])))
    non_finite = np.count_nonzero(statistics["non_finite"])
    found += [message for message in diagnose_divergences(statistics) if message.severity != "note"]
    if non_finite:
        found.append(kinds.NOT_FINITE(number=non_finite, draws=num_draws))
    return found


def diagnose_divergences(statistics: dict[str, np.ndarray]) -> list[Message]:
    """A warning, or a note where the target is refreshed by draws from the base as well."""
    diverging = np.logical_and(statistics["diverging"], np.logical_not(statistics["non_finite"]))
    number, draws = np.count_nonzero(diverging), diverging.size
    if not number:
        return []
    accepted = _accepted_from_base(statistics)
    if accepted < REACHED:
        return [kinds.DIVERGED(number=number, draws=draws)]
    return [kinds.DIVERGED_AND_REACHED(number=number, draws=draws, percent=100 * accepted)]


def _accepted_from_base(statistics: dict[str, np.ndarray]) -> float:
    """The share of draws from the base that the pseudo-sample with the target accepted, in the chain with the least."""
    if not {"carrier", "refresh_acceptance"} <= statistics.keys():
        return 0.0
    refreshed, carrier = statistics["refresh_acceptance"], statistics["carrier"][..., None]
    return float(np.min(np.nanmean(np.take_along_axis(refreshed, carrier, axis=2)[..., 0], axis=1)))


def _reach(x: Float[np.ndarray, "chain draw particle d"], weights: Weights, labels: list[str]) -> list[Message]:
    """Whether a point that counts is further away than any parameter of a proper density."""
    furthest = np.max(np.abs(x), axis=(0, 1, 2), where=(weights > 0.01)[..., None], initial=0.0)
    worst = int(np.argmax(furthest))
    return [kinds.RAN_AWAY(label=labels[worst], value=furthest[worst])] if furthest[worst] > NOWHERE else []


def _rings(statistics: dict[str, np.ndarray]) -> list[Message]:
    """The equi-energy sampler: a cold chain that waits, and an H_0 that is none."""
    found = []
    if "started" in statistics and not np.all(statistics["started"]):
        waiting = int(np.sum(~statistics["started"]))
        found.append(kinds.NOT_STARTED(waiting=waiting, draws=statistics["started"].size))
    if "below_first_energy" in statistics and np.any(statistics["below_first_energy"]):
        found.append(kinds.LOWEST_RING())
    return found


def _forced_moves(statistics: dict[str, np.ndarray]) -> list[Message]:
    """Repelling-attracting Metropolis: moves that ran out of tries."""
    share = float(np.mean(statistics.get("gave_up", 0.0)))
    if share < 0.01:
        return []
    return [kinds.GAVE_UP(share=share)]


def _mixing(
    weights: Weights, r_hat: Float[np.ndarray, " d"], ess: Float[np.ndarray, " d"], labels: list[str]
) -> list[Message]:
    num_chains, num_draws = weights.shape[:2]
    if num_draws < 8:
        return [kinds.TOO_FEW_DRAWS(draws=num_draws)]
    if not np.all(np.isfinite(weights)):
        return [kinds.NAN_WEIGHTS()]
    found = []
    worst = int(np.argmax(np.nan_to_num(r_hat, nan=-np.inf)))
    if r_hat[worst] > 1.01:
        kind = kinds.NOT_MIXED if r_hat[worst] > 1.1 else kinds.DISAGREE
        found.append(kind(r_hat=r_hat[worst], label=labels[worst]))
    fewest = int(np.argmin(np.nan_to_num(ess, nan=np.inf)))
    if ess[fewest] < 100 * num_chains:
        found.append(
            kinds.FEW_EFFECTIVE(ess=ess[fewest], label=labels[fewest], chains=num_chains, least=100 * num_chains)
        )
    return found


def _pseudo_samples(x: Float[np.ndarray, "chain draw particle d"], weights: Weights) -> list[Message]:
    num_particles = weights.shape[2]
    if num_particles == 1:
        return []
    found = []
    if np.mean(np.max(weights, axis=2)) > 0.999:
        found.append(kinds.ONE_HOLDS_ALL(particles=num_particles, effective=np.mean(effective_number(weights))))
    # A normal target at β = 0.001 is 32 times as wide as at β = 1; a million times is not tempering but drifting.
    likely = weights > 0.01
    width = np.std(x[likely], axis=0) + 1e-300
    furthest = float(np.max(np.abs(x - np.median(x[likely], axis=0)) / width))
    if np.any(likely) and furthest > 1e6:
        found.append(kinds.DRIFTED(distance=furthest))
    return found


def diagnose_tails(
    values: Float[np.ndarray, "chain draw particle d"],
    weights: Weights,
    ess: Float[np.ndarray, " d"],
    labels: list[str],
) -> list[Message]:
    """Whether some coordinate has tails so heavy that its mean, or the error of its mean, does not exist."""
    shapes = heaviest_tails(values, weights, ess)
    worst = int(np.argmax(np.nan_to_num(shapes, nan=-np.inf)))
    if not shapes[worst] > TOO_HEAVY:
        return []
    return [kinds.HEAVY_TAILS(label=labels[worst], shape=shapes[worst])]
