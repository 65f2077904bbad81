"""The paper's experiments: the ledger, running and resuming, tables, figures, and the command."""

import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from tests.unit.sentences import assert_sentence
from typer.testing import CliRunner

import pseudo_extended as pe
from pseudo_extended import cli
from pseudo_extended.precision import double_precision
from pseudo_extended.store import StoreInUseError
from pseudo_extended_reproduction import benches, board, boltzmann, cells, conduct, mixture, regression, setups
from pseudo_extended_reproduction.benches import bench_of
from pseudo_extended_reproduction.catalogue import EXPERIMENTS, reproduce
from pseudo_extended_reproduction.cells import Cell, Outcome, run_cell
from pseudo_extended_reproduction.experiment import Budget, grid
from pseudo_extended_reproduction.ledger import Ledger
from pseudo_extended_reproduction.published import TABLE_1, TABLE_2
from pseudo_extended_reproduction.setups import setup_of
from pseudo_extended_reproduction.summaries import differs, rmse_of
from pseudo_extended_reproduction.tables import Table

QUIET = Console(file=open(os.devnull, "w"))  # noqa: SIM115, PTH123


def outcome(cell, scores=None, kept=None):
    scores = {"E[X1]": 0.1, "E[X2]": -0.2, "E[X1²]": 1.0, "E[X2²]": 2.0} if scores is None else scores
    record = {**cell._asdict(), "scores": scores, "evaluations": 1000, "seconds": 2.0, "warmup": 10}
    return Outcome(record, kept)


def two_points(target, beta, points):
    """A result of two chains of 5,000 draws, all of them the same two pseudo-samples with equal weights."""
    return pe.Result(
        target=target,
        unconstrained=np.tile(np.array([[points]]), (2, 5000, 1, 1)),
        log_weights=np.zeros((2, 5000, 2)),
        statistics={"beta": np.tile(beta, (2, 5000, 1))},
        method="numbers",
        seed=0,
        seconds={},
        stopped=None,
        doubts=(),
    )


class TestLedger:
    def test_what_was_added_is_there_after_reopening(self, tmp_path):
        cell, kept = Cell("mixture-a", "hmc", 0, 10, 5), np.arange(10.0).reshape(5, 2)
        ledger = Ledger(tmp_path)
        ledger.add(cell, outcome(cell, kept=kept))
        again = Ledger(tmp_path)
        assert cell in again
        assert again.record(cell)["seconds"] == 2.0
        np.testing.assert_array_equal(again.kept([cell])[cell], kept)
        assert cell._replace(run=1) not in again

    def test_a_torn_line_is_not_counted_and_does_no_harm(self, tmp_path):
        first, second = Cell("mixture-a", "hmc", 0, 10), Cell("mixture-a", "hmc", 1, 10)
        Ledger(tmp_path).add(first, outcome(first))
        path = tmp_path / "records.jsonl"
        path.write_bytes(path.read_bytes()[:-20])  # the process was killed while writing
        ledger = Ledger(tmp_path)
        assert first not in ledger
        ledger.add(second, outcome(second))
        assert second in Ledger(tmp_path)

    def test_compressed_records_are_read_and_new_ones_are_added_beside_them(self, tmp_path):
        first, second = Cell("mixture-a", "hmc", 0, 10), Cell("mixture-a", "hmc", 1, 10)
        Ledger(tmp_path).add(first, outcome(first))
        plain = tmp_path / "records.jsonl"
        (tmp_path / "records.jsonl.xz").write_bytes(lzma.compress(plain.read_bytes()))
        plain.unlink()
        ledger = Ledger(tmp_path)
        assert first in ledger
        ledger.add(second, outcome(second))
        assert second in Ledger(tmp_path)
        assert len(plain.read_text().splitlines()) == 1

    def test_a_cell_whose_draws_are_gone_is_run_again(self, tmp_path):
        cell = Cell("mixture-a", "hmc", 0, 10, 5)
        Ledger(tmp_path).add(cell, outcome(cell, kept=np.zeros((5, 2))))
        next((tmp_path / "draws").glob("*.npz")).unlink()
        assert cell not in Ledger(tmp_path)

    def test_a_run_whose_draws_were_kept_serves_where_none_are_wanted(self, tmp_path):
        cell = Cell("mixture-a", "hmc", 0, 10, 5)
        Ledger(tmp_path).add(cell, outcome(cell, kept=np.zeros((5, 2))))
        ledger = Ledger(tmp_path)
        assert cell._replace(keep=0) in ledger
        assert ledger.record(cell._replace(keep=0))["keep"] == 5
        assert cell._replace(keep=7) not in ledger

    def test_a_second_process_is_refused(self, tmp_path):
        lock = Ledger(tmp_path).lock()
        lock.acquire()
        with pytest.raises(StoreInUseError) as error:
            conduct.conduct([Cell("toy", "hmc", 0, 5)], Ledger(tmp_path), console=QUIET)
        assert_sentence(error, "the ledger in", str(os.getpid()))
        lock.release()


class TestConduct:
    CELLS = tuple(Cell("toy", "hmc", run, 30) for run in range(3))

    def test_same_numbers_for_any_number_of_jobs_and_none_run_twice(self, tmp_path, monkeypatch):
        ledgers = [Ledger(tmp_path / str(jobs)) for jobs in (1, 2)]
        for jobs, ledger in zip((1, 2), ledgers, strict=True):
            conduct.conduct(self.CELLS, ledger, jobs=jobs, console=QUIET)
        for cell in self.CELLS:
            assert ledgers[0].record(cell)["scores"] == ledgers[1].record(cell)["scores"]
        assert len({json.dumps(ledgers[0].record(cell)["scores"]) for cell in self.CELLS}) == 3
        monkeypatch.setattr(conduct, "run_cell", lambda *_: pytest.fail("run again"))
        conduct.conduct(self.CELLS, Ledger(tmp_path / "1"), console=QUIET)

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_an_error_or_ctrl_c_keeps_what_was_done(self, tmp_path, monkeypatch, jobs):
        def breaks(cell, watch):
            del watch
            if cell.run == 1:
                raise KeyboardInterrupt
            return outcome(cell)

        monkeypatch.setattr(conduct, "run_cell", breaks)
        with pytest.raises(KeyboardInterrupt):
            conduct.conduct(self.CELLS, Ledger(tmp_path), jobs=jobs, console=QUIET)
        assert self.CELLS[0] in Ledger(tmp_path)
        asked = []
        monkeypatch.setattr(conduct, "run_cell", lambda cell, _: asked.append(cell) or outcome(cell))
        conduct.conduct(self.CELLS, Ledger(tmp_path), jobs=jobs, console=QUIET)
        assert self.CELLS[0] not in asked
        assert self.CELLS[1] in asked

    def test_a_cell_that_is_told_to_stop_has_no_outcome(self):
        with pytest.raises(cells.StoppedError):
            run_cell(Cell("toy", "hmc", 0, 100_000), lambda cell, part: True)

    def test_progress_in_a_log(self, tmp_path, monkeypatch):
        monkeypatch.setattr(conduct, "run_cell", lambda cell, _: outcome(cell))
        console = Console(file=(tmp_path / "log").open("w"), width=200)
        conduct.conduct(self.CELLS, Ledger(tmp_path), console=console)
        console.file.close()
        assert "3/3 runs" in (tmp_path / "log").read_text()

    def test_progress_of_a_run_that_takes_long(self, tmp_path, monkeypatch):
        """Lines come before its end, and say how far it is."""

        def takes_long(cell, watch):
            for part in (0.25, 0.5):
                assert not watch(cell, part)
                time.sleep(0.7)
            return outcome(cell)

        monkeypatch.setattr(conduct, "run_cell", takes_long)
        monkeypatch.setattr(board, "SECONDS_BETWEEN_LINES", 0.0)
        console = Console(file=(tmp_path / "log").open("w"), width=20)
        conduct.conduct(self.CELLS[:1], Ledger(tmp_path), console=console)
        console.file.close()
        lines = (tmp_path / "log").read_text().splitlines()
        assert re.fullmatch(r"0/1 runs, \d s, about \d s left; toy hmc run 0 (25|50)%", lines[0])
        assert re.fullmatch(r"1/1 runs, \d s; toy hmc run 0", lines[-1])

    def test_killed_and_going_on(self, tmp_path, monkeypatch):
        """SIGKILL after the first records: the second call runs the others, and the numbers are those of one call."""
        command = [sys.executable, "-m", "pseudo_extended_reproduction", "sharing", "--quick", "--draws", "50"]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        whole, killed = tmp_path / "whole", tmp_path / "killed"
        subprocess.run([*command, "--out", str(whole)], check=True)
        process = subprocess.Popen([*command, "--out", str(killed)])
        while not (killed / "records.jsonl").is_file() or len(Ledger(killed)) < 5:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        before = (killed / "records.jsonl").read_bytes()
        subprocess.run([*command, "--out", str(killed), "--jobs", "2"], check=True)
        assert (killed / "records.jsonl").read_bytes().startswith(before.rpartition(b"\n")[0])
        tables = [out / "quick" / "sharing.md" for out in (killed, whole)]
        assert tables[0].read_text() == tables[1].read_text()

    @pytest.mark.slow
    def test_same_numbers_on_a_cluster(self, tmp_path):
        distributed = pytest.importorskip("distributed")
        conduct.conduct(self.CELLS, Ledger(tmp_path / "here"), console=QUIET)
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1) as cluster, cluster.get_client() as client:
            conduct.conduct(self.CELLS, Ledger(tmp_path / "there"), cluster=client, console=QUIET)
        for cell in self.CELLS:
            scores = [Ledger(tmp_path / place).record(cell)["scores"] for place in ("here", "there")]
            assert scores[0] == scores[1]


class TestTables:
    def test_printed_numbers_are_those_of_the_paper(self):
        """Sums of the columns, added up from the paper's source: a typing error would show."""
        assert len(TABLE_1) == 8
        sums = np.sum([[*row.a, *row.b] for row in TABLE_1.values()], axis=0)
        np.testing.assert_allclose(sums, (3.27, 4.68, 30.46, 41.22, 0.64, 0.9, 6.17, 8.97), atol=0.005)
        assert len(TABLE_2) == 36
        sums = np.sum([[*row.a, *row.b] for row in TABLE_2.values()], axis=0)
        expected = (85.6, 130.35, 714.98, 1049.25, 2.26, 3.72, 27.08, 41.63)
        np.testing.assert_allclose(sums, expected, atol=0.005)

    def test_rmse_and_its_error(self):
        """Against many simulated experiments."""
        rng = np.random.default_rng(0)
        simulated = [rmse_of(rng.normal(0, 2, size=(40, 1))) for _ in range(2000)]
        rmse, error = np.array([r for r, _ in simulated]), np.array([e for _, e in simulated])
        np.testing.assert_allclose(rmse.std(), error.mean(), rtol=0.05)
        assert np.isnan(rmse_of(np.ones((1, 2)))[1]).all()

    def test_cells_marked_by_chance_are_one_in_twenty(self):
        rng = np.random.default_rng(0)
        ours, theirs = rng.normal(0, 2, size=(2, 20, 4000))
        printed = rmse_of(theirs)[0].round(2)
        share = differs(*rmse_of(ours), printed, 20).mean()
        assert 0.02 < share < 0.09

    def test_a_table_from_records(self, tmp_path):
        ledger, budget = Ledger(tmp_path), Budget(5, 50_000)
        for cell in [*grid("mixture-a", ["hmc", "default"], budget), Cell("mixture-a", "pt", 0, 50_000)]:
            ledger.add(cell, outcome(cell))
        for cell in grid("mixture-b", ["pe-20"], budget):  # errors of second moments 0.11 below the paper's
            ledger.add(cell, outcome(cell, {"E[X1]": 0.03, "E[X2]": 0.01, "E[X1²]": 0.04, "E[X2²]": 0.12}))
        EXPERIMENTS["table1"].render(ledger, budget, tmp_path)
        text = (tmp_path / "table1.md").read_text()
        assert "0.100 ± 0 (2.69)*" in text  # HMC, far from the paper's
        assert re.search(r"\| our default \| 0\.100 ± 0 \|", text)
        assert "0.100 (0.18) |" in text  # PT, a single run: not marked
        assert "(a): 4 of 4 cells are marked, those of the authors' program aside.\n" in text
        assert re.search(
            r"\(b\): 2 of 4 cells are marked, .* aside. If errors were measured .* it would be 0\.\n", text
        )
        assert "Rows of fewer than 5 runs are not marked." in text
        assert "RAM" not in text  # not run
        latex = (tmp_path / "table1.tex").read_text()
        assert r"\begin{tabular}{lrrrrrrr}" in latex
        assert r"$\pm$" in latex
        assert not re.search(r"[^\x00-\x7f]", latex)

    def test_the_papers_numbers_only_beside_its_budget(self, tmp_path):
        ledger, budget = Ledger(tmp_path), Budget(2, 1_000)
        for cell in grid("mixture-a", ["hmc"], budget):
            ledger.add(cell, outcome(cell))
        EXPERIMENTS["table1"].render(ledger, budget, tmp_path)
        text = (tmp_path / "table1.md").read_text()
        assert "2.69" not in text
        assert "Not the paper's budget" in text

    def test_table_as_latex_escapes(self):
        assert r"a\_b & 5 \%" in Table("β", ["", "x"], [["a_b", "5 %"]]).latex()


class TestCells:
    @pytest.fixture(autouse=True)
    def short_warmup(self, monkeypatch):
        monkeypatch.setattr(setups, "WARMUP", 20)

    @pytest.mark.parametrize(
        "cell",
        [
            Cell("mixture-b", "pe-2-box", 1, 20),
            Cell("boltzmann-6", "st", 0, 20),
            pytest.param(Cell("boltzmann-6", "ais", 0, 20), marks=pytest.mark.slow),
            pytest.param(Cell("boltzmann-6", "gs", 0, 20), marks=pytest.mark.slow),
            pytest.param(Cell("boltzmann-6", "gs-gibbs", 0, 20), marks=pytest.mark.slow),
            pytest.param(Cell("boltzmann-6", "default", 0, 20), marks=pytest.mark.slow),
            pytest.param(Cell("mixture-a", "ram", 0, 20), marks=pytest.mark.slow),
            pytest.param(Cell("mixture-a", "ee", 0, 20), marks=pytest.mark.slow),
            pytest.param(Cell("mixture-a", "pt", 0, 20), marks=pytest.mark.slow),
            pytest.param(Cell("illustration", "pe-2", 0, 20, 10), marks=pytest.mark.slow),
            pytest.param(Cell("toy-shared-2", "hmc", 0, 20), marks=pytest.mark.slow),
        ],
        ids=lambda cell: f"{cell.problem}-{cell.method}",
    )
    def test_a_cell_has_finite_scores_and_a_cost(self, cell):
        got = run_cell(cell)
        assert np.all(np.isfinite(list(got.record["scores"].values())))
        assert got.record["evaluations"] >= cell.draws
        assert json.loads(json.dumps(got.record)) == got.record
        assert (got.kept is None) == (cell.keep == 0)

    @pytest.mark.parametrize("method", ["hmc", pytest.param("pe-2", marks=pytest.mark.slow)])
    def test_a_regression_cell(self, method, monkeypatch, data_directory):
        monkeypatch.setenv("PSEUDO_EXTENDED_DATA", str(data_directory))
        got = run_cell(Cell("colon", method, 0, 8, 4))
        assert got.record["scores"]["log predictive density"] < 0
        assert got.kept.shape == (4, 4)

    def test_error_of_a_log_predictive_density_is_its_spread(self, monkeypatch, data_directory):
        """Over 200 results of 400 independent draws of two pseudo-samples: the spread has an error of 5 %."""
        monkeypatch.setenv("PSEUDO_EXTENDED_DATA", str(data_directory))
        rng = np.random.default_rng(0)
        scores = []
        for _ in range(200):
            p, first = rng.beta(2, 2, size=(1, 400, 2, 13)), rng.uniform(size=(1, 400, 1))
            weights = np.concatenate([first, 1 - first], axis=-1)
            result = SimpleNamespace(weights=weights, map_points=lambda _, p=p: np.log(p))
            scores.append(bench_of("colon").score(result))
        values, errors = ([score[name] for score in scores] for name in ("log predictive density", benches.ERROR))
        assert np.mean(values) == pytest.approx(13 * np.log(0.5), abs=0.02)
        assert np.mean(errors) == pytest.approx(np.std(values), rel=0.2)

    def test_thinned_steps_are_counted_once(self, monkeypatch):
        """HMC with three leapfrog steps: twelve gradients for a draw of four steps."""
        setup = setups.Setup(pe.Plain(pe.HMC(3)), draws=10, warmup=20, thin=4)
        monkeypatch.setattr(cells, "setup_of", lambda *_: setup)
        record = run_cell(Cell("mixture-a", "hmc", 0, 40)).record
        assert record["evaluations"] == 10 * 4 * 3
        assert record["warmup"] == 80

    def test_draws_of_regressions_cost_the_same(self, monkeypatch, data_directory):
        monkeypatch.setenv("PSEUDO_EXTENDED_DATA", str(data_directory))
        bench = bench_of("colon")
        for method, num_particles in (("hmc", 1), ("pe-2", 2), ("pe-5", 5), ("pe-2-0.25", 2)):
            setup = setup_of(method, "colon", bench, 10_000)
            assert setup.draws * num_particles == 10_000
            assert (setup.warmup, setup.thin) == (setups.WARMUP, 1)
        default = setup_of("default", "colon", bench, 10_000)
        assert (default.draws, default.warmup, default.thin) == (1000, setups.WARMUP, 10)

    def test_walks_are_drawn_by_their_weight_among_all(self):
        """Two groups of walks, the second with nearly all of the weight."""
        log_importance = np.array([[0.0] * 50, [7.0] * 50])
        x = np.repeat([[[0.0]], [[1.0]]], 50, axis=1)[..., None]
        index = np.zeros((2, 50), int)
        result = SimpleNamespace(unconstrained=x, resample_index=lambda: index, log_importance=log_importance)
        assert benches._points(result).mean() > 0.95

    def test_settings_are_the_papers(self):
        bench = bench_of("mixture-a")
        assert setup_of("ram", "mixture-a", bench, 10).warmup == 25_000
        assert setup_of("pe-2-0.3", "mixture-a", bench, 10).method.instrument.beta == pytest.approx(0.3)
        assert setup_of("pe-2-0.1", "mixture-a", bench, 50_000).warmup == setups.WARMUP
        assert setup_of("pe-2-0.1-long", "mixture-a", bench, 50_000).warmup == 50_000
        instrument = setup_of("pe-5", "mixture-a", bench, 10).method.instrument
        assert (instrument.beta_min, instrument.beta_max) == (1e-3, 1.0)
        boxed = setup_of("pe-2-box", "mixture-a", bench, 10).target
        assert boxed.outside_bounds(np.array([10.5, 0.0])) is not None
        assert boxed.log_likelihood(np.array([9.0, 9.0])) == bench.target.log_density(np.array([9.0, 9.0]))
        machine = bench_of("boltzmann-6")
        ladders = [setup_of(name, "boltzmann-6", machine, 10).method.betas for name in ("st", "st-equal")]
        assert [len(betas) for betas in ladders] == [1000, 1000]
        np.testing.assert_allclose(np.diff(ladders[1]), 1 / 999)
        assert np.diff(ladders[0])[0] < 0.2 / 999
        schedules = [setup_of(name, "boltzmann-6", machine, 10).method.betas for name in ("ais", "ais-equal")]
        np.testing.assert_allclose(np.diff(schedules[1]), 1 / 1000)
        assert np.diff(schedules[0])[0] < 0.2 / 1000
        assert setup_of("gs", "boltzmann-6", machine, 10).method.step_size == 0.5

    def test_the_authors_program_has_their_slips(self):
        """Weights of (b) that sum to 7.476, in a box; one pseudo-sample a draw, too often one of small β."""
        bench = bench_of("mixture-b")
        setup = setup_of("pe-2-authors", "mixture-b", bench, 10)
        x = np.array([3.0, 4.0])
        assert setup.target.log_likelihood(x) - bench.target.log_density(x) == pytest.approx(np.log(7.476), abs=1e-4)
        with double_precision():  # no Jacobian in what is tempered
            delta = setup.target.path_point(setup.target.unconstrain(x)).delta
            assert delta == pytest.approx(float(setup.target.log_likelihood(x)), rel=1e-12)
        assert setup.target.outside_bounds(np.array([101.0, 0.0])) is not None
        assert setup.target.outside_bounds(np.array([99.0, 0.0])) is None
        weights = setup.reweigh(two_points(bench.target, [0.2, 0.8], [[0.0, 0.0], [1.0, 1.0]])).weights
        assert set(np.unique(weights)) == {0.0, 1.0}
        odds = (2 * np.pi) ** 0.6
        assert weights[..., 0].mean() == pytest.approx(odds / (1 + odds), abs=0.02)

    def test_the_authors_program_weighs_fixed_temperatures_by_scenario_a(self):
        """Two points near a mode whose variance is 0.01 in (a), at distances with odds of 3 there at β = 0.5."""
        bench = bench_of("mixture-b")
        setup = setup_of("pe-2-0.5-authors", "mixture-b", bench, 10)
        mode = np.array([8.41, 1.68])
        points = [mode, mode + np.array([np.sqrt(0.01 * 4 * np.log(3)), 0.0])]
        weights = setup.reweigh(two_points(bench.target, [0.5, 0.5], points)).weights
        assert weights[..., 0].mean() == pytest.approx(0.75, abs=0.02)  # four standard errors

    def test_scores_vanish_at_the_truth(self):
        """Exact draws have errors of Monte Carlo size; all of them moved by one have an error of one."""
        bench = bench_of("boltzmann-6")
        x = bench.problem.density.draw(np.random.default_rng(0), 100_000)

        def score(x):
            return bench.score(SimpleNamespace(unconstrained=x[None, :, None, :], weights=np.ones((1, len(x), 1))))

        assert score(x)["E[X]"] < 0.03
        assert score(x)["E[XXᵀ]"] < 0.1
        assert abs(score(x + 1)["E[X]"] - 1) < 0.03
        assert np.isfinite(boltzmann.variational_errors("boltzmann-6")["E[XXᵀ]"])


def test_every_experiment_draws_what_the_records_give(tmp_path, monkeypatch, data_directory):
    """All figures and tables of made-up records of every cell; no sampling."""
    monkeypatch.setattr(boltzmann, "_problem", lambda budget, full: "boltzmann-6")
    monkeypatch.setattr(regression, "CANCERS", ("colon",))  # pictures of the others are the same
    monkeypatch.setattr(os, "fsync", lambda file: None)  # a thousand times
    monkeypatch.setenv("PSEUDO_EXTENDED_DATA", str(data_directory))
    rng = np.random.default_rng(0)
    dims = {"mixture": 2, "illustration": 1, "boltzmann": bench_of("boltzmann-6").target.dim}
    dims |= dict.fromkeys(benches.CANCERS, 4)
    ledger = Ledger(tmp_path)
    for experiment in EXPERIMENTS.values():
        budget = experiment.full._replace(runs=2)
        for cell in experiment.cells(budget):
            kind = cell.problem.partition("-")[0]
            moments = {"boltzmann": ("E[X]", "E[XXᵀ]"), "toy": ("E[θ]",), "illustration": ("E[X]",)}
            moments |= dict.fromkeys(benches.CANCERS, regression.SCORES)
            scores = {moment: rng.gamma(2.0) for moment in moments.get(kind, ("E[X1]", "E[X2]", "E[X1²]", "E[X2²]"))}
            ledger.add(cell, outcome(cell, scores, rng.normal(size=(50, dims[kind])) if cell.keep else None))
        written = experiment.render(ledger, budget, tmp_path)
        assert written
        for path in written:
            if path.suffix in (".md", ".tex"):
                assert re.search(r"HMC|PE \(N=", path.read_text()), path  # a row, and not only its headings
            else:
                assert path.stat().st_size > 500, path
    assert "β = 0.9" in (tmp_path / "table2.md").read_text()
    assert mixture.TITLE_2 in (tmp_path / "table2.md").read_text()
    assert "β = 0.75" in (tmp_path / "prostate.tex").read_text().replace(r"$\beta$", "β")


COMMITTED = Path(__file__).parents[2] / "docs" / "reproduction"


def test_committed_tables_are_those_of_the_committed_records(tmp_path, monkeypatch, data_directory):
    monkeypatch.setenv("PSEUDO_EXTENDED_DATA", str(data_directory))
    shutil.copy(COMMITTED / "records.jsonl.xz", tmp_path)
    names = ["table1", "table2", "sharing", "figure6", "prostate", "splits", "figure5", "figure5_authors"]
    names += ["mse_time_mixture", "mse_time_boltzmann"]
    tables = [path for path in reproduce(names, tmp_path, run=False, console=QUIET) if path.suffix in (".md", ".tex")]
    assert len(tables) == 2 * len(names)
    for path in tables:
        assert path.read_text() == (COMMITTED / path.name).read_text(), path.name


def test_the_committed_records_are_all_that_the_full_budgets_ask_for():
    ledger = Ledger(COMMITTED)
    cells = [cell for experiment in EXPERIMENTS.values() for cell in experiment.cells(experiment.full)]
    assert [cell for cell in cells if cell._replace(keep=0) not in ledger] == []


def test_other_moments_that_the_paper_may_have_compared_with():
    """Second moments of (b) with standard deviations of distance/20, as Kou et al. (2006) are quoted with."""
    moments = pe.problems.twenty_modes("b").second_moment - mixture._beyond_standard_deviations("mixture-b")[2:]
    np.testing.assert_allclose(moments, [25.558, 31.378], atol=5e-4)


def test_tables_need_no_draws_and_leave_out_what_has_no_records(tmp_path, monkeypatch, data_directory):
    monkeypatch.setenv("PSEUDO_EXTENDED_DATA", str(data_directory))
    ledger = Ledger(tmp_path)
    for cell in grid("colon", ["hmc"], Budget(2, 1000), regression.KEPT):
        ledger.add(
            cell, outcome(cell, dict.fromkeys(regression.SCORES, -5.0), np.zeros((10, 4)) if cell.keep else None)
        )
    shutil.rmtree(tmp_path / "draws")
    for run, score in enumerate((-4.0, -4.5)):
        cell = Cell("colon", "pe-2", run, 1000)
        ledger.add(cell, outcome(cell, dict.fromkeys(regression.SCORES, score)))
    reproduce(["figure6"], tmp_path, runs=2, draws=1000, run=False, console=QUIET)
    text = (tmp_path / "figure6.md").read_text()
    assert "| HMC (NUTS) | -5.000 ± 0 |  |" in text
    assert "| PE (N=2) | -4.25 ± 0.25 | 0.75 ± 0.25 |" in text
    assert "leukemia," not in text
    cell = Cell("leukemia", "hmc", 0, 500)
    ledger.add(cell, outcome(cell, dict.fromkeys(regression.SCORES, -3.0) | {benches.ERROR: 0.25}))
    reproduce(["figure6"], tmp_path, draws=500, run=False, console=QUIET)
    assert "| HMC (NUTS) | -3.00 ± 0.25 |" in (tmp_path / "figure6.md").read_text()
    with pytest.raises(ValueError, match="for pictures the draws"):
        reproduce(["posteriors"], tmp_path, draws=1000, run=False, console=QUIET)


SMALL = {
    "mixture": (*mixture.EXPERIMENTS,),
    "boltzmann": (*boltzmann.EXPERIMENTS,),
    "regression": ("figure6", "splits", "posteriors"),
    "sharing": ("sharing",),
}


@pytest.mark.parametrize("names", SMALL.values(), ids=SMALL)
def test_quick_experiments_on_a_tiny_budget(tmp_path, monkeypatch, data_directory, names):
    """Their cells are sampled, scored, tabulated and drawn; of the regressions those of the smallest data."""

    def smallest(cells, budget):
        return [cell for cell in cells(budget) if cell.problem not in ("leukemia", "prostate")]

    monkeypatch.setenv("PSEUDO_EXTENDED_DATA", str(data_directory))
    monkeypatch.setattr(setups, "WARMUP", 20)
    monkeypatch.setattr(setups, "NUM_TEMPERATURES", 50)
    for name in names:
        cells_of = partial(smallest, EXPERIMENTS[name].cells)
        monkeypatch.setitem(EXPERIMENTS, name, EXPERIMENTS[name]._replace(cells=cells_of))
    written = reproduce([*names], tmp_path, quick=True, runs=1, draws=20, console=QUIET)
    assert {path.stem.partition("_colon")[0] for path in written} == {*names}
    records = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    budget = Budget(1, 20, is_full=False)
    asked = {cell._replace(keep=0) for name in names for cell in EXPERIMENTS[name].cells(budget)}
    assert {Cell(*(record[name] for name in Cell._fields))._replace(keep=0) for record in records} == asked
    assert len(records) == len(asked)  # what two experiments ask for is run once
    for record in records:
        assert np.isfinite([*record["scores"].values()]).all(), record
        assert record["evaluations"] > 0, record


@pytest.mark.slow
def test_all_of_it_on_a_tiny_budget(tmp_path, monkeypatch, data_directory):
    monkeypatch.setenv("PSEUDO_EXTENDED_DATA", str(data_directory))
    written = reproduce(["all"], tmp_path, quick=True, runs=1, draws=20, jobs=2, console=QUIET)
    assert {path.name for path in written} >= {"table1.md", "table2.tex", "figure1.webp", "figure6.svg", "sharing.md"}


class TestCommand:
    def test_list_refusals_and_rendering(self, tmp_path):
        runner = CliRunner()
        assert runner.invoke(cli.app, ["--version"]).output == f"pseudo-extended {pe.__version__}\n"
        listed = runner.invoke(cli.app, ["reproduce", "list"])
        assert "table1" in listed.output
        assert "560 runs of 50,000 draws" in listed.output
        assert "no sampling" in listed.output
        nothing = runner.invoke(cli.app, ["reproduce", "table1", "--out", str(tmp_path), "--no-run"])
        assert nothing.exit_code == 1
        assert "out must hold the records" in nothing.output
        refused = runner.invoke(cli.app, ["reproduce", "table3", "--out", str(tmp_path)])
        assert refused.exit_code == 1
        assert "name must be one of" in refused.output
        refused = runner.invoke(cli.app, ["reproduce", "all", "table3", "--no-run", "--out", str(tmp_path)])
        assert "name must be one of" in refused.output
        refused = runner.invoke(cli.app, ["reproduce", "table1", "--out", str(tmp_path), "--cluster", "nonsense"])
        assert "cluster must be an address such as" in refused.output
        refused = runner.invoke(
            cli.app, ["reproduce", "table1", "--out", str(tmp_path), "--data", str(tmp_path / "no")]
        )
        assert refused.exit_code == 2
        assert "Invalid value for '--data'" in refused.output
        drawn = runner.invoke(cli.app, ["reproduce", "figure1", "--out", str(tmp_path), "--no-run"])
        assert drawn.exit_code == 0, drawn.output
        assert (tmp_path / "figure1.webp").is_file()

    def test_without_the_project_the_command_says_how_to_install_it(self, monkeypatch):
        monkeypatch.setattr(cli, "REPRODUCTION", "no_such_project.command")
        refused = CliRunner().invoke(cli.app, ["reproduce", "list"])
        assert refused.exit_code == 1
        assert "pip install ./reproduction" in refused.output

    def test_an_experiment_from_beginning_to_end(self, tmp_path, monkeypatch):
        """NUTS, the paper's method and our default on the illustration; the second call runs nothing."""
        monkeypatch.setattr(setups, "WARMUP", 20)
        command = ["reproduce", "figure3", "--quick", "--draws", "20", "--jobs", "2", "--out", str(tmp_path)]
        done = CliRunner().invoke(cli.app, command)
        assert done.exit_code == 0, done.output
        assert {path.name for path in (tmp_path / "quick").iterdir()} == {"figure3.webp", "figure3.svg"}
        assert len(Ledger(tmp_path)) == 3
        monkeypatch.setattr(conduct, "run_cell", lambda *_: pytest.fail("run again"))
        assert CliRunner().invoke(cli.app, command).exit_code == 0

    def test_missing_data_is_a_sentence(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PSEUDO_EXTENDED_DATA", "")  # restored after the command has set it
        arguments = ["reproduce", "prostate", "--quick", "--out", str(tmp_path / "out"), "--data", str(tmp_path)]
        refused = CliRunner().invoke(cli.app, arguments)
        assert refused.exit_code == 1
        assert "must hold prostate.mat" in refused.output
        arguments[1:2] = ["prostate", "figure1"]
        refused = CliRunner().invoke(cli.app, arguments)
        assert refused.exit_code == 1
        assert (tmp_path / "out" / "quick" / "figure1.webp").is_file()  # which wants no data

    def test_damaged_data_do_not_stop_the_others(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PSEUDO_EXTENDED_DATA", str(tmp_path))
        (tmp_path / "prostate.mat").write_bytes(b"no matrix")
        with pytest.raises(FileNotFoundError, match=r"prostate\. .* must be the published file.* The others are in"):
            reproduce(["prostate", "figure1"], tmp_path / "out", quick=True, console=QUIET)
        assert (tmp_path / "out" / "quick" / "figure1.webp").is_file()

    def test_a_quick_run_leaves_the_tables_of_a_long_one(self, tmp_path):
        (tmp_path / "figure1.webp").write_text("took hours")
        reproduce(["figure1"], tmp_path, quick=True, console=QUIET)
        assert (tmp_path / "figure1.webp").read_text() == "took hours"
