"""g by mode: a row of log g for each mode of a mixture base, so that heat does not move mass between modes.

Power tempering changes the relative mass of modes of different width or shape by a factor exponential in the
dimension. Let a(x) be the label of x: the mode of the base that is most likely to have made it. With

    p(k, x, t) ∝ γ(x_k) Π_{j≠k} γ_{β(t_j)}(x_j) g(t_j, a(x_j)),

and g(t, a) in inverse proportion to the mass that γ_β(t) has in mode a over the mass that γ has there, every mode keeps
its mass all along the path (weight-preserving tempering: Tawn, Roberts, Rosenthal 2020). The label is a function of x,
so the draws of k and t given x keep their closed forms with the row of x; a move of x at fixed t has the target
γ_β(x) g(t, a(x)). Whatever the rows are, the target's own pseudo-sample does not see them, and nothing is biased.

The last row, -1, is that of the broad part of the base, which has little mass at the target and would vanish along the
whole path if it kept it. So it is what all modes together would have as one row, 1/Z(β), and the broad part is visited
as with one row for all.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from pseudo_extended.tempering.path import Path, hats
from pseudo_extended.tempering.temperatures import RowVisits, running_average

FEWEST = 0.02
"""The share of the visits that a mode counts as having at least: the rarer it is, the longer are its updates."""


def with_rows(path: Path, num_modes: int) -> Path:
    """The path with a row for each mode and one for the broad part, all alike."""
    log_g = np.broadcast_to(np.asarray(path.log_g)[:, None], (*path.log_g.shape, num_modes + 1))
    return path._replace(log_g=jax.device_put(log_g.copy()))


def log_g_at(path: Path, label: Int[Array, " particle"], t: Float[Array, " particle"]) -> Float[Array, " particle"]:
    """Return log g(t, a), interpolated between nodes."""
    num_rows = path.log_g.shape[1]
    rows = jnp.sum(hats(path.num_cells, t)[..., None] * path.log_g, axis=-2)
    return jnp.sum(jnp.where(label[..., None] % num_rows == jnp.arange(num_rows), rows, 0.0), axis=-1)


def adapt_rows(
    path: Path,
    share: Float[Array, "cell particle"],
    others: Float[Array, " particle"],
    weight: Float[Array, " particle"],
    label: Int[Array, " particle"],
    visits: RowVisits,
    num_updates: Float[Array, ""],
) -> tuple[Path, RowVisits]:
    """Each row towards even visits of the path within its mode; zero at the target.

    As `adapt_g`, where `share` is the probability of each cell given each point and `others` how much each point counts
    as one that does not carry the target; `weight` is how much it counts as one that does. Updates of a row fall with
    the visits of its mode, and not with all.
    """
    num_rows = path.log_g.shape[1]
    here = (label[:, None] % num_rows == jnp.arange(num_rows)).astype(float)
    now = jnp.sum(others[:, None] * here, axis=0)
    number = visits.number + now
    excess = jnp.sum((share * others)[:, :, None] * here, axis=1) * path.num_cells - now
    rarity = jnp.maximum(number / num_updates, FEWEST)
    change = -jnp.clip(excess / (number + 20 * rarity), -1.0, 1.0)
    ends = jnp.concatenate([change[:1], change, change[-1:]])
    log_g = path.log_g + 0.5 * (ends[1:] + ends[:-1])
    mass = running_average(visits.mass, jnp.sum(weight[:, None] * here, axis=0), num_updates)
    return path._replace(log_g=anchored(log_g, mass)), RowVisits(number, mass)


def anchored(log_g: Float[Array, "node label"], mass: Float[Array, " label"]) -> Float[Array, "node label"]:
    """Zero at the target in all rows, and the last row, of the broad part, made from the others."""
    modes = (log_g - log_g[-1])[:, :-1]
    log_mass = jnp.log(mass[:-1] + 1e-6)
    together = -jax.nn.logsumexp(log_mass - modes, axis=1)
    return jnp.concatenate([modes, (together - together[-1])[:, None]], axis=1)
