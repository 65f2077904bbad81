"""How far the chains of independent pilots agree: on the evidence, on each mode's mass, and on the draws."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from pseudo_extended.messages import Message, kinds
from pseudo_extended.results import estimates
from pseudo_extended.results.evidence import log_evidence
from pseudo_extended.results.markup import page_table, paragraph, text_table
from pseudo_extended.results.mode_warnings import FEW_DRAWS
from pseudo_extended.results.series import r_hat

if TYPE_CHECKING:
    from pseudo_extended.results.modes import Modes
    from pseudo_extended.results.result import Result

SIGMAS = 4.0
"""Standard errors that pilots may be apart: errors are themselves estimates, from a chain or two."""
NOWHERE = 1e-3
"""Of a mode's mass: chains with less of it have not found the mode."""


class Unfound(NamedTuple):
    """A mode that the chains of a pilot have not found, and others have."""

    pilot: int
    mode: int
    mass: float
    """Its probability by the chains that have found it."""


class Agreement(NamedTuple):
    """What the chains of each pilot say alone."""

    log_evidence: Float[np.ndarray, " pilot"] | None
    log_evidence_error: Float[np.ndarray, " pilot"] | None
    mass: Float[np.ndarray, "pilot mode"]
    mass_error: Float[np.ndarray, "pilot mode"]
    r_hat: float
    """The largest of any coordinate, with all chains of a pilot taken for one."""
    unfound: tuple[Unfound, ...]

    @property
    def evidence_sigmas(self) -> float:
        """How far the two evidences that differ most are apart, in errors of the difference; nan if unknown."""
        if self.log_evidence is None or self.log_evidence_error is None:
            return np.nan
        return float(_apart(self.log_evidence[:, None], self.log_evidence_error[:, None])[0])

    @property
    def mass_sigmas(self) -> Float[np.ndarray, " mode"]:
        """The same for the mass of each mode."""
        return _apart(self.mass, self.mass_error)

    def table(self) -> pd.DataFrame:
        """A row for each pilot, and one with how far they are apart, in standard errors."""
        columns: dict[str, np.ndarray] = {}
        if self.log_evidence is not None and self.log_evidence_error is not None:
            columns["log_evidence"] = np.append(self.log_evidence, self.evidence_sigmas)
            columns["mcse_log_evidence"] = np.append(self.log_evidence_error, np.nan)
        for k in range(self.mass.shape[1]):
            columns[f"mass_{k}"] = np.append(self.mass[:, k], self.mass_sigmas[k])
            columns[f"mcse_mass_{k}"] = np.append(self.mass_error[:, k], np.nan)
        return pd.DataFrame(columns, index=[*(f"pilot {i}" for i in range(len(self.mass))), "standard errors apart"])

    def line(self) -> str:
        """Describe the agreement in a line."""
        said = []
        if self.log_evidence is not None:
            said.append(f"log evidences are {self.evidence_sigmas:.1f} standard errors apart")
        if self.mass.shape[1] > 1:
            said.append(f"masses of modes at most {np.max(self.mass_sigmas):.1f}")
        said.append(f"R-hat between them is {self.r_hat:.3f}")
        return f"{len(self.mass)} pilots: {', '.join(said)}"

    def __repr__(self) -> str:
        return "\n".join([self.line(), text_table(self.table())])

    def _repr_html_(self) -> str:
        return paragraph(self.line()) + page_table(self.table())


def pilots_of(result: "Result") -> Int[np.ndarray, " chain"] | None:
    """The pilot of each chain; None if all have the same."""
    of_chain = result.statistics.get("pilot")
    if of_chain is None or len(np.unique(of_chain)) < 2:
        return None
    return np.asarray(of_chain[:, 0], int)


def compare_pilots(result: "Result", modes: "Modes | None") -> Agreement | None:
    """Compare the chains of the pilots of a result; None if it has one pilot."""
    of_chain = pilots_of(result)
    if of_chain is None:
        return None
    parts = [of_chain == pilot for pilot in np.unique(of_chain)]
    evidence, evidence_error = None, None
    if "evidence_top" in result.statistics:
        top, bottom = (result.statistics[f"evidence_{end}"] for end in ("top", "bottom"))
        alone = [log_evidence(top[part], bottom[part]) for part in parts]
        evidence, evidence_error = (np.array([each[i] for each in alone], float) for i in (0, 1))
    number = 1 if modes is None else len(modes)
    mass, error = np.ones((len(parts), number)), np.zeros((len(parts), number))
    if modes is not None and number > 1:
        inside = (modes.labels[..., None] == np.arange(number)).astype(float)
        for pilot, part in enumerate(parts):
            found = estimates.mean(inside[part], result.weights[part])
            mass[pilot], error[pilot] = found.value, np.nan_to_num(found.standard_error)
    return Agreement(
        evidence, evidence_error, mass, error, _between(result, parts), _unfound(mass, result.num_draws, parts)
    )


def diagnose_pilots(found: Agreement | None) -> list[Message]:
    """One message for each thing that pilots disagree on; of modes the one that they disagree on most."""
    if found is None:
        return []
    said = [kinds.MODE_OF_SOME_PILOTS(pilot=each.pilot, mode=each.mode, mass=each.mass) for each in found.unfound]
    if found.evidence_sigmas > SIGMAS:
        said.append(kinds.PILOTS_DISAGREE(what="log Z", sigmas=found.evidence_sigmas))
    worst = int(np.argmax(found.mass_sigmas))
    if not found.unfound and found.mass_sigmas[worst] > SIGMAS:
        said.append(kinds.PILOTS_DISAGREE(what=f"the mass of mode {worst}", sigmas=found.mass_sigmas[worst]))
    return said


def _apart(values: Float[np.ndarray, "pilot some"], errors: Float[np.ndarray, "pilot some"]) -> np.ndarray:
    """The largest difference of two pilots in units of its error; 0 where they are equal."""
    difference = np.abs(values[:, None] - values[None])
    error = np.hypot(errors[:, None], errors[None])
    with np.errstate(divide="ignore", invalid="ignore"):
        sigmas = np.where(difference > 0, difference / error, 0.0)
    return np.max(sigmas, axis=(0, 1))


def _between(result: "Result", parts: list[np.ndarray]) -> float:
    """R-hat with all chains of a pilot as one."""
    series = estimates.contributions(result.coordinates, result.weights)
    least = min(int(np.sum(part)) for part in parts) * result.num_draws
    joined = np.stack([series[part].reshape(-1, series.shape[-1])[:least] for part in parts])
    found = r_hat(joined)
    return float(np.nanmax(found)) if np.any(np.isfinite(found)) else np.nan


def _unfound(mass: np.ndarray, num_draws: int, parts: list[np.ndarray]) -> tuple[Unfound, ...]:
    found = []
    for k in range(mass.shape[1]):
        heaviest = float(np.max(mass[:, k]))
        for pilot, part in enumerate(parts):
            expected = heaviest * num_draws * int(np.sum(part))
            if mass[pilot, k] < NOWHERE * heaviest and expected >= FEW_DRAWS:
                found.append(Unfound(pilot, k, heaviest))
    return tuple(found)
