"""Messages: one place, a code each, a section in the documentation each, and none that nobody raises."""

import copy
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import pseudo_extended
from pseudo_extended.messages import KINDS, Message, kinds, recall
from pseudo_extended.results.doubts import AGAINST_EVIDENCE

from ..doors.made import two_modes

SOURCE = Path(pseudo_extended.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "warnings.md"


@pytest.mark.parametrize("code", KINDS)
def test_every_code_has_a_section(code):
    """Its heading, and the three things that a reader looks for."""
    kind = KINDS[code]
    sections = dict(re.findall(r"^### (PE\d{3}): .*?\n(.*?)(?=^##|\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL))
    assert code in sections, f"docs/howto/warnings.md needs a section for {code}"
    assert f"### {code}: {kind.title}\n" in PAGE.read_text()
    for part in ("**What it means.**", "**How it looks.**", "**What to try.**"):
        if kind.severity != "note":
            assert part in sections[code], f"{part} is missing for {code}"


def test_no_section_without_a_code():
    assert set(re.findall(r"^### (PE\d{3}):", PAGE.read_text(), re.MULTILINE)) == set(KINDS)


@pytest.mark.parametrize("code", KINDS)
def test_every_kind_is_raised_somewhere(code):
    [name] = [name for name, value in vars(kinds).items() if value is KINDS[code]]
    texts = [path.read_text() for path in SOURCE.rglob("*.py") if path.name != "kinds.py"]
    assert any(f"kinds.{name}" in text for text in texts), f"nobody says {name}"


def test_codes_are_in_order_and_their_own():
    codes = [kind.code for kind in vars(kinds).values() if isinstance(kind, kinds.Kind)]
    assert codes == sorted(set(codes))
    assert set(KINDS) >= AGAINST_EVIDENCE


def test_a_message_is_a_sentence_that_keeps_its_code():
    message = kinds.FEW_EFFECTIVE(ess=12.3, label="mu", chains=4, least=400)
    assert message == "the effective sample size is 12 for mu; the usual minimum for 4 chain(s) is 400."
    assert message.code == "PE204"
    for other in (pickle.loads(pickle.dumps(message)), copy.deepcopy(message)):
        assert isinstance(other, Message)
        assert (other, other.code, other.severity) == (message, "PE204", "warning")


FACTS = {
    "text": "Any text", "shape": 0.9,
    "percent": 12.0, "draws": 100, "rate": 0.1, "r_hat": 1.2, "ess": 10.0, "beta": 0.5, "mass": 0.1,
    "distance": 1e7, "effective": 1.0, "low": -2.0, "high": -1.0, "within": 0.1, "error": 0.2, "unseen": 0.1,
    "bound": 0.2, "sigmas": 6.0, "wanted": 1e4, "share": 0.2, "chain": 0, "mode": 1, "first": 0, "second": 1,
    "again": 0.5, "value": 1e30,
}  # fmt: skip


@pytest.mark.parametrize("code", [code for code in KINDS if KINDS[code] not in (kinds.NOTE, kinds.DOUBT)])
def test_a_stored_sentence_gets_its_code_back(code):
    """A store keeps sentences; what was said is found again by its words, and by no other kind's."""
    kind = KINDS[code]
    names = re.findall(r"\{(\w+)", kind.template)
    message = kind(**{name: FACTS.get(name, "some words") for name in names})
    assert message.endswith(".")
    assert recall(str(message), kinds.NOTE).code == code


class TestDivergences:
    """A warning where local moves are all there is, and a note where the base reaches the target as well."""

    def diverged(self, accepted, **fields):
        made = two_modes(draws=200)
        diverging = np.zeros((4, 200), bool)
        diverging[1, 3] = True
        refresh = np.full_like(made.statistics["refresh_acceptance"], accepted)
        return two_modes(statistics=made.statistics | {"diverging": diverging, "refresh_acceptance": refresh} | fields)

    @pytest.mark.parametrize(("accepted", "severity"), [(0.05, "warning"), (0.4, "note")])
    def test_with_draws_from_the_base(self, accepted, severity):
        result = self.diverged(accepted)
        told = {message.code: message for message in result.messages if "diverged" in message}
        code = "PE103" if severity == "warning" else "PE111"
        assert list(told) == [code]
        assert (code in {message.code for message in result.warnings}) == (severity == "warning")
        assert told[code].startswith("1 of 800 draws")

    def test_the_worst_chain_decides(self):
        refresh = np.full((4, 200, 6), 0.9)
        refresh[2] = 0.01
        assert "PE103" in {message.code for message in self.diverged(0.9, refresh_acceptance=refresh).warnings}

    def test_without_a_base(self):
        made = self.diverged(0.9)
        cold = {name: value for name, value in made.statistics.items() if name != "refresh_acceptance"}
        assert "PE103" in {message.code for message in two_modes(statistics=cold).warnings}
