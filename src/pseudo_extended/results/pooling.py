"""Runs whose chains start from pilots of their own, joined into one result."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pseudo_extended.messages import Message, kinds
from pseudo_extended.pilot.modes import Modes
from pseudo_extended.pilot.report import PilotReport
from pseudo_extended.results.result import Evaluations, Result
from pseudo_extended.results.stop_reason import has_enough

PILOT = "pilot"
"""The statistic that says which pilot a chain has started from: it goes wherever a result goes."""
NEUTRAL = {"evidence_top": 0.0, "evidence_bottom": 0.0}
"""What fills up a factor of the evidence that a run does not have: the mean of exp(0) is one."""


def pool(results: Sequence[Result], seed: int, num_pilots: int | None = None) -> Result:
    """One result of the chains of all, with as many draws as every one of them has.

    A run with fewer pseudo-samples than another gets copies of its last one, which have no weight and NaN for what is
    reported of them.
    """
    first = results[0]
    num_draws = min(each.num_draws for each in results)
    num_particles = max(each.num_particles for each in results)
    statistics = _statistics(results, num_draws, num_particles)
    pilot_of_chain = np.repeat(np.arange(len(results)), [each.num_chains for each in results])
    statistics[PILOT] = np.repeat(pilot_of_chain[:, None], num_draws, axis=1)
    reports = [each.pilot for each in results if each.pilot is not None]
    counted = [each.evaluations for each in results if each.evaluations is not None]
    ended = [each.stopped for each in results]
    axes: dict[str, tuple[str, ...]] = {}
    for each in results:
        axes |= each.statistic_axes
    doubts = [doubt for each in results for doubt in each.doubts]
    if num_pilots is not None and len(results) < num_pilots:
        doubts.append(_of_missing(len(results), num_pilots))
    importance = [each.log_importance for each in results]
    assert all(each is None for each in importance)  # methods with a pilot weigh no draws
    return replace(
        first,
        unconstrained=np.concatenate([_padded(each.unconstrained[:, :num_draws], num_particles) for each in results]),
        log_weights=np.concatenate(
            [_filled(each.log_weights[:, :num_draws], num_particles, -np.inf) for each in results]
        ),
        statistics=statistics,
        statistic_axes=axes | {PILOT: ()},
        method=f"{first.method}, {len(results)} pilots",
        seed=seed,
        seconds={name: sum(each.seconds.get(name, 0.0) for each in results) for name in first.seconds},
        stopped=next((why for why in ended if not has_enough(why)), ended[0]),
        doubts=tuple(dict.fromkeys(doubts)),
        notes=tuple(f"pilot {number}: {note}" for number, each in enumerate(results) for note in each.notes),
        pilot=join_reports(reports) if len(reports) == len(results) else None,
        evaluations=Evaluations(*map(sum, zip(*counted, strict=True))) if len(counted) == len(results) else None,
        thinned=max(each.thinned for each in results),
    )


def join_reports(reports: Sequence[PilotReport]) -> PilotReport:
    """What several pilots saw, as one report: candidates are named with their pilot, and modes stand side by side."""
    modes = Modes(
        *(np.concatenate([np.asarray(each.modes[i]) for each in reports]) for i in range(4)),
        num_ascents=sum(each.modes.num_ascents for each in reports),
        num_unconverged=sum(each.modes.num_unconverged for each in reports),
        other_hits=np.concatenate([each.modes.other_hits for each in reports]),
    )
    candidates = [
        candidate._replace(name=f"pilot {number}: {candidate.name}")
        for number, each in enumerate(reports)
        for candidate in each.candidates
    ]
    chosen = "; ".join(f"pilot {number}: {each.chosen}" for number, each in enumerate(reports))
    return PilotReport(modes, tuple(candidates), chosen, sum(each.num_search_evaluations for each in reports))


def _of_missing(number: int, wanted: int) -> Message:
    return kinds.PILOTS_MISSING(number=number, wanted=wanted)


def _statistics(results: Sequence[Result], num_draws: int, num_particles: int) -> dict[str, np.ndarray]:
    """All that any of the runs has reported, NaN where one has not."""
    shapes: dict[str, tuple[int, ...]] = {}
    for each in results:
        for name, values in each.statistics.items():
            shapes[name] = tuple(np.maximum(values.shape[2:], shapes.get(name, values.shape[2:])))
    joined = {}
    for name, shape in shapes.items():
        parts: list[np.ndarray] = []
        for each in results:
            values = each.statistics.get(name)
            if values is None:
                values = np.full((each.num_chains, num_draws, *shape), np.nan)
            parts.append(_filled_to(values[:, :num_draws], shape, NEUTRAL.get(name, np.nan)))
        joined[name] = np.concatenate(parts)
    return joined


def _filled_to(values: np.ndarray, shape: tuple[int, ...], fill: float) -> np.ndarray:
    if values.shape[2:] == shape:
        return values
    whole = np.full((*values.shape[:2], *shape), fill, np.result_type(values.dtype, np.float32))
    whole[tuple(slice(size) for size in values.shape)] = values
    return whole


def _filled(values: np.ndarray, num_particles: int, fill: float) -> np.ndarray:
    return _filled_to(values, (num_particles,), fill)


def _padded(x: Any, num_particles: int) -> np.ndarray:
    missing = num_particles - x.shape[2]
    return np.concatenate([x, np.repeat(x[:, :, -1:], missing, axis=2)], axis=2) if missing else np.asarray(x)
