"""The evidence: two bridges, from the base to the instrument and from there to the target."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pseudo_extended.tempering.path import Path, cells_given


def share_of_others(log_weight: Float[Array, " particle"]) -> Float[Array, " particle"]:
    """How much each pseudo-sample counts as one that does not carry the target: 1 - w, normalised."""
    return (1 - jax.nn.softmax(log_weight)) / (log_weight.shape[0] - 1)


def log_masses(path: Path, delta: Float[Array, " particle"]) -> Float[Array, " particle"]:
    """log q/γ0 at points with these Δ; -inf where the target vanishes."""
    in_support = ~jnp.isneginf(delta)
    log_mass = cells_given(path, jnp.where(in_support, delta, 0.0)).log_mass
    return jnp.where(in_support, log_mass, -jnp.inf)


def bridges(
    log_weight: Float[Array, " particle"],
    log_mass: Float[Array, " particle"],
    fresh_log_mass: Float[Array, " particle"] | None,
) -> tuple[Float[Array, " 2"], Float[Array, " 2"]]:
    """Top and bottom of the two factors of Z/Z0 = Z/C · C/Z0, with C the mass of q.

    `log_weight` is log γ/q and `log_mass` log q/γ0 of the pseudo-samples, `fresh_log_mass` log q/γ0 of draws of the
    base. Each factor is a bridge half-way (Meng and Wong 1996), which needs draws of both its ends: those of γ are the
    pseudo-samples by their weight, those of q the same by one minus it, and those of γ0 what the refreshment offered,

        Z/C = E_q[√(γ/q)] / E_γ[√(q/γ)],        C/Z0 = E_γ0[√(q/γ0)] / E_q[√(γ0/q)].

    The density of t at the ends of the path would give both from q alone, but with heavy tails: γ0/q grows without
    bound where the base is far from the target. Where the base cannot be drawn from, that is all there is for C/Z0.
    """
    carries, others = jax.nn.softmax(log_weight), share_of_others(log_weight)
    target = _log_mean(0.5 * log_weight, others), _log_mean(-0.5 * log_weight, carries)
    if fresh_log_mass is None:
        base = jnp.zeros(()), _log_mean(-log_mass, others)
    else:
        base = (
            _log_mean(0.5 * fresh_log_mass, jnp.full(fresh_log_mass.shape, 1 / fresh_log_mass.size)),
            _log_mean(-0.5 * log_mass, others),
        )
    return jnp.stack([target[0], base[0]]), jnp.stack([target[1], base[1]])


def _log_mean(values: Float[Array, " particle"], share: Float[Array, " particle"]) -> Float[Array, ""]:
    """log Σ share exp(values), in fewer operations than `logsumexp`; -inf where all values are.

    What has no share has no say in `top` either: a pseudo-sample far out, where γ/q is exp(-3000), would drown all
    others, and the mean would be zero.
    """
    values = jnp.where(share > 0, values, -jnp.inf)
    top = jnp.max(values)
    top = jnp.where(jnp.isneginf(top), 0.0, top)
    return top + jnp.log(jnp.sum(share * jnp.exp(values - top)))
