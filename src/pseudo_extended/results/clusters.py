"""Clusters of points by mode: two points belong to one mode if no valley lies between them.

Every point is relaxed to a place further up in its mode. Places are nodes of a graph whose edges know the lowest height
on the way between their ends, and clusters of nodes merge where the valley between them is shallow compared with the
lower of their peaks (persistence: ToMATo, Chazal, Guibas, Oudot and Skraba 2013). Where a straight way dips, as across
a ring or a bent ridge, its lowest place is relaxed and becomes a node, so that the way may bend.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from pseudo_extended.results.landscape import Heights, Landscape, Points

MAX_ROUNDS = 10
MAX_IDLE = 4
"""Rounds without a merger after which none is expected: each of them halves the length of a way."""
MAX_DETOURS = 256
"""Ways that are bent in one round."""
MAX_SCALES = 4
NUM_NEAREST = 3
SAME_PLACE = 0.05
"""Places closer than this, in units of the distance between neighbours in the sample, are one."""

Labels = Int[np.ndarray, " point"]


class Clusters(NamedTuple):
    """The modes that a sample lies in."""

    labels: Labels
    """The cluster of each point of the sample."""
    peaks: Points
    """The highest place of each cluster."""
    is_sure: Bool[np.ndarray, " point"]
    """Whether the straight way from a point to its place crosses no valley."""
    others: Labels
    """The cluster of each of the other places; from `len(peaks)` on, one without points of the sample."""
    empty_peaks: Points
    """The highest place of each cluster without points of the sample."""


class _Graph:
    """Places, the ways between them, and what merges."""

    def __init__(self, landscape: Landscape, min_depth: float):
        self.landscape, self.min_depth = landscape, min_depth
        self.x: Points = np.zeros((0, landscape.sample.shape[1]))
        self.heights: Heights = np.zeros(0)
        self.ways: dict[tuple[int, int], float] = {}

    def add(self, x: Points, heights: Heights) -> None:
        """New nodes, without ways."""
        self.x, self.heights = np.concatenate([self.x, x]), np.concatenate([self.heights, heights])

    def connect(self, pairs: list[tuple[int, int]]) -> Points:
        """Look at the straight ways between pairs of nodes; where each is lowest."""
        first, second = np.array(pairs, int).T
        low, places = self.landscape.passes(self.x[first], self.x[second])
        for pair, height in zip(pairs, low, strict=True):
            key = (min(pair), max(pair))
            self.ways[key] = max(float(height), self.ways.get(key, -np.inf))
        return places

    def nearest(self, nodes: list[int], count: int) -> list[tuple[int, int]]:
        """Pairs of each given node with its nearest others."""
        distances = self.landscape.distances(self.x[nodes], self.x)
        distances[np.arange(len(nodes)), nodes] = np.inf
        near = np.argsort(distances, axis=1)[:, : min(count, len(self.x) - 1)]
        found = {(min(i, int(j)), max(i, int(j))) for i, row in zip(nodes, near, strict=True) for j in row}
        return sorted(found - self.ways.keys())

    def clusters(self) -> Labels:
        """A cluster for each node: the number of its highest node."""
        root = np.arange(len(self.x))

        def find(i: int) -> int:
            while root[i] != i:
                root[i] = root[root[i]]
                i = int(root[i])
            return i

        for (i, j), height in sorted(self.ways.items(), key=lambda item: -item[1]):
            a, b = find(i), find(j)
            high, low = (a, b) if self.heights[a] >= self.heights[b] else (b, a)
            if high != low and self.heights[low] - height < self.min_depth:
                root[low] = high
        return np.array([find(i) for i in range(len(root))], int)


def find_clusters(landscape: Landscape, min_depth: float, min_share: float, others: Points) -> Clusters:
    """The modes of the landscape that hold its sample, the largest first.

    `others` are places that were found in other ways, such as by ascents from elsewhere: each belongs to one of these
    modes, or to one that holds no point of the sample.

    Modes with a smaller share of the sample than `min_share` are given to the mode that is easiest to reach. Where the
    modes found are much narrower than the sample, the search is done again with steps of their width: longer ones
    might have gone from one mode into another.
    """
    found = _search(landscape, min_depth, min_share, others)
    for _ in range(MAX_SCALES):
        modes = range(len(found.peaks))
        centres = np.stack([landscape.sample[found.labels == k].mean(axis=0) for k in modes])
        away = landscape.sample - centres[found.labels]
        width = np.sqrt(np.mean(away**2, axis=0)) + 1e-300
        if np.all(width > 0.7 * landscape.scale):
            return found
        landscape = landscape.rescaled(width)
        found = _search(landscape, min_depth, min_share, others)
    return found


def _search(landscape: Landscape, min_depth: float, min_share: float, others: Points) -> Clusters:
    sample = landscape.sample
    ends, heights = landscape.relax(sample)
    graph = _Graph(landscape, min_depth)
    if len(others):
        ends_of_all, heights = np.concatenate([ends, others]), np.append(heights, landscape.heights(others))
    else:
        ends_of_all = ends
    home = _cover(graph, ends_of_all, heights)
    if len(graph.x) > 1:
        graph.connect(graph.nearest(list(range(len(graph.x))), 5))
        _bend_ways(graph)
    clusters = graph.clusters()
    home, home_of_others = home[: len(sample)], home[len(sample) :]
    empty = np.setdiff1d(clusters[home_of_others], clusters[home])
    of_node = _without_small(graph, home, min_share)
    labels = of_node[home]
    order = np.unique(labels)
    order = order[np.argsort([-np.sum(labels == each) for each in order], kind="stable")]
    number = {int(each): k for k, each in enumerate([*order, *empty])}
    return Clusters(
        np.array([number[int(each)] for each in labels], int),
        graph.x[order],
        _crosses_no_valley(landscape, sample, ends, min_depth),
        np.array([number[int(each)] for each in of_node[home_of_others]], int),
        graph.x[empty],
    )


def _cover(graph: _Graph, ends: Points, heights: Heights) -> Labels:
    """Make nodes of the ends of ascents, the highest first, if no node nearby is reached without a valley."""
    landscape, home = graph.landscape, np.zeros(len(ends), int)
    for i in np.argsort(-heights, kind="stable"):
        end, height = ends[i : i + 1], heights[i : i + 1]
        if len(graph.x):
            distances = landscape.distances(end, graph.x)[0]
            near = np.argsort(distances)[:NUM_NEAREST]
            if distances[near[0]] < SAME_PLACE:
                home[i] = near[0]
                continue
            low, _ = landscape.passes(np.repeat(end, len(near), axis=0), graph.x[near])
            best = int(np.argmax(low))
            if low[best] > height[0] - graph.min_depth:
                home[i] = near[best]
                continue
        home[i] = len(graph.x)
        graph.add(end, height)
    return home


def _bend_ways(graph: _Graph) -> None:
    """Relax the lowest places of the ways between clusters, until that joins no more of them."""
    landscape, idle = graph.landscape, 0
    count = len(np.unique(graph.clusters()))
    for _ in range(MAX_ROUNDS):
        pairs = _closest_pairs(landscape, graph.x, graph.clusters())
        if not pairs or idle == MAX_IDLE:
            return
        low = graph.connect(pairs)
        first, second = np.array(pairs, int).T
        middle = 0.5 * (graph.x[first] + graph.x[second])
        ends, heights = landscape.relax(np.concatenate([low, middle]))
        new: list[int] = []
        for end, height, pair in zip(ends, heights, [*pairs, *pairs], strict=True):
            if np.isfinite(height) and landscape.distances(end[None], graph.x).min() > SAME_PLACE:
                graph.add(end[None], np.array([height]))
                node = len(graph.x) - 1
                new.append(node)
                graph.connect([(node, pair[0]), (node, pair[1])])
        if new:
            graph.connect(graph.nearest(new, NUM_NEAREST) or [(new[0], 0)])
        before, count = count, len(np.unique(graph.clusters()))
        idle = 0 if count < before else idle + 1


def _closest_pairs(landscape: Landscape, x: Points, clusters: Labels) -> list[tuple[int, int]]:
    """Find for each cluster of nodes the pairs of nodes that are closest to two other clusters."""
    names = np.unique(clusters)
    distances = landscape.distances(x, x)
    pairs: dict[tuple[int, int], float] = {}
    for name in names:
        inside = np.flatnonzero(clusters == name)
        gaps = []
        for other in names[names != name]:
            outside = np.flatnonzero(clusters == other)
            block = distances[np.ix_(inside, outside)]
            i, j = np.unravel_index(np.argmin(block), block.shape)
            gaps.append((float(block[i, j]), int(inside[i]), int(outside[j])))
        for gap, i, j in sorted(gaps)[:2]:
            pairs[min(i, j), max(i, j)] = gap
    return sorted(pairs, key=lambda pair: pairs[pair])[:MAX_DETOURS]


def _without_small(graph: _Graph, home: Labels, min_share: float) -> Labels:
    """The clusters of the nodes, in which those that hold too few points, but some, have joined others."""
    clusters = graph.clusters()
    while True:
        names, counts = np.unique(clusters[home], return_counts=True)
        smallest = int(np.argmin(counts))
        if len(names) == 1 or counts[smallest] >= min_share * len(home):
            return clusters
        here = clusters == names[smallest]
        reach = {}
        for (i, j), height in graph.ways.items():
            if here[i] != here[j]:
                other = int(clusters[j] if here[i] else clusters[i])
                reach[other] = max(height, reach.get(other, -np.inf))
        reach = {name: height for name, height in reach.items() if name in names}
        if not reach:
            away = graph.landscape.distances(graph.x[names], graph.x[names[smallest]][None])[:, 0]
            reach = {int(name): -gap for name, gap in zip(names, away, strict=True) if name != names[smallest]}
        clusters[here] = max(reach, key=lambda name: reach[name])


def _crosses_no_valley(
    landscape: Landscape, start: Points, end: Points, min_depth: float
) -> Bool[np.ndarray, " point"]:
    """Whether the way from each start to its end, which is higher, never goes down by more than `min_depth`."""
    profiles: Float[np.ndarray, "point place"] = np.concatenate(
        [landscape.heights(start)[:, None], landscape.profiles(start, end)], axis=1
    )
    with np.errstate(invalid="ignore"):
        drop = np.maximum.accumulate(profiles, axis=1) - profiles
    return np.max(drop, axis=1) < min_depth
