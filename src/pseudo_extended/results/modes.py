"""The modes of a result: where they are, how much mass each holds, and how the chains moved between them."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from pseudo_extended import checks
from pseudo_extended.messages import Message
from pseudo_extended.results.estimates import Estimate
from pseudo_extended.results.markup import modes_html, text_table
from pseudo_extended.results.missed import Missed
from pseudo_extended.results.second_look import GoodTuring

NUM_NAMED = 3
"""Coordinates that a line about a mode names."""


class Search(NamedTuple):
    """Ascents that looked for modes."""

    hits: Int[np.ndarray, " mode"]
    """How many of them ended in each mode."""
    unseen: GoodTuring
    """What they say about basins that none of them has seen."""
    starts: str = "pilot"
    """From where they began: of the "pilot", "hot" pseudo-samples, or "wide" around the draws."""


@dataclass(frozen=True, eq=False, repr=False)
class Modes:
    """Modes found in the weighted draws of a result, the heaviest first; `print` shows them as a table.

    Two modes are apart if every way between them crosses a valley of the density. `result.at(k)` is the result
    restricted to mode k.
    """

    labels: Int[np.ndarray, "chain draw particle"]
    """The mode of every point; -1 for points without weight."""
    mass: Estimate
    """The probability of each mode, with its Monte Carlo error."""
    log_evidence: Estimate | None
    """log of the evidence that each mode holds, log Z + log mass; None if the method estimates no evidence."""
    mean: pd.DataFrame
    """The mean of every coordinate in each mode, in the user's space."""
    sd: pd.DataFrame
    """The standard deviation of every coordinate in each mode: how wide the mode is."""
    peak: pd.DataFrame
    """The highest place of each mode, on the unconstrained scale, shown in the user's space."""
    share: Float[np.ndarray, "mode chain"]
    """The probability of each mode according to each chain alone."""
    visits: Int[np.ndarray, "mode chain"]
    """How often each chain came to each mode; a draw counts for the mode that has most of its weight."""
    crossings: Int[np.ndarray, " chain"]
    """How often each chain went from one mode to another."""
    misassigned: float
    """The share of points that the rule which tells modes apart gives to a wrong one, by cross-validation."""
    laplace: Float[np.ndarray, " mode"]
    """What share of the modes' mass each would have if all were normal: Laplace's approximation. nan where unknown."""
    group: Int[np.ndarray, " mode"]
    """A number for each mode, the same for modes that a permutation or a change of signs maps onto each other."""
    group_mass: Estimate
    """The probability of each group."""
    pilot: Search | None = None
    """The pilot's ascents; None if the method has no pilot that reports them."""
    second_look: Search | None = None
    """Ascents after the run, from its hot pseudo-samples, or for a method without temperatures from wide around its
    draws and from the prior; None if the density has no gradient."""
    missed: tuple[Missed, ...] = ()
    """Modes that an ascent has found and the draws have not, and that should hold a mass of `min_mass`, or more."""
    doubts: tuple[Message, ...] = ()
    """The warnings for which the evidences must not be trusted: none, if they may be."""

    def __len__(self) -> int:
        return len(self.share)

    def table(self) -> pd.DataFrame:
        """One row for each mode: mass, evidence, how the chains agree, and the mean of every coordinate."""
        columns = {"mass": self.mass.value, "mcse_mass": self.mass.standard_error}
        if self.log_evidence is not None:
            columns |= {
                "log_evidence": self.log_evidence.value,
                "mcse_log_evidence": self.log_evidence.standard_error,
            }
        columns["laplace"] = self.laplace
        if self.has_groups:
            columns["group"] = self.group
        columns |= {
            "min_share": self.share.min(axis=1),
            "max_share": self.share.max(axis=1),
            "visits": self.visits.sum(axis=1),
        }
        if self.pilot is not None:
            columns["pilot_hits"] = self.pilot.hits
        if self.second_look is not None:
            columns[f"{self.second_look.starts}_hits"] = self.second_look.hits
        table = pd.concat([pd.DataFrame(columns, index=self.mean.index), self.mean], axis=1)
        table.attrs["warnings"] = self.marks()
        return table

    @property
    def has_groups(self) -> bool:
        """Whether some modes are one mode but for a permutation of coordinates or their signs."""
        return len(self.group_mass.value) < len(self)

    def lines(self, max_lines: int = 3) -> list[str]:
        """A line for each mode with its mass and place; of many modes the heaviest, and one line for the others.

        Modes that are one but for a permutation or signs have one line together.
        """
        max_lines = checks.integer("max_lines", max_lines, minimum=1)
        named = self._telling_coordinates()
        groups = [np.flatnonzero(self.group == number) for number in np.argsort(-self.group_mass.value, kind="stable")]
        shown = len(groups) if len(groups) <= max_lines else max_lines - 1
        lines = []
        for modes in groups[:shown]:
            k = int(modes[0])
            place = ", ".join(f"{name} = {self.mean[name].iloc[k]:.3g} ± {self.sd[name].iloc[k]:.2g}" for name in named)
            mass, error = (part[self.group[k]] for part in self.group_mass[:2])
            alike = f" and {len(modes) - 1} more by symmetry" if len(modes) > 1 else ""
            lines.append(f"mode {k}{alike}: mass {mass:.3f} ± {error:.3f} at {place}")
        if shown < len(groups):
            others = groups[shown:]
            rest = sum(float(self.group_mass.value[self.group[modes[0]]]) for modes in others)
            number = sum(len(modes) for modes in others)
            lines.append(f"{number} more modes with a mass of {rest:.3f} together: see result.modes()")
        return lines

    def with_doubts(self, doubts: tuple[Message, ...]) -> "Modes":
        """The same modes, with the warnings that speak against their evidences."""
        return replace(self, doubts=doubts)

    def marks(self) -> list[str]:
        """A sentence, if the evidences must not be trusted."""
        codes = ", ".join(dict.fromkeys(doubt.code for doubt in self.doubts))
        return [f"the log evidences are NOT TO BE TRUSTED ({codes})."] if codes and self.log_evidence else []

    def __repr__(self) -> str:
        count = "1 mode" if len(self) == 1 else f"{len(self)} modes"
        crossings = ", ".join(str(number) for number in self.crossings)
        table = self.table().drop(columns=list(self.mean.columns))
        table = pd.concat([table, self.mean[self._telling_coordinates(8)]], axis=1)
        lines = [f"{count}; crossings by chain: {crossings}", text_table(table)]
        if self.has_groups:
            lines.append("modes of one group are equal up to a permutation of coordinates or their signs.")
        lines += [f"! {sentence}" for sentence in self.marks()]
        return "\n".join(lines)

    _repr_html_ = modes_html

    def _telling_coordinates(self, most: int = NUM_NAMED) -> list[str]:
        """Coordinates in which the modes differ most, in the order of the result."""
        within = np.sqrt(np.mean(self.sd.to_numpy() ** 2, axis=0)) + 1e-300
        apart = np.std(self.mean.to_numpy(), axis=0) / within
        chosen = np.sort(np.argsort(-apart, kind="stable")[:most])
        return [str(name) for name in self.mean.columns[chosen]]
