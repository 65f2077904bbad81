"""Exact draws of points at given places on a path with rows of g, in any dimension, by resampling."""

import jax
import numpy as np

from pseudo_extended.precision import double_precision

NUM_PROPOSED = 400_000


def at_places(target, density, base, path, places):
    """One point for each place t, side by side: draws of the base and of the target, accepted by γ_β g.

    `density` is the normalised mixture that the target is; `path` has three nodes.
    """
    with double_precision():
        own = target.with_base(base)
        label_of, point = jax.jit(jax.vmap(base.label)), jax.jit(jax.vmap(own.path_point))
        draw = jax.jit(jax.vmap(own.draw_base))

    def draws(rng, size):
        with double_precision():
            keys = jax.random.split(jax.random.key(int(rng.integers(2**31))), NUM_PROPOSED)
            half = density.draw(rng, NUM_PROPOSED)
            x = np.where(rng.uniform(size=NUM_PROPOSED)[:, None] < 0.5, np.asarray(draw(keys)), half)
            points, label = point(x), np.asarray(label_of(x))
        log_base, delta = np.asarray(points.log_base), np.asarray(points.delta)
        log_proposal = np.logaddexp(log_base, log_base + delta)
        chosen = []
        for t in places:
            log_g = np.stack([np.interp(t, [0, 0.5, 1], row) for row in np.asarray(path.log_g).T])
            beta = np.interp(t, [0, 0.5, 1], np.asarray(path.beta))
            log_weight = log_base + beta * delta + log_g[label] - log_proposal
            accept = np.exp(log_weight - log_weight.max())
            kept = np.flatnonzero(rng.uniform(size=NUM_PROPOSED) < accept)
            assert len(kept) >= size
            chosen.append(x[rng.permutation(kept)[:size]])
        return np.concatenate(chosen, axis=1)

    return draws
