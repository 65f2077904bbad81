"""Symmetries that nobody declared: coordinates exchanged or signs flipped, and the density stays as it is.

Two planets, the components of a mixture and the units of a network can change their names, and a factor its sign. A
mode that was found then has images that ascents may miss. A symmetry is guessed from the layout of the vector, or from
two modes of one height, and believed if the density agrees with it at points of all scales; a wrong guess costs an
evaluation. What is believed only proposes modes and moves: the chains weigh these by the density itself.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

from pseudo_extended.pilot.modes import Atlas, KnownMode

MAX_GUESSES = 2_000
"""From the layout."""
FEWEST_TESTS = 32
SHARE = 10
"""Guesses cost no more than the search did so far, divided by this."""
TOLERANCE = 1e-8
"""Of the log density, relative to its size."""
SCALES = (0.3, 1.0, 3.0, 10.0, 30.0)
"""How far from a mode the density is compared, in its standard deviations."""
SAME_HEIGHT = 1e-3
"""Of two modes that may be images of each other."""
MAX_PARTNERS = 8
"""Modes that are compared with each other, the heaviest."""

Heights = Callable[[Float[np.ndarray, "point d"]], Float[np.ndarray, " point"]]
"""The log density at points; -inf outside the support."""


class Guess:
    """y = sign · x[order], and whether the density agrees."""

    def __init__(self, order: Int[np.ndarray, " d"], sign: Float[np.ndarray, " d"]):
        self.order, self.sign = order, sign
        self.believed: bool | None = None
        """None until it has been compared with the density."""

    def __call__(self, x: Float[np.ndarray, "*point d"]) -> Float[np.ndarray, "*point d"]:
        """Map points to their images."""
        return self.sign * x[..., self.order]

    @property
    def name(self) -> bytes:
        """Tell the same map, whoever guessed it."""
        return self.order.tobytes() + self.sign.tobytes()


class HiddenSymmetries:
    """What has been guessed for one density."""

    def __init__(self, dim: int, labelled: Sequence[Int[np.ndarray, "label place"]], seed: int = 0):
        self.dim, self.rng = dim, np.random.default_rng(seed)
        self.guesses: dict[bytes, Guess] = {}
        for guess in _of_layout(dim, labelled):
            self._remember(guess)
            if len(self.guesses) >= MAX_GUESSES:
                break

    @property
    def believed(self) -> list[Guess]:
        """List those that the density agrees with."""
        return [guess for guess in self.guesses.values() if guess.believed]

    def complete(self, atlas: Atlas, heights: Heights, max_tests: int, max_modes: int) -> int:
        """Add the images of the significant modes to the atlas, up to `max_modes` of these; how many were new."""
        self.test(atlas, heights, max_tests)
        added, queue, believed = 0, _heaviest(atlas), self.believed
        room = max_modes - len(queue)
        while believed and queue and added < room:
            mode = queue.pop(0)
            new = [guess for guess in believed if not atlas.is_known(guess(mode.x))]
            if not new:
                continue
            found = heights(np.stack([guess(mode.x) for guess in new]))
            for guess, height in zip(new, found, strict=True):
                if not abs(height - mode.log_density) < TOLERANCE * (1 + abs(height)):
                    guess.believed = False  # it held near one mode, such as a round one, and not near this
                elif added < room and not atlas.is_known(guess(mode.x)):
                    queue.append(atlas.add_image(mode, guess.order, guess.sign))
                    added += 1
            believed = self.believed
        return added

    def test(self, atlas: Atlas, heights: Heights, max_tests: int) -> None:
        """Compare guesses with the density around the heaviest modes, without adding any to the atlas."""
        self._guess_from_pairs(_heaviest(atlas)[:MAX_PARTNERS])
        self._test(atlas, heights, max_tests)

    def _remember(self, guess: Guess) -> None:
        if not (np.array_equal(guess.order, np.arange(self.dim)) and np.all(guess.sign == 1)):
            self.guesses.setdefault(guess.name, guess)

    def _guess_from_pairs(self, modes: Sequence[KnownMode]) -> None:
        """Signs or an order of coordinates that map one mode onto another."""
        for i, one in enumerate(modes):
            for other in modes[:i]:
                if abs(one.log_density - other.log_density) > SAME_HEIGHT:
                    continue
                flipped = np.abs(one.x + other.x) < np.abs(one.x - other.x)
                order = linear_sum_assignment(np.abs(other.x[:, None] - one.x))[1]
                for guess in (
                    Guess(np.arange(self.dim), np.where(flipped, -1.0, 1.0)),
                    Guess(np.asarray(order), np.ones(self.dim)),
                ):
                    if other.neighbourhood.distance((guess(one.x) - other.x)[None])[0] < 1:
                        self._remember(guess)

    def _test(self, atlas: Atlas, heights: Heights, max_tests: int) -> None:
        """Compare the density at images of points, for guesses that would map a mode to a place that is not known."""
        for mode in _heaviest(atlas)[:MAX_PARTNERS]:
            open_ones = [guess for guess in self.guesses.values() if guess.believed is None]
            open_ones = [guess for guess in open_ones if not atlas.is_known(guess(mode.x))][:max_tests]
            if not open_ones:
                continue
            max_tests -= len(open_ones)
            noise = self.rng.normal(size=(len(SCALES), self.dim))
            points = mode.x + np.array(SCALES)[:, None] * np.sqrt(_variance(mode)) * noise
            expected = heights(points)
            if not np.isfinite(expected[0]):
                continue
            found = heights(np.stack([guess(points[0]) for guess in open_ones]))
            agree = np.abs(found - expected[0]) < TOLERANCE * (1 + abs(expected[0]))
            for guess, promising in zip(open_ones, agree, strict=True):
                guess.believed = bool(promising) and _same(heights(guess(points[1:])), expected[1:])


def _same(found: Float[np.ndarray, " point"], expected: Float[np.ndarray, " point"]) -> bool:
    inside = np.isfinite(expected)
    if not inside.any() or not np.array_equal(inside, np.isfinite(found)):
        return False
    return bool(np.all(np.abs(found - expected)[inside] < TOLERANCE * (1 + np.abs(expected[inside]))))


def _heaviest(atlas: Atlas) -> list[KnownMode]:
    return sorted(atlas.significant(), key=lambda mode: -mode.log_mass)


def _variance(mode: KnownMode) -> Float[np.ndarray, " d"]:
    covariance = mode.neighbourhood.covariance
    return covariance if covariance.ndim == 1 else np.diagonal(covariance)


def _of_layout(dim: int, labelled: Sequence[Int[np.ndarray, "label place"]]) -> Iterator[Guess]:
    """The likely ones first: labels of axes; signs; the vector as a table; then any two blocks, and parts as tables."""
    whole = [
        table
        for length in range(2, dim)
        if dim % length == 0
        for table in (np.arange(dim).reshape(length, -1), np.arange(dim).reshape(-1, length).T)
    ]
    tables = [*labelled, *whole]
    for table in tables:
        yield from _exchanges(dim, table)
    yield _flip(dim, np.arange(dim))
    for i in range(dim):
        yield _flip(dim, np.array([i]))
    for table in tables:
        for row in table:
            yield _flip(dim, row)
    for length in range(dim // 2, 0, -1):
        for first in range(dim - 2 * length + 1):
            for second in range(first + length, dim - length + 1):
                yield _exchange(dim, np.arange(first, first + length), np.arange(second, second + length))
    for size in range(dim - 1, 3, -1):
        for length in range(2, size // 2 + 1):
            if size % length == 0:
                for first in range(dim - size + 1):
                    yield from _exchanges(dim, first + np.arange(size).reshape(-1, length).T)


def _exchanges(dim: int, table: Int[np.ndarray, "label place"]) -> Iterator[Guess]:
    """Each row of a table with the next; together they make all orders of the rows."""
    for one, other in pairwise(table):
        yield _exchange(dim, one, other)


def _exchange(dim: int, one: Int[np.ndarray, " place"], other: Int[np.ndarray, " place"]) -> Guess:
    order = np.arange(dim)
    order[one], order[other] = other, one
    return Guess(order, np.ones(dim))


def _flip(dim: int, places: Int[np.ndarray, " place"]) -> Guess:
    sign = np.ones(dim)
    sign[places] = -1.0
    return Guess(np.arange(dim), sign)
