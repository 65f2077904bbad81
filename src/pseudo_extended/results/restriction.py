"""A result restricted to a part of the space, such as one of its modes."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result


def restrict(result: "Result", inside: np.ndarray) -> "Result":
    """The result restricted to the points where `inside` is true: the others have no weight.

    A draw then counts by the share of its weight that is inside. The evidence gets that share as one more factor, so
    that it is the evidence of the part, with the error of the product.
    """
    share = np.sum(np.where(inside, result.weights, 0.0), axis=2)
    with np.errstate(divide="ignore"):
        log_share = np.log(share)
        log_whole = np.log(np.sum(result.weights, axis=2))
    if not np.any(share > 0):
        raise ValueError("inside must hold points with weight; it holds none.")
    log_weights = np.where(inside, result.log_weights, -np.inf)
    empty = ~np.any(np.isfinite(log_weights), axis=2)
    log_weights[empty] = 0.0  # any weights, of a draw that does not count
    log_share = np.where(empty, -np.inf, log_share)
    statistics = dict(result.statistics)
    for name, factor in (("evidence_top", log_share), ("evidence_bottom", log_whole)):
        if name in statistics:
            statistics[name] = np.concatenate([statistics[name], factor[..., None]], axis=2)
    return replace(result, log_weights=log_weights, log_importance=log_share, statistics=statistics, is_part=True)
