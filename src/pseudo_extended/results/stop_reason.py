"""Why a run ended: one type for the loop, the store, the command and the result."""

from enum import StrEnum


class StopReason(StrEnum):
    """What ended a run before all its draws were made; each member equals its text, as in `stopped == "time_limit"`.

    >>> StopReason("time_limit") is StopReason.TIME_LIMIT, StopReason.TIME_LIMIT == "time_limit"
    (True, True)
    """

    ENOUGH = "enough"
    """A stopping rule was met, such as `target_ess`."""
    EVALUATIONS = "evaluations"
    """More draws would have taken more evaluations of the density than the run may make."""
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"
    """Ctrl-C was pressed."""
    TERMINATED = "terminated"
    """The process was asked to end, by SIGTERM."""
    CALLBACK = "callback"
    """The user's `callback` returned something true."""
    ABORTED = "aborted"
    """`Run.abort` was called."""
    MEMORY = "memory"
    """There was no room for more draws without a store."""
    FAILED = "failed"
    """An error ended it; only a store shows such a run."""
    RUNNING = "running"
    """It has not ended, or could not record how."""

    @property
    def sentence(self) -> str | None:
        """What a result says about it; None where that needs no words."""
        return _SENTENCES.get(self)


_SENTENCES = {
    StopReason.INTERRUPTED: "interrupted",
    StopReason.TERMINATED: "ended by SIGTERM",
    StopReason.TIME_LIMIT: "stopped by time_limit",
    StopReason.ABORTED: "aborted",
    StopReason.FAILED: "ended by an error",
    StopReason.MEMORY: "stopped because memory would have run out (a store= has room)",
}


def stop_reason(text: str | None) -> StopReason | None:
    """The reason that a manifest has as text; None for a run that made all its draws."""
    return None if text is None else StopReason(text)


def has_enough(stopped: str | None) -> bool:
    """Whether a run made all its draws, or as many as its stopping rule asked for or allowed."""
    return stopped is None or StopReason(stopped) in (StopReason.ENOUGH, StopReason.EVALUATIONS)
