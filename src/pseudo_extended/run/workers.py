"""Workers that advance lanes: threads of this process, over one or more JAX devices."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import jax

from pseudo_extended import checks
from pseudo_extended.compiled import Device
from pseudo_extended.run.advance import AdvancedLane, LaneInput, LaneProgram, Segment, Work
from pseudo_extended.watchdog import on_own_thread


class Workers(ABC):
    """A number of workers, each of which advances one lane at a time."""

    slots: int
    """Lanes that are advanced at the same time."""
    seconds: float
    """How long one task should take: seldom enough to cost nothing, often enough for a bar and a Ctrl-C."""

    @abstractmethod
    def submit(self, number: int, lane: LaneInput, segment: Segment) -> Future[AdvancedLane]:
        """Advance one lane, and return its future."""

    @abstractmethod
    def close(self) -> None:
        """After the last lane has come back, or when an error ends the run."""


class Threads(Workers):
    """Threads do: the compiled programs run outside Python's lock.

    Every lane has a device, on which it stays. Programs of different devices are compiled from the same text and not
    from one text sharded over all of them, so a chain's draws cannot depend on how many devices there are.
    """

    seconds = 0.3

    def __init__(self, work: Work, num_lanes: int, cores: int, devices: Sequence[Device]):
        used = devices[:num_lanes]
        self.programs = LaneProgram.compile(work, used or (None,))
        self.slots = max(cores, len(used)) if used and used[0].platform != "cpu" else cores

    def submit(self, number: int, lane: LaneInput, segment: Segment) -> Future[AdvancedLane]:
        """Advance a lane on a thread of its own; the loop asks for no more than `slots` at a time."""
        program = self.programs[number % len(self.programs)]
        return on_own_thread(partial(program.advance, lane, segment), "a chain")

    def close(self) -> None:
        """Nobody waits for what still runs after an error: it may be stuck, and its threads keep nothing alive."""


def check_devices(devices: Any) -> list[Device]:
    """The devices to use, none for the one that JAX takes by itself.

    Unless told otherwise, all that an accelerator has; of a CPU one, as its devices share their cores anyway.
    """
    here = jax.local_devices()
    if devices is None:
        return here if len(here) > 1 and here[0].platform != "cpu" else []
    if isinstance(devices, Sequence) and devices and all(isinstance(device, jax.Device) for device in devices):
        return list(devices)
    if isinstance(devices, bool) or not isinstance(devices, int):
        raise TypeError(f"devices must be a number or a list of JAX devices; got {checks.describe(devices)}.")
    if not 1 <= devices <= len(here):
        raise ValueError(f"devices must be between 1 and {len(here)}, which JAX has here; got {devices}.")
    return here[:devices]


def available_cores() -> int:
    """The cores this process may use, which a container or batch system may have limited."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
