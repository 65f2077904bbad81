"""The algebra of log weights, along the last axis: the pseudo-samples of one draw.

Weights are normalised within a draw and never pooled over draws: the estimate of E[f] is the mean over draws of
Σ_i w_i f(x_i) (theorem 2.1), and raw weights of different draws are not on one scale. Where draws do not count alike,
the method says how much each does, its *importance*, on one scale for all draws.
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_softmax, softmax


def normalise(log_weight: Float[np.ndarray, "... particle"]) -> Float[np.ndarray, "... particle"]:
    """Weights that sum to one within each draw.

    >>> normalise(np.array([-1000.0, -1000.0, -np.inf]))
    array([0.5, 0.5, 0. ])
    """
    return softmax(log_weight, axis=-1)


def log_normalise(log_weight: Float[np.ndarray, "... particle"]) -> Float[np.ndarray, "... particle"]:
    """Logs of the normalised weights, also where the weight itself is below the smallest double.

    >>> log_normalise(np.array([0.0, -2000.0]))
    array([    0., -2000.])
    """
    return log_softmax(log_weight, axis=-1)


def importance(log_importance: Float[np.ndarray, "*draw"]) -> Float[np.ndarray, "*draw"]:
    """How much each draw counts, relative to the mean of all: the mean of these numbers is one.

    >>> importance(np.log([1.0, 3.0]) - 2000)
    array([0.5, 1.5])
    """
    return softmax(log_importance) * log_importance.size


def whole_weights(
    log_weight: Float[np.ndarray, "chain draw particle"], log_importance: Float[np.ndarray, "chain draw"] | None
) -> Float[np.ndarray, "chain draw particle"]:
    """Weights of all pseudo-samples on one scale: normalised within each draw, times the importance of the draw.

    >>> whole_weights(np.zeros((1, 2, 2)), np.log([[1.0, 3.0]]))
    array([[[0.25, 0.25],
            [0.75, 0.75]]])
    """
    weight = normalise(log_weight)
    return weight if log_importance is None else weight * importance(log_importance)[:, :, None]


def effective_number(weight: Float[np.ndarray, "... particle"]) -> Float[np.ndarray, "..."]:
    """1 / Σ w²: how many pseudo-samples carry the weight of a draw, between 1 and N.

    >>> float(effective_number(np.array([0.5, 0.5, 0.0])))
    2.0
    """
    return 1.0 / np.sum(weight**2, axis=-1)


def draw_index(weight: Float[np.ndarray, "... particle"], uniform: Float[np.ndarray, "..."]) -> Int[np.ndarray, "..."]:
    """One index a draw, with the probabilities of its weights, from one uniform number each.

    The weights need not sum to one. All draws at once, one pseudo-sample after the other: NumPy is slow along an axis
    that is short, and a store does this for every draw.

    >>> draw_index(np.array([[0.3, 0.7], [3.0, 7.0]]), np.array([0.2, 0.4]))
    array([0, 1])
    """
    columns = np.moveaxis(weight, -1, 0)
    # The very sum that is compared below, or rounding might let a draw point beyond the last pseudo-sample.
    goal = uniform * sum(columns[1:], start=columns[0])
    upto, index = np.zeros(goal.shape), np.zeros(goal.shape, int)
    for column in columns:
        upto += column
        index += upto <= goal
    return index


def draw_rows(weight: Float[np.ndarray, "chain draw"], rng: np.random.Generator) -> Int[np.ndarray, "chain draw"]:
    """Choose as many draws of each chain as it has, in order, each as often as its weight within the chain asks for.

    Systematic resampling: a draw with n times the mean weight comes n times, up to one.

    >>> draw_rows(np.array([[0.0, 2.0, 1.0, 1.0]]), np.random.default_rng(0))
    array([[1, 1, 2, 3]])
    """
    num_draws = weight.shape[1]
    cumulative = np.cumsum(weight, axis=1)
    places = (np.arange(num_draws) + rng.uniform(size=(len(weight), 1))) / num_draws
    # Rounding must not put the last place at the very end, beyond the last draw.
    places = np.minimum(places * cumulative[:, -1:], np.nextafter(cumulative[:, -1:], 0))
    rows = np.zeros(weight.shape, int)
    for chain in range(len(weight)):
        rows[chain] = np.searchsorted(cumulative[chain], places[chain], side="right")
    return rows
