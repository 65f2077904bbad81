"""Finding the modes of a result: a sample of its points is clustered, and the other points follow by a rule."""

from dataclasses import replace
from typing import TYPE_CHECKING

import jax
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy.special import logsumexp

from pseudo_extended import checks
from pseudo_extended.results import estimates
from pseudo_extended.results.assignment import learn_rule
from pseudo_extended.results.clusters import find_clusters
from pseudo_extended.results.estimates import Estimate, Weights
from pseudo_extended.results.landscape import Landscape
from pseudo_extended.results.laplace import approximate
from pseudo_extended.results.missed import find_missed
from pseudo_extended.results.modes import Modes, Search
from pseudo_extended.results.restriction import restrict
from pseudo_extended.results.second_look import GoodTuring, Places, look_again, places_of_pilot
from pseudo_extended.results.symmetries import Shapes, group_modes
from pseudo_extended.results.users_space import density_of_users

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

SAMPLE_SIZE = 1000
"""Points of the sample in which modes are looked for; those of a density in Python are a quarter of it."""
NEGLIGIBLE = 1e-12
"""Points with less than this share of the weight of a draw belong to no mode."""


def find_modes(result: "Result", *, min_mass: float, min_depth: float) -> Modes:
    """The modes of a result; see `Result.modes`."""
    min_mass = checks.real("min_mass", min_mass, low=0, high=1, closed="()")
    min_depth = checks.real("min_depth", min_depth, low=0, closed="()")
    weights = result.weights
    share = weights.ravel() / max(float(weights.sum()), 1e-300)
    if not np.isfinite(share).all() or share.sum() == 0:
        raise ValueError("modes must be looked for in points with weights; no point of this result has any.")
    flat = result.unconstrained.reshape(-1, result.target.dim)
    counts = _systematic(share, SAMPLE_SIZE if not result.target.host_functions else SAMPLE_SIZE // 4)
    rows = np.flatnonzero(counts)
    landscape = Landscape(result.target, np.repeat(flat[rows], counts[rows], axis=0))
    of_pilot, of_hot = places_of_pilot(result), look_again(result, landscape)
    clusters = find_clusters(landscape, min_depth, min_mass, np.concatenate([of_pilot.x, of_hot.x]))
    first = np.cumsum(counts[rows]) - counts[rows]
    labels, misassigned = _assign(
        flat, share, rows, clusters.labels[first], clusters.is_sure[first], counts[rows].astype(float)
    )
    labels, order = _heaviest_first(labels.reshape(weights.shape), weights, len(clusters.peaks))
    modes = describe_modes(result, labels, clusters.peaks[order], misassigned)
    searches = [
        _search_by(places, where, order, len(clusters.empty_peaks))
        for places, where in zip((of_pilot, of_hot), np.split(clusters.others, [len(of_pilot.x)]), strict=True)
    ]
    log_mass = approximate(result.target, clusters.peaks[order]).log_mass
    by_pilot = np.isin(np.arange(len(clusters.empty_peaks)) + len(order), clusters.others[: len(of_pilot.x)])
    missed = find_missed(result, log_mass, clusters.empty_peaks, by_pilot, min_mass)
    group = _group(result, modes, landscape)
    return replace(
        modes,
        laplace=_shares(log_mass),
        pilot=searches[0],
        second_look=searches[1],
        missed=missed,
        group=group,
        group_mass=_mass_of_groups(result, modes, group),
    )


def describe_modes(
    result: "Result",
    labels: Int[np.ndarray, "chain draw particle"],
    peaks: Float[np.ndarray, "mode d"],
    misassigned: float,
) -> Modes:
    """Masses, places and visits of modes, from the label of every point; the heaviest first."""
    weights = result.weights
    labels, order = _heaviest_first(labels, weights, len(peaks))
    inside = labels[..., None] == np.arange(len(peaks))
    mass = _mass(inside, weights)
    moments = [_moments(result.coordinates, weights * inside[..., k]) for k in range(len(peaks))]
    index, columns = pd.Index(range(len(peaks)), name="mode"), pd.Index(result.labels)
    mean, sd = (pd.DataFrame([each[i] for each in moments], index, columns) for i in (0, 1))
    top = result.show(peaks[order][None, :, None])
    share = np.einsum("cdp,cdpm->mc", weights, inside)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = share / share.sum(axis=0)
    visits, crossings = _visits(np.einsum("cdp,cdpm->cdm", weights, inside))
    evidences = None
    if "evidence_top" in result.statistics:
        found = [restrict(result, labels == k).log_evidence for k in range(len(peaks))]
        evidences = Estimate(*(np.array(parts, float) for parts in zip(*found, strict=True)))
    return Modes(
        labels,
        mass,
        evidences,
        mean,
        sd,
        pd.DataFrame(_flatten(top, 3)[0, :, 0], index, columns),
        share,
        visits,
        crossings,
        misassigned,
        laplace=np.full(len(peaks), np.nan),
        group=np.arange(len(peaks)),
        group_mass=mass,
    )


def _heaviest_first(labels: np.ndarray, weights: Weights, number: int) -> tuple[np.ndarray, Int[np.ndarray, " mode"]]:
    """The labels in the order of the modes' masses, and which mode is the heaviest, the next, and so on."""
    order = np.argsort([-np.sum(weights[labels == k]) for k in range(number)], kind="stable")
    return np.append(np.argsort(order), -1)[labels], order


def _mass(inside: Bool[np.ndarray, "chain draw particle mode"], weights: Weights) -> Estimate:
    mass = estimates.mean(inside.astype(float), weights)
    if inside.shape[-1] == 1:  # everything, whatever the draws are
        return mass._replace(standard_error=np.zeros(1))
    return mass


def _search_by(places: Places, where: np.ndarray, order: np.ndarray, num_empty: int) -> Search | None:
    """The hits of each mode, and what they say about those not seen; None if nobody has climbed."""
    if not len(places.x):
        return None
    hits = np.bincount(where, places.hits, len(order) + num_empty).astype(int)
    return Search(hits[order], GoodTuring.of(hits), places.starts)


def _shares(log_mass: Float[np.ndarray, " mode"]) -> Float[np.ndarray, " mode"]:
    """Laplace's masses of the modes, as shares of their sum; nan if any of them is not known."""
    return np.exp(log_mass - logsumexp(log_mass)) if np.all(np.isfinite(log_mass)) else np.full(len(log_mass), np.nan)


def _group(result: "Result", modes: Modes, landscape: Landscape) -> Int[np.ndarray, " mode"]:
    """The same number for modes that a symmetry of the density maps onto each other."""
    if len(modes) == 1:
        return np.zeros(1, int)
    moments = [_moments(result.unconstrained, result.weights * (modes.labels == k)) for k in range(len(modes))]
    place, width = (np.array([each[i] for each in moments]) for i in (0, 1))
    group = group_modes(Shapes(place, width, result.target.parameters), landscape.heights, landscape.sample)
    users = density_of_users(result)
    if users is None or len(np.unique(group)) == 1:
        return group
    columns = users.columns
    shapes = Shapes(modes.mean.to_numpy()[:, columns], modes.sd.to_numpy()[:, columns], users.parameters)
    points = result.coordinates[:, :, 0].reshape(-1, result.coordinates.shape[-1])[:, columns]
    in_users_space = group_modes(shapes, users.log_density, points)
    return in_users_space if in_users_space.max() < group.max() else group


def _mass_of_groups(result: "Result", modes: Modes, group: Int[np.ndarray, " mode"]) -> Estimate:
    return _mass(np.append(group, -1)[modes.labels][..., None] == np.arange(group.max() + 1), result.weights)


def _systematic(share: Float[np.ndarray, " point"], size: int) -> Int[np.ndarray, " point"]:
    """How often each point comes into an equally weighted sample; evenly over chains and draws, without chance."""
    upto = np.floor(np.cumsum(share) / np.sum(share) * size + 0.5).astype(int)
    return np.diff(upto, prepend=0)


def _assign(
    flat: Float[np.ndarray, "point d"],
    share: Float[np.ndarray, " point"],
    rows: Int[np.ndarray, " sampled"],
    known: Int[np.ndarray, " sampled"],
    sure: np.ndarray,
    counts: Float[np.ndarray, " sampled"],
) -> tuple[Int[np.ndarray, " point"], float]:
    """Labels of all points, from those of the sampled ones; where these are not sure, from the others."""
    for label in range(known.max() + 1):
        if not np.any(sure & (known == label)):
            sure = sure | (known == label)
    rule, misassigned = learn_rule(flat[rows[sure]], known[sure], counts[sure])
    labels = np.full(len(flat), -1)
    matters = share > NEGLIGIBLE * share.max()
    labels[matters] = rule(flat[matters])
    labels[rows[sure]] = known[sure]
    return labels, misassigned


def _moments(values: np.ndarray, weights: Weights) -> tuple[np.ndarray, np.ndarray]:
    mean = estimates.mean_value(values, weights)
    return np.asarray(mean), np.sqrt(estimates.mean_square(values, weights, mean))


def _visits(by_mode: Float[np.ndarray, "chain draw mode"]) -> tuple[Int[np.ndarray, "mode chain"], np.ndarray]:
    """Arrivals at each mode, and all changes of the mode that holds most of a draw; draws without weight are passed."""
    visits, crossings = np.zeros((by_mode.shape[2], len(by_mode)), int), np.zeros(len(by_mode), int)
    for chain, rows in enumerate(by_mode):
        held = np.argmax(rows, axis=1)[rows.sum(axis=1) > 0]
        if held.size:
            arrivals = held[np.append(True, np.diff(held) != 0)]
            visits[:, chain] = np.bincount(arrivals, minlength=by_mode.shape[2])
            crossings[chain] = len(arrivals) - 1
    return visits, crossings


def _flatten(points: object, num_leading: int) -> np.ndarray:
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(points)]
    return np.concatenate([leaf.reshape(*leaf.shape[:num_leading], -1) for leaf in leaves], axis=-1)
