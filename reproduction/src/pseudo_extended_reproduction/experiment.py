"""What an experiment is: cells to run, and what to make of their records."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from pseudo_extended_reproduction.cells import Cell
from pseudo_extended_reproduction.ledger import Ledger
from pseudo_extended_reproduction.summaries import Summary, summarise


class Budget(NamedTuple):
    """How much is run."""

    runs: int
    draws: int
    is_full: bool = True
    """All rows of the paper; else a few of each kind."""

    def says(self) -> str:
        """In words.

        >>> Budget(20, 50_000).says(), Budget(1, 10_000).says()
        ('up to 20 runs of 50,000 draws', 'one run of 10,000 draws')
        """
        runs = "one run" if self.runs == 1 else f"up to {self.runs} runs"
        return f"{runs} of {self.draws:,} draws"


class Experiment(NamedTuple):
    """A table or figure of the paper, or one beside it."""

    title: str
    full: Budget
    """The paper's."""
    quick: Budget
    cells: Callable[[Budget], list[Cell]]
    render: Callable[[Ledger, Budget, Path], list[Path]]
    """Writes what can be made of the records there are, and says which files it wrote."""


NAMES = {
    "ram": "RAM", "ee": "EE", "pt": "PT", "hmc": "HMC (NUTS)", "hmc-stan": "HMC (NUTS), Stan's starts",
    "st": "ST, sigmoidal ladder", "st-equal": "ST, equal steps",
    "ais": "AIS, sigmoidal ladder", "ais-equal": "AIS, equal steps",
    "gs": "GS, joint", "gs-gibbs": "GS, Gibbs", "default": "our default",
}  # fmt: skip


OPTIONS = {
    "box": "the authors' box", "authors": "the authors' program", "wide": "β in (0.001, 1)", "long": "long warm-up",
}  # fmt: skip


def label(method: str) -> str:
    """As a table calls it.

    >>> label("pe-5"), label("pe-2-0.3"), label("pe-2-box"), label("default")
    ('PE (N=5)', 'PE (N=2), β = 0.3', "PE (N=2), the authors' box", 'our default')
    >>> label("pe-2-0.1-long")
    'PE (N=2), β = 0.1, long warm-up'
    """
    if not method.startswith("pe-"):
        return NAMES[method]
    number, *options = method.removeprefix("pe-").split("-")
    return ", ".join([f"PE (N={number})", *(OPTIONS.get(option, f"β = {option}") for option in options)])


def grid(problem: str, methods: Sequence[str], budget: Budget, keep: int = 0) -> list[Cell]:
    """Every method, run after run; only the first run keeps draws."""
    return [
        Cell(problem, method, run, budget.draws, keep if run == 0 else 0)
        for method in methods
        for run in range(budget.runs)
    ]


def summary_of(ledger: Ledger, problem: str, method: str, budget: Budget) -> Summary | None:
    """Of the runs that there are; None if there is none."""
    records = ledger.done(grid(problem, [method], budget))
    return summarise(records) if records else None
