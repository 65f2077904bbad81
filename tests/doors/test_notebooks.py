"""What notebooks show: tables with the user's texts escaped, and a check that is listed once."""

import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe

from .made import two_modes

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def evil():
    """A result whose every text is a script."""
    target = pe.Target(lambda p: -sum((leaf**2).sum() for leaf in p.values()), {SCRIPT: np.zeros(2), "b": 0.0})
    return two_modes(target=target, doubts=(SCRIPT,), notes=(SCRIPT,), method=SCRIPT)


@pytest.fixture(scope="module")
def result():
    return two_modes()


def test_texts_of_a_model_are_escaped(evil):
    for shown in (evil, evil.modes(), evil.mean(), evil.travel):
        page = shown._repr_html_()
        assert SCRIPT not in page
        assert "<table" in page
    assert "&lt;script&gt;" in evil._repr_html_()


def test_result_has_the_numbers_of_its_text(result):
    page = result._repr_html_()
    for number in result.summary()["mean"]:
        assert f"{number:.4g}" in page
    assert "log evidence" in page
    assert "mode 1: mass" in page


def test_estimates(result):
    assert "±" in result.log_evidence._repr_html_()
    page = result.mean()._repr_html_()
    assert "theta[0]" in page
    assert page.count("<tr>") == 4
    assert result.quantile([0.1, 0.9])._repr_html_().count("<tr>") == 7


def test_many_rows_are_cut():
    target = pe.Target(lambda x: -(x**2).sum(), np.zeros(50))
    wide = two_modes(target=target, unconstrained=np.zeros((4, 200, 6, 50)) + np.arange(200)[:, None, None])
    assert "and 20 more rows" in wide._repr_html_()


class TestCheck:
    def test_a_script_prints_it(self, capsys):
        found = pe.check(lambda x: -jnp.sum(x**2), np.ones(2))
        assert capsys.readouterr().out.strip() == str(found)

    def test_a_prompt_shows_it_once(self, capsys, monkeypatch):
        import sys

        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
        found = pe.check(lambda x: -jnp.sum(x**2), np.ones(2))
        assert not capsys.readouterr().out
        assert repr(found) == str(found)
        assert "<td>✓</td><td>density</td>" in found._repr_html_()
