"""An evidence that must not be trusted is marked wherever it is shown, and one that may be nowhere."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import pseudo_extended as pe
from pseudo_extended.store import Store

from .made import target, two_modes

CODE = "PE402"


def of_few(**fields):
    """One draw of a chain holds nearly all of its evidence."""
    made = two_modes(draws=800, **fields)
    top = made.statistics["evidence_top"].copy()
    top[0, 7] += 12.0
    return two_modes(draws=800, statistics=made.statistics | {"evidence_top": top}, **fields)


def saved(result, tmp_path):
    manifest = Store.open(result.save(tmp_path / "run.zarr")).manifest
    return manifest.evidence["log_evidence_doubts"]


OUTPUTS = {
    "printed": lambda result, tmp_path: repr(result),
    "in a notebook": lambda result, tmp_path: result._repr_html_(),
    "evidence": lambda result, tmp_path: repr(result.log_evidence),
    "evidence in a notebook": lambda result, tmp_path: result.log_evidence._repr_html_(),
    "modes": lambda result, tmp_path: repr(result.modes()),
    "modes in a notebook": lambda result, tmp_path: result.modes()._repr_html_(),
    "table of modes": lambda result, tmp_path: str(result.modes().table().attrs),
    "a mode's evidence": lambda result, tmp_path: repr(result.at(0).log_evidence),
    "summary": lambda result, tmp_path: result.summary().attrs["log_evidence"]["log_evidence_doubts"],
    "ArviZ": lambda result, tmp_path: result.to_arviz(prior=0).posterior.attrs["log_evidence_doubts"],
    "comparison": lambda result, tmp_path: repr(pe.compare({"one": result})),
    "store": saved,
    "report": lambda result, tmp_path: result.report(tmp_path / "run.html", check=False).read_text(),
}


@pytest.fixture(scope="module")
def results():
    return of_few(), two_modes(draws=800)


@pytest.mark.parametrize("name", OUTPUTS)
def test_marked_and_not_marked(name, results, tmp_path):
    few, good = (OUTPUTS[name](result, tmp_path / str(number)) for number, result in enumerate(made(results, tmp_path)))
    assert CODE in few
    assert CODE not in good
    assert "NOT TO BE TRUSTED" not in good


def made(results, tmp_path):
    for number in range(len(results)):
        (tmp_path / str(number)).mkdir()
    return results


def test_in_a_plot(results):
    few, good = (result.plot_evidence().get_title(loc="left") for result in results)
    assert few.endswith("not to be trusted")
    assert "not" not in good


def test_a_missed_mode_is_looked_for_before_models_are_compared():
    """Nobody has called `modes()`, and all draws are in one of the two."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 800, 1, 3)) * [1.0, 0.5, 0.5] + [0.0, -3.0, 0.0]
    flat = np.zeros((4, 800))
    statistics = {"acceptance_rate": flat + 0.8, "diverging": flat > 0, "non_finite": flat > 0}
    statistics |= {f"evidence_{end}": 0.1 * rng.normal(size=(4, 800, 1)) for end in ("top", "bottom")}
    stuck = two_modes(
        draws=800, particles=1, unconstrained=x, log_weights=flat[..., None], statistics=statistics, target=target()
    )
    assert "PE501" in repr(pe.compare({"one": stuck}))


def test_logs_keep_their_decimals():
    """Differences of logs matter, so a large one is not cut to four digits."""
    made_up = two_modes(draws=800)
    top = made_up.statistics["evidence_top"] - 1234.5
    shifted = two_modes(draws=800, statistics=made_up.statistics | {"evidence_top": top})
    value = shifted.modes().log_evidence.value[0]
    for shown in (repr(shifted.modes()), shifted.modes()._repr_html_()):
        assert f"{value:.3f}" in shown
