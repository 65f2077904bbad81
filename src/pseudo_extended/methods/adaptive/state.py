"""The state of the adaptive method, and the account of one of its steps."""

from typing import NamedTuple

from jaxtyping import Array, Bool, Float, Int

from pseudo_extended.kernels import KernelInfo, TemperedPoint
from pseudo_extended.methods.adaptive.target_moves import TargetInfo


class AdaptiveState(NamedTuple):
    """N pseudo-samples, their places on the path, and which of them carries the target."""

    points: TemperedPoint
    t: Float[Array, " particle"]
    """Places on the path; that of the target's pseudo-sample means nothing, it is at the target."""
    carrier: Int[Array, ""]
    log_weight: Float[Array, " particle"]
    """log γ(x)/q(x) with the temperature integrated out, where it is free."""
    last: "AdaptiveInfo"
    """The account of the step that led here."""
    label: Int[Array, " particle"] | None = None
    """The mode of the base that each is in, where g depends on it."""


class AdaptiveInfo(NamedTuple):
    """The account of one step: which moves were made, and how many of them were accepted."""

    beta: Float[Array, " particle"]
    """The inverse temperatures of the moves; 1 for the pseudo-sample that carried the target."""
    carrier: Bool[Array, " particle"]
    """True for the pseudo-sample that carried the target."""
    t: Float[Array, " particle"]
    """The places on the path of the moves."""
    move: KernelInfo
    """The account of the local moves, one entry for each pseudo-sample."""
    refresh_rate: Float[Array, " particle"]
    """The acceptance rate of the draw from the base that each was offered."""
    fresh_log_mass: Float[Array, " particle"]
    """log q/γ0 at the draws from the base that were offered; -inf where the target vanishes."""
    target_move: TargetInfo | None
    """The account of the moves of the target's pseudo-sample alone."""
    num_evaluations: Int[Array, ""]
    """Evaluations of the target in the whole step."""
    leap_rate: Float[Array, " leap"] | None = None
    """The acceptance rate of the leaps that were offered, the first of them to the carrier."""
