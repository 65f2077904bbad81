"""The report: one file that opens without errors or network, in light and dark, with tables that sort."""

import dataclasses
import re
import shutil
import subprocess

import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import pseudo_extended as pe
from pseudo_extended.report import sections

from ..unit.sentences import assert_sentence
from .made import two_modes

SCRIPT = "<script>window.broken = true</script>"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=5000",
    "--window-size=1280,2000",
]
# Before the page's own script: errors are kept. After it: a reader clicks.
WATCH = "<script>window.found = []; addEventListener('error', (event) => window.found.push(event.message));</script>"
READ = """<script>{
const root = document.documentElement, column = (n) =>
  [...document.querySelectorAll("#summary-table tbody tr")].map((row) => row.cells[n].textContent);
const background = () => getComputedStyle(document.body).backgroundColor;
const told = { ready: root.dataset.ready, broken: String(window.broken) };
const head = document.querySelectorAll("#summary-table thead th");
head[1].click(); told.rising = column(1).join(" ");
head[1].click(); told.falling = column(1).join(" ");
const filter = document.getElementById("filter");
filter.value = "LEFT"; filter.dispatchEvent(new Event("input"));
told.kept = [...document.querySelectorAll("#summary-table tbody tr")].filter((row) => !row.hidden).length;
told.first = background(); document.getElementById("theme").click(); told.second = background();
const pictures = [...document.querySelectorAll("figure svg")];
told.pictures = pictures.filter((svg) => svg.getBoundingClientRect().width > 100).length;
const box = document.getElementById("explorer").getBoundingClientRect();
const [x, y] = draw.places[7];
document.getElementById("explorer").dispatchEvent(
  new PointerEvent("pointermove", { clientX: box.left + x, clientY: box.top + y }));
told.hover = document.getElementById("told").textContent;
told.wider = root.scrollWidth > innerWidth;
told.errors = window.found.join("; ");
for (const name in told) root.setAttribute("data-told-" + name, told[name]);
}</script>"""


@pytest.fixture(scope="module")
def evil():
    """A target whose names are a script: a page that shows them as they are is broken."""
    coords = {"side": ["left", f"right{SCRIPT}"]}
    dims = {"theta": ["side"]}
    from .made import log_density

    return pe.Target(
        log_density, {"theta": np.zeros(2), "tau": 1.0}, bounds={"tau": (0, None)}, dims=dims, coords=coords
    )


@pytest.fixture(scope="module")
def page(evil, tmp_path_factory):
    result = two_modes(
        target=evil,
        doubts=(f"doubtful {SCRIPT}.",),
        notes=(f"{SCRIPT}: path of length 1.0, log Z 0.1 ± 0.2", SCRIPT),
        store=SCRIPT,
    )
    return result.report(tmp_path_factory.mktemp("report") / "run.html", title=SCRIPT, truths={"theta": [-3.0, 0.0]})


class TestFile:
    def test_is_one_small_file_that_needs_no_network(self, page):
        text = page.read_text(encoding="utf-8")
        assert len(text) < 3e6
        links = re.findall(r"(?:src|href|url\()\s*=?\s*[\"'(]?\s*(\w+:[^\"')\s]*|//[^\"')\s]*)", text)
        assert all(link.startswith("data:") for link in links), links
        assert "@import" not in text

    def test_has_all_parts(self, page):
        text = page.read_text(encoding="utf-8")
        for part in ("modes", "summary", "draws", "pictures", "diagnostics", "model-check", "settings", "how-to-cite"):
            assert f'<section id="{part}">' in text
        for picture in ("corner", "marginals", "trace", "journey", "temperatures", "evidence", "weights", "pilot"):
            assert f'<figure id="picture-{picture}">' in text

    def test_texts_are_escaped(self, page):
        assert SCRIPT not in page.read_text(encoding="utf-8")

    def test_what_is_not_known_is_left_out(self, tmp_path):
        """Of a method without temperatures, evidence and pilot."""
        statistics = {name: two_modes().statistics[name] for name in ("acceptance_rate", "diverging", "non_finite")}
        path = two_modes(statistics=statistics, notes=()).report(tmp_path / "run.html", check=False)
        text = path.read_text()
        assert "picture-corner" in text
        assert "picture-journey" not in text

    def test_many_coordinates_still_fit(self, tmp_path):
        target = pe.Target(lambda x: -jnp.sum(x**2), np.zeros(1500))
        x = np.random.default_rng(0).normal(size=(4, 50, 2, 1500))
        wide = two_modes(draws=50, particles=2, target=target, unconstrained=x)
        wide.__dict__["_modes"] = {(0.005, 1.0): one_mode(wide)}
        assert wide.report(tmp_path / "run.html", check=False).stat().st_size < 3e6


def one_mode(result):
    """Modes of a result that are one, without looking for them."""
    small = two_modes().modes()
    one = pe.Estimate(np.ones(1), np.zeros(1), np.ones(1))
    labels = np.zeros(result.weights.shape, int)
    return dataclasses.replace(small, labels=labels, share=small.share[:1], mass=one, group_mass=one)


class TestVerdict:
    def verdict(self, tmp_path, **fields):
        text = two_modes(**fields).report(tmp_path / "run.html", check=False).read_text()
        return re.findall(r'<p class="verdict (\w+)">(.*?)</p>', text)[0]

    def test_good_doubtful_and_bad(self, tmp_path):
        made = two_modes(draws=800)
        assert self.verdict(tmp_path, draws=800)[0] == "good", made.warnings
        assert self.verdict(tmp_path, draws=800, doubts=("the prior looks odd.",))[0] == "doubt"
        apart = made.unconstrained + 10 * np.arange(4)[:, None, None, None]
        kind, sentence = self.verdict(tmp_path, draws=800, unconstrained=apart)
        assert kind == "bad"
        assert "disagree" in sentence

    def test_what_nobody_looked_for_is_said(self, tmp_path):
        """Of one chain, of a method without temperatures, and of a run without its density."""
        assert "There is one chain" in self.verdict(tmp_path, draws=2000, chains=1)[1]
        kind, sentence = self.verdict(tmp_path, draws=800)
        assert (kind, "look" in sentence) == ("good", False)
        made = two_modes(draws=800)
        cold = {name: value for name, value in made.statistics.items() if name not in ("beta", "carrier")}
        kind, sentence = self.verdict(tmp_path, draws=800, statistics=cold)
        assert kind == "good"
        assert re.search(r"does not look for other modes; \d+ ascents after the run found none", sentence)
        blind = two_modes(draws=800)
        kind, sentence = sections.verdict(blind, blind.summary(), None)
        assert "Modes were not looked for" in sentence

    def test_a_run_that_is_stuck_in_one_mode(self, tmp_path):
        """Chains that agree perfectly, on half of the posterior: ascents after the run find the other half."""
        rng = np.random.default_rng(0)
        x = rng.normal(size=(4, 800, 1, 3)) * [1.0, 0.5, 0.5] + [0.0, -3.0, 0.0]
        flat = np.zeros((4, 800))
        result = two_modes(
            draws=800, particles=1, unconstrained=x, log_weights=flat[..., None],
            statistics={"acceptance_rate": flat + 0.8, "diverging": flat > 0, "non_finite": flat > 0},
        )  # fmt: skip
        kind, _ = sections.verdict(result, result.summary(), result.modes())
        assert np.max(result.summary()["r_hat"]) < 1.01
        assert (kind, "PE501" in {message.code for message in result.warnings}) == ("bad", True)

    def test_a_run_that_is_still_going(self, tmp_path):
        kind, sentence = self.verdict(tmp_path, stopped="running")
        assert sentence.startswith("The run is still going: 200 draws")
        assert kind in ("good", "doubt")


@pytest.mark.parametrize(
    ("path", "options", "words"),
    [
        ("nowhere/run.html", {}, ["path", "nowhere"]),
        ("", {}, ["path", "directory"]),
        ("run.html", {"check": "yes"}, ["check", "'yes'"]),
        ("run.html", {"title": 3}, ["title", "3"]),
    ],
)
def test_refusals(tmp_path, path, options, words):
    with pytest.raises((ValueError, TypeError)) as refusal:
        two_modes().report(tmp_path / path, **options)
    assert_sentence(refusal, *words)


@pytest.fixture(scope="module")
def told(page, tmp_path_factory):
    """What a browser says of the page after some clicks."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: the report was not opened in a browser")
    directory = tmp_path_factory.mktemp("browser")
    text = page.read_text(encoding="utf-8")
    text = text.replace('<meta charset="utf-8">', '<meta charset="utf-8">' + WATCH).replace("</body>", READ + "</body>")
    (directory / "run.html").write_text(text, encoding="utf-8")
    command = [
        CHROMIUM,
        *FLAGS,
        f"--user-data-dir={directory / 'profile'}",
        "--dump-dom",
        f"file://{directory}/run.html",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return dict(re.findall(r'data-told-(\w+)="(.*?)"', done.stdout))


class TestInABrowser:
    def test_opens_without_errors(self, told):
        assert told["ready"] == "yes"
        assert told["errors"] == ""
        assert told["broken"] == "undefined"

    def test_tables_sort_and_filter(self, told):
        rising = [float(number) for number in told["rising"].split()]
        assert rising == sorted(rising)
        assert told["falling"].split() == told["rising"].split()[::-1]
        assert told["kept"] == "1"

    def test_pictures_are_there(self, told):
        assert int(told["pictures"]) == 9

    def test_light_and_dark(self, told):
        lightness = [sum(map(int, re.findall(r"\d+", told[name])[:3])) for name in ("first", "second")]
        assert min(lightness) < 150 < 600 < max(lightness)

    def test_a_draw_tells_its_values(self, told):
        assert re.match(r"chain \d, draw \d+, mode \d, ", told["hover"])

    def test_nothing_sticks_out(self, told):
        assert told["wider"] == "false"
