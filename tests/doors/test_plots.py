"""Plots: each is drawn with its names, weights and modes, on axes of the user, in one style; bad input is refused."""

import sys
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.colors import rgb_to_hsv, to_rgb

import pseudo_extended as pe
from pseudo_extended.results.plots.densities import bandwidth, curve, levels, plane, shown
from pseudo_extended.results.plots.pilot import candidates_of
from pseudo_extended.results.plots.style import COLOURS

from ..unit.sentences import assert_sentence
from .made import two_modes

ON_AXES = ["journey", "temperatures", "modes", "evidence"]
ON_FIGURES = ["corner", "marginals", "trace", "pilot", "weights"]
WITH_NAMES = ["corner", "marginals", "trace"]


@pytest.fixture(scope="module")
def result():
    return two_modes()


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def figure_of(drawn):
    return drawn if hasattr(drawn, "savefig") else drawn.get_figure()


def words_in(figure):
    texts = [text.get_text() for ax in figure.axes for text in [*ax.texts, ax.xaxis.label, ax.yaxis.label, ax.title]]
    legends = [legend for part in [figure, *figure.axes] for legend in getattr(part, "legends", [])]
    return " ".join([*texts, *(text.get_text() for legend in legends for text in legend.get_texts())])


@pytest.mark.parametrize("name", [*ON_AXES, *ON_FIGURES])
def test_is_drawn_and_fits_a_paper(result, name, tmp_path):
    figure = figure_of(getattr(result, f"plot_{name}")())
    assert figure is figure_of(getattr(pe.plots, name)(result, **where(name, figure)))
    assert figure.get_size_inches()[0] in (pe.plots.COLUMN, pytest.approx(pe.plots.PAGE))
    figure.savefig(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").stat().st_size > 2000


def where(name, figure):
    if name in ON_FIGURES:
        figure.clear()
        return {"figure": figure}
    return {"ax": figure.axes[0]}


def test_settings_of_the_user_stay(result):
    before = dict(mpl.rcParams)
    with mpl.rc_context({"font.size": 20}):
        result.plot_weights()
        assert mpl.rcParams["font.size"] == 20
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("name", WITH_NAMES)
class TestNames:
    def test_chosen(self, result, name):
        words = words_in(getattr(result, f"plot_{name}")(["theta"]))
        assert "theta[left]" in words
        assert "theta[right_one]" in words
        assert "tau" not in words
        assert "tau" in words_in(getattr(result, f"plot_{name}")("^t.u$", filter_vars="regex"))

    def test_one_alone(self, result, name):
        assert "theta[left]" in words_in(getattr(result, f"plot_{name}")("theta[left]"))

    def test_dollars_are_no_mathematics(self, name):
        target = pe.Target(lambda p: -sum((leaf**2).sum() for leaf in p.values()), {"$a_{": 0.0, "b$$": np.zeros(2)})
        figure = getattr(two_modes(target=target), f"plot_{name}")(modes=False)
        figure.canvas.draw()

    @pytest.mark.parametrize(
        ("truths", "drawn"), [({"theta": [-3, 0]}, 2), ({"theta[left]": 3.0}, 1), ([1.0, np.nan, 0.0], 2)]
    )
    def test_truths(self, result, name, truths, drawn):
        dashed = [
            each
            for ax in getattr(result, f"plot_{name}")(truths=truths).axes
            for each in ax.get_lines()
            if each.get_linestyle() == "--"
            and len(set(np.round(each.get_xdata(), 9))) * len(set(each.get_ydata())) <= 2
        ]
        assert len(dashed) >= drawn

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"var_names": "mu"}, ["var_names", "'mu'"]),
            ({"truths": {"mu": 1.0}}, ["'mu'"]),
            ({"truths": {"theta": [1.0, 2.0, 3.0]}}, ["truths", "2"]),
            ({"truths": [1.0, 2.0]}, ["truths", "3"]),
            ({"modes": "two"}, ["modes", "'two'"]),
            ({"figure": "here"}, ["figure", "'here'"]),
        ],
    )
    def test_refusals(self, result, name, options, words):
        with pytest.raises((TypeError, ValueError)) as refusal:
            getattr(result, f"plot_{name}")(**options)
        assert_sentence(refusal, *words)


class TestDensities:
    def test_weights_count(self, result):
        """The density of the weighted points, and not of the points: thirty to seventy, where the points are even."""
        data = shown(result, "theta[left]", None, None, 9)[0]
        found = curve(data, 0)
        step = found.grid[1] - found.grid[0]
        left = found.total[found.grid < 0].sum() * step
        assert abs(left - 0.3) < 0.05
        assert abs(found.total.sum() * step - 1) < 0.01
        assert abs(found.grid[np.argmax(found.by_mode[1])] - -3) < 0.5  # its standard deviation

    def test_a_hard_bound_is_a_mirror(self, result):
        data = shown(result, "tau", None, False, 9)[0]
        found = curve(data, 0)
        assert found.grid[0] > 0
        assert found.total[0] > 0.8  # an exponential, whose density at zero is one; without the mirror it is a half

    def test_modes_are_not_smeared(self, result):
        """A bandwidth for all modes together would be as wide as the narrow one."""
        data = shown(result, "theta[left]", None, None, 9)[0]
        assert bandwidth(data.values[:, 0], data.weights) > 0.3
        narrow = data.modes == 1
        assert bandwidth(data.values[narrow, 0], data.weights[narrow]) < 0.25

    def test_levels_hold_their_share(self):
        x, y = np.meshgrid(*[np.linspace(-4, 4, 161)] * 2)
        density = np.exp(-0.5 * (x**2 + y**2))
        [level] = levels(density, [0.865])
        assert density[density >= level].sum() / density.sum() == pytest.approx(0.865, abs=0.01)

    def test_plane_has_the_second_coordinate_in_rows(self, result):
        data = shown(result, ["theta[left]", "theta[right_one]"], None, None, 9)[0]
        found = plane(data, 0, 1, 0, ((-6.0, 6.0), (-6.0, 6.0)))
        row, column = np.unravel_index(np.argmax(found), found.shape)
        assert column > row > 48  # the heavy mode is at (3, 1)


def test_modes_are_coloured_and_named(result):
    words = words_in(result.plot_corner())
    assert "mode 0: 7" in words
    assert "mode 1: " in words
    assert "mode" not in words_in(result.plot_corner(modes=False))


def test_colours_differ_in_black_and_white():
    lightness = [float(np.dot(to_rgb(each), [0.3, 0.59, 0.11])) for each in COLOURS]
    assert all(abs(a - b) > 0.08 for a, b in pairwise(lightness))
    assert len({tuple(rgb_to_hsv(to_rgb(each))) for each in COLOURS}) == len(COLOURS)


def test_too_many_coordinates_are_not_all_drawn():
    target = pe.Target(lambda x: -(x**2).sum(), np.zeros(30))
    wide = two_modes(target=target, unconstrained=np.random.default_rng(0).normal(size=(4, 200, 6, 30)))
    assert len([ax for ax in wide.plot_marginals(modes=False).axes if ax.get_visible()]) == 9
    assert len([ax for ax in wide.plot_corner(modes=False).axes if ax.get_visible()]) == 21


class TestPilot:
    def test_from_the_notes(self, result):
        notes = (
            "a broad normal: path of length 7.5, log Z -3.25 ± 0.40",
            "the prior: path of length 99.1, which did not reach the target, log Z -9.00 ± inf",
            "the model's own base: path of length 2.0; the target vanishes at all of 256 draws from it",
            "chosen: a broad normal.",
        )
        found, chosen = candidates_of(two_modes(notes=notes))
        assert chosen == "a broad normal"
        assert [part.length for part in found] == [7.5, 99.1, 2.0]
        assert [part.finished for part in found] == [True, False, True]
        assert found[0][2:4] == (-3.25, 0.4)
        assert np.isnan(found[2].log_z)
        two_modes(notes=notes).plot_pilot()

    def test_of_another_method(self):
        with pytest.raises(ValueError, match="pilot") as refusal:
            two_modes(notes=()).plot_pilot()
        assert_sentence(refusal, "pilot")


@pytest.mark.parametrize(
    ("name", "missing", "options", "words"),
    [
        ("journey", "beta", {}, ["journey", "temperatures"]),
        ("temperatures", "carrier", {}, ["temperatures"]),
        ("evidence", "evidence_top", {}, ["log_evidence"]),
        ("journey", None, {"chain": 4}, ["chain", "4"]),
        ("journey", None, {"draws": (10, 5)}, ["draws", "5"]),
        ("journey", None, {"draws": 10}, ["draws", "10"]),
        ("evidence", None, {"ax": 3}, ["ax", "3"]),
        ("marginals", None, {"hdi_prob": 94}, ["hdi_prob", "94"]),
    ],
)
def test_refusals(result, name, missing, options, words):
    statistics = {key: value for key, value in result.statistics.items() if key != missing}
    with pytest.raises((ValueError, TypeError)) as refusal:
        getattr(two_modes(statistics=statistics), f"plot_{name}")(**options)
    assert_sentence(refusal, *words)


class TestComparison:
    def test_what_results_share(self, result):
        target = pe.Target(lambda p: -(p["tau"] ** 2), {"tau": 0.0})
        other = two_modes(target=target, unconstrained=result.unconstrained[..., :1])
        words = words_in(pe.plots.comparison({"one": result, "another": other}))
        assert "tau" in words
        assert "theta" not in words
        assert "another" in words

    @pytest.mark.parametrize("results", [{}, "run", []])
    def test_refusals(self, results):
        with pytest.raises((TypeError, ValueError), match="results") as refusal:
            pe.plots.comparison(results)
        assert_sentence(refusal, "results")


def test_importance_has_a_panel():
    log_importance = np.random.default_rng(0).normal(size=(4, 200))
    assert len(two_modes(log_importance=log_importance).plot_weights().axes) == 3


def test_without_matplotlib(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError) as refusal:
        result.plot_corner()
    assert_sentence(refusal, "matplotlib", "pip install")
