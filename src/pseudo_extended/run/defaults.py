"""What a run does where the user did not say."""

from pseudo_extended.kernels import RandomWalk
from pseudo_extended.methods import AbstractMethod, AdaptivePseudoExtended
from pseudo_extended.target import Target


def default_method(target: Target) -> AbstractMethod:
    """Index Gibbs; with random walks as its local moves where the target has no gradient."""
    return AdaptivePseudoExtended() if target.is_differentiable else AdaptivePseudoExtended(kernel=RandomWalk())


def notes_about(target: Target) -> tuple[str, ...]:
    """What a user should know about how the target was made."""
    notes = () if target.view is None else target.view.facts.notes
    if target.is_differentiable:
        return notes
    return (
        *notes,
        "log_density is called in Python and has no gradient: local moves are random walks. A JAX function (jax.numpy "
        "instead of numpy), or pe.from_numpy(log_density, gradient), is sampled better.",
    )
