"""Rows of g by mode: which component belongs to which mode, and what warm-up makes of the rows."""

import jax.numpy as jnp
import numpy as np

import pseudo_extended as pe
from pseudo_extended.methods.adaptive.parameters import AdaptiveParameters, with_rows_for
from pseudo_extended.pilot.learned_base import pad_components
from pseudo_extended.tempering.mode_rows import adapt_rows, anchored, log_g_at, with_rows
from pseudo_extended.tempering.path import Path, cells_given
from pseudo_extended.tempering.temperatures import RowVisits, adapt_g, start_adaptation

BASE = pe.NormalMixture([[-3.0], [3.0], [0.0], [0.0]], [[1.0], [0.5], [2.0], [5.0]], [0.4, 0.3, 0.2, 0.1])
PATH = Path(jnp.linspace(0, 1, 5), jnp.array([1.0, 0.5, 0.3, 0.1, 0.0]))


class TestLabels:
    def test_modes_and_the_broad_part(self):
        np.testing.assert_array_equal(BASE.labels, [0, 1, -1, -1])
        assert BASE.num_modes == 2
        labels = [int(BASE.label(jnp.array([x]))) for x in (-3.2, 3.1, 0.0, 40.0)]
        assert labels == [0, 1, -1, -1]

    def test_padding_adds_no_mode(self):
        padded = pad_components(BASE, 8)
        assert padded.num_modes == 2
        np.testing.assert_array_equal(padded.labels, [0, 1, -1, -1, 0, 0, 0, 0])

    def test_rows_are_for_two_modes_at_least(self):
        parameters = AdaptiveParameters(PATH, jnp.zeros(2), jnp.ones((2, 1)))
        assert with_rows_for(parameters, BASE).path.log_g.shape == (5, 3)
        one = pe.NormalMixture([[0.0], [1.0], [1.0]], [[1.0], [2.0], [5.0]])
        assert with_rows_for(parameters, one).path.log_g.ndim == 1
        assert with_rows_for(parameters, None).path.log_g.ndim == 1


class TestRows:
    def test_rows_that_are_alike_are_one_row(self):
        rows = with_rows(PATH, 2)
        delta, label = jnp.array([-3.0, 0.0, 4.0]), jnp.array([0, 1, -1])
        one, several = cells_given(PATH, delta), cells_given(rows.seen_from(label), delta)
        for expected, got in zip(one, several, strict=True):
            np.testing.assert_array_equal(got, expected)
        np.testing.assert_allclose(log_g_at(rows, label, jnp.array([0.0, 0.125, 1.0])), [1.0, 0.75, 0.0])

    def test_one_mode_alone_is_adapted_as_one_row(self):
        """With all visits in one mode, its row is what `adapt_g` makes, whatever else there is."""
        share = jnp.array([[0.7, 0.4], [0.1, 0.2], [0.1, 0.2], [0.1, 0.2]])
        others = jnp.array([0.3, 0.7])
        rows = with_rows(PATH, 2)
        visits = RowVisits(jnp.array([9.0, 0.0, 0.0]), jnp.zeros(3))
        new, seen = adapt_rows(rows, share, others, others, jnp.array([0, 0]), visits, jnp.asarray(10.0))
        np.testing.assert_allclose(new.log_g[:, 0], adapt_g(PATH, share @ others, jnp.asarray(10.0)).log_g)
        np.testing.assert_allclose(new.log_g[:, 1], PATH.log_g)
        np.testing.assert_allclose(seen.number, [10.0, 0.0, 0.0])

    def test_every_mode_keeps_its_mass_and_the_broad_part_sees_all_of_them(self):
        """Masses along the path by mode; g in inverse proportion, and 1/Z for the broad part."""
        log_z = jnp.array([[0.0, -3.0], [-1.0, -1.0], [-0.3, -1.2]])
        log_g = anchored(
            jnp.concatenate([log_z[-1] - log_z, jnp.zeros((3, 1))], axis=1), jnp.exp(jnp.append(log_z[-1], -99.0))
        )
        together = jnp.logaddexp(*log_z.T)
        np.testing.assert_allclose(log_g[-1], 0.0)
        np.testing.assert_allclose(log_g[:, -1], together[-1] - together, atol=1e-5)

    def test_each_mode_learns_as_if_it_were_alone(self):
        """Whatever the share of its visits: here of points with Δ = 4 and -4, in modes that differ by e^8."""
        both, visits = with_rows(PATH, 2), RowVisits(jnp.zeros(3), jnp.zeros(3))
        alone = [PATH, PATH]
        delta, label, others = jnp.array([4.0, -4.0]), jnp.array([0, 1]), jnp.array([0.2, 0.8])
        for number in range(1, 200):
            share = cells_given(both.seen_from(label), delta).share
            both, visits = adapt_rows(both, share, others, others, label, visits, jnp.asarray(float(number)))
            shares = [cells_given(path, delta[i]).share for i, path in enumerate(alone)]
            alone = [
                adapt_g(path, share, jnp.asarray(float(number))) for path, share in zip(alone, shares, strict=True)
            ]
        np.testing.assert_allclose(both.log_g[:, 0], alone[0].log_g, atol=1e-4)
        np.testing.assert_allclose(both.log_g[:, 1], alone[1].log_g, atol=1e-4)
        assert both.log_g[0, 0] - both.log_g[0, 1] > 6

    def test_adaptation_starts_with_rows_only_where_the_path_has_them(self):
        assert start_adaptation(PATH, jnp.zeros(2)).rows is None
        assert start_adaptation(with_rows(PATH, 2), jnp.zeros(2)).average_log_g.shape == (5, 3)
