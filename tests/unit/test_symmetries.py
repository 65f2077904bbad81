"""Declared symmetries: what they do to the flat vector, when they are refused, and what they are good for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.pilot.modes import Modes
from pseudo_extended.pilot.symmetric_modes import with_images
from pseudo_extended.precision import double_precision
from pseudo_extended.run.preflight import check_densities
from pseudo_extended.store import fingerprint_target
from pseudo_extended.target.labels import Parameter
from pseudo_extended.target.symmetries import actions_from, draw_element, elements

from .sentences import assert_sentence

PARAMETERS = (Parameter("centre", (3, 2), ("group", "axis")), Parameter("weight", (3,), ("group",)))
TOGETHER = pe.permutation("centre", "weight", axis=0)


def mixture(p):
    """Three groups whose order does not matter, with widths that are positive."""
    y = jnp.array([-2.0, -1.9, 0.1, 2.2, 2.1])
    z = (y[:, None] - p["centre"]) / p["width"]
    inside = jnp.sum(jax.nn.logsumexp(-0.5 * z**2 - jnp.log(p["width"]), axis=1))
    return inside - 0.5 * jnp.sum((p["centre"] / 3) ** 2) - 2 * jnp.sum(p["width"])


def mixture_target(**options):
    example = {"centre": np.zeros(3), "width": np.ones(3)}
    return pe.Target(mixture, example, bounds={"width": (0, None)}, **options)


class TestActions:
    def test_a_permutation_takes_what_belongs_together(self):
        [action] = actions_from([TOGETHER], PARAMETERS)
        np.testing.assert_array_equal(action.blocks, [[0, 1, 6], [2, 3, 7], [4, 5, 8]])
        x = jnp.arange(9.0)
        found = {tuple(np.asarray(action.draw(jax.random.key(i), 9)(x)).astype(int)) for i in range(100)}
        assert len(found) == 6
        assert (2, 3, 0, 1, 4, 5, 7, 6, 8) in found

    def test_signs_together_and_one_by_one(self):
        together, apart = actions_from([pe.sign_flip("weight"), pe.sign_flip("weight", axis=0)], PARAMETERS)
        x = jnp.arange(9.0)
        found = {tuple(np.asarray(together.draw(jax.random.key(i), 9)(x))[6:].astype(int)) for i in range(50)}
        assert found == {(6, 7, 8), (-6, -7, -8)}
        found = {tuple(np.asarray(apart.draw(jax.random.key(i), 9)(x))[6:].astype(int)) for i in range(100)}
        assert len(found) == 8

    def test_all_elements_are_those_that_are_drawn(self):
        actions = actions_from([TOGETHER, pe.sign_flip("weight", axis=0)], PARAMETERS)
        x = jnp.arange(1.0, 10.0)
        listed = {np.asarray(element(x)).tobytes() for element in elements(actions, 9, 48) or []}
        keys = jax.random.split(jax.random.key(0), 2000)
        drawn = np.asarray(jax.vmap(lambda key: draw_element(actions, key, 9)(x))(keys))
        assert len(listed) == 48
        assert {row.tobytes() for row in drawn} == listed
        assert elements(actions, 9, 47) is None


@pytest.mark.parametrize(
    ("symmetries", "error", "words"),
    [
        (TOGETHER, TypeError, ("symmetries", "list")),
        (["centre"], TypeError, ("symmetries", "pe.permutation", "centre")),
        ([pe.permutation()], ValueError, ("name", "centre", "width")),
        ([pe.permutation("middle")], ValueError, ("symmetries", "centre", "middle")),
        ([pe.permutation("centre", axis=1)], ValueError, ("axis", "centre", "1")),
    ],
)
def test_bad_symmetries(symmetries, error, words):
    with pytest.raises(error) as caught:
        mixture_target(symmetries=symmetries)
    assert_sentence(caught, *words)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: pe.permutation(*[3]), TypeError, ("names", "permutation", "3")),
        (lambda: pe.sign_flip("a", "a"), ValueError, ("names", "sign_flip", "a")),
        (lambda: pe.permutation(**{"axis": "group"}), TypeError, ("axis", "permutation", "group")),
        (
            lambda: actions_from(
                [pe.permutation("a", "b")], [Parameter("a", (3,), ("i",)), Parameter("b", (2,), ("j",))]
            ),
            ValueError,
            ("axis 0", "length", "2"),
        ),
    ],
)
def test_bad_declarations(make, error, words):
    with pytest.raises(error) as caught:
        make()
    assert_sentence(caught, *words)


class TestAgainstTheDensity:
    def doubts(self, target, method=None):
        with double_precision():
            return check_densities(target, pe.AdaptivePseudoExtended() if method is None else method)

    def test_a_true_one_passes(self):
        assert self.doubts(mixture_target(symmetries=[pe.permutation("centre", "width")])) == []

    def test_one_that_forgets_a_parameter_is_refused(self):
        with pytest.raises(ValueError, match="centre") as caught:
            self.doubts(mixture_target(symmetries=[pe.permutation("centre")]))
        assert_sentence(caught, "symmetries", "permutations of 3 indices of centre")

    def test_signs_of_what_is_positive_are_refused(self):
        with pytest.raises(ValueError, match="width") as caught:
            self.doubts(mixture_target(symmetries=[pe.sign_flip("width")]))
        assert_sentence(caught, "symmetries", "signs")

    def test_bounds_that_differ_are_refused(self):
        target = pe.Target(lambda x: -jnp.sum(x), np.ones(2), bounds=([0, -1], [2, 3]))
        with pytest.raises(ValueError, match="symmetries"):
            self.doubts(target.with_symmetries([pe.permutation()]))

    def test_a_method_that_does_not_use_them_says_so(self):
        [doubt] = self.doubts(mixture_target(symmetries=[pe.permutation("centre", "width")]), pe.Plain())
        assert doubt == "the declared symmetries are not used by Plain."


def test_symmetries_belong_to_the_fingerprint():
    plain, declared = mixture_target(), mixture_target(symmetries=[pe.permutation("centre", "width")])
    before, after = fingerprint_target(plain), fingerprint_target(declared)
    assert before.items() < after.items()
    other = fingerprint_target(plain.with_symmetries([pe.permutation("width", "centre"), pe.permutation("centre")]))
    assert other["symmetries"] != after["symmetries"]


class TestModes:
    actions = actions_from([pe.permutation()], [Parameter("x", (3,), ("i",))])

    def modes(self, *x, hits=1):
        covariance = np.diag([0.1, 0.2, 0.3]) ** 2
        number = len(x)
        return Modes(np.array(x), -np.arange(1.0 * number), np.stack([covariance] * number), np.full(number, hits))

    def test_all_images_of_a_mode(self):
        found = with_images(self.modes([1.0, 2.0, 3.0], hits=4), self.actions, 40)
        assert {tuple(x) for x in found.x} == {(1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)}
        i = int(np.flatnonzero(np.all(found.x == [3.0, 1.0, 2.0], axis=1))[0])
        np.testing.assert_allclose(np.diagonal(found.covariance[i]), np.array([0.3, 0.1, 0.2]) ** 2)
        np.testing.assert_array_equal(found.num_hits, 4)

    def test_a_mode_at_an_image_of_another_is_that_image(self):
        found = with_images(self.modes([1.0, 2.0, 3.0], [3.01, 1.0, 2.0]), self.actions, 40)
        assert len(found.x) == 6
        np.testing.assert_array_equal(found.num_hits, 2)
        np.testing.assert_array_equal(found.log_density, 0.0)

    def test_a_mode_that_is_its_own_image_counts_once(self):
        assert len(with_images(self.modes([1.0, 1.0, 3.0]), self.actions, 40).x) == 3

    def test_too_many_images(self):
        assert len(with_images(self.modes([1.0, 2.0, 3.0]), self.actions, 5).x) == 1


@pytest.mark.xdist_group("symmetries")
def test_every_labelling_has_its_share():
    """With a start in one of six labellings and few draws, all of them have a sixth of the mass."""
    target = mixture_target(symmetries=[pe.permutation("centre", "width")])
    start = {"centre": np.array([-2.0, 0.1, 2.1]), "width": np.full(3, 0.3)}
    result = pe.sample(target, start, seed=0, draws=300, warmup=200, chains=2, progress=False)
    assert any("declared: permutations of 3 indices of centre, width" in note for note in result.notes)
    order = np.argsort(result.points["centre"], axis=-1) if isinstance(result.points, dict) else None
    assert order is not None
    label = order @ np.array([100, 10, 1])
    for each in (12, 21, 102, 120, 201, 210):
        share = result.expect((label == each).astype(float))
        assert abs(share.value - 1 / 6) < 5 * share.standard_error < 0.2
