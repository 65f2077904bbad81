"""A different instrument for each pseudo-sample (the discussion's mixture of proposals q_i)."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pseudo_extended import checks
from pseudo_extended.instruments.abstract import AbstractInstrument, Terms
from pseudo_extended.target import PathPoint, Target


class PerParticle(AbstractInstrument):
    """q_i for pseudo-sample i: any of the other instruments, mixed freely.

    Draws are exact whatever the masses of the q_i; pseudo-sample i carries the target in a share of the draws that is
    inversely proportional to the mass of its q_i, so normalised densities share it evenly.

    >>> from pseudo_extended.instruments.ladder import Fixed
    >>> from pseudo_extended.instruments.tempered import Tempered
    >>> PerParticle([Fixed(0.1), Tempered(0.1), Tempered(0.5)]).num_auxiliary(3)
    2
    """

    instruments: tuple[AbstractInstrument, ...]

    def __init__(self, instruments: Sequence[AbstractInstrument]):
        if isinstance(instruments, AbstractInstrument) or not isinstance(instruments, Sequence) or not instruments:
            raise TypeError(
                f"instruments of PerParticle must be a list with one instrument for each pseudo-sample; "
                f"got {checks.describe(instruments)}."
            )
        for i, instrument in enumerate(instruments):
            checks.instance(f"instruments[{i}] of PerParticle", instrument, AbstractInstrument, "an instrument")
        self.instruments = tuple(instruments)

    def check(self, target: Target, num_particles: int) -> None:
        """Require as many instruments as pseudo-samples, each of which fits a single one."""
        if len(self.instruments) != num_particles:
            raise ValueError(
                f"instruments of PerParticle must have one entry for each of the {num_particles} pseudo-samples; "
                f"got {len(self.instruments)}."
            )
        for instrument in self.instruments:
            instrument.check(target, 1)

    def num_auxiliary(self, num_particles: int) -> int:
        """The sum over the parts."""
        del num_particles
        return self._offsets()[-1]

    def start(self, key: Key[Array, ""], num_particles: int) -> Float[Array, " auxiliary"]:
        """Each part's own start."""
        keys = jax.random.split(key, num_particles)
        return jnp.concatenate([part.start(k, 1) for part, k in zip(self.instruments, keys, strict=True)])

    def betas(self, num_particles: int, auxiliary: Float[Array, " auxiliary"]) -> Float[Array, " particle"]:
        """Each part's own β."""
        del num_particles
        parts = zip(self.instruments, self._split(auxiliary), strict=True)
        return jnp.concatenate([part.betas(1, share) for part, share in parts])

    def terms(
        self, target: Target, x: Float[Array, "particle d"], path: PathPoint, auxiliary: Float[Array, " auxiliary"]
    ) -> Terms:
        """Each part's terms for its own pseudo-sample, side by side."""
        parts = []
        for i, (part, share) in enumerate(zip(self.instruments, self._split(auxiliary), strict=True)):
            one = PathPoint(*(values[i : i + 1] for values in path))
            parts.append(part.terms(target, x[i : i + 1], one, share))
        log_q, log_weight, log_auxiliary = zip(*parts, strict=True)
        return Terms(jnp.concatenate(log_q), jnp.concatenate(log_weight), jnp.sum(jnp.stack(log_auxiliary)))

    def _offsets(self) -> list[int]:
        return [0, *accumulate(part.num_auxiliary(1) for part in self.instruments)]

    def _split(self, auxiliary: Float[Array, " auxiliary"]) -> list[Float[Array, " share"]]:
        offsets = self._offsets()
        return [auxiliary[a:b] for a, b in pairwise(offsets)]
