"""A user's own instrument q (eqs. 2 and 3)."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from pseudo_extended.checks import describe
from pseudo_extended.instruments.abstract import AbstractStaticInstrument, Terms
from pseudo_extended.target import PathPoint, Target
from pseudo_extended.target.bases import AbstractBase, Base


class Density(AbstractStaticInstrument):
    """A given q: a log density in the user's own space, up to a constant, or a base such as `pe.Normal()`.

    q must be positive wherever the target is, with tails at least as heavy, or the weights have no finite variance.

    >>> from pseudo_extended.target.bases import Normal
    >>> Density(Normal(0.0, 2.0)).num_auxiliary(2)
    0
    """

    q: AbstractBase

    def __init__(self, log_q: Callable[[PyTree], Array] | AbstractBase):
        if isinstance(log_q, type) or not (isinstance(log_q, AbstractBase) or callable(log_q)):
            raise TypeError(
                f"log_q of Density must be a log density or a base like pe.Normal(); got {describe(log_q)}."
            )
        self.q = log_q if isinstance(log_q, AbstractBase) else Base(log_q)

    def check(self, target: Target, num_particles: int) -> None:
        """q must fit the target's dimension and return one float."""
        del num_particles
        self.q.check("q of Density", target.dim)
        if isinstance(self.q, Base):
            target.check_density("log_q of Density", self.q.function)

    def terms(
        self, target: Target, x: Float[Array, "particle d"], path: PathPoint, auxiliary: Float[Array, " auxiliary"]
    ) -> Terms:
        """log q, and log weight = log γ - log q."""
        del auxiliary
        log_q = jax.vmap(self._log_q_of(target))(x)
        return Terms(log_q, path.log_target - log_q, jnp.zeros(()))

    def _log_q_of(self, target: Target) -> Callable[[Float[Array, " d"]], Any]:
        def log_q(u: Float[Array, " d"]) -> Any:
            position, log_det = target.constrain_with_log_det(u)
            return self.q.log_density(u, position, log_det)

        return log_q
