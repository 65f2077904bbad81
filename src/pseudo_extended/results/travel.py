"""How pseudo-samples travel along the path: switches of the index, round trips, where they were, what was accepted."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from pseudo_extended.messages import Message, kinds
from pseudo_extended.results.markup import travel_html

Betas = Float[np.ndarray, "chain draw particle"]

HOT = 0.1
"""The hottest tenth of all temperatures counts as the hot end of the path."""


class Travel(NamedTuple):
    """Mixing along the path."""

    switch_rates: Float[np.ndarray, " chain"]
    """The share of a chain's draws in which another pseudo-sample took over the target."""
    round_trips: Int[np.ndarray, " chain"]
    """Trips from the hot end to the target and back, of all pseudo-samples of each chain."""
    lowest_betas: Float[np.ndarray, " chain"]
    by_temperature: pd.DataFrame
    """For tenths of the visited temperatures, the hottest first, and last for the target itself: the mean of β, the
    share of the visits, and the acceptance rates of the local moves and of the refreshments from the base."""

    def _repr_html_(self) -> str:
        return travel_html(self)

    @property
    def switch_rate(self) -> float:
        """The rate at which the index switches, over all chains."""
        return float(np.mean(self.switch_rates))

    @property
    def lowest_beta(self) -> float:
        """The lowest β that any chain reached."""
        return float(np.min(self.lowest_betas))


def travel(statistics: dict[str, np.ndarray]) -> Travel | None:
    """What the statistics of a run say; None for a method whose pseudo-samples do not travel."""
    if not {"carrier", "beta", "move_acceptance", "refresh_acceptance"} <= statistics.keys():
        return None
    carrier, beta = statistics["carrier"], statistics["beta"]
    carries = carrier[..., None] == np.arange(beta.shape[2])
    switches = carrier[:, 1:] != carrier[:, :-1]
    return Travel(
        switch_rates=switches.mean(axis=1) if switches.size else np.full(len(carrier), np.nan),
        round_trips=round_trips(beta, carries),
        lowest_betas=np.nanmin(beta, axis=(1, 2)).astype(float),
        by_temperature=_by_temperature(beta, carries, statistics["move_acceptance"], statistics["refresh_acceptance"]),
    )


def round_trips(beta: Betas, carries: Bool[np.ndarray, "chain draw particle"]) -> Int[np.ndarray, " chain"]:
    """How often a pseudo-sample went from the hot end to the target and back.

    >>> beta = np.array([0.0, 0.5, 1.0, 0.5, 0.0, 1.0, 0.0])[None, :, None]
    >>> round_trips(beta, beta == 1)
    array([2])
    """
    hot = beta <= _hot_end(beta, carries)
    return count_round_trips(np.where(carries, 1, np.where(hot, -1, 0)))


def count_round_trips(ends: Int[np.ndarray, "chain draw traveller"]) -> Int[np.ndarray, " chain"]:
    """Trips there and back of all travellers, from where each is: 1 at one end, -1 at the other, 0 in between."""
    trips: Int[np.ndarray, " chain"] = np.zeros(ends.shape[0], int)
    for chain in range(ends.shape[0]):
        for traveller in range(ends.shape[2]):
            visited = ends[chain, :, traveller]
            visited = visited[visited != 0]
            trips[chain] += np.count_nonzero(np.diff(visited)) // 2
    return trips


def diagnose_travel(found: Travel, num_draws: int) -> list[Message]:
    """What a user should know about it; of the worst chain, because good ones do not make up for it."""
    said = []
    stuck = np.flatnonzero(found.switch_rates == 0)
    if stuck.size:
        said.append(kinds.NO_SWITCH(of=_of_chains(stuck, found)))
    cold = np.flatnonzero(found.lowest_betas > 0.3)
    if cold.size:
        said.append(kinds.NEVER_HOT(beta=found.lowest_betas.max(), of=_of_chains(cold, found)))
    fewest = int(np.argmin(found.round_trips))
    if not stuck.size and found.round_trips[fewest] < 10:
        said.append(kinds.FEW_ROUND_TRIPS(chain=fewest, trips=found.round_trips[fewest], draws=num_draws))
    accepted, beta = (found.by_temperature[name].to_numpy() for name in ("move_acceptance", "beta"))
    worst = int(np.argmin(accepted))
    if accepted[worst] < 0.1:  # a random walk aims at 0.234
        said.append(kinds.LOCAL_MOVES_REJECTED(rate=accepted[worst], beta=beta[worst]))
    return said


def _of_chains(which: Int[np.ndarray, " some"], found: Travel) -> str:
    return "" if len(which) == len(found.round_trips) else f" of chain {', '.join(map(str, which))}"


def _hot_end(beta: Betas, carries: Bool[np.ndarray, "chain draw particle"]) -> float:
    others = beta[~carries & np.isfinite(beta)]
    return float(np.quantile(others, HOT)) if others.size else -1.0


def _by_temperature(
    beta: Betas,
    carries: Bool[np.ndarray, "chain draw particle"],
    moved: Betas,
    refreshed: Betas,
) -> pd.DataFrame:
    others = ~carries & np.isfinite(beta)  # nan stands for pseudo-samples that a pilot does not have
    values = beta[others]
    edges = np.unique(np.quantile(values, np.linspace(0, 1, 11)))
    rows = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, max(len(edges) - 2, 0))
    columns = (("beta", beta), ("move_acceptance", moved), ("refresh_acceptance", refreshed))
    count = np.bincount(rows)
    means = {name: np.append(np.bincount(rows, each[others]) / count, each[carries].mean()) for name, each in columns}
    share = np.append(count, np.sum(carries)) / beta.size
    return pd.DataFrame({"beta": means.pop("beta"), "share": share, **means})
